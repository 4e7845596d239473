"""Where traces come from: a source finds trace files, or makes them of something else."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from fencepost.model.settings import Settings
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS, DEFAULT_PORT, import_capture
from fencepost.traces.importers.packet_capture import CaptureSource as Capture
from fencepost.traces.pipeline.errors import PipelineError

TraceSource: TypeAlias = Callable[[Path, Path], Iterator[Path]]
"""Takes what a person named and a folder that lasts as long as the corpus, and yields trace files, in a fixed order;
what it has to make it makes in the folder, the same for the same input."""
TRACE_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_traces(path: Path, _: Path) -> Iterator[Path]:
    """Trace files as they are: a file, or all that a folder holds."""
    if not path.is_dir():
        yield path
        return
    found = (each for each in path.rglob("*") if each.name.endswith(TRACE_SUFFIXES) and each.is_file())
    yield from sorted(found)


def import_logs(path: Path, folder: Path) -> Iterator[Path]:
    """Logs of Apache Kafka brokers: a file, or all that a folder holds, put together by time."""
    files = [path] if not path.is_dir() else sorted(each for each in path.rglob("*") if each.is_file())
    if files:
        yield import_once(files, folder, lambda output: import_log(files, output))


def capture_source(
    ports: frozenset[int] = frozenset({DEFAULT_PORT}), settings: Settings | None = None, grace: int = DEFAULT_GRACE_MS
) -> TraceSource:
    """Packet captures of these ports: a file, or all that a folder holds, put together. `settings` are the cluster's if
    they are known; `grace` is in milliseconds."""

    def import_captures(path: Path, folder: Path) -> Iterator[Path]:
        files = [path] if not path.is_dir() else sorted(each for each in path.rglob("*") if each.is_file())
        if files:
            capture = Capture(files, ports, settings, grace, keep_all_bytes=False)
            yield import_once(
                files, folder, lambda output: import_capture(capture, output), (sorted(ports), settings, grace)
            )

    return import_captures


def import_once(files: Sequence[Path], folder: Path, make: Callable[[Path], object], options: object = None) -> Path:
    """The trace made of these files, as they are, with these options: made once, and whole or not at all."""
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


SOURCES: Mapping[str, TraceSource] = {"traces": find_traces, "logs": import_logs, "captures": capture_source()}


def trace_files(paths: Sequence[Path], folder: Path, source: TraceSource = find_traces) -> list[Path]:
    """The trace files behind what was named, each once. Raises `PipelineError`."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")
        mine = list(source(path, folder))
        if not mine:
            raise PipelineError(f"{path}: there is nothing to read in it")
        found.update((each.resolve(), None) for each in mine)
    return list(found)
