"""What a broker does by itself: election, startup, the phases of a rebalance, sessions."""

from collections.abc import Callable
from functools import partial

from fencepost.model.explore.transition_system import Action, Transition
from fencepost.model.frozen import evolve
from fencepost.model.push import coordinator as handlers
from fencepost.model.push import rebalance
from fencepost.model.push.coordinator import PushCoordinator, Role, apply_step, running_step
from fencepost.model.push.dialect import Command
from fencepost.model.push.explore.row import (
    CURRENT,
    ZOOKEEPER,
    Link,
    PushBounds,
    Zookeeper,
    age_messages,
    is_live,
    record,
    recorded_owners,
    send_all,
    topics_in,
)
from fencepost.model.push.group import GroupStep, PushGroup, listener_sets, partitions_changed

Transitions = tuple[Transition, ...]
NOTHING: Transitions = ()


def broker_actions(bounds: PushBounds, broker: int) -> list[Action]:
    """The actions of one broker."""
    column, links = bounds.broker_column(broker), bounds.links
    name = f"K{broker}"

    def action(what: str, columns: tuple[int, ...], transitions: Callable[..., Transitions]) -> Action:
        return Action(f"{name} {what}", columns, transitions)

    def alone(what: str, handle: Callable[[PushCoordinator], tuple[PushCoordinator, str] | None]) -> Action:
        def transitions(own: PushCoordinator) -> Transitions:
            done = handle(own)
            return NOTHING if done is None else (Transition(f"{name} {what}", ((column, done[0]),), done[1]),)

        return action(what, (column,), transitions)

    def in_group(what: str, handle: Callable[[PushGroup], GroupStep | None]) -> Action:
        def take(own: PushCoordinator) -> tuple[PushCoordinator, str] | None:
            found = running_step(own, handle)
            return None if found is None else (apply_step(own, *found), found[1].rule)

        return alone(what, take)

    return [
        action("is elected", (ZOOKEEPER, column), partial(elect, bounds, broker)),
        alone("goes on with its startup", handlers.go_on_with_startup),
        alone("takes a rebalance request", handlers.take_next),
        action("computes the assignment", (ZOOKEEPER, column, *links), partial(compute, bounds, broker)),
        action("compares it with the owners", (ZOOKEEPER, column), partial(check, bounds, broker)),
        action("sends", (ZOOKEEPER, column, *links), partial(send, bounds, broker)),
        action("records the owners", (ZOOKEEPER, column, *links), partial(write, bounds, broker)),
        in_group("resets the bit", rebalance.reset_bit),
        action("hears of a partition", (ZOOKEEPER, column), partial(hear, bounds, broker)),
        alone("sets the bit that its listener read as clear", set_read_bit),
        alone("notices its new session", partial(handlers.notice_new_session, dialect=bounds.dialect)),
        action("is missed by ZooKeeper", (ZOOKEEPER, column), partial(miss, broker)),
    ]


def writes_of(bounds: PushBounds, broker: int, own: PushCoordinator) -> tuple[tuple[int, object], ...]:
    """The write of a broker's column."""
    return ((bounds.broker_column(broker), own),)


def elect(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator) -> Transitions:
    """The broker makes the ephemeral node (E1)."""
    if zookeeper.leader is not None or own.role is not Role.CANDIDATE or not own.has_session:
        return NOTHING
    elected, rule = handlers.win_election(own, bounds.dialect)
    # Startup reads topics and subscribes to them: nothing is left to hear of.
    after = evolve(zookeeper, leader=broker, unheard=zookeeper.unheard - {broker})
    return (Transition(f"K{broker} is elected", ((ZOOKEEPER, after), *writes_of(bounds, broker, elected)), rule),)


def compute(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator, *links: Link) -> Transitions:
    """Steps 1 to 1.3; repaired, not while a consumer of an earlier coordinator may still fetch."""
    found = running_step(own, lambda group: rebalance.compute_assignment(group, topics_in(zookeeper)))
    if found is None:
        return NOTHING
    number, step = found
    if bounds.dialect.waits_after_election:
        for consumer in bounds.members(number):
            if links[consumer].consumer.is_attached and not links[consumer].is_at(broker):
                return NOTHING
    after = apply_step(own, number, step)
    return (Transition(f"K{broker} computes the assignment", writes_of(bounds, broker, after), step.rule),)


def check(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator) -> Transitions:
    """Step 3."""
    number = next((one for one, group in enumerate(own.groups) if group is not None and group.run is not None), 0)
    recorded = recorded_owners(zookeeper, number)
    found = running_step(own, lambda group: rebalance.check_necessity(group, recorded, bounds.dialect))
    if found is None:
        return NOTHING
    words = "is necessary" if found[1].rule == "rebalance.necessary" else "is not necessary"
    after = apply_step(own, *found)
    return (Transition(f"K{broker} finds that a rebalance {words}", writes_of(bounds, broker, after), found[1].rule),)


def send(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator, *links: Link) -> Transitions:
    """Steps 4.1 and 4.2."""

    def handle(group: PushGroup) -> GroupStep | None:
        run = group.run
        if run is None or run.phase not in (rebalance.STOP, rebalance.START):
            return None
        if run.phase is rebalance.STOP:
            return rebalance.send_stops(group, CURRENT, bounds.dialect)
        return rebalance.send_starts(group, CURRENT)

    found = running_step(own, handle)
    if found is None:
        return NOTHING
    number, step = found
    is_first = step.rule == "rebalance.stopping" or bounds.dialect.command is Command.RESTART
    after = send_all(bounds, broker, step, age_messages(broker, links) if is_first else links)
    if after is None:
        return NOTHING
    what = "Stop" if step.rule == "rebalance.stopping" else "Start"
    violates = "S1" if zookeeper.leader != broker and step.sendings else ""
    writes = tuple((column, new) for column, new, old in zip(bounds.links, after, links, strict=True) if new is not old)
    own = apply_step(own, number, step)
    label = f"K{broker} sends {what} to {', '.join(one.consumer for one in step.sendings) or 'nobody'}"
    return (Transition(label, (*writes, *writes_of(bounds, broker, own)), step.rule, violates=violates),)


def write(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator, *links: Link) -> Transitions:
    """Step 5."""
    found = running_step(own, lambda group: rebalance.record_owners(group, bounds.retries, bounds.dialect))
    if found is None:
        return NOTHING
    number, step = found
    after = apply_step(own, number, step)
    writes = writes_of(bounds, broker, after)
    if step.owners is None:
        return (Transition(f"K{broker} finds a member of the attempt gone", writes, step.rule),)
    violates = "S7" if zookeeper.leader != broker else ""
    held = own.groups[number]
    run = None if held is None else held.run
    for share in () if run is None else run.shares:
        link = links[bounds.names.index(share.consumer)]
        registered = own.holds(number, share.consumer, link.consumer.number)
        if registered and is_live(link) and link.is_at(broker) and link.consumer.fetchers != share.partitions:
            violates = violates or "S4"
    recorded = (ZOOKEEPER, record(zookeeper, number, step.owners))
    return (Transition(f"K{broker} records the owners", (recorded, *writes), step.rule, violates=violates),)


def hear(bounds: PushBounds, broker: int, zookeeper: Zookeeper, own: PushCoordinator) -> Transitions:
    """The listener of the topic fires (TP1)."""
    if broker not in zookeeper.unheard:
        return NOTHING
    label = f"K{broker} hears of the partition"
    after, rules = own, []
    for number, group in enumerate(own.groups):
        if group is not None and group.members:
            step = partitions_changed(group, bounds.dialect)
            after = apply_step(after, number, step)
            rules.append(step.rule)
    heard = evolve(zookeeper, unheard=zookeeper.unheard - {broker})
    writes = ((ZOOKEEPER, heard), *writes_of(bounds, broker, after))
    return (Transition(label, writes, rules[0] if rules else "listener.nobody"),)


def set_read_bit(own: PushCoordinator) -> tuple[PushCoordinator, str] | None:
    """PUSH-H18 as drafted: the second half of the listener's step."""
    for number, group in enumerate(own.groups):
        step = None if group is None else listener_sets(group)
        if step is not None:
            return apply_step(own, number, step), step.rule
    return None


def miss(broker: int, zookeeper: Zookeeper, own: PushCoordinator) -> Transitions:
    """The ephemeral node of a broker that died goes with its session (F1, F2)."""
    if zookeeper.leader != broker or own.role is not Role.DOWN:
        return NOTHING
    gone = evolve(zookeeper, leader=None, unheard=zookeeper.unheard - {broker})
    return (Transition(f"ZooKeeper misses K{broker}", ((ZOOKEEPER, gone),), "elector.path-gone"),)
