"""Sources of traces: a source finds trace files, or imports them from logs or captures."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from fencepost.model.settings import Settings
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS, DEFAULT_PORT, import_capture
from fencepost.traces.importers.packet_capture import CaptureSource as Capture
from fencepost.traces.importers.recordings import DEFAULT_SKEW_MS, join_recordings
from fencepost.traces.importers.request_log import RequestLogSource as RequestLogs
from fencepost.traces.importers.request_log import import_request_log
from fencepost.traces.pipeline.corpus import InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import Location, find_files

TraceSource: TypeAlias = Callable[[Path, Path], Iterator[Path]]
"""Called with a path given by the user and a folder that lasts as long as the corpus; yields trace files in a fixed
order. Imported traces are written into the folder, the same file for the same input."""
TRACE_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_traces(path: Path, _: Path) -> Iterator[Path]:
    """Yield `path` if it is a file, else all trace files below the folder."""
    if not path.is_dir():
        yield path
        return
    found = (each for each in path.rglob("*") if each.name.endswith(TRACE_SUFFIXES) and each.is_file())
    yield from sorted(found)


def import_logs(path: Path, folder: Path) -> Iterator[Path]:
    """Import a broker log, or all logs below a folder, as one trace ordered by time."""
    yield from import_below(path, folder, import_log)


def capture_source(
    ports: frozenset[int] = frozenset({DEFAULT_PORT}), settings: Settings | None = None, grace: int = DEFAULT_GRACE_MS
) -> TraceSource:
    """A source that imports a packet capture, or all captures below a folder, as one trace of these ports.

    `settings` are the cluster's, None if unknown; `grace` is in milliseconds.
    """

    def make(files: Sequence[Path], output: Path) -> object:
        return import_capture(Capture(files, ports, settings, grace, keep_all_bytes=False), output)

    return lambda path, folder: import_below(path, folder, make, (sorted(ports), settings, grace))


def request_log_source(settings: Settings | None = None, grace: int = DEFAULT_GRACE_MS) -> TraceSource:
    """A source that imports a request log, or all request logs below a folder, as one trace: rotated parts, and the
    logs of all brokers of a cluster.

    `settings` are the cluster's, None if unknown; `grace` is in milliseconds.
    """

    def make(files: Sequence[Path], output: Path) -> object:
        return import_request_log(RequestLogs(files, settings, grace), output)

    return lambda path, folder: import_below(path, folder, make, ("requests", settings, grace))


def recording_source(skew_ms: int = DEFAULT_SKEW_MS) -> TraceSource:
    """A source that joins a recording, or all recordings below a folder, in one trace: rotated parts, and those of
    several recorders of one cluster, whose clocks differ by up to `skew_ms`."""

    def make(files: Sequence[Path], output: Path) -> object:
        return join_recordings([each for each in files if each.name.endswith(TRACE_SUFFIXES)], output, skew_ms)

    return lambda path, folder: import_below(path, folder, make, ("recordings", skew_ms))


def import_below(
    path: Path, folder: Path, make: Callable[[Sequence[Path], Path], object], options: object = None
) -> Iterator[Path]:
    """Yield the trace that `make` writes from a file, or from all files below a folder, with these options."""
    files = [path] if not path.is_dir() else sorted(each for each in path.rglob("*") if each.is_file())
    if files:
        yield import_once(files, folder, lambda output: make(files, output), options)


def import_once(files: Sequence[Path], folder: Path, make: Callable[[Path], object], options: object = None) -> Path:
    """The trace that `make` writes from these files and options: made once, and written as a whole or not at all."""
    state = [(str(each.resolve()), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    digest = hashlib.sha256(repr((state, options)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    output = folder / f"{files[0].name}-{digest}.jsonl"
    if not output.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = output.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        make(partial)
        partial.replace(output)
    return output


SOURCES: Mapping[str, TraceSource] = {
    "traces": find_traces,
    "logs": import_logs,
    "captures": capture_source(),
    "request-logs": request_log_source(),
    "recordings": recording_source(),
}


def trace_files(paths: Sequence[Location], folder: Path, source: TraceSource = find_traces) -> list[InputFile]:
    """The trace files of `source` for all locations, each once. Raises `PipelineError` for one without any, and
    `OSError`."""
    found: dict[str, InputFile] = {}
    check_inputs(paths)
    for path in paths:
        if isinstance(path, str):
            if source is not find_traces:
                raise PipelineError(f"{path}: of other file systems only traces are read")
            mine = list(find_files(path, TRACE_SUFFIXES))
        else:
            mine = [InputFile.from_path(each) for each in source(path, folder)]
        if not mine:
            raise PipelineError(f"{path}: no input found")
        found.update((each.path, each) for each in mine)
    return list(found.values())


def check_inputs(paths: Sequence[Location]) -> None:
    """Raises `PipelineError` for a path of this machine that is not there."""
    for path in paths:
        if isinstance(path, Path) and not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")
