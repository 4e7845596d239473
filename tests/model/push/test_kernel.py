"""The handlers do what the kernel of the proofs allows: each step of the search is an event of it, or none."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fencepost.model.explore.engine import apply_transition, explore_system, transitions_from
from fencepost.model.push.coordinator import PushCoordinator, Role
from fencepost.model.push.dialect import undo_repairs
from fencepost.model.push.explore.row import CURRENT, ZOOKEEPER, Faults, Link, PushBounds
from fencepost.model.push.explore.system import push_system
from fencepost.model.push.group import (
    PushRebalance,
    RebalancePhase,
    RegisterRequest,
    RegisterResponse,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
)
from fencepost.model.push.kernel import PLANS, SETS, PushKernel, invariants, kernel_events
from fencepost.model.relations import Relation, finite_relation

# What the kernel sees of a row: the sets of registrations behind brokers, consumers and channels of one group.


KernelState = tuple[Any, ...]
"""What two kernels are compared by."""


def registrations(bounds: PushBounds) -> list[tuple[str, int]]:
    """Every registration within the bounds."""
    return [(name, number) for name in bounds.names for number in range(1, bounds.registrations + 1)]


def kernel_view(bounds: PushBounds, row: tuple[Any, ...]) -> PushKernel:
    """The kernel of a row of the repaired protocol with one group."""
    links: tuple[Link, ...] = row[-bounds.consumers :]
    brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
    sets: dict[str, set[tuple[str, int]]] = {name: set() for name in SETS}
    plans: dict[str, set[Any]] = {name: set() for name in PLANS}
    place = next((number for number, one in enumerate(brokers) if one.role is Role.ELECTED), None)
    group = None if place is None else brokers[place].groups[0]
    for name, link in zip(bounds.names, links, strict=True):
        add_consumer(sets, plans, name, link, place)
    if group is not None:
        sets["member"] |= {one.registration for one in group.members}
    phase = "" if group is None or group.run is None else add_run(sets, plans, group.run)
    known = {name: finite_relation(*((one,) for one in values)) for name, values in sets.items()}
    known |= {name: finite_relation(*pairs) for name, pairs in plans.items()}
    return PushKernel(**known, is_stopping=phase == "stopping", is_starting=phase == "starting")


def add_consumer(
    sets: dict[str, set[tuple[str, int]]], plans: dict[str, set[Any]], name: str, link: Link, place: int | None
) -> None:
    """What one consumer and its channel show."""
    consumer = link.consumer
    now = (name, consumer.number)
    accepted = is_accepted(link)
    sets["known"] |= {(name, number) for number in range(1, consumer.number + accepted)}
    if consumer.number and not is_pending(link):
        sets["known"].add(now)
    if not accepted:
        return
    sets["attached"].add(now)
    if consumer.fetchers:
        sets["fetching"].add(now)
        plans["last_plan"] |= {(now, one) for one in consumer.registry}
    served = place is not None and link.is_at(place)
    if served:
        sets["fresh"].add(now)
    for request in link.requests:
        if isinstance(request, StartRequest):
            sets["start_sent"].add(now)
            plans["last_plan"] |= {(now, one) for one in request.partitions}
        elif isinstance(request, StopRequest):
            sets["stop_sent" if served and request.attempt == CURRENT else "stale_stop"].add(now)
    for response in link.responses if served else ():
        is_current = getattr(response, "attempt", None) == CURRENT
        if isinstance(response, StopResponse):
            sets["stop_response" if is_current else "stale_response"].add(now)
        elif isinstance(response, StartResponse) and is_current:
            sets["start_response"].add(now)


def is_pending(link: Link) -> bool:
    """Whether the consumer's newest number belongs to a registration that was not accepted, or not yet."""
    unread = any(isinstance(one, RegisterRequest) for one in link.responses)
    refused = any(isinstance(one, RegisterResponse) and one.error for one in link.requests)
    return link.consumer.is_attached and (unread or refused)


def is_accepted(link: Link) -> bool:
    """Whether the consumer is attached by a registration that was accepted."""
    return link.consumer.is_attached and not is_pending(link)


def add_run(sets: dict[str, set[tuple[str, int]]], plans: dict[str, set[Any]], run: PushRebalance) -> str:
    """What a rebalance shows, and the phase of the kernel."""
    stopping = run.phase in (RebalancePhase.WAIT_STOP, RebalancePhase.START)
    starting = run.phase in (RebalancePhase.WAIT_START, RebalancePhase.WRITE, RebalancePhase.RESET)
    if not (stopping or starting) or (run.phase is RebalancePhase.RESET and not run.attempt):
        return ""
    members = {(share.consumer, share.number) for share in run.shares}
    sets["snapshot"] |= members
    sets["stopped"] |= members - run.pending if stopping else members
    sets["started"] |= members - run.pending if starting else set()
    plans["plan"] |= {((share.consumer, share.number), each) for share in run.shares for each in share.partitions}
    return "stopping" if stopping else "starting"


def kernel_state(kernel: PushKernel) -> KernelState:
    """What counts of a kernel: an attempt that has ended is forgotten, and plans count where something follows them."""
    busy = kernel.is_stopping or kernel.is_starting
    counted = {"snapshot": busy, "stopped": kernel.is_stopping, "started": kernel.is_starting}
    nobody = finite_relation()
    sets = tuple(getattr(kernel, name) if counted.get(name, True) else nobody for name in SETS)
    told = part_of(kernel.last_plan, lambda r, p: bool(kernel.fetching.has(r) or kernel.start_sent.has(r)))
    planned = kernel.plan if kernel.is_stopping else nobody
    return (*sets, told, planned, kernel.is_stopping, kernel.is_starting)


def part_of(relation: Any, is_kept: Callable[..., bool]) -> Relation:
    """The tuples of a relation that are kept."""
    return finite_relation(*(each for each in relation if is_kept(*each)))


# The steps of the search beside the events of the kernel.


def mismatches(bounds: PushBounds) -> tuple[set[str], set[str], set[str]]:
    """The labels of steps that are no event, the invariants that some state breaks, and the events that were seen."""
    system = push_system(bounds)
    exploration, _ = explore_system(system)
    assert exploration.finished
    everyone = registrations(bounds)
    strange: set[str] = set()
    broken: set[str] = set()
    seen: set[str] = set()
    known: dict[Any, tuple[str, ...]] = {}
    for state in exploration.reached_states():
        row = exploration.tables.values(state)
        before = kernel_view(bounds, row)
        broken |= {name for name, holds in invariants(before).items() if not holds}
        for move in transitions_from(system, row):
            after = kernel_view(bounds, apply_transition(row, move))
            pair = kernel_state(before), kernel_state(after)
            if pair not in known:
                known[pair] = events_between(everyone, before, after)
            seen |= set(known[pair])
            if not known[pair]:
                strange.add(move.label)
    return strange, broken, seen


def events_between(everyone: Sequence[Any], before: PushKernel, after: PushKernel) -> tuple[str, ...]:
    """The events that lead from one kernel to the other; "nothing" where they are alike."""
    if kernel_state(before) == kernel_state(after):
        return ("nothing",)
    wanted = kernel_state(after)
    return tuple(
        {
            event.name
            for one in everyone
            for event in kernel_events(before, one, after.plan, after.snapshot)
            if event.guard and kernel_state(event.after) == wanted
        }
    )


def test_the_first_state_is_that_of_the_kernel() -> None:
    bounds = PushBounds(registrations=1)
    assert kernel_state(kernel_view(bounds, bounds.initial())) == kernel_state(PushKernel())


SMALL = (
    PushBounds(registrations=1),
    PushBounds(1, registrations=3, capacity=2, faults=Faults(consumer_crashes=1)),
    PushBounds(1, registrations=2, faults=Faults(expiries=1)),
    PushBounds(1, registrations=2, brokers=2, faults=Faults(broker_crashes=1)),
    PushBounds(1, registrations=1, retries=2, faults=Faults(half_starts=1, timeouts=2)),
)


def test_each_step_is_an_event_of_the_kernel() -> None:
    found = [mismatches(bounds) for bounds in SMALL]
    assert [(strange, broken) for strange, broken, _ in found] == [(set(), set())] * len(SMALL)
    kernel = PushKernel()
    events = kernel_events(kernel, ("c0", 1), kernel.plan, kernel.member)
    names = {event.name for event in events if event.repair != "attempt numbers"}
    assert set().union(*(seen for _, _, seen in found)) == {*names, "nothing"}


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "faults",
    [Faults(expiries=1), Faults(half_starts=1, timeouts=1), Faults(suspicions=1), Faults(pings=1, partitions=1)],
    ids=str,
)
def test_each_step_of_two_consumers_is_an_event_of_the_kernel(faults: Faults) -> None:
    strange, broken, _ = mismatches(PushBounds(registrations=3, capacity=2, faults=faults))
    assert (strange, broken) == (set(), set())


def test_without_the_barrier_a_step_is_none() -> None:
    strange, broken, _ = mismatches(PushBounds(registrations=1, dialect=undo_repairs("command")))
    assert strange and "push.one-owner" in broken
