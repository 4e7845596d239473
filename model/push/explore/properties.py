"""The properties of the push coordinator, and what its kernel sees of a row."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from fencepost.model.explore.transition_system import Action, Check, PropertyKind
from fencepost.model.kernel_logic import FiniteLogic
from fencepost.model.push.consumer import ConsumerPhase
from fencepost.model.push.coordinator import PushCoordinator, Role
from fencepost.model.push.explore.row import CURRENT, FAULTS, ZOOKEEPER, Link, PushBounds, Zookeeper, is_live, topics_in
from fencepost.model.push.group import (
    PushRebalance,
    RebalancePhase,
    RegisterRequest,
    RegisterResponse,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
    assign_ranges,
)
from fencepost.model.push.kernel import SETS, PushKernel

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


# The properties of the push coordinator: safety in every state and step, and what holds once nothing moves.


SENTENCES = {
    "S1": "Only the broker that holds the coordinator path accepts, sends, removes.",
    "S2": "A partition is fetched by at most one consumer of a group.",
    "S3": "No consumer starts in an attempt before the others have handled their Stop of it.",
    "S4": "Once owners are recorded, the members fetch what is recorded.",
    "S5": "At most one rebalance of a group is in flight over all brokers.",
    "S6": "The rebalance bit is set exactly while one request of the group is queued or running.",
    "S7": "Only the broker that holds the coordinator path records owners.",
    "S8": "No consumer gets a Start while it fetches something else.",
    "S10": "A response completes only the attempt, and only the registration, that it belongs to.",
    "S12": "A consumer that fetches is a member at the coordinator whose channel it obeys.",
    "S13": "A consumer whose flag says stopped runs no fetcher.",
    "L1": "Once nothing moves, each partition is fetched, if a consumer of the group lives.",
    "L2": "Once nothing moves, the members fetch what the assignment of the present members and partitions says.",
    "L3": "The handler thread lives.",
    "L3-bit": "Once nothing moves, no rebalance bit is set.",
    "L4": "A consumer that registers is not turned away by a request of the coordinator.",
    "L6": "Once nothing moves, a live broker holds the coordinator path.",
    "L7": "Once nothing moves, a group whose consumers all live and stay is fetched, whatever becomes of another.",
}
"""The properties by their names in the specification of the draft."""


def push_checks(bounds: PushBounds, actions: tuple[Action, ...]) -> tuple[Check, ...]:
    """The checks of states. `actions` are those that must happen if they can: nothing moves where none of them can."""
    brokers = tuple(map(bounds.broker_column, range(bounds.brokers)))
    everything = (FAULTS, ZOOKEEPER, *brokers, *bounds.links)
    checks = [Check("S2", bounds.links, lambda *links: not overlap(bounds, links))]
    checks.append(Check("S3", bounds.links, lambda *links: not starts_early(bounds, links)))
    checks += [
        Check("S12", (column, *bounds.links), partial(obeys_member, bounds, broker))
        for broker, column in enumerate(brokers)
    ]
    checks += [Check("S6", (column,), is_bit_right) for column in brokers]
    checks += [Check("L3", (column,), lambda own: own.is_thread_alive) for column in brokers]
    checks += [Check("S13", (column,), is_flag_right) for column in bounds.links]
    if len(brokers) > 1:
        checks.append(Check("S5", brokers, runs_once))
    broken = quiet_faults(bounds, actions)

    def lasting(name: str) -> Callable[..., bool]:
        return lambda *row: name not in broken(row)

    checks += [Check(name, everything, lasting(name)) for name in ("L1", "L2", "L3-bit", "S4", "L6", "L7")]
    checks.append(
        Check("settled", everything, lambda *row: is_settled(bounds, row), PropertyKind.SOMETIMES),
    )
    return tuple(checks)


def overlap(bounds: PushBounds, links: tuple[Link, ...]) -> bool:
    """Whether two consumers of a group fetch the same partition."""
    for group in range(bounds.groups):
        seen: set[Any] = set()
        for consumer in bounds.members(group):
            for partition in links[consumer].consumer.fetchers:
                if partition in seen:
                    return True
                seen.add(partition)
    return False


def starts_early(bounds: PushBounds, links: tuple[Link, ...]) -> bool:
    """Whether a consumer has started in the present attempt while another one fetches, its Stop unread."""
    for group in range(bounds.groups):
        members = bounds.members(group)
        started = any(
            isinstance(message, StartResponse) and message.attempt == CURRENT and not message.error
            for one in members
            for message in links[one].responses
        )
        unread = any(
            isinstance(message, StopRequest) and message.attempt == CURRENT
            for one in members
            if links[one].consumer.fetchers
            for message in links[one].requests
        )
        if started and unread:
            return True
    return False


def obeys_member(bounds: PushBounds, broker: int, own: PushCoordinator, *links: Link) -> bool:
    """Whether every consumer that fetches on an open channel to this coordinator is a member there."""
    if own.role is not Role.ELECTED:
        return True
    return all(
        own.holds(bounds.group_of(one), bounds.names[one], link.consumer.number)
        for one, link in enumerate(links)
        if link.is_at(broker) and link.consumer.fetchers
    )


def is_bit_right(own: PushCoordinator) -> bool:
    """Whether the bit of each group says what its queue and its thread do."""
    for number, group in enumerate(own.groups):
        if group is None:
            continue
        work = own.queue.count(number) + (group.run is not None)
        if work > 1 or group.rebalancing != bool(work):
            return False
    return True


def is_flag_right(link: Link) -> bool:
    """Whether a stopped consumer fetches nothing."""
    return not (link.consumer.is_stopped and link.consumer.fetchers)


def runs_once(*brokers: PushCoordinator) -> bool:
    """Whether no group is rebalanced by two brokers."""
    for number in range(len(brokers[0].groups)):
        held = [broker.groups[number] for broker in brokers]
        if sum(group is not None and group.run is not None for group in held) > 1:
            return False
    return True


def quiet_faults(bounds: PushBounds, actions: tuple[Action, ...]) -> Callable[[tuple[Any, ...]], frozenset[str]]:
    """The function that names what is broken in a row in which nothing moves; nothing elsewhere."""

    @lru_cache(maxsize=1 << 16)
    def broken(row: tuple[Any, ...]) -> frozenset[str]:
        zookeeper: Zookeeper = row[ZOOKEEPER]
        links: tuple[Link, ...] = row[-bounds.consumers :]
        brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
        if any(link.requests or link.responses for link in links) or zookeeper.unheard:
            return frozenset()
        if any(action.transitions(*(row[column] for column in action.columns)) for action in actions):
            return frozenset()
        found: set[str] = set()
        if any(one.role is Role.ELECTED and any(held and held.rebalancing for held in one.groups) for one in brokers):
            found.add("L3-bit")
        if zookeeper.leader is None and any(one.role is not Role.DOWN for one in brokers):
            found.add("L6")
        for group in range(bounds.groups):
            of_group = broken_group(bounds, group, zookeeper, links)
            found |= of_group
            untouched = all(is_live(links[one]) and links[one].consumer.number == 1 for one in bounds.members(group))
            if bounds.groups > 1 and "L1" in of_group and untouched:
                found.add("L7")
        return frozenset(found)

    return broken


def broken_group(bounds: PushBounds, group: int, zookeeper: Zookeeper, links: tuple[Link, ...]) -> set[str]:
    """What is broken of a group for ever."""
    found: set[str] = set()
    live = [one for one in bounds.members(group) if is_live(links[one])]
    if not live or zookeeper.leader is None:
        return found
    partitions = topics_in(zookeeper)["t"]
    fetched = {each for one in live for each in links[one].consumer.fetchers}
    if fetched != set(partitions):
        found.add("L1")
    names = [bounds.names[one] for one in live]
    ideal = assign_ranges(partitions, dict.fromkeys(names, 1))
    if any(links[one].consumer.fetchers != ideal[bounds.names[one]] for one in live):
        found.add("L2")
    owners = zookeeper.owners[group] or ()
    told = {partition: owner for partition, owner in enumerate(owners) if owner is not None}
    real = {each: bounds.names[one] for one in live for each in links[one].consumer.fetchers}
    if told != real:
        found.add("S4")
    return found


def is_settled(bounds: PushBounds, row: tuple[Any, ...]) -> bool:
    """Whether all consumers are registered, and their groups fetch what is recorded, with nothing under way."""
    zookeeper: Zookeeper = row[ZOOKEEPER]
    links: tuple[Link, ...] = row[-bounds.consumers :]
    brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
    if any(not link.is_silent or link.consumer.phase is not ConsumerPhase.REGISTERED for link in links):
        return False
    if zookeeper.leader is None or any(one.queue or any(g and g.run for g in one.groups) for one in brokers):
        return False
    return not any(broken_group(bounds, group, zookeeper, links) for group in range(bounds.groups))
