"""The parts of the source that a machine's transitions reach: lines of the core, and fields of the dialect."""

import ast
import sys
from collections.abc import Callable, Iterable
from functools import cache
from types import FrameType
from typing import Any

from fencepost.conformance.zoo.mutation.module_copies import file_of, source_of
from fencepost.conformance.zoo.mutation.mutants import Mutant, node_at
from tests.model.mutants.call_sites import Calls
from tests.model.mutants.core import MACHINE_MODULES, functions_of
from tests.model.mutants.equivalence import MachineRecording, Relevant
from tests.model.mutants.modules import BY_NAME, CORE

VALUES = BY_NAME["state"]


def reaches(recording: MachineRecording, mutant: Mutant, relevant: Relevant) -> bool:
    """Some of these transitions run the mutant's line."""
    file = str(file_of(mutant.module))
    found: list[int] = []

    def follow(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_lineno == mutant.line:
            found.append(frame.f_lineno)
        return follow

    def enter(frame: FrameType, *_: object) -> Any:
        return follow if frame.f_code.co_filename == file else None

    for state, moves in zip(recording.states, recording.moves, strict=True):
        for move in filter(relevant, moves):
            sys.settrace(enter)
            try:
                recording.machine.follow(state, move.step.input, move.step.milliseconds)
            finally:
                sys.settrace(None)
            if found:
                return True
    return False


def lines_run(function: Callable[..., Any], calls: Calls) -> frozenset[int]:
    """The lines that some of these calls of the function run of it."""
    file, name = function.__code__.co_filename, function.__code__.co_qualname
    found: set[int] = set()

    def follow(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            found.add(frame.f_lineno)
        return follow

    def enter(frame: FrameType, *_: object) -> Any:
        code = frame.f_code
        return follow if code.co_filename == file and code.co_qualname.partition(".")[0] == name else None

    sys.settrace(enter)
    try:
        for given, _result in calls.results:
            function(*given)
    finally:
        sys.settrace(None)
    return frozenset(found)


def readers(mutant: Mutant) -> frozenset[str] | None:
    """The functions of the core that read the field of the dialect whose default is mutated.

    A transition that runs none of them is the same. None if it is no such mutant, or if others read the field too.
    """
    if (mutant.module, mutant.function) != (VALUES, "CoreDialect"):
        return None
    node: Any = node_at(ast.parse(source_of(VALUES)), mutant.path[:-1])
    field = node.target.id
    found = {module: readers_in(module, field) for module in MACHINE_MODULES}
    if any(names for module, names in found.items() if module not in CORE) or None in flatten(found.values()):
        return None
    return frozenset(f"{module.rpartition('.')[2]}.{name}" for module, names in found.items() for name in names)


def flatten(groups: Iterable[Iterable[str | None]]) -> set[str | None]:
    """All of them."""
    return {one for group in groups for one in group}


@cache
def readers_in(module: str, field: str) -> frozenset[str | None]:
    """The functions of a module that read a field of this name; None for what is in no function."""
    found: set[str | None] = set()
    for node in ast.parse(source_of(module)).body:
        name = getattr(node, "name", None) if isinstance(node, ast.FunctionDef) else None
        if any(isinstance(one, ast.Attribute) and one.attr == field for one in ast.walk(node)):
            found.add(name if name in functions_of(module) else None)
    return frozenset(found)
