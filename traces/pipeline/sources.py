"""Where traces come from: a source finds trace files, or makes them of something else."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from fencepost.traces.pipeline.errors import PipelineError

Source: TypeAlias = Callable[[Path, Path], Iterator[Path]]
"""Takes what a person named and a folder that lasts as long as the corpus, and yields trace files, in a fixed order;
what it has to make it makes in the folder, the same for the same input."""
ENDINGS = (".jsonl", ".jsonl.gz")


def recorded(path: Path, _: Path) -> Iterator[Path]:
    """Trace files as they are: a file, or all that a folder holds."""
    if not path.is_dir():
        yield path
        return
    found = (each for each in path.rglob("*") if each.name.endswith(ENDINGS) and each.is_file())
    yield from sorted(found)


def trace_files(paths: Sequence[Path], folder: Path, source: Source = recorded) -> list[Path]:
    """The trace files behind what was named, each once. Raises `PipelineError`."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")
        mine = list(source(path, folder))
        if not mine:
            raise PipelineError(f"{path}: there is no trace in it ({', '.join(ENDINGS)})")
        found.update((each.resolve(), None) for each in mine)
    return list(found)
