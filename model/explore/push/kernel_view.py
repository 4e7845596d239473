"""What the kernel sees of a row: the sets of registrations behind brokers, consumers and channels of one group."""

from typing import Any

from fencepost.model.explore.push.row import CURRENT, ZOOKEEPER, Link, PushBounds
from fencepost.model.kernel_logic import FiniteLogic
from fencepost.model.push.coordinator import PushCoordinator, Role
from fencepost.model.push.group import PushRebalance, RebalancePhase
from fencepost.model.push.kernel import SETS, PushKernel
from fencepost.model.push.messages import (
    RegisterRequest,
    RegisterResponse,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
)

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
