"""Files by path or by URI (`s3://`, `gs://`, `hdfs://` and others that Arrow has), on this machine and on workers.

Credentials and endpoints are those of the environment, for S3 the usual `AWS_` variables.
"""

import io
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from fencepost.traces.files.trace_files import open_local
from fencepost.traces.pipeline import PipelineError

Location: TypeAlias = Path | str
"""Where something is: a path, or a URI."""
SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that other tools have for a scheme."""
BUFFER_BYTES = 1 << 20
RISING_COLUMNS = ("line", "sequence", "time", "of", "sent")
"""Numbers that rise a little from row to row. Their differences take less place than a dictionary of them, and less
time to read."""


class FoundFile(NamedTuple):
    """A file by its path or URI, with its size in bytes and the time of its last change in nanoseconds since 1970."""

    name: str
    size: int
    changed: int


class SizedFile(NamedTuple):
    """A file by its location, with its size in bytes."""

    location: str
    size: int


def is_uri(path: Location) -> bool:
    """Whether a location is on another file system."""
    return "://" in str(path)


def resolve_location(location: Location) -> Location:
    """The absolute path of a folder, given as a path or a `file:` URI; another URI, with the name that Arrow has for
    its scheme. Raises `PipelineError` for one that Arrow does not know."""
    scheme, colon, rest = str(location).partition(":")
    if not (colon and rest.startswith("/") and re.fullmatch(r"[a-z][a-z0-9+.-]+", scheme)):
        return Path(location).resolve()
    if scheme == "file":
        return Path(unquote(urlsplit(f"file:{rest}").path)).resolve()
    uri = f"{SCHEMES.get(scheme, scheme)}:{rest if rest.startswith('//') else f'/{rest}'}".rstrip("/")
    open_file_system(uri)
    return uri


def join_location(folder: Location, name: str) -> Location:
    """The location of a file below a folder."""
    return folder / name if isinstance(folder, Path) else f"{folder}/{name}"


def open_file_system(location: Location) -> tuple[FileSystem, str]:
    """The file system of a location, and the path in it. Raises `PipelineError`."""
    if not is_uri(location):
        return LocalFileSystem(), str(location)
    scheme, _, rest = str(location).partition("://")
    try:
        system, path = FileSystem.from_uri(f"{SCHEMES.get(scheme, scheme)}://{rest}")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PipelineError(f"{location}: {first_line(error)}") from None
    return system, str(path)


@contextmanager
def as_error_of(location: Location) -> Iterator[None]:
    """Turn errors of a file system in this block into `PipelineError`, but for a file that is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PipelineError(f"{location}: {first_line(error)}") from None


def find_files(location: Location, suffixes: tuple[str, ...] = ("",)) -> list[FoundFile]:
    """The file at a location, else all files below it with one of these suffixes, in the order of their paths. Raises
    `OSError` for a path, and `PipelineError` for a URI."""
    if isinstance(location, Path):
        below = (each for each in location.rglob("*") if each.name.endswith(suffixes) and each.is_file())
        paths = sorted(below) if location.is_dir() or not location.exists() else [location]
        return [FoundFile(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in paths]
    system, path = open_file_system(location)
    with as_error_of(location):
        (root,) = system.get_file_info([path])
        found = [root]
        if root.type != FileType.File:
            every = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
            found = [each for each in every if each.type == FileType.File and each.path.endswith(suffixes)]
    parts = urlsplit(location)
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    host = "" if scheme in ("s3", "gs") else parts.netloc
    return [
        FoundFile(f"{scheme}://{host}{quote(each.path)}", int(each.size), int(each.mtime_ns or 0))
        for each in sorted(found, key=lambda each: str(each.path))
    ]


def name_below(file: Location, folder: Location) -> str:
    """The name of a file below a folder, with slashes."""
    if isinstance(folder, Path):
        return Path(file).relative_to(folder).as_posix()
    return unquote(str(file)).removeprefix(f"{unquote(folder)}/")


def file_sizes(folder: Location, names: Iterable[str]) -> list[int | None]:
    """The sizes in bytes of files below a folder; None for one that is not there. Raises `PipelineError`."""
    system, root = open_file_system(folder)
    with as_error_of(folder):
        return [each.size for each in system.get_file_info([f"{root}/{name}" for name in names])]


def open_input(path: str) -> BinaryIO:
    """Open the file at a path or a URI. Raises `OSError`."""
    if not is_uri(path):
        return open_local(path)
    try:
        system, name = open_file_system(path)
        stream = system.open_input_stream(name, compression=None, buffer_size=BUFFER_BYTES)
    except PipelineError as error:
        raise OSError(str(error)) from None
    return cast(BinaryIO, io.BufferedReader(stream))


def read_text(location: Location) -> str:
    """The text of a file. Raises `FileNotFoundError`, and `PipelineError` if a file system does not respond."""
    system, name = open_file_system(location)
    with as_error_of(location), system.open_input_stream(name) as stream:
        return bytes(stream.read()).decode()


def write_text(location: Location, text: str) -> None:
    """Write a file, which is there as a whole or not at all. Raises `PipelineError`."""
    system, name = open_file_system(location)
    is_object = not isinstance(system, LocalFileSystem)  # an object store has whole objects only
    partial = name if is_object else f"{name}.{uuid.uuid4().hex}.partial"
    with as_error_of(location):
        with system.open_output_stream(partial) as out:
            out.write(text.encode())
        if partial != name:
            system.move(partial, name)


def claim_folder(mark: Location, purpose: Mapping[str, Any]) -> Mapping[str, Any]:
    """The purpose of a folder, which its file `mark` tells; if there is no such file, it is written with this
    `purpose`. Raises `PipelineError`."""
    try:
        known = json.loads(read_text(mark))
    except FileNotFoundError:
        write_text(mark, json.dumps(purpose, indent=1) + "\n")
        return purpose
    except ValueError:
        known = None
    if not isinstance(known, dict):
        raise PipelineError(f"{mark} is damaged")
    return known


def remove_file(location: Location) -> None:
    """Remove a file, if it is there. Raises `PipelineError`."""
    system, name = open_file_system(location)
    try:
        with as_error_of(location):
            system.delete_file(name)
    except FileNotFoundError:
        pass


def open_parquet(location: Location, encoded: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file; the columns `encoded` are read as dictionaries. Raises `OSError` and `PipelineError`."""
    system, name = open_file_system(location)
    return pq.ParquetFile(system.open_input_file(name), read_dictionary=encoded)


class ParquetFiles:
    """New Parquet files below a folder, each with the rows that were added under its name; `sizes` has those that are
    complete, with their sizes in bytes."""

    def __init__(self, folder: Location) -> None:
        self.folder = folder
        self.sizes: dict[str, int] = {}
        self.writers: dict[str, pq.ParquetWriter] = {}

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Write rows into a file."""
        if name not in self.writers:
            self.writers[name] = open_parquet_output(join_location(self.folder, name), batch.schema)
        self.writers[name].write_batch(batch)

    def __enter__(self) -> "ParquetFiles":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for writer in self.writers.values():
            writer.close()
        if kind is None:
            sizes = file_sizes(self.folder, self.writers)
            self.sizes |= {name: size or 0 for name, size in zip(self.writers, sizes, strict=True)}


def open_parquet_output(location: Location, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a new Parquet file; creates the folder that it is in. Raises `OSError` and `PipelineError`."""
    rising = [name for name in schema.names if name in RISING_COLUMNS]
    if isinstance(location, Path):
        location.parent.mkdir(parents=True, exist_ok=True)
    system, name = open_file_system(location)
    return pq.ParquetWriter(
        name,
        schema,
        filesystem=system,
        compression="zstd",
        use_dictionary=[name for name in leaf_columns(schema) if name not in rising],
        column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    )


def leaf_columns(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield the names that Parquet has for the columns of values below some fields."""
    for field in fields:
        name = f"{above}{field.name}"
        if pa.types.is_list(field.type):
            yield from leaf_columns([field.type.value_field.with_name("element")], f"{name}.list.")
        elif pa.types.is_struct(field.type):
            yield from leaf_columns(field.type, f"{name}.")
        else:
            yield name


def make_schema(columns: str) -> pa.Schema:
    """The schema of columns that are written as `name type, ...`, with Arrow's names of types; a list is `[type]`, and
    an `instant` a time on the clock in microseconds, in UTC."""
    return pa.schema((name, type_named(kind)) for name, kind in (column.split() for column in columns.split(",")))


def type_named(kind: str) -> pa.DataType:
    """The type of a column by its name in a schema."""
    if kind.startswith("["):
        return pa.list_(type_named(kind[1:-1]))
    return pa.timestamp("us", "UTC") if kind == "instant" else pa.type_for_alias(kind)


def to_record_batches(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches of at most `size` rows; no batch if there are no rows."""
    source = iter(rows)
    while held := list(islice(source, size)):
        columns = zip(*held, strict=True)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def first_line(error: BaseException) -> str:
    """The first line of the message of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)
