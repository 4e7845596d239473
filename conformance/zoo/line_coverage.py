"""The lines of bundled coordinators that a run executes.

A schedule that does not execute the lines that a mutant changes cannot tell it from the shipped coordinator.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from fencepost.adapters import bundled
from fencepost.conformance.zoo.mutation.module_copies import code_of, file_of, source_of
from fencepost.conformance.zoo.mutation.mutants import Mutant, changed_lines

Line = tuple[str, int]
"""A file, and the number of a line."""
_FOLDER = str(Path(bundled.__path__[0]))


@contextmanager
def trace_lines() -> Iterator[set[Line]]:
    """A context that collects the lines of bundled coordinators executed by this thread."""
    found: set[Line] = set()

    def trace_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_line

    def trace_call(frame: FrameType, event: str, _: Any) -> Any:
        return trace_line if frame.f_code.co_filename.startswith(_FOLDER) else None

    outer = sys.gettrace()
    sys.settrace(trace_call)
    try:
        yield found
    finally:
        sys.settrace(outer)


def lines_changed_by(mutant: Mutant) -> frozenset[Line] | None:
    """The lines that a mutant changes; None if loading the module executes them."""
    file = str(file_of(mutant.module))
    lines = frozenset((file, number) for number in changed_lines(source_of(mutant.module), mutant))
    return None if lines & lines_run_on_load(mutant.module) else lines


@cache
def lines_run_on_load(module: str) -> frozenset[Line]:
    """The lines that loading a module executes: those outside functions."""
    file = str(file_of(module))
    return frozenset((file, number) for number in _module_level_lines(code_of(module)))


def _module_level_lines(code: CodeType) -> Iterator[int]:
    yield from (number for _, _, number in code.co_lines() if number is not None)
    for each in code.co_consts:
        if isinstance(each, CodeType) and not each.co_flags & inspect.CO_OPTIMIZED:
            yield from _module_level_lines(each)
