"""The group model with its properties, ready for a search."""

from dataclasses import replace
from itertools import combinations

from fencepost.model.classic.coordinator.group_log import group_record, load_record, writes_record
from fencepost.model.classic.core.state import FREE, Context, Group, Holder, JoinResponse, Step
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.coordinator_steps import without_deadlines
from fencepost.model.classic.explore.group_model import GroupModel
from fencepost.model.classic.explore.properties import ONE_LEADER_EVER, property_checks, sometimes
from fencepost.model.classic.explore.state_layout import (
    COORDINATOR,
    Bounds,
    CoordinatorLog,
    CoordinatorState,
    ModelConfig,
)
from fencepost.model.classic.explore.symmetry import ReducedGroupModel
from fencepost.model.errors import Error
from fencepost.model.explore.transition_system import Action, Check, Transition, TransitionSystem
from fencepost.model.frozen import evolve
from fencepost.model.sorts import MemberId

# --- The explored world with fail-overs: at any moment the coordinator may be lost, and the next one loads the group.
#
# What the coordinator knew and did not store is gone; messages stay under way. Nothing is reduced here, because a
# generation that is lost makes outdated requests current again.


class FailoverModel(GroupModel):
    """The group's world with fail-overs, as many as the bounds allow, in this dialect."""

    def __init__(self, config: ModelConfig, bounds: Bounds, dialect: Dialect) -> None:
        super().__init__(replace(config, dialect=dialect), bounds)
        self.context = Context(0, dialect=dialect)

    def system(self) -> TransitionSystem:
        """The system with its properties; nothing has been stored yet."""
        bare = GroupModel.system(self)
        (first, *others) = bare.initial
        failover = Action("fail-over", (COORDINATOR,), self.failover_transitions)
        return replace(
            bare,
            initial=(replace(first, log=CoordinatorLog()), *others),
            actions=(*bare.actions, failover),
            checks=(*property_checks(self.count), *LEADER_CHECKS),
        )

    def coordinator_after(self, before: CoordinatorState, group: Group, step: Step, last_id: int) -> CoordinatorState:
        """The coordinator after a step from this group, with its record and the leaders it told of."""
        after = super().coordinator_after(before, group, step, last_id)
        log = before.log
        assert log is not None
        if step.group is not group and writes_record(group, step, self.context):
            log = replace(log, record=without_deadlines(group_record(step.group, self.context)))
        return replace(after, log=replace(log, told=(*log.told, *newly_told(log, step))))

    def failover_transitions(self, coordinator: CoordinatorState) -> tuple[Transition, ...]:
        """The coordinator is lost, and the next one begins with the record."""
        log = coordinator.log
        assert log is not None
        if log.failovers == self.bounds.failovers:
            return ()
        step = load_record(log.record, self.context)
        members = [slot for slot in without_deadlines(step.group).slots if slot.holder != Holder.NOBODY]
        slots = (*members, *(FREE,) * self.bounds.slots)[: self.bounds.slots]
        after = CoordinatorState(
            without_deadlines(evolve(step.group, slots=slots)),
            coordinator.last_id,
            replace(log, failovers=log.failovers + 1),
        )
        return (Transition("the coordinator fails over", ((COORDINATOR, after),), step.rule),)


def newly_told(log: CoordinatorLog, step: Step) -> list[tuple[int, MemberId | None]]:
    """Which leaders of which generations the step tells of for the first time."""
    responses = [output.response for output in step.outputs]
    told = [
        (response.generation, response.leader)
        for response in responses
        if isinstance(response, JoinResponse) and response.error == Error.NONE
    ]
    return [each for each in dict.fromkeys(told) if each not in log.told]


def one_leader_ever(coordinator: CoordinatorState) -> bool:
    """No generation has been told of with two leaders."""
    assert coordinator.log is not None
    return not any(one[0] == other[0] for one, other in combinations(coordinator.log.told, 2))


def has_told_after_failover(coordinator: CoordinatorState) -> bool:
    """A coordinator that is not the first has told of a generation."""
    assert coordinator.log is not None
    return coordinator.log.failovers > 0 and bool(coordinator.log.told)


LEADER_CHECKS = (
    Check(ONE_LEADER_EVER.name, (COORDINATOR,), one_leader_ever),
    sometimes(ONE_LEADER_EVER.premise, (COORDINATOR,), has_told_after_failover),
)


def group_system(
    config: ModelConfig, bounds: Bounds, reduced: bool = True, stores_early: bool = False
) -> TransitionSystem:
    """The group's world with its properties, by default in its smallest form; with fail-overs it has none.

    `stores_early`: the coordinator stores a generation before it answers JoinGroup.
    """
    if bounds.failovers:
        return FailoverModel(config, bounds, Dialect(generation_waits_for_assignment=not stores_early)).system()
    world = (ReducedGroupModel if reduced else GroupModel)(config, bounds)
    return replace(world.system(), checks=property_checks(world.count))
