"""The handlers do what the kernel of the proofs allows: each step of the search is an event of it, or none."""

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
from fencepost.model.push.kernel import SETS, PushKernel, initial_kernel, invariants, kernel_events
from tests.support.finite_logic import FiniteLogic

# What the kernel sees of a row: the sets of registrations behind brokers, consumers and channels of one group.


KernelState = tuple[Any, ...]
"""What two kernels are compared by."""


def kernel_logic(bounds: PushBounds) -> FiniteLogic:
    """Every registration and partition within the bounds."""
    names = [(name, number) for name in bounds.names for number in range(1, bounds.registrations + 1)]
    return FiniteLogic(tuple(names), tuple(range(bounds.partitions + bounds.faults.partitions)))


def kernel_view(bounds: PushBounds, logic: FiniteLogic, row: tuple[Any, ...]) -> PushKernel:
    """The kernel of a row of the repaired protocol with one group."""
    links: tuple[Link, ...] = row[-bounds.consumers :]
    brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
    sets: dict[str, set[tuple[str, int]]] = {name: set() for name in SETS}
    plans: dict[str, set[Any]] = {"last_plan": set(), "plan": set()}
    place = next((number for number, one in enumerate(brokers) if one.role is Role.ELECTED), None)
    group = None if place is None else brokers[place].groups[0]
    for name, link in zip(bounds.names, links, strict=True):
        add_consumer(sets, plans, name, link, place)
    if group is not None:
        sets["member"] |= {one.registration for one in group.members}
    phase = "" if group is None or group.run is None else add_run(sets, plans, group.run)

    def member_of(values: set[Any]) -> Any:
        return lambda *key: (key[0] if len(key) == 1 else key) in values

    known: dict[str, Any] = {name: member_of(values) for name, values in {**sets, **plans}.items()}
    return PushKernel(logic, **known, is_stopping=phase == "stopping", is_starting=phase == "starting")


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
    logic = kernel.logic
    assert isinstance(logic, FiniteLogic)
    busy = kernel.is_stopping or kernel.is_starting
    attempt = ("snapshot", "stopped", "started")
    sets = tuple(
        frozenset(filter(getattr(kernel, name), logic.elements)) if busy or name not in attempt else frozenset()
        for name in SETS
        if name not in ("stopped", "started")
    )
    stopped = frozenset(filter(kernel.stopped, logic.elements)) if kernel.is_stopping else frozenset()
    started = frozenset(filter(kernel.started, logic.elements)) if kernel.is_starting else frozenset()
    told = frozenset(
        (one, partition)
        for one in logic.elements
        if kernel.fetching(one) or kernel.start_sent(one)
        for partition in logic.partitions
        if kernel.last_plan(one, partition)
    )
    planned = frozenset(
        (one, partition)
        for one in logic.elements
        if kernel.is_stopping
        for partition in logic.partitions
        if kernel.plan(one, partition)
    )
    return (*sets, stopped, started, told, planned, kernel.is_stopping, kernel.is_starting)


# The steps of the search beside the events of the kernel.


def mismatches(bounds: PushBounds) -> tuple[set[str], set[str], set[str]]:
    """The labels of steps that are no event, the invariants that some state breaks, and the events that were seen."""
    system = push_system(bounds)
    exploration, _ = explore_system(system)
    assert exploration.finished
    logic = kernel_logic(bounds)
    strange: set[str] = set()
    broken: set[str] = set()
    seen: set[str] = set()
    known: dict[Any, tuple[str, ...]] = {}
    for state in exploration.reached_states():
        row = exploration.tables.values(state)
        before = kernel_view(bounds, logic, row)
        broken |= {name for name, holds in invariants(before).items() if not holds}
        for move in transitions_from(system, row):
            after = kernel_view(bounds, logic, apply_transition(row, move))
            pair = kernel_state(before), kernel_state(after)
            if pair not in known:
                known[pair] = events_between(before, after)
            seen |= set(known[pair])
            if not known[pair]:
                strange.add(move.label)
    return strange, broken, seen


def events_between(before: Any, after: Any) -> tuple[str, ...]:
    """The events that lead from one kernel to the other; "nothing" where they are alike."""
    if kernel_state(before) == kernel_state(after):
        return ("nothing",)
    wanted = kernel_state(after)
    return tuple(
        {
            event.name
            for one in before.logic.elements
            for event in kernel_events(before, one, after.plan, after.snapshot)
            if event.guard and kernel_state(event.after) == wanted
        }
    )


def test_the_first_state_is_that_of_the_kernel() -> None:
    bounds = PushBounds(registrations=1)
    logic = kernel_logic(bounds)
    assert kernel_state(kernel_view(bounds, logic, bounds.initial())) == kernel_state(initial_kernel(logic))


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
    kernel = initial_kernel(kernel_logic(SMALL[0]))
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
