"""The different calls of the core's functions in the transitions of a machine: all that a mutant can change.

The core is pure. If a mutant of a function gives what the function gave, of every call that a transition makes, the
transition is the same. So the mutant is tried on each different call, and then only the transitions that make one
which it answers differently need to be taken again. A function that is given an iterator, or names that it does not
know beforehand, cannot be called again: its mutants take all transitions that run it.
"""

import inspect
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from types import CodeType, FrameType
from typing import Any

from tests.model.mutants.modules import CORE

VARIADIC, KEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
Arguments = tuple[Any, ...]


@dataclass(slots=True, eq=False)
class Calls:
    """The different calls of a function, with their results, and the numbers of the transitions that make each."""

    repeatable: bool = True
    results: list[tuple[Arguments, Any]] = field(default_factory=list)
    makers: list["array[int]"] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def add_call(self, given: Arguments, result: Any, transition: int) -> None:
        """The transition makes this call."""
        if not self.repeatable:
            return
        if any(isinstance(one, Iterator) for one in given):
            self.give_up()
            return
        try:
            number = self._numbers.setdefault((given, tuple(map(type, given))), len(self.results))
        except TypeError:  # A list, or a symbolic value.
            self.give_up()
            return
        if number == len(self.results):
            self.results.append((given, result))
            self.makers.append(array("I"))
        makers = self.makers[number]
        if not makers or makers[-1] != transition:
            makers.append(transition)

    def give_up(self) -> None:
        """There is a call that cannot be repeated."""
        self.repeatable = False
        for kept in (self.results, self.makers, self._numbers):
            kept.clear()

    def changed_transitions(self, mutant: Callable[..., Any]) -> frozenset[int]:
        """The numbers of the transitions that make a call to which the mutant gives something else."""
        changed = (
            makers for call, makers in zip(self.results, self.makers, strict=True) if not returns_same(mutant, *call)
        )
        return frozenset().union(*changed)


@dataclass(slots=True, eq=False)
class ObservedCode:
    """A piece of code of the core: the function that it stands in, and its calls if it is the function itself."""

    name: str
    arguments: Callable[[FrameType], Arguments] | None = None
    calls: Calls = field(default_factory=Calls)


@dataclass(slots=True, eq=False)
class Observer:
    """Notes what runs of the core while transitions are taken."""

    _codes: dict[CodeType, ObservedCode | None] = field(default_factory=dict)
    _sets: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)

    def functions_run(self, transition: int, take: Callable[[], object]) -> frozenset[str]:
        """The functions of the core that a transition runs, as `module.function`; their calls are noted."""
        names, unfinished, codes = set[str](), list[Arguments](), self._codes

        def note(frame: FrameType, event: str, result: Any) -> None:
            if event == "call":
                code = frame.f_code
                known = codes[code] if code in codes else self.observe_code(frame)
                if known is not None:
                    names.add(known.name)
                    if known.arguments is not None:
                        unfinished.append(known.arguments(frame))
            elif event == "return":
                known = codes.get(frame.f_code)
                if known is not None and known.arguments is not None:
                    known.calls.add_call(unfinished.pop(), result, transition)

        sys.setprofile(note)
        try:
            take()
        finally:
            sys.setprofile(None)
        found = frozenset(names)
        return self._sets.setdefault(found, found)

    def observe_code(self, frame: FrameType) -> ObservedCode | None:
        """What there is to note of a piece of code that is run for the first time; nothing outside the core."""
        code, found = frame.f_code, None
        if frame.f_globals.get("__name__") in CORE:
            name = name_of(code)
            inner = code.co_qualname != name.partition(".")[2]
            found = ObservedCode(name, None if inner or code.co_flags & KEYWORDS else argument_reader(code))
        self._codes[code] = found
        return found

    def calls(self) -> dict[str, Calls]:
        """The calls of each function that can be called again."""
        seen = [one for one in self._codes.values() if one is not None and one.arguments is not None]
        return {one.name: one.calls for one in seen if one.calls.repeatable}


def name_of(code: CodeType) -> str:
    """`module.function` of a piece of code; what stands inside a function is the function's."""
    module = code.co_filename.rpartition("/")[2].removesuffix(".py")
    return f"{module}.{code.co_qualname.partition('.<locals>')[0]}"


def argument_reader(code: CodeType) -> Callable[[FrameType], Arguments]:
    """What a function was called with, in the order of its parameters."""
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & VARIADIC else None

    def arguments(frame: FrameType) -> Arguments:
        values = frame.f_locals
        return (*[values[name] for name in names], *(values[rest] if rest else ()))

    return arguments


def returns_same(mutant: Callable[..., Any], given: Arguments, expected: Any) -> bool:
    """The mutant gives this of the arguments, of the same kind: 1 is not true."""
    try:
        return strictly_equal(mutant(*given), expected)
    except Exception:
        return False


def strictly_equal(one: Any, other: Any) -> bool:
    """Equal, and of equal kinds, or copies of one, all the way down."""
    if one is other:
        return True
    if type(one) is not type(other) and type(one).__qualname__ != type(other).__qualname__:
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    if is_dataclass(one):
        return all(strictly_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)
