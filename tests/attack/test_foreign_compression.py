"""A foreign file does not choose how much memory its decompression takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from recollect.errors import FormatError
from recollect.formats.containers import FOREIGN_ZSTD_WINDOW, open_input


def compressed(window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, compression_level=1)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()  # without its size in the head
    return stream.compress(b"com,example)/ 1/1\n" * 1000) + stream.flush()


def test_a_published_map_with_a_window_of_gigabytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "map.ukvs.zst"
    file.write_bytes(compressed(31 if zstandard.WINDOWLOG_MAX >= 31 else 27))
    with open_input(file) as own:
        assert own.read(4) == b"com,"
    with pytest.raises(FormatError, match="zstd"), open_input(file, foreign=True) as stream:
        stream.read()


def test_usual_windows_are_read(tmp_path: Path) -> None:
    file = tmp_path / "map.ukvs.zst"
    file.write_bytes(compressed(FOREIGN_ZSTD_WINDOW.bit_length() - 1))
    with open_input(file, foreign=True) as stream:
        assert len(stream.read()) == 18_000


def test_the_first_bytes_of_a_file_are_unpacked_and_no_more() -> None:
    import tracemalloc

    import zstandard

    from recollect.sources.recognise import unpacked_head

    packer = zstandard.ZstdCompressor(level=1).compressobj()
    packed = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(128)), packer.flush()])
    assert len(packed) < 1 << 16
    tracemalloc.start()
    head = unpacked_head(packed)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert head == bytes(len(head)) and 0 < len(head) <= 1 << 16
    assert most < 16 << 20, "128 MB are in these few bytes"
