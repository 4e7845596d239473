"""The faults, each within its bound, and what must follow on them."""

from functools import partial

from fencepost.model.explore.transition_system import Action, Gate, Transition
from fencepost.model.frozen import evolve
from fencepost.model.region.controller import CheckpointStore, GroupBean, Region
from fencepost.model.region.explore.row import (
    BEAN,
    FAULTS,
    KAFKA,
    NOTHING,
    REGION,
    STORE,
    Kafka,
    RegionBounds,
    RegionFaults,
    Transitions,
    reset_region,
    spend,
)
from fencepost.model.region.group import expire, has_member, member_slot, rename_member
from fencepost.model.region.operator import Operator, crash, relaunch


def fault_actions(bounds: RegionBounds) -> list[Action]:
    """What nobody wants to happen."""
    found = [
        Action("downstream fails", (FAULTS, REGION, STORE), partial(fail_downstream, bounds), gate=is_left("failures")),
        Action("control plane restarts", (FAULTS, BEAN), restart_control_plane),
        Action("topic changes", (FAULTS, KAFKA), partial(change_topic, bounds)),
    ]
    for name in bounds.names:
        column = bounds.column(name)
        crashed = (FAULTS, REGION, STORE, BEAN, KAFKA, column)
        found += [
            Action(f"{name} dies", crashed, partial(crash_operator, bounds, name), gate=is_left("crashes")),
            Action(
                f"{name} is expelled", (FAULTS, KAFKA, column), partial(expel, bounds, name), gate=is_left("expulsions")
            ),
        ]
    return found


def is_left(fault: str) -> Gate:
    """Only while a fault may still happen."""
    return Gate(FAULTS, lambda faults: getattr(faults, fault) > 0)


def following_actions(bounds: RegionBounds) -> list[Action]:
    """What follows on a fault in the end: the PE is launched again, the session of its old member expires."""
    found = []
    for name in bounds.names:
        relaunches = partial(relaunch_operator, bounds, name)
        found.append(Action(f"{name} comes back", (bounds.column(name),), relaunches))
        found += [
            Action(f"{dead} is missed", (KAFKA,), partial(miss, bounds, dead)) for dead in dead_names(bounds, name)
        ]
    return found


def dead_names(bounds: RegionBounds, name: str) -> tuple[str, ...]:
    """The names that members of dead processes of an operator can have."""
    return tuple(f"{name}-dead{number}" for number in range(bounds.faults.crashes))


def fail_downstream(bounds: RegionBounds, faults: RegionFaults, region: Region, store: CheckpointStore) -> Transitions:
    """A PE downstream fails, and the region is reset."""
    if not faults.failures:
        return NOTHING
    writes = (spend(faults, "failures"), *reset_region(bounds, region, store))
    return (Transition("a PE downstream fails", writes, "region.resets"),)


def restart_control_plane(faults: RegionFaults, bean: GroupBean) -> Transitions:
    """The bean is lost with all that is in it; operators connect again."""
    if not faults.restarts:
        return NOTHING
    return (
        Transition("the job control plane restarts", (spend(faults, "restarts"), (BEAN, GroupBean())), "bean.created"),
    )


def change_topic(bounds: RegionBounds, faults: RegionFaults, kafka: Kafka) -> Transitions:
    """A partition is added, or the leader sees another reason to join again."""
    found = []
    if faults.partitions:
        more = evolve(kafka, partitions=kafka.partitions + 1, has_news=True)
        found.append(Transition("a partition is added", (spend(faults, "partitions"), (KAFKA, more))))
    if faults.rebalances and not kafka.has_news:
        news = evolve(kafka, has_news=True)
        found.append(Transition("the topic changes", (spend(faults, "rebalances"), (KAFKA, news))))
    return tuple(found)


def crash_operator(
    bounds: RegionBounds,
    name: str,
    faults: RegionFaults,
    region: Region,
    store: CheckpointStore,
    bean: GroupBean,
    kafka: Kafka,
    own: Operator,
) -> Transitions:
    """The PE dies: the group keeps its member until the session ends, the region is reset."""
    if not faults.crashes or not own.is_up:
        return NOTHING
    group = kafka.group
    if has_member(group, name):
        free = next(dead for dead in dead_names(bounds, name) if not has_member(group, dead))
        group = rename_member(group, name, free)
    writes = (
        spend(faults, "crashes"),
        *reset_region(bounds, region, store),
        (BEAN, evolve(bean, unheard=bean.unheard - {name})),
        (KAFKA, evolve(kafka, group=group)),
        (bounds.column(name), crash(own)),
    )
    return (Transition(f"{name}'s PE dies", writes, "region.resets"),)


def relaunch_operator(bounds: RegionBounds, name: str, own: Operator) -> Transitions:
    """The PE comes back."""
    if own.is_up:
        return NOTHING
    return (Transition(f"{name}'s PE comes back", ((bounds.column(name), relaunch(own)),), "operator.relaunched"),)


def miss(bounds: RegionBounds, dead: str, kafka: Kafka) -> Transitions:
    """The session of a dead process's member ends."""
    slot = member_slot(kafka.group, dead)
    if slot is None:
        return NOTHING
    label = f"the session of {dead} ends"
    groups = expire(kafka.group, dead, kafka.partitions)
    return tuple(Transition(label, ((KAFKA, evolve(kafka, group=group)),), "operator.missed") for group in groups)


def expel(bounds: RegionBounds, name: str, faults: RegionFaults, kafka: Kafka, own: Operator) -> Transitions:
    """Kafka ends the membership of a live operator, which has not polled or heartbeaten for too long."""
    slot = member_slot(kafka.group, name)
    if not faults.expulsions or not own.is_up or slot is None or slot.join:
        return NOTHING
    spent, label = spend(faults, "expulsions"), f"Kafka expels {name}"
    groups = expire(kafka.group, name, kafka.partitions)
    return tuple(
        Transition(label, (spent, (KAFKA, evolve(kafka, group=group))), "operator.expelled") for group in groups
    )
