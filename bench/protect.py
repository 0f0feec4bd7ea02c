"""Protection: 100 MB into 4,000 blocks and back, in seconds and memory, beside plain xz; growth of a page.

    make bench-protect ARGS='--size 100MB --blocks 4000 --need 2000'

Processes, one after the other, so that each has a peak of memory of its own: packing (tar and xz) against plain
`xz`, the search for secrets, coding with each code, decoding from `need` + 2 random blocks. The data is generated: text
that xz packs about 4 to 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recollect.protection.block import Block, Version, read, write
from recollect.protection.code import MARGIN, Code, available, decode, encode
from recollect.protection.keys import SigningKey
from recollect.protection.markup import carry
from recollect.protection.pack import Compression, archive, compress, gather
from recollect.protection.secrets import scan_stream
from recollect.quantities import format_size, parse_size

KEY = SigningKey(bytes(32))


def made_up(size: int) -> bytes:
    """Text with the redundancy of source code and dumps."""
    numbers = random.Random(1)
    words = [f"{numbers.getrandbits(40):x}" for _ in range(20_000)]
    pieces, length = [], 0
    while length < size:
        line = f"INSERT INTO t VALUES ({numbers.randrange(10**6)}, '{' '.join(numbers.choices(words, k=12))}');\n"
        pieces.append(line)
        length += len(line)
    return "".join(pieces).encode()[:size]


def timed(what: str, **values: object) -> None:
    print(json.dumps({"what": what, **values, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def pack(folder: Path, size: int) -> None:
    """tar and xz as `protect apply` does it, and xz alone over the same bytes."""
    (folder / "app").mkdir()
    data = made_up(size)
    for part in range(10):
        (folder / "app" / f"{part}.sql").write_bytes(data[part * size // 10 : (part + 1) * size // 10])
    began = time.perf_counter()
    (packing,) = gather([f"{folder}/app/"])
    packed = compress(archive(packing), Compression.XZ)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    plain = lzma.compress(data, preset=6)
    timed("pack", seconds=ours, xz=time.perf_counter() - began, bytes=len(packed), xz_bytes=len(plain))


def search(folder: Path, size: int) -> None:
    """The search for secrets in one dump of this size."""
    path = folder / "dump.sql"
    part = made_up(min(size, 10_000_000))
    with path.open("wb") as out:
        for at in range(0, size, len(part)):
            out.write(part[: size - at])
    del part
    began, cpu = time.perf_counter(), time.process_time()
    with path.open("rb") as stream:
        assert not list(scan_stream("dump.sql", stream))
    timed("search", seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)


def code(folder: Path, size: int, name: str, need: int, blocks: int) -> None:
    """Code an object of `size` bytes into blocks."""
    data = random.Random(2).randbytes(size)
    began = time.perf_counter()
    coded = encode(Code(name), data, need, range(blocks))
    seconds = time.perf_counter() - began
    chosen = random.Random(3).sample(range(blocks), need + MARGIN)
    (folder / name).write_bytes(b"".join(coded[n] for n in chosen))
    timed("code", seconds=seconds)


def uncode(folder: Path, size: int, name: str, need: int, blocks: int) -> None:
    """The object from need + 2 of its blocks."""
    chosen = random.Random(3).sample(range(blocks), need + MARGIN)
    data = (folder / name).read_bytes()
    width = len(data) // len(chosen)
    held = {number: data[n * width : (n + 1) * width] for n, number in enumerate(chosen)}
    del data
    began = time.perf_counter()
    found = decode(Code(name), size, need, held)
    assert found is not None and found == random.Random(2).randbytes(size)
    timed("decode", seconds=time.perf_counter() - began)


def sign(size: int, need: int, blocks: int) -> None:
    """Blocks as signed text in pages, and read again."""
    version = Version(
        "files", "20260101000000", "0" * 16, hashlib.sha256().hexdigest(), size, Code.GF256, need, KEY.public
    )
    payload = bytes(version.geometry.block_bytes)
    page = b"<!DOCTYPE html><html><head><title>x</title></head><body>" + b"<p>text</p>" * 2_000 + b"</body></html>"
    count = min(blocks, 400)
    began = time.perf_counter()
    pages = [carry(page, write(Block(version, n, blocks, payload), KEY)) for n in range(count)]
    written = time.perf_counter() - began
    began = time.perf_counter()
    assert all(isinstance(found, Block) for one in pages for found in read(one))  # type: ignore[arg-type]
    timed(
        "pages",
        seconds=written / count,
        read=(time.perf_counter() - began) / count,
        growth=len(pages[0]) - len(page),
    )  # type: ignore[arg-type]


def in_process(*arguments: object) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--step", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="100MB")
    parser.add_argument("--pack-size", help="how much to pack, which is what takes long  [default: as --size]")
    parser.add_argument("--blocks", type=int, default=4000)
    parser.add_argument("--need", type=int, default=2000)
    parser.add_argument("--codes", default="raptorq", help="raptorq,gf256; the second takes minutes at this size")
    parser.add_argument("--step", nargs="+")
    options = parser.parse_args()
    if options.step:
        step, *rest = options.step
        values = [int(value) if value.isdigit() else value for value in rest]
        functions = {"pack": pack, "code": code, "uncode": uncode, "sign": sign, "search": search}
        if step == "sign":
            sign(*values)
        else:
            functions[step](Path(str(values[0])), *values[1:])
        return
    size = parse_size(options.size)
    with tempfile.TemporaryDirectory() as folder:
        packed_size = parse_size(options.pack_size or options.size)
        packed = in_process("pack", folder, packed_size)
        xz_seconds = packed["xz"] * size / packed_size
        print(
            f"pack {format_size(packed_size)}: {packed['seconds']:.1f} s, peak {format_size(packed['peak'])}; plain xz "
            f"{packed['xz']:.1f} s (ratio {packed['seconds'] / packed['xz']:.2f}), bytes {packed['bytes']:,} "
            f"(ratio {packed['bytes'] / packed['xz_bytes']:.4f})"
        )
        searched = in_process("search", folder, size)
        print(
            f"search {format_size(size)} for secrets: {searched['seconds']:.1f} s, {searched['cpu']:.1f} CPU s "
            f"({size / 1e6 / searched['cpu']:.0f} MB/s), peak {format_size(searched['peak'])}"
        )
        for name in options.codes.split(","):
            if not available(Code(name)):
                print(f"{name} is not installed")
                continue
            there = in_process("code", folder, size, name, options.need, options.blocks)
            back = in_process("uncode", folder, size, name, options.need, options.blocks)
            both = there["seconds"] + back["seconds"]
            print(
                f"{name}: an object of {format_size(size)} into {options.blocks:,} blocks {there['seconds']:.1f} s, "
                f"peak {format_size(there['peak'])}; back from any {options.need + MARGIN:,} {back['seconds']:.1f} s, "
                f"peak {format_size(back['peak'])}; together {both / xz_seconds:.3f} of plain xz over as much"
            )
        pages = in_process("sign", size, options.need, options.blocks)
        there, back = pages["seconds"] * 1000, pages["read"] * 1000
        print(f"a page: {there:.2f} ms to sign and write, {back:.2f} ms to read and verify")
    small = in_process("sign", 900_000, 49, 123)
    print(f"a 0.9 MB object, need 49 of 123 pages: a page grows by {small['growth']:,} bytes")


if __name__ == "__main__":
    main()
