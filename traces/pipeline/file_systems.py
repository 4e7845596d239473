"""Input files by URI (`s3://`, `gs://`, `hdfs://` and others that Arrow has): listed here, and read by workers.

Credentials and endpoints are those of the environment, for S3 the usual `AWS_` variables.
"""

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast
from urllib.parse import quote, urlencode, urlsplit

from fencepost.traces.files.trace_files import open_local
from fencepost.traces.pipeline.corpus import InputFile
from fencepost.traces.pipeline.errors import PipelineError

Location: TypeAlias = Path | str
"""Where an input is: a path of this machine, or a URI."""
SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that other tools have for a scheme."""
BUFFER_BYTES = 1 << 20


def is_uri(path: str) -> bool:
    """Whether a path is that of a file on another file system."""
    return "://" in path


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


def find_files(uri: str, suffixes: tuple[str, ...]) -> Iterator[InputFile]:
    """Yield the file at a URI, else all files below it with one of these suffixes, in order. Raises `PipelineError`."""
    from pyarrow.fs import FileSelector, FileType

    system, path = open_file_system(uri)
    try:
        (root,) = system.get_file_info([path])
        if root.type == FileType.File:
            found = [root]
        else:
            below = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
            found = [each for each in below if each.type == FileType.File and each.path.endswith(suffixes)]
    except OSError as error:
        raise PipelineError(f"{uri}: {first_line(error)}") from None
    parts = urlsplit(uri)
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    host = "" if scheme in ("s3", "gs") else parts.netloc
    options = f"?{parts.query}" if parts.query else ""
    for each in sorted(found, key=lambda each: str(each.path)):
        yield InputFile(f"{scheme}://{host}{quote(each.path)}{options}", int(each.size), int(each.mtime_ns or 0))


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


def first_line(error: BaseException) -> str:
    """The first line of the message of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)
