"""The properties of the push coordinator: safety in every state and step, and what holds once nothing moves."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from fencepost.model.explore.transition_system import Action, Check, PropertyKind
from fencepost.model.push.consumer import ConsumerPhase
from fencepost.model.push.coordinator import PushCoordinator, Role
from fencepost.model.push.explore.row import CURRENT, FAULTS, ZOOKEEPER, Link, PushBounds, Zookeeper, is_live, topics_in
from fencepost.model.push.group import StartResponse, StopRequest, assign_ranges

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
    checks += [
        Check("S13", (column,), lambda link: not (link.consumer.is_stopped and link.consumer.fetchers))
        for column in bounds.links
    ]
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
