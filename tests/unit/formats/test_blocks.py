import gzip
import os
import threading

import pytest
import zstandard

from recollect.errors import FormatError
from recollect.formats import blocks
from recollect.formats.blocks import BlockFile
from recollect.formats.blockwriter import BGZF, BGZF_TEXT, BlockWriter
from recollect.formats.containers import atomic_output

KEYS = sorted({b"com,example%d)/path/%d" % (number % 97, number * 7919 % 100_003) for number in range(30_000)})
LINES = [b'!fields {"keys": ["surt"], "values": ["frequency"]}', *(key + b" 12/3" for key in KEYS)]
TEXT = b"".join(line + b"\n" for line in LINES)


def written(path, text=TEXT):
    with atomic_output(path) as out:
        out.write(text)
    return path


def foreign_bgzf(path, text=TEXT, size=5000):
    """As `bgzip` does: blocks end anywhere, not at a line."""
    from recollect.formats.blockwriter import BGZF_END, _bgzf_member

    path.write_bytes(b"".join(_bgzf_member(text[i : i + size]) for i in range(0, len(text), size)) + BGZF_END)
    return path


@pytest.fixture(params=["plain", "bgzf", "foreign bgzf", "zstd", "gzip of one piece", "zstd of one piece"])
def file(request, tmp_path):
    if request.param == "foreign bgzf":
        path = foreign_bgzf(tmp_path / "m.gz")
    elif request.param == "gzip of one piece":
        path = tmp_path / "m.gz"
        path.write_bytes(gzip.compress(TEXT))
    elif request.param == "zstd of one piece":
        path = tmp_path / "m.zst"
        path.write_bytes(zstandard.compress(TEXT))
    else:
        path = written(tmp_path / {"plain": "m.txt", "bgzf": "m.gz", "zstd": "m.zst"}[request.param])
    with BlockFile.open(path) as opened:
        yield opened


def test_every_key_is_found_and_no_other(file):
    for key in [*KEYS[::97], KEYS[0], KEYS[-1]]:
        assert file.find(key) == key + b" 12/3"
        assert file.find(key[:-1]) in (None, key[:-1] + b" 12/3")
        assert file.find(key + b"!") is None
    assert file.find(b"zzz") is None
    assert file.find(b"com,example)/") is None


def test_lines_follow_from_any_key(file):
    assert list(file.lines_from(b"")) == LINES
    for key in (KEYS[0], KEYS[1234], KEYS[1234] + b"x", KEYS[-1], b"zzz"):
        assert list(file.lines_from(key)) == [line for line in LINES if line >= key]


def test_text_is_addressed_like_a_plain_file(file):
    assert file.size == len(TEXT)
    for offset, count in [
        (0, 10),
        (5, 0),
        (4999, 3),
        (65_279, 200_000),
        (len(TEXT) - 3, 10),
        (len(TEXT), 5),
        (10**9, 5),
    ]:
        assert file.read(offset, count) == TEXT[offset : offset + count]


def test_threads_share_a_file(file):
    wrong = []

    def search(start):
        wrong.extend(key for key in KEYS[start::501] if file.find(key) != key + b" 12/3")

    threads = [threading.Thread(target=search, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_few_blocks_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "KEPT_BLOCKS", 2)
    with BlockFile.open(foreign_bgzf(tmp_path / "m.gz")) as file:
        assert all(file.find(key) for key in KEYS[::301])
        assert len(file._kept) <= 2


@pytest.mark.parametrize("name", ["m.txt", "m.gz", "m.zst"])
@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"a 1", b"a 1\n", b"a 1\nb 2", b"a 1\n" + b"b" * 300_000 + b" 2\nc 3\n", b"x" * 200_000],
    ids=["empty", "newline", "a line", "a line ended", "last without newline", "a long line", "only a long line"],
)
def test_odd_files_are_searched_too(tmp_path, name, text):
    with BlockFile.open(written(tmp_path / name, text)) as file:
        lines = text.split(b"\n")[:-1] + ([text.split(b"\n")[-1]] if not text.endswith(b"\n") and text else [])
        assert list(file.lines_from(b"")) == lines
        assert list(file.lines_from(b"c")) == [line for line in lines if line >= b"c"]
        for line in lines:
            word = line.split(None, 1)[:1]
            assert not word or file.find(word[0]) == line
        assert file.size == len(text)


def test_blocks_of_our_files_end_with_a_line(tmp_path):
    for name in ("m.gz", "m.zst"):
        with BlockFile.open(written(tmp_path / name)) as file:
            block = file.block_at(0)
            assert block.end < file.length
            while block is not None:
                assert block.text.endswith(b"\n") or not block.text
                block = file.block_at(block.end)


def test_text_that_does_not_compress_still_fits_its_blocks(tmp_path):
    text = os.urandom(3 * BGZF_TEXT)
    with BlockFile.open(written(tmp_path / "r.gz", text)) as file:
        assert file.read(0, len(text)) == text
    assert gzip.decompress((tmp_path / "r.gz").read_bytes()) == text


def test_a_block_start_in_the_text_is_not_a_block(tmp_path):
    """Stored text may contain the bytes that mark a block; the length after them shows that it is not a block."""
    inner = BGZF_TEXT * b"\x00" + b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x10\0" + os.urandom(60_000)
    with BlockFile.open(foreign_bgzf(tmp_path / "m.gz", inner, size=BGZF_TEXT)) as file:
        starts = set(file._container.offsets()[0])
        assert all(file._container.start_at(position) in starts for position in range(0, file.length - 28, 211))


def test_one_large_piece_is_refused_with_a_hint(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "SMALL", 1000)
    path = tmp_path / "m.gz"
    path.write_bytes(gzip.compress(TEXT))
    with pytest.raises(FormatError, match="cannot be searched") as refused:
        BlockFile.open(path)
    assert "recollect" in refused.value.hint


@pytest.mark.parametrize("name", ["m.gz", "m.zst"])
def test_damaged_blocks_are_named(tmp_path, name):
    path = written(tmp_path / name)
    raw = bytearray(path.read_bytes())
    for place in range(100, 400):
        raw[place] ^= 0x55
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="damaged file"), BlockFile.open(path) as file:
        list(file.lines_from(b""))


def test_a_seek_table_of_another_file_is_refused(tmp_path):
    path = written(tmp_path / "m.zst")
    raw = path.read_bytes()
    path.write_bytes(raw[:1000] + raw[1100:])
    with pytest.raises(FormatError, match="not of this file"):
        BlockFile.open(path)


@pytest.mark.parametrize("name", ["m.txt", "m.gz", "m.zst"])
def test_a_file_replaced_meanwhile_stays_as_it_was(tmp_path, name):
    path = written(tmp_path / name)
    with BlockFile.open(path) as file:
        written(path, b"com,other)/ 1\n")
        assert file.find(KEYS[77]) == KEYS[77] + b" 12/3"
    with BlockFile.open(path) as file:
        assert file.find(KEYS[77]) is None


def test_a_writer_takes_text_in_any_portions(tmp_path):
    for portion in (1, 7, 100_000):
        path = tmp_path / "p.gz"
        with path.open("wb") as handle:
            writer = BlockWriter(handle, BGZF)
            for start in range(0, 70_000, portion):
                writer.write(TEXT[start : min(start + portion, 70_000)])
            writer.finish()
        assert gzip.decompress(path.read_bytes()) == TEXT[:70_000]
