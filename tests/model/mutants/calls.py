"""The different calls of a function in the transitions of a machine: all that a mutant of the function can change.

The core is pure. If a mutant of a function gives what the function gave, of every call that a transition makes, the
transition is the same. So the mutant is tried on each different call, and then only the transitions that make one
which it answers differently need to be taken again. A function that is given an iterator, or names that it does not
know beforehand, is not recorded.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from tests.model.mutants.lockstep import Recording, Relevant, Transition, runs

VARIADIC, KEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


class Unrecorded(Exception):
    """A call that cannot be repeated."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The different calls of a function, with their results, and which of them each transition makes."""

    results: tuple[tuple[tuple[Any, ...], Any], ...]
    made: tuple[tuple[Transition, frozenset[int]], ...]

    def affected(self, mutant: Callable[..., Any]) -> Relevant:
        """The transitions that make a call to which the mutant gives something else."""
        other = {number for number, call in enumerate(self.results) if not gives(mutant, *call)}
        moves = {move for move, numbers in self.made if not numbers.isdisjoint(other)}
        return moves.__contains__


def calls(recording: Recording, function: str, code: CodeType) -> Calls | None:
    """The calls of the function with this name and code; None if some call cannot be repeated."""
    if code.co_flags & KEYWORDS:
        return None
    relevant, numbers, made = runs(function), dict[Any, int](), list[tuple[Transition, frozenset[int]]]()
    results: list[tuple[tuple[Any, ...], Any]] = []
    shared: dict[frozenset[int], frozenset[int]] = {}
    for state, moves in zip(recording.states, recording.moves, strict=True):
        for move in filter(relevant, moves):
            try:
                found = observed(recording, state, move, code)
            except Unrecorded:
                return None
            mine = set()
            for arguments, result in found:
                number = numbers.setdefault((arguments, tuple(map(type, arguments))), len(numbers))
                if number == len(results):
                    results.append((arguments, result))
                mine.add(number)
            some = frozenset(mine)
            made.append((move, shared.setdefault(some, some)))
    return Calls(tuple(results), tuple(made))


def observed(recording: Recording, state: Any, move: Transition, code: CodeType) -> list[tuple[tuple[Any, ...], Any]]:
    """The calls that one transition makes: arguments and result of each."""
    found, open_calls = [], list[tuple[Any, ...]]()

    def note(frame: FrameType, event: str, result: Any) -> None:
        if frame.f_code is code:
            if event == "call":
                open_calls.append(tuple(arguments(frame)))
            elif event == "return":
                found.append((open_calls.pop(), result))

    sys.setprofile(note)
    try:
        recording.machine.follow(state, move.step.input, move.step.milliseconds)
    finally:
        sys.setprofile(None)
    if any(isinstance(one, Iterator | list | dict) for given, _ in found for one in given):
        raise Unrecorded
    return found


def arguments(frame: FrameType) -> Iterator[Any]:
    """What a function was called with, in the order of its parameters."""
    code, values = frame.f_code, frame.f_locals
    yield from (values[name] for name in code.co_varnames[: code.co_argcount])
    if code.co_flags & VARIADIC:
        yield from values[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]


def gives(mutant: Callable[..., Any], given: tuple[Any, ...], expected: Any) -> bool:
    """The mutant gives this of the arguments, of the same kind: 1 is not true."""
    try:
        return strictly_equal(mutant(*given), expected)
    except Exception:
        return False


def strictly_equal(one: Any, other: Any) -> bool:
    """Equal, and of equal kinds, or copies of one, as far as tuples go."""
    if type(one) is not type(other) and type(one).__qualname__ != type(other).__qualname__:
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    return bool(one == other)
