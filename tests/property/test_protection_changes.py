"""The version of a class and its changes give the newest files back, whatever changed; hostile changes do no harm."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protected_sites import KEY
from recollect.errors import FormatError
from recollect.protection.changes import base_of, make, make_spliced, merge
from recollect.protection.chunks import Chunks, list_chunks

NAMES = st.sampled_from(["a", "b.txt", "dir/c", "dir/d.bin", "é", "dir"])
CONTENTS = st.binary(max_size=50) | st.integers(0, 5).map(lambda seed: Random(seed).randbytes(9000))
FILES = st.dictionaries(NAMES, st.tuples(CONTENTS, st.sampled_from([0o644, 0o755])), max_size=5)


def archive(files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files, key=str.encode):
            content, mode = files[name]
            info = tarfile.TarInfo(name)
            info.mode = mode
            if name == "dir":
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@given(FILES, FILES, st.integers(0, 8999))
def test_changes_lead_from_any_files_to_any_others(
    before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]], at: int
) -> None:
    for name, (content, mode) in before.items():  # some files differ by a byte
        if len(content) == 9000 and name not in after:
            after[name] = (content[:at] + b"!" + content[at + 1 :], mode)
    base, newest = archive(before), archive(after)
    changes = make(base, "f" * 64, newest)
    assert base_of(changes) == "f" * 64
    assert merge(base, changes) == newest
    chunks = Chunks.from_bytes(list_chunks(base, KEY.digest).to_bytes())
    spliced = make_spliced(chunks, "f" * 64, newest, KEY.digest)  # made without the base
    assert base_of(spliced) == "f" * 64 and merge(base, spliced) == newest


def test_a_changed_line_of_a_large_file_is_a_small_patch() -> None:
    content = Random(1).randbytes(2_000_000)
    changed = content[:1_000_000] + b"a line that is new\n" + content[1_000_000:]
    changes = make(archive({"dump.sql": (content, 0o644)}), "0" * 64, archive({"dump.sql": (changed, 0o644)}))
    assert len(changes) < 20_000


@given(st.binary(max_size=3000))
def test_other_archives_are_refused(data: bytes) -> None:
    base = archive({"a": (b"x", 0o644)})
    assert base_of(data) == ""
    with pytest.raises(FormatError):
        merge(base, data)
    with pytest.raises(FormatError):
        merge(base, base)


@given(st.integers(0, 4000), st.integers(0, 255))
def test_damaged_changes_are_refused_or_read(at: int, byte: int) -> None:
    base = archive({"a": (Random(2).randbytes(9000), 0o644)})
    changes = bytearray(make(base, "0" * 64, archive({"a": (Random(2).randbytes(9000)[:-1] + b"!", 0o644)})))
    changes[at % len(changes)] = byte
    with suppress(FormatError):
        merge(base, bytes(changes))
