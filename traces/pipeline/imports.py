"""Imports of logs, captures and recordings: workers list the files of a location and make one trace of them.

The driver knows of a location its name, its size and when it changed, however many files are below it.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.traces.importers.broker_log import import_log
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
    resolve_location,
)
from fencepost.traces.pipeline.ingest import (
    TRACE_SUFFIXES,
    OpenInput,
    Place,
    check_inputs,
)
from fencepost.traces.pipeline.parallel import map_parallel
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
"""Imports the logs of brokers as one trace ordered by time."""


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
    `changed` the time of their last change. `flaw` says why there is none."""

    location: Location = ""
    flaw: str = ""


def find_imports(spark: SparkSession, importer: Importer, locations: Sequence[Location]) -> list[ImportedInput]:
    """The inputs at these locations, which workers list. Raises `PipelineError` for one without files."""
    check_inputs(locations)
    waiting = [Place(number, resolve_location(each)) for number, each in enumerate(dict.fromkeys(locations))]

    def list_part(part: list[Place]) -> list[ImportedInput]:
        return [list_location(importer, each.location) for each in part]

    found = [each for part in map_parallel(spark, waiting, list_part, lambda *_: None) for each in part]
    for each in found:
        if each.flaw:
            raise PipelineError(each.flaw)
    return sorted(found, key=lambda each: each.path)


def list_location(importer: Importer, location: Location) -> ImportedInput:
    """What a location has for an importer; with a flaw if it has nothing."""
    name = importer.name_of(location)
    try:
        files = find_files(location, importer.suffixes)
    except (OSError, PipelineError) as error:
        return ImportedInput(name, 0, 0, location, first_line(error))
    if not files:
        return ImportedInput(name, 0, 0, location, f"{location}: no input found")
    return ImportedInput(name, sum(each.size for each in files), max(each.changed for each in files), location)


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
