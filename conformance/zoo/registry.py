"""Every fault of the zoo by its name, and the hunt for one: known bugs, and mutants of coordinator and member."""

import logging
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from fencepost.conformance.zoo.classic import coordinators
from fencepost.conformance.zoo.classic.bugs import COORDINATOR_BUGS
from fencepost.conformance.zoo.classic.clients import CLIENT_BUGS, reference
from fencepost.conformance.zoo.classic.environments import PLAIN
from fencepost.conformance.zoo.clients import CLIENT_HANGS, CLIENTS, ClientFault, hunt_by_groups
from fencepost.conformance.zoo.coordinators import COORDINATORS, CoordinatorFault
from fencepost.conformance.zoo.faults.fault import Fault, Side
from fencepost.conformance.zoo.faults.mutants import Mutant
from fencepost.conformance.zoo.hunt import HANG_SECONDS, HuntResult, HuntTask, Stand, hunt_fault
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.strategies import GROUPS

KNOWN_BUGS: Mapping[str, Fault[Any]] = MappingProxyType({**COORDINATOR_BUGS, **CLIENT_BUGS})
"""The bugs that implementations shipped, by their numbers."""
STANDS: Mapping[Side, Stand[Any]] = MappingProxyType(
    {Side.COORDINATOR: COORDINATORS, Side.MEMBER: CLIENTS, Side.FETCHER: CLIENTS}
)
"""How the faults of each subject are hunted, but for assignors, which make plans for groups."""


class UnknownFault(Exception):
    """A pattern matches no fault; the message is one clear line."""


def mutant_of_coordinator(mutant: Mutant) -> CoordinatorFault:
    """A mutant of the bundled coordinator as a fault."""
    sentence = f"{mutant.operator} in line {mutant.line}"
    put_in = partial(coordinators.put_in_mutant, mutant)
    return Fault(mutant.name, Side.COORDINATOR, (), "", put_in, PLAIN, sentence, mutant)


def mutant_of_member(mutant: Mutant) -> ClientFault:
    """A mutant of the reference client's model as a fault."""
    sentence = f"{mutant.operator} in line {mutant.line}"
    put_in = partial(reference.put_in_mutant, mutant)
    return Fault(mutant.name, Side.MEMBER, (), "", put_in, reference.EAGER, sentence, mutant)


@cache
def coordinator_mutants() -> Mapping[str, CoordinatorFault]:
    """The systematic mutants of the bundled coordinator by their names, in the order of the source."""
    return {name: mutant_of_coordinator(mutant) for name, mutant in coordinators.coordinator_mutants().items()}


@cache
def member_mutants() -> Mapping[str, ClientFault]:
    """The systematic mutants of the reference client's model by their names, in the order of the source."""
    return {name: mutant_of_member(mutant) for name, mutant in reference.member_mutants().items()}


def fault_named(name: str) -> Fault[Any]:
    """The bug with this number, or the mutant with this name. Raises `KeyError`."""
    found = KNOWN_BUGS.get(name) or coordinator_mutants().get(name)
    return found if found is not None else member_mutants()[name]


def match_patterns(patterns: tuple[str, ...]) -> tuple[Fault[Any], ...]:
    """The known bugs and the mutants of coordinators whose names match one of the shell patterns. Raises
    `UnknownFault`."""
    found: dict[str, Fault[Any]] = {}
    for pattern in patterns:
        everything = KNOWN_BUGS if pattern.startswith("BUG") else {**KNOWN_BUGS, **coordinator_mutants()}
        fitting = {name: one for name, one in everything.items() if fnmatchcase(name, pattern)}
        if not fitting:
            raise UnknownFault(
                f"nothing in the zoo matches {pattern!r}; try a number like BUG-35 or a pattern like 'rounds.*'"
            )
        found |= fitting
    return tuple(found.values())


def strategies_for(fault: Fault[Any]) -> tuple[str, ...]:
    """How a fault is hunted, the plainest strategy first."""
    return (GROUPS,) if fault.subject is Side.ASSIGNOR else STANDS[fault.subject].strategies


def run_hunt(task: HuntTask) -> HuntResult:
    """Run a hunt for the fault with the name in the task."""
    return hunt(task, fault_named(task.name))


def hunt(task: HuntTask, fault: Fault[Any]) -> HuntResult:
    """Run a hunt for a fault."""
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)  # what clients do is judged, and no news
    if fault.subject is not Side.ASSIGNOR:
        return hunt_fault(task, fault, STANDS[fault.subject])
    begun = time.process_time()
    try:
        with cpu_limit(task.seconds + HANG_SECONDS):
            return hunt_by_groups(task, fault)
    except CpuLimitExceeded:
        return HuntResult(task, CLIENT_HANGS, 1, time.process_time() - begun)
