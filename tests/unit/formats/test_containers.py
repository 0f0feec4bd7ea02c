import bz2
import gzip
import io
import os
import subprocess
import sys
import threading

import pytest
import zstandard

import needs
from recollect.errors import FormatError, RecollectError
from recollect.formats.containers import AHEAD, LONGEST_LINE, PIECE, atomic_output, kind_of, open_input, whole_lines

TEXT = b"".join(b"com,example)/%d 1/1\n" % number for number in range(60_000))


def zstd_frames(text: bytes) -> bytes:
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    return zstandard.compress(text[:1000]) + skippable + zstandard.compress(text[1000:])


PACKERS = {
    "plain": lambda text: text,
    "gzip": gzip.compress,
    "gzip of many members": lambda text: b"".join(
        gzip.compress(text[i : i + 70_001]) for i in range(0, len(text), 70_001)
    ),
    "gzip padded with zeros": lambda text: gzip.compress(text) + b"\0" * 1000,
    "bzip2": bz2.compress,
    "bzip2 of two streams": lambda text: bz2.compress(text[:5000]) + bz2.compress(text[5000:]),
    "zstd": lambda text: zstandard.ZstdCompressor(write_checksum=True).compress(text),
    "zstd of frames": zstd_frames,
}


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("text", [b"", b"x", b"one\ntwo", TEXT], ids=["empty", "a byte", "no newline", "large"])
def test_inputs_are_recognised_by_content(tmp_path, packer, text):
    path = tmp_path / "name-that-lies.txt"
    path.write_bytes(PACKERS[packer](text))
    with open_input(path) as stream:
        assert stream.read() == text
        assert stream.damage == ""
    with open_input(path) as stream:
        assert list(stream) == list(io.BytesIO(text))
    with open_input(path) as stream:
        pieces = list(whole_lines(stream, size=1000))
        assert b"".join(pieces) == text
        assert all(piece.endswith(b"\n") for piece in pieces[:-1])
        assert stream.consumed == path.stat().st_size


def test_stdin_is_read_like_a_file(tmp_path):
    code = (
        "import sys; from recollect.formats.containers import open_input as o; sys.stdout.buffer.write(o('-').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=gzip.compress(TEXT), capture_output=True, check=True)
    assert done.stdout == TEXT


@pytest.mark.parametrize("packer", ["gzip", "gzip of many members", "bzip2", "zstd", "zstd of frames"])
@pytest.mark.parametrize("small", [True, False])
def test_a_cut_off_file_gives_what_there_is_then_complains_once(tmp_path, packer, small):
    text = TEXT[:2000] if small else TEXT
    packed = PACKERS[packer](text)
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) * 2 // 3])

    problems = []
    with open_input(path, problems.append) as stream:
        got = stream.read()
    assert text.startswith(got)
    assert [problem.file for problem in problems] == [str(path)]
    assert "cut off" in problems[0].reason

    got_again = b""
    with pytest.raises(FormatError, match="cut off"), open_input(path) as stream:
        while piece := stream.read(777):
            got_again += piece
    assert "cut off" in stream.damage
    assert got_again == got


def test_gzip_delivers_every_byte_before_the_cut(tmp_path):
    packed = gzip.compress(TEXT)
    path = tmp_path / "cut.gz"
    for missing in (1, 8, 9):  # in the checksum, all of it, one byte of the text
        path.write_bytes(packed[:-missing])
        with open_input(path, lambda problem: None) as stream:
            assert len(TEXT) - len(stream.read()) <= 300


def test_damage_that_no_one_read_up_to_is_reported_on_close(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"hello")[:-2])
    with pytest.raises(FormatError, match="cut off"), open_input(path) as stream:
        assert stream.read() == b"hello"


@pytest.mark.parametrize("packer", ["gzip", "bzip2", "zstd"])
def test_damage_in_the_middle_is_named(tmp_path, packer):
    packed = bytearray(PACKERS[packer](os.urandom(400_000)))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1] ^= 0xFF
    path = tmp_path / "damaged"
    path.write_bytes(packed)
    problems = []
    with open_input(path, problems.append) as stream:
        stream.read()
    assert "damaged" in problems[0].reason


def test_bytes_after_gzip_data_are_named(tmp_path):
    path = tmp_path / "junk.gz"
    path.write_bytes(gzip.compress(b"a\n") + b"junk")
    problems = []
    with open_input(path, problems.append) as stream:
        assert stream.read() == b"a\n"
    assert "not gzip data" in problems[0].reason


def test_half_a_line_before_damage_is_withheld_and_named(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"com,a)/ 1\ncom,bcd)/ 2\n", mtime=0)[:-10])
    problems = []
    with open_input(path, problems.append) as stream:
        got = b"".join(whole_lines(stream, problems.append))
    assert got == b"com,a)/ 1\n"
    assert [problem.reason.split()[0] for problem in problems] == ["gzip", "the"]


@pytest.mark.parametrize("length", [LONGEST_LINE + 2_000_000, LONGEST_LINE * 3])
@pytest.mark.parametrize("ending", [b"\nlast\n", b"\n", b""])
def test_lines_too_long_to_hold_are_left_out_and_counted_as_lines(tmp_path, length, ending):
    path = tmp_path / "long"
    path.write_bytes(b"first\n" + b"x" * length + ending)
    problems = []
    with open_input(path) as stream:
        got = b"".join(whole_lines(stream, problems.append))
    assert got == b"first\n" + ending
    assert ["more than 16 MB" in problem.reason for problem in problems] == [True]
    with pytest.raises(FormatError, match="more than 16 MB"), open_input(path) as stream:
        list(whole_lines(stream))


def test_threads_end_with_their_stream(tmp_path):
    path = tmp_path / "big.gz"
    # More than a reading thread may be ahead, so it is still there however slow this one is.
    path.write_bytes(gzip.compress(os.urandom((AHEAD + 4) * PIECE), 1))
    before = set(threading.enumerate())
    stream = open_input(path)
    stream.read(10)
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["recollect-read-ahead"]
    stream.close()
    stream = open_input(path)
    stream.read(10)
    del stream  # abandoned instead of closed
    assert set(threading.enumerate()) <= before


def test_a_folder_is_refused_with_a_hint(tmp_path):
    with pytest.raises(RecollectError, match="folder"):
        open_input(tmp_path)


@pytest.mark.parametrize("head", [b"", b"B", b"BZh is how this text starts", b"P*M", b"\x1f\x8b"])
def test_plain_text_that_resembles_a_container_stays_plain(head):
    assert kind_of(head) == "plain"


# -- writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["map.ukvs", "map.ukvs.gz", "map.ukvs.zst"])
def test_output_reads_back_and_leaves_nothing_beside(tmp_path, name):
    path = tmp_path / name
    with atomic_output(path) as out:
        for start in range(0, len(TEXT), 100_000):
            out.write(TEXT[start : start + 100_000])
        assert not path.exists()
    with open_input(path) as stream:
        assert stream.read() == TEXT
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "tool"), [("a.gz", "zcat"), ("a.zst", "zstdcat")])
def test_common_tools_read_our_compressed_files(tmp_path, name, tool):
    with atomic_output(tmp_path / name) as out:
        out.write(TEXT)
    command = needs.program(tool) if tool == "zstdcat" else tool
    done = subprocess.run([command, str(tmp_path / name)], capture_output=True, check=True)
    assert done.stdout == TEXT


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.zst"])
def test_a_failure_leaves_what_was_there(tmp_path, error, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_output(path) as out:
        out.write(TEXT)
        raise error
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_input_and_output_may_be_one_path(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(TEXT))
    with open_input(path) as stream, atomic_output(path) as out:
        for line in stream:
            out.write(line.upper())
    with open_input(path) as stream:
        assert stream.read() == TEXT.upper()


def test_modes_and_links_are_kept(tmp_path):
    real = tmp_path / "real.txt"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    with atomic_output(link) as out:
        out.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    with atomic_output(tmp_path / "fresh") as out:
        out.write(b"x")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o666 & ~mask


def test_devices_are_written_directly_and_missing_folders_named(tmp_path):
    with atomic_output("/dev/null") as out:
        out.write(b"x")
    with pytest.raises(RecollectError, match="folder does not exist"), atomic_output(tmp_path / "no" / "a.txt"):
        pass
    with pytest.raises(RecollectError, match="it is a folder"), atomic_output(tmp_path):
        pass
