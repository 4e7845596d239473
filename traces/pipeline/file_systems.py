"""Files by path or by URI (`s3://`, `gs://`, `hdfs://` and others that Arrow has), on this machine and on workers.

Credentials and endpoints are those of the environment, for S3 the usual `AWS_` variables.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.files.trace_files import open_local
from fencepost.traces.pipeline.errors import PipelineError

Location: TypeAlias = Path | str
"""Where something is: a path, or a URI."""
SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that other tools have for a scheme."""
BUFFER_BYTES = 1 << 20
RISING_COLUMNS = ("line", "sequence", "time", "of", "sent")
"""Numbers that rise a little from row to row. Their differences take less place than a dictionary of them, and less
time to read."""


class FoundFile(NamedTuple):
    """A file by its URI, with its size in bytes and the time of its last change in nanoseconds since 1970."""

    uri: str
    size: int
    changed: int


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
    uri = f"{SCHEMES.get(scheme, scheme)}:{rest if rest.startswith('//') else f'/{rest}'}"
    place, question, options = uri.partition("?")
    open_file_system(uri)
    return place.rstrip("/") + question + options


def join_location(folder: Location, name: str) -> Location:
    """The location of a file below a folder."""
    if isinstance(folder, Path):
        return folder / name
    place, question, options = folder.partition("?")
    return f"{place}/{name}{question}{options}"


def open_file_system(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it. Raises `PipelineError`."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    scheme, _, rest = uri.partition("://")
    scheme = SCHEMES.get(scheme, scheme)
    if scheme == "s3":
        rest += endpoint_options(rest)
    try:
        system, path = FileSystem.from_uri(f"{scheme}://{rest}")
    except (ArrowException, OSError, ValueError) as error:
        raise PipelineError(f"{uri}: {first_line(error)}") from None
    return system, str(path)


def endpoint_options(place: str, environment: Mapping[str, str] = os.environ) -> str:
    """The options to add to a place in S3, so that it is found on the server that `AWS_ENDPOINT_URL` names, which Arrow
    does not look at."""
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if not endpoint or "endpoint_override=" in place:
        return ""
    scheme, _, server = endpoint.rpartition("://")
    options = urlencode({"scheme": scheme or "https", "endpoint_override": server.rstrip("/")})
    return ("&" if "?" in place else "?") + options


def storage_options(uri: str) -> dict[str, str]:
    """What Delta's library has to know of a place in S3 beside the environment: its server and region."""
    rest = uri.partition("://")[2]
    if not uri.startswith("s3://"):
        return {}
    told = dict(parse_qsl((rest + endpoint_options(rest)).partition("?")[2]))
    found = {"AWS_REGION": told["region"]} if "region" in told else {}
    if "endpoint_override" in told:
        scheme = told.get("scheme", "https")
        found["AWS_ENDPOINT_URL"] = f"{scheme}://{told['endpoint_override']}"
        found["AWS_ALLOW_HTTP"] = str(scheme == "http").lower()
    return found


def find_files(uri: str, suffixes: tuple[str, ...] = ("",)) -> list[FoundFile]:
    """The file at a URI, else all files below it with one of these suffixes, in the order of their paths. Raises
    `PipelineError`."""
    from pyarrow.fs import FileSelector, FileType

    system, path = open_file_system(uri)
    try:
        (root,) = system.get_file_info([path])
        found = [root]
        if root.type != FileType.File:
            below = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
            found = [each for each in below if each.type == FileType.File and each.path.endswith(suffixes)]
    except OSError as error:
        raise PipelineError(f"{uri}: {first_line(error)}") from None
    parts = urlsplit(uri)
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    host = "" if scheme in ("s3", "gs") else parts.netloc
    options = f"?{parts.query}" if parts.query else ""
    return [
        FoundFile(f"{scheme}://{host}{quote(each.path)}{options}", int(each.size), int(each.mtime_ns or 0))
        for each in sorted(found, key=lambda each: str(each.path))
    ]


def file_sizes(folder: Location, names: Iterable[str]) -> list[int | None]:
    """The sizes in bytes of files below a folder; None for one that is not there. Raises `PipelineError`."""
    if isinstance(folder, Path):
        return [path.stat().st_size if path.is_file() else None for path in (folder / name for name in names)]
    system, root = open_file_system(folder)
    try:
        return [each.size for each in system.get_file_info([f"{root}/{name}" for name in names])]
    except OSError as error:
        raise PipelineError(f"{folder}: {first_line(error)}") from None


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
    if isinstance(location, Path):
        return location.read_text(encoding="utf-8")
    system, name = open_file_system(location)
    try:
        with system.open_input_stream(name) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PipelineError(f"{location}: {first_line(error)}") from None


def write_text(location: Location, text: str) -> None:
    """Write a file; on an object store it is there as a whole or not at all. Raises `PipelineError` for a URI."""
    if isinstance(location, Path):
        location.write_text(text, encoding="utf-8")
        return
    system, name = open_file_system(location)
    try:
        with system.open_output_stream(name) as out:
            out.write(text.encode())
    except OSError as error:
        raise PipelineError(f"{location}: {first_line(error)}") from None


def remove_file(location: Location) -> None:
    """Remove a file, if it is there. Raises `PipelineError`."""
    if isinstance(location, Path):
        location.unlink(missing_ok=True)
        return
    system, name = open_file_system(location)
    try:
        system.delete_file(name)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise PipelineError(f"{location}: {first_line(error)}") from None


def open_parquet(location: Location, encoded: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file; the columns `encoded` are read as dictionaries. Raises `OSError` and `PipelineError`."""
    if not is_uri(location):
        return pq.ParquetFile(location, read_dictionary=encoded)
    system, name = open_file_system(str(location))
    return pq.ParquetFile(system.open_input_file(name), read_dictionary=encoded)


def open_parquet_output(location: Location, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a new Parquet file; creates the folder that it is in. Raises `OSError` and `PipelineError`."""
    rising = [name for name in schema.names if name in RISING_COLUMNS]
    options = {
        "compression": "zstd",
        "use_dictionary": [name for name in leaf_columns(schema) if name not in rising],
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    }
    if isinstance(location, Path):
        location.parent.mkdir(parents=True, exist_ok=True)
        return pq.ParquetWriter(location, schema, **options)
    system, name = open_file_system(location)
    return pq.ParquetWriter(name, schema, filesystem=system, **options)


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


def first_line(error: BaseException) -> str:
    """The first line of the message of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)
