"""Imports of logs, captures and recordings: workers list the files of a location and make one trace of them.

The driver knows of a location its name, its size and when it changed, however many files are below it.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS, DEFAULT_PORT, CaptureSource, import_capture
from fencepost.traces.importers.recordings import DEFAULT_SKEW_MS, join_recordings
from fencepost.traces.importers.request_log import RequestLogSource, import_request_log
from fencepost.traces.pipeline.corpus import Corpus, Counts, InputFile, InputRow
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    FoundFile,
    Location,
    find_files,
    first_line,
    open_input,
    resolve_location,
)
from fencepost.traces.pipeline.ingest import IngestResult, IngestTask, counts_of, write_rows
from fencepost.traces.pipeline.parallel import map_parallel
from fencepost.traces.pipeline.row_reader import RowReader
from fencepost.traces.pipeline.schema import INPUTS, TableWriter
from fencepost.traces.pipeline.sources import TRACE_SUFFIXES, check_inputs


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


@dataclass(frozen=True, slots=True)
class UnlistedLocation:
    """A location whose files are not known yet."""

    location: Location
    size: int = 1


def find_imports(spark: SparkSession, importer: Importer, locations: Sequence[Location]) -> list[ImportedInput]:
    """The inputs at these locations, which workers list. Raises `PipelineError` for one without files."""
    check_inputs(locations)
    waiting = [UnlistedLocation(resolve_location(each)) for each in dict.fromkeys(locations)]

    def list_part(part: list[UnlistedLocation]) -> list[ImportedInput]:
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
        files = import_files(importer, location)
    except (OSError, PipelineError) as error:
        return ImportedInput(name, 0, 0, location, first_line(error))
    if not files:
        return ImportedInput(name, 0, 0, location, f"{location}: no input found")
    return ImportedInput(name, sum(each.size for each in files), max(each.changed for each in files), location)


def import_files(importer: Importer, location: Location) -> list[FoundFile]:
    """The files below a location that an importer takes, or the one that is there, in order. Raises `OSError` and
    `PipelineError`."""
    if isinstance(location, str):
        return find_files(location, importer.suffixes)
    found = (each for each in location.rglob("*") if each.name.endswith(importer.suffixes) and each.is_file())
    paths = [location] if not location.is_dir() else sorted(found)
    return [FoundFile(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in paths]


def copy_files(location: str, files: Sequence[FoundFile], folder: Path) -> list[Path]:
    """Copies of files on another file system, with their names below a location. Raises `OSError`."""
    root = location.partition("?")[0]
    copies = []
    for number, each in enumerate(files):
        place = each.uri.partition("?")[0]
        name = place.removeprefix(root).strip("/") if place.startswith(root) else f"{number}-{Path(place).name}"
        copy = folder / (name or Path(place).name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open_input(each.uri) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        copies.append(copy)
    return copies


def make_import_task(importer: Importer) -> Callable[[Corpus, str], IngestTask]:
    """The maker of the function that a worker runs on its locations; what cannot be imported is `failed`."""

    def make_task(corpus: Corpus, writer: str) -> IngestTask:
        def import_inputs(inputs: Sequence[InputFile]) -> IngestResult:
            counts, flaws, failed = Counts(), [], {}
            with TableWriter(corpus.data, writer) as tables:
                for each in inputs:
                    assert isinstance(each, ImportedInput)
                    with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
                        try:
                            trace = import_location(importer, each.location, Path(folder))
                        except (FencepostError, OSError) as error:
                            failed[each.name] = first_line(error).replace(f"{folder}/in", str(each.location))
                            continue
                        reader = write_rows(each, corpus, tables, each.path, RowReader(each.path, str(trace)))
                    mine = counts_of(reader)
                    tables.add_row(INPUTS, InputRow.from_counts(each.name, each.size, each.changed, mine))
                    counts += mine
                    flaws += [reader.flaw] if reader.flaw else []
            return IngestResult(tables.files, counts, tuple(flaws), failed)

        return import_inputs

    return make_task


def import_location(importer: Importer, location: Location, folder: Path) -> Path:
    """The trace that is made of a location, in `folder`. Raises `FencepostError` and `OSError`."""
    found = import_files(importer, location)
    is_local = isinstance(location, Path)
    files = [Path(each.uri) for each in found] if is_local else copy_files(str(location), found, folder / "in")
    importer.make(files, folder / "made.jsonl")
    return folder / "made.jsonl"
