"""Generates schedules: a seed and a batch number give the same schedules in every process."""

from collections import Counter

from fencepost.conformance.classic.schedules import (
    membership_interactions,
    offset_interactions,
    request_interactions,
    time_interactions,
)
from fencepost.conformance.classic.schedules.draw import Draw, RandomDraw
from fencepost.conformance.classic.schedules.interactions import Family, add_interaction, choose_families
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder, draw_roles
from fencepost.conformance.classic.schedules.simulation import Simulation
from fencepost.conformance.run.schedule import GeneratedSchedule, Schedule, ScheduleScope
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.messages import Request
from fencepost.traces.classic.calm_group import transition_of
from fencepost.traces.model_transitions import Transition

INTERACTION_MODULES = (
    membership_interactions,
    request_interactions,
    offset_interactions,
    time_interactions,
)
"""The modules whose interactions are registered."""
SCHEDULE_LENGTHS = (12, 18, 24)
"""How many interactions a schedule has."""


class ScheduleDraft:
    """One schedule being drawn: the families of its interactions, its moves so far and the model's prediction."""

    def __init__(self, draw: Draw, scope: ScheduleScope) -> None:
        self.predicted: Counter[Transition] = Counter()
        self.families = choose_families(draw, scope)
        groups = draw.choose((2, 2, 3) if Family.GROUPS in self.families else (1, 1, 2))
        self.simulation = Simulation(
            draw_roles(draw, groups),
            scope.settings,
            self.count_transition,
            grace=scope.grace,
            virtual=scope.virtual_time,
        )
        self.builder = ScheduleBuilder(draw, scope, self.simulation)

    def count_transition(self, before: GroupState, request: Request | None, result: StepResult) -> None:
        """Count a transition of the model."""
        self.predicted[transition_of(before, request, result)] += 1

    def form_groups(self) -> None:
        """The first actors of each group form it, if it is to have members."""
        self.builder.in_each_group(self.builder.form_group)

    def add_interaction(self) -> None:
        """Add the moves of one interaction."""
        add_interaction(self.builder, self.families)

    def finish(self, name: str) -> GeneratedSchedule:
        """The schedule, with this name and the prediction."""
        self.builder.finish()
        self.simulation.close()
        schedule = Schedule(name, self.builder.roles, tuple(self.builder.moves))
        return GeneratedSchedule(schedule, self.predicted, self.simulation.duration, self.simulation.restart_at)


def generate_schedule(draw: Draw, scope: ScheduleScope, name: str) -> GeneratedSchedule:
    """A schedule of these values."""
    draft = ScheduleDraft(draw, scope)
    draft.form_groups()
    for _ in range(draw.choose(SCHEDULE_LENGTHS)):
        draft.add_interaction()
    return draft.finish(name)


def generate_schedules(scope: ScheduleScope, run: int, batch: int, size: int) -> list[GeneratedSchedule]:
    """`size` schedules, named by the seed of the run, the number of the batch and their number in it."""
    numbered = [f"{run}-{batch}-{number}" for number in range(size)]
    return [generate_schedule(RandomDraw(each), scope, f"schedule-{each}") for each in numbered]
