"""Inputs of an ingest that are traces: files, folders, and places on other file systems."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fencepost.traces.pipeline.corpus import InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import Location, find_files

TRACE_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_traces(path: Path) -> Iterator[Path]:
    """Yield `path` if it is a file, else all trace files below the folder, in order."""
    if not path.is_dir():
        yield path
        return
    found = (each for each in path.rglob("*") if each.name.endswith(TRACE_SUFFIXES) and each.is_file())
    yield from sorted(found)


def trace_files(paths: Sequence[Location]) -> list[InputFile]:
    """The trace files at all locations, each once. Raises `PipelineError` for one without any, and `OSError`."""
    found: dict[str, InputFile] = {}
    check_inputs(paths)
    for path in paths:
        if isinstance(path, str):
            mine = [InputFile(*each) for each in find_files(path, TRACE_SUFFIXES)]
        else:
            mine = [InputFile.from_path(each) for each in find_traces(path)]
        if not mine:
            raise PipelineError(f"{path}: no input found")
        found.update((each.path, each) for each in mine)
    return list(found.values())


def check_inputs(paths: Sequence[Location]) -> None:
    """Raises `PipelineError` for a path of this machine that is not there."""
    for path in paths:
        if isinstance(path, Path) and not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")
