"""Imports of logs, captures and recordings: workers list the files of a location and make one trace of them.

The driver knows of a location its name, its size and when it changed, however many files are below it.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.offsets_topic import import_offsets
from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS, DEFAULT_PORT, CaptureSource, import_capture
from fencepost.traces.importers.recordings import DEFAULT_SKEW_MS, join_recordings
from fencepost.traces.importers.request_log import RequestLogSource, import_request_log
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import InputFile
from fencepost.traces.pipeline.files import (
    Location,
    find_files,
    first_line,
    is_uri,
    name_below,
    open_input,
)
from fencepost.traces.pipeline.ingest import TRACE_SUFFIXES, OpenInput, Source
from fencepost.traces.pipeline.rows import RowReader


@dataclass(frozen=True, slots=True)
class Importer:
    """Makes one trace of files that end in one of `suffixes`; `options` are what it depends on beside them."""

    kind: str
    make: Callable[[Sequence[Path], Path], object]
    options: object = None
    suffixes: tuple[str, ...] = ("",)

    def name_of(self, location: Location) -> str:
        """The name of the trace that is made of a location."""
        digest = hashlib.sha256(repr(self.options).encode()).hexdigest()[:8]
        place = location if isinstance(location, str) else location.resolve()
        return f"{place}#{self.kind}" + (f"-{digest}" if self.options is not None else "")


LOG_IMPORTER = Importer("logs", import_log)
"""Imports the logs of brokers and clients as one trace ordered by time."""
OFFSETS_IMPORTER = Importer("offsets", import_offsets)
"""Imports what coordinators stored as one trace ordered by time."""


def capture_importer(
    ports: frozenset[int] = frozenset({DEFAULT_PORT}), settings: Settings | None = None, grace: int = DEFAULT_GRACE_MS
) -> Importer:
    """Imports packet captures as one trace of these ports.

    `settings` are the cluster's, None if unknown; `grace` is in milliseconds.
    """

    def make(files: Sequence[Path], output: Path) -> object:
        return import_capture(CaptureSource(files, ports, settings, grace, keep_all_bytes=False), output)

    return Importer("captures", make, (sorted(ports), settings, grace))


def request_log_importer(settings: Settings | None = None, grace: int = DEFAULT_GRACE_MS) -> Importer:
    """Imports request logs as one trace: rotated parts, and the logs of all brokers of a cluster.

    `settings` are the cluster's, None if unknown; `grace` is in milliseconds.
    """

    def make(files: Sequence[Path], output: Path) -> object:
        return import_request_log(RequestLogSource(files, settings, grace), output)

    return Importer("request-logs", make, (settings, grace))


def recording_importer(skew_ms: int = DEFAULT_SKEW_MS) -> Importer:
    """Joins recordings in one trace: rotated parts, and those of several recorders of one cluster, whose clocks differ
    by up to `skew_ms`."""

    def make(files: Sequence[Path], output: Path) -> object:
        return join_recordings(files, output, skew_ms)

    return Importer("recordings", make, skew_ms, TRACE_SUFFIXES)


@dataclass(frozen=True, slots=True)
class ImportedInput(InputFile):
    """A location that one trace is made of: `path` is the name of the trace, `size` that of all its files, and
    `changed` the time of their last change."""

    location: Location = ""


def import_source(importer: Importer) -> Source:
    """The source whose inputs are made of other files by an importer."""
    return Source(partial(list_location, importer), make_opener(importer))


def list_location(importer: Importer, location: Location) -> list[InputFile]:
    """The input at a location, if it has files for an importer. Raises `PipelineError` and `OSError`."""
    files = find_files(location, importer.suffixes)
    if not files:
        return []
    size, changed = sum(each.size for each in files), max(each.changed for each in files)
    return [ImportedInput(importer.name_of(location), size, changed, location)]


def make_opener(importer: Importer) -> OpenInput:
    """The function that makes a trace of a location, on a worker."""

    @contextmanager
    def open_location(input: InputFile) -> Iterator[RowReader]:
        assert isinstance(input, ImportedInput)
        with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
            try:
                trace = import_location(importer, input.location, Path(folder))
            except (FencepostError, OSError) as error:
                said = first_line(error).replace(f"{folder}/in", str(input.location))
                raise PipelineError(said) from None
            yield RowReader(input.path, str(trace))

    return open_location


def import_location(importer: Importer, location: Location, folder: Path) -> Path:
    """The trace that is made of a location, in `folder`. Raises `FencepostError` and `OSError`."""
    files = []
    for each in find_files(location, importer.suffixes):
        if isinstance(location, Path):
            files.append(Path(each.name))
            continue
        name = name_below(each.name, location)
        copy = folder / "in" / (Path(name).name if is_uri(name) else name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open_input(each.name) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        files.append(copy)
    importer.make(files, folder / "made.jsonl")
    return folder / "made.jsonl"
