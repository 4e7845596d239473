"""Every fault of the zoo by its name, whatever protocol it is of, and the hunt for one."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from fencepost.conformance.zoo.fault import Fault, Side
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.strangers import StrangerKind
from fencepost.model.errors import FencepostError
from fencepost.model.protocols import load_part, protocols_with


@dataclass(frozen=True, slots=True)
class SubjectHunts:
    """How the faults of one subject are hunted: the strategies, the plainest first, and the function that hunts by one
    of them. Where there are `baselines`, they are compared with the strategies."""

    strategies: tuple[str, ...]
    hunt: Callable[[HuntTask, Fault[Any]], HuntResult]
    baselines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtocolZoo:
    """What a protocol adds to the zoo.

    `bugs` are those that implementations shipped, by their numbers, and `not_put_back` says of others why they are not
    among them. `mutants` makes the systematic mutants by their names, whose results are recorded, `more_mutants` those
    that only tests hunt. `find_difference` compares a mutant with what is shipped: where they differ, "" if nowhere.
    `strangers` are what it draws strangers from.
    """

    bugs: Mapping[str, Fault[Any]]
    not_put_back: Mapping[str, str]
    hunts: Mapping[Side, SubjectHunts]
    mutants: Callable[[], Mapping[str, Fault[Any]]]
    more_mutants: Callable[[], Mapping[str, Fault[Any]]]
    find_difference: Callable[[Fault[Any]], str]
    strangers: tuple[StrangerKind, ...] = ()


class UnknownFault(FencepostError):
    """A pattern matches no fault; the message is one clear line."""


@cache
def zoos() -> tuple[ProtocolZoo, ...]:
    """What each protocol adds."""
    return tuple(load_part(place) for place in protocols_with(lambda entry: entry.zoo).values())


def stranger_kind(side: Side) -> StrangerKind:
    """What strangers are drawn from that stand in for this side."""
    return next(kind for zoo in zoos() for kind in zoo.strangers if kind.side is side)


@cache
def known_bugs() -> Mapping[str, Fault[Any]]:
    """The bugs that implementations shipped, by their numbers."""
    return {number: bug for zoo in zoos() for number, bug in zoo.bugs.items()}


@cache
def systematic_mutants() -> Mapping[str, Fault[Any]]:
    """The mutants whose results are recorded, by their names, in the order of the source."""
    return {name: mutant for zoo in zoos() for name, mutant in zoo.mutants().items()}


def fault_named(name: str) -> Fault[Any]:
    """The bug with this number, or the mutant with this name. Raises `KeyError`."""
    if name in known_bugs():
        return known_bugs()[name]
    more = (zoo.more_mutants()[name] for zoo in zoos() if name in zoo.more_mutants())
    return systematic_mutants()[name] if name in systematic_mutants() else next(more)


def match_patterns(patterns: tuple[str, ...]) -> tuple[Fault[Any], ...]:
    """The known bugs and the systematic mutants whose names match one of the shell patterns. Raises `UnknownFault`."""
    found: dict[str, Fault[Any]] = {}
    for pattern in patterns:
        everything = known_bugs() if pattern.startswith("BUG") else {**known_bugs(), **systematic_mutants()}
        fitting = {name: one for name, one in everything.items() if fnmatchcase(name, pattern)}
        if not fitting:
            raise UnknownFault(
                f"nothing in the zoo matches {pattern!r}; try a number like BUG-35 or a pattern like 'rounds.*'"
            )
        found |= fitting
    return tuple(found.values())


def hunts_for(fault: Fault[Any]) -> SubjectHunts:
    """How a fault is hunted."""
    return next(zoo.hunts[fault.subject] for zoo in zoos() if fault.subject in zoo.hunts)


def run_hunt(task: HuntTask) -> HuntResult:
    """Run a hunt for the fault with the name in the task."""
    return hunt(task, fault_named(task.name))


def hunt(task: HuntTask, fault: Fault[Any]) -> HuntResult:
    """Run a hunt for a fault."""
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)  # what clients do is judged, and no news
    return hunts_for(fault).hunt(task, fault)


def find_difference(name: str) -> str:
    """Where the mutant with this name differs from what is shipped; "" if nowhere."""
    zoo = next(each for each in zoos() if name in each.mutants())
    return zoo.find_difference(zoo.mutants()[name])
