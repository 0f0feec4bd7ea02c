"""Files wherever Spark finds them: HDFS, S3 and others by URL, through Spark's own Hadoop client on the driver.

Hides py4j. A name with a scheme (`hdfs://`, `s3a://`, `file:///`) is Spark's business; a name without one is a path
that the driver and every worker can open by themselves, such as a shared mount or the one machine of `local[*]`.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.parts import MANIFEST

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# Stores where a file appears at once when it is closed, and where renaming is copying.
_OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs"})
# Requests at once for what the driver asks about many files: each waits for the store most of its time.
_AT_ONCE = 32
_T = TypeVar("_T")
_R = TypeVar("_R")


def is_url(name: str) -> bool:
    """Whether Spark has to open it."""
    return _URL.match(name) is not None


@dataclass(frozen=True, slots=True)
class Listed:
    """A file at a URL."""

    url: str
    name: str
    size: int


class HadoopFiles:
    """Spark's file systems, from the driver."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._jvm = spark.sparkContext._jvm
        self._gateway = spark.sparkContext._gateway
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()

    def files(self, url: str) -> list[Listed]:
        """The files at a URL: itself, those in a folder, or all that a glob matches; hidden ones left out."""
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

    def in_folder(self, url: str) -> dict[str, int] | None:
        """The names of all that is in a folder and their sizes, None if there is no such folder."""
        try:
            system, path = self._system(url), self._path(url)
            if not system.exists(path) or not system.getFileStatus(path).isDirectory():
                return None
            return {child.getPath().getName(): int(child.getLen()) for child in system.listStatus(path)}
        except Exception as error:  # whatever the file system's Java library throws
            raise _unusable(url, error) from error

    def head(self, listed: Listed, size: int) -> bytes:
        """The first bytes of a file."""
        stream = self._system(listed.url).open(self._path(listed.url))
        try:
            # A copy on the Java side, because py4j hands over whole arrays only.
            out = self._jvm.java.io.ByteArrayOutputStream()
            self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, min(size, listed.size), False)
            return bytes(out.toByteArray())
        finally:
            stream.close()

    def parts(self, url: str) -> list[Listed] | None:
        """The parts of a map in a folder, in the order of its manifest; None if it has no manifest."""
        found = self.in_folder(url)
        if found is None or MANIFEST not in found:
            return None
        folder = url.rstrip("/")
        try:
            manifest = self.head(Listed(f"{folder}/{MANIFEST}", MANIFEST, found[MANIFEST]), found[MANIFEST])
            names = [str(one["name"]) for one in json.loads(manifest)["parts"]]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(
                "a manifest that names no parts", where=f"{folder}/{MANIFEST}", why=repr(error)
            ) from error
        for name in names:
            if name not in found:
                raise RecollectError("a part of a map is missing", where=f"{folder}/{name}", why=f"named in {MANIFEST}")
        return [Listed(f"{folder}/{name}", name, found[name]) for name in names]

    def schema(self, url: str) -> str:
        """The schema of a Parquet file, from its footer, as text."""
        parquet = self._jvm.org.apache.parquet.hadoop
        file = parquet.util.HadoopInputFile.fromPath(self._path(url), self._conf)
        reader = parquet.ParquetFileReader.open(file)
        try:
            # The first line has the name of the schema, which may differ where the columns do not.
            return str(reader.getFileMetaData().getSchema().toString()).partition("\n")[2]
        finally:
            reader.close()

    def write(self, url: str, content: bytes) -> None:
        """A small file, which takes the place of an earlier one at once."""
        self._placed(url, lambda out: out.write(bytearray(content)))

    def upload(self, path: str, url: str) -> None:
        """A copy of a file of the driver, which takes the place of an earlier one at once."""
        local = f"file:{path}"

        def copy(out: Any) -> None:
            self._copy(local, out)

        self._placed(url, copy)

    def join(self, names: Sequence[str], url: str) -> None:
        """Files one after the other as one, which takes the place of an earlier one at once."""

        def copy(out: Any) -> None:
            for name in names:
                self._copy(name, out)

        self._placed(url, copy)

    def download(self, url: str, path: str) -> None:
        """A copy of a file on the driver."""
        stream = self._jvm.java.io.FileOutputStream(path)
        try:
            self._copy(url, stream)
        finally:
            stream.close()

    def stamps(self, urls: Sequence[str]) -> list[tuple[str, int, int]]:
        """Each file with its size and when it was changed; one request for each folder."""
        folders = {url.rpartition("/")[0] for url in urls}
        try:
            found = {
                (folder, child.getPath().getName()): (int(child.getLen()), int(child.getModificationTime()))
                for folder in folders
                for child in self._system(folder).listStatus(self._path(folder))
            }
        except Exception as error:  # whatever the file system's Java library throws
            raise _unusable(urls[0], error) from error
        parts = [(url, *url.rpartition("/")[::2]) for url in urls]
        return [(url, *found.get((folder, name), (-1, -1))) for url, folder, name in parts]

    def delete(self, url: str) -> None:
        """Remove a file or a folder with all that is in it."""
        self._system(url).delete(self._path(url), True)

    def _copy(self, url: str, out: Any) -> None:
        stream = self._system(url).open(self._path(url))
        try:
            self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, 1 << 20, False)
        finally:
            stream.close()

    def _placed(self, url: str, fill: Callable[[Any], None]) -> None:
        """Write a file so that readers see the earlier one until it is whole."""
        whole = url.partition(":")[0].lower() in _OBJECT_STORES
        folder, _, name = url.rpartition("/")
        place = url if whole else f"{folder}/.{name}-{uuid.uuid4().hex[:12]}"
        system = self._system(place)
        try:
            out = system.create(self._path(place), True)
            try:
                fill(out)
            finally:
                out.close()
            if not whole:
                self._rename(place, url)
        except BaseException:
            if not whole:
                system.delete(self._path(place), False)
            raise

    def _rename(self, url: str, target: str) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        over = self._gateway.new_array(hadoop.Options.Rename, 1)
        over[0] = hadoop.Options.Rename.OVERWRITE
        context = hadoop.FileContext.getFileContext(self._path(target).toUri(), self._conf)
        context.rename(self._path(url), self._path(target), over)

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


def as_written(url: str) -> str:
    """A URL so that Hadoop takes it as it is, and not for a pattern or a list."""
    return re.sub(r"([\\{}\[\]*?,])", r"\\\1", url)


def spelling(url: str) -> str:
    """One spelling of a URL: `file:///a` and `file:/a` are one."""
    return "file:" + url.removeprefix("file://") if url.startswith("file:///") else url


def texts_of(batches: Iterable[Any]) -> Iterator[tuple[tuple[str, int], bytes]]:
    """Lines that come from Spark in Arrow batches of (line with its end, path, start of the split): one text for each
    batch and split in it, with path and start."""
    for batch in batches:
        yield from _texts(batch)


def _texts(batch: Any) -> Iterator[tuple[tuple[str, int], bytes]]:
    import numpy as np
    import pyarrow.compute as pc

    lines, paths, starts = batch.column(0), batch.column(1), batch.column(2)
    if not len(lines):
        return
    first = 0
    changes = pc.or_(pc.not_equal(paths[1:], paths[:-1]), pc.not_equal(starts[1:], starts[:-1]))
    cuts = (np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1).tolist() if len(lines) > 1 else []
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :]
    data = memoryview(lines.buffers()[2])
    for stop in (*cuts, len(lines)):
        path = spelling(unquote(paths[first].as_py()))
        yield (path, starts[first].as_py()), bytes(data[offsets[first] : offsets[stop]])
        first = stop


def lines_behind(spark: Any, urls: Sequence[str]) -> Any:
    """The lines of files as a frame for `texts_of`. Only a newline ends a line; each gets it back."""
    frame = spark.read.option("lineSep", "\n").text([as_written(url) for url in urls])
    return frame.selectExpr(
        "concat(cast(value as binary), X'0A') as line",
        "_metadata.file_path as path",
        "_metadata.file_block_start as start",
    )


def at_once(work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """What `work` gives for each item, in order, many of them asked for at once."""
    with ThreadPoolExecutor(_AT_ONCE, "recollect-files") as pool:
        yield from pool.map(work, items)
