"""Inputs of an ingest that are traces: files, folders, and places on other file systems."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.traces.pipeline.corpus import InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import Location, find_files, resolve_location
from fencepost.traces.pipeline.parallel import Spark, map_parallel

TRACE_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_traces(path: Path) -> Iterator[Path]:
    """Yield `path` if it is a file, else all trace files below the folder, in order."""
    if not path.is_dir():
        yield path
        return
    found = (each for each in path.rglob("*") if each.name.endswith(TRACE_SUFFIXES) and each.is_file())
    yield from sorted(found)


@dataclass(frozen=True, slots=True)
class UnlistedPlace:
    """A place whose trace files are not known yet, by its number."""

    number: int
    location: Location
    size: int = 1


@dataclass(frozen=True, slots=True)
class ListedPlace:
    """The trace files at a place, or why it cannot be listed."""

    number: int
    files: tuple[InputFile, ...] = ()
    flaw: str = ""


def trace_files(spark: Spark, locations: Sequence[Location]) -> list[InputFile]:
    """The trace files at all locations, each once; workers list those that are no file of this machine. Raises
    `PipelineError` for a location without any."""
    check_inputs(locations)
    places = [UnlistedPlace(number, resolve_location(each)) for number, each in enumerate(locations)]
    listed, far = list[ListedPlace](), list[UnlistedPlace]()
    for each in places:
        if isinstance(each.location, Path) and not each.location.is_dir():
            listed.append(list_place(each))
        else:
            far.append(each)
    if far:
        for part in map_parallel(spark, far, list_places, lambda *_: None):
            listed += part
    found: dict[str, InputFile] = {}
    for place in sorted(listed, key=lambda each: each.number):
        if place.flaw:
            raise PipelineError(place.flaw)
        found.update((each.path, each) for each in place.files)
    return list(found.values())


def list_places(places: Sequence[UnlistedPlace]) -> list[ListedPlace]:
    """The trace files at each place. Runs on a worker."""
    return [list_place(each) for each in places]


def list_place(place: UnlistedPlace) -> ListedPlace:
    """The trace files at a place."""
    try:
        return ListedPlace(place.number, tuple(files_at(place.location)))
    except (OSError, PipelineError) as error:
        return ListedPlace(place.number, flaw=str(error))


def files_at(location: Location) -> list[InputFile]:
    """The trace files at a location. Raises `PipelineError` if there is none, and `OSError`."""
    if isinstance(location, str):
        found = [InputFile(*each) for each in find_files(location, TRACE_SUFFIXES)]
    else:
        found = [InputFile.from_path(each) for each in find_traces(location)]
    if not found:
        raise PipelineError(f"{location}: no input found")
    return found


def check_inputs(paths: Sequence[Location]) -> None:
    """Raises `PipelineError` for a path of this machine that is not there."""
    for path in paths:
        if isinstance(path, Path) and not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")
