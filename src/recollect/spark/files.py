"""Files wherever Spark finds them: HDFS, S3 and others by URL, through Spark's own Hadoop client on the driver.

Hides py4j. A name with a scheme (`hdfs://`, `s3a://`, `file:///`) is Spark's business; a name without one is a path
that the driver and every worker can open by themselves, such as a shared mount or the one machine of `local[*]`.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import atomic_output, check_output

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_PART = re.compile(r"part-(\d+)")
# What an earlier run, or Spark's own writers, left in a folder of parts.
_OF_PARTS = re.compile(r"part-\d+.*|manifest\.json|_SUCCESS|\..+\.crc")


def is_url(name: str) -> bool:
    """Whether Spark has to open it."""
    return _URL.match(name) is not None


@dataclass(frozen=True, slots=True)
class Listed:
    """A file behind a URL."""

    url: str
    name: str
    size: int


class HadoopFiles:
    """Spark's file systems, from the driver."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark.sparkContext._jvm
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()

    def files(self, url: str) -> list[Listed]:
        """The files behind a URL: itself, those in a folder, or all that a glob matches; hidden ones left out."""
        try:
            system = self._system(url)
            found = system.globStatus(self._path(url))
        except Exception as error:  # whatever the file system's Java library throws
            raise _unusable(url, error) from error
        statuses = list(found or [])
        if not statuses:
            raise UsageError("no such file", where=url, hint="check the URL and Spark's settings for it")
        return sorted(
            (one for status in statuses for one in self._below(system, status)), key=lambda one: os.fsencode(one.url)
        )

    def _below(self, system: Any, status: Any) -> Iterator[Listed]:
        name = status.getPath().getName()
        if status.isFile():
            yield Listed(status.getPath().toString(), name, int(status.getLen()))
            return
        for child in system.listStatus(status.getPath()):
            if not child.getPath().getName().startswith((".", "_")):
                yield from self._below(system, child)

    def in_folder(self, url: str) -> list[str] | None:
        """The names of all that is in a folder, None if there is no such folder."""
        try:
            system, path = self._system(url), self._path(url)
            if not system.exists(path) or not system.getFileStatus(path).isDirectory():
                return None
            return [child.getPath().getName() for child in system.listStatus(path)]
        except Exception as error:  # whatever the file system's Java library throws
            raise _unusable(url, error) from error

    def head(self, url: str, size: int) -> bytes:
        """The first bytes of a file."""
        stream = self._system(url).open(self._path(url))
        try:
            # A copy on the Java side, because py4j hands over whole arrays only.
            out = self._jvm.java.io.ByteArrayOutputStream()
            self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, min(size, self._size(url)), False)
            return bytes(out.toByteArray())
        finally:
            stream.close()

    def _size(self, url: str) -> int:
        return int(self._system(url).getFileStatus(self._path(url)).getLen())

    def write(self, url: str, content: bytes) -> None:
        """A small file, at once."""
        out = self._system(url).create(self._path(url), True)
        out.write(bytearray(content))
        out.close()

    def rename(self, url: str, target: str) -> None:
        """Move a file or folder onto what may be there already."""
        system = self._system(target)
        system.delete(self._path(target), True)
        if not system.rename(self._path(url), self._path(target)):
            raise RecollectError("cannot rename", where=url, why=f"to {target}")

    def delete(self, url: str) -> None:
        """Remove a file or a folder with all that is in it."""
        self._system(url).delete(self._path(url), True)

    def join(self, names: Sequence[str], target: str) -> None:
        """Files one after the other as one."""
        out = self._system(target).create(self._path(target), True)
        for name in names:
            stream = self._system(name).open(self._path(name))
            self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, 1 << 20, False)
            stream.close()
        out.close()

    def _path(self, url: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(url)

    def _system(self, url: str) -> Any:
        return self._path(url).getFileSystem(self._conf)


def _unusable(url: str, error: Exception) -> RecollectError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return RecollectError(
        "Spark cannot read this",
        where=url,
        why=(lines[1] if len(lines) > 1 else lines[0] if lines else type(error).__name__).strip()[:300],
        hint="give Spark the file system's library and credentials with --conf; see docs/scale.md",
    )


class Target(Protocol):
    """Where a map is to be: tasks write below `staging`, and the driver puts it together."""

    staging: str

    def staged(self) -> dict[int, str]: ...
    def put(self, name: str, content: bytes) -> None: ...
    def move(self, staged: str, name: str) -> None: ...
    def as_map(self, names: Sequence[str]) -> None: ...
    def as_parts(self, names: Sequence[str]) -> None: ...
    def discard(self) -> None: ...


def target_of(spark: Any, output: str, *, as_parts: bool, temp_dir: str | None = None) -> Target:
    """The target of an output as people name it; `-` is stdout. Raises if it cannot be written, before all work."""
    if is_url(output):
        files = HadoopFiles(spark)
        _check_folder(output, files.in_folder(output), as_parts=as_parts)
        return RemoteTarget(files, output)
    if as_parts:
        folder = Path(output.rstrip("/") or "/")
        if folder.is_file():
            raise UsageError("a file where a folder of parts is to be", where=output)
        _check_folder(output, [one.name for one in folder.iterdir()] if folder.is_dir() else None, as_parts=True)
    else:
        check_output(output)
    return LocalTarget(output, temp_dir)


def _check_folder(output: str, names: Sequence[str] | None, *, as_parts: bool) -> None:
    """Refuse to put a map in the place of a folder that is more than an earlier map in parts."""
    if names is None:
        return
    if not as_parts:
        raise UsageError("a folder where a file is expected", where=output, hint="add --parts, or name a file in it")
    others = sorted(name for name in names if not _OF_PARTS.fullmatch(name))
    if others:
        raise UsageError(
            "a folder with more than a map in it would be replaced",
            where=output,
            why=f"{others[0]} is no part of a map",
            hint="name a folder that is not there yet, or an earlier map in parts",
        )


class LocalTarget:
    """A file or folder that this process can write. What is there stays until all is done."""

    def __init__(self, output: str, temp_dir: str | None) -> None:
        self._output = output
        name = f".recollect-{uuid.uuid4().hex[:12]}"
        where = Path(temp_dir or "/tmp") if output == "-" else Path(output.rstrip("/")).absolute().parent
        if output != "-" and not where.is_dir():
            raise RecollectError("no such folder", where=str(where), hint=f"mkdir -p {where}")
        self._folder = where / name
        (self._folder / "parts").mkdir(parents=True)
        self.staging = (self._folder / "staging").as_uri()

    def staged(self) -> dict[int, str]:
        staging = self._folder / "staging"
        return {int(found[1]): str(one) for one in staging.glob("part-*") if (found := _PART.match(one.name))}

    def put(self, name: str, content: bytes) -> None:
        (self._folder / "parts" / name).write_bytes(content)

    def move(self, staged: str, name: str) -> None:
        Path(staged).rename(self._folder / "parts" / name)

    def as_map(self, names: Sequence[str]) -> None:
        with atomic_output(self._output) as out:
            for name in names:
                with (self._folder / "parts" / name).open("rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)

    def as_parts(self, names: Sequence[str]) -> None:
        target, old = Path(self._output.rstrip("/")), self._folder / "old"
        try:
            if target.is_dir():
                # Renaming cannot replace a folder that has something in it.
                target.rename(old)
            (self._folder / "parts").rename(target)
        except BaseException:
            if old.is_dir():
                old.rename(target)
            raise

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class RemoteTarget:
    """A file or folder behind a URL."""

    def __init__(self, files: HadoopFiles, output: str) -> None:
        if output.endswith((".gz", ".bgz", ".zst", ".zstd")):
            hint = "leave out the suffix, or give a path here"
            raise UsageError("Spark writes maps by URL uncompressed", where=output, hint=hint)
        self._files = files
        self._output = output.rstrip("/")
        parent, _, _ = self._output.rpartition("/")
        self._folder = f"{parent}/.recollect-{uuid.uuid4().hex[:12]}"
        self.staging = f"{self._folder}/staging"

    def staged(self) -> dict[int, str]:
        found = self._files.files(self.staging)
        return {int(part[1]): one.url for one in found if (part := _PART.match(one.name))}

    def put(self, name: str, content: bytes) -> None:
        self._files.write(f"{self._folder}/parts/{name}", content)

    def move(self, staged: str, name: str) -> None:
        self._files.rename(staged, f"{self._folder}/parts/{name}")

    def as_map(self, names: Sequence[str]) -> None:
        joined = f"{self._folder}/joined"
        self._files.join([f"{self._folder}/parts/{name}" for name in names], joined)
        self._files.rename(joined, self._output)

    def as_parts(self, names: Sequence[str]) -> None:
        self._files.rename(f"{self._folder}/parts", self._output)

    def discard(self) -> None:
        self._files.delete(self._folder)
