"""Schedules of the classic protocol as the schedule engine sees them: a seed and a batch number give the same ones in
every process."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from fencepost.conformance.classic.schedules import (
    crossing_interactions,
    membership_interactions,
    offset_interactions,
    request_interactions,
    time_interactions,
)
from fencepost.conformance.classic.schedules.cast import LONG, NEWEST, SHORT, MemberRole
from fencepost.conformance.classic.schedules.draw import Draw, RandomDraw
from fencepost.conformance.classic.schedules.interactions import Family, add_interaction, choose_families
from fencepost.conformance.classic.schedules.moves import scenario_of
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder, draw_roles
from fencepost.conformance.classic.schedules.shortcuts import find_shortcuts
from fencepost.conformance.classic.schedules.simulation import Simulation
from fencepost.conformance.run.schedule import CoverageGoals, GeneratedSchedule, Move, Schedule, ScheduleScope
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.messages import Request
from fencepost.traces.classic.calm_group import transition_of
from fencepost.traces.events import Event
from fencepost.traces.verdict import Transition

INTERACTION_MODULES = (
    crossing_interactions,
    membership_interactions,
    request_interactions,
    offset_interactions,
    time_interactions,
)
"""The modules whose interactions are registered."""
SCHEDULE_LENGTHS = (12, 17, 22)
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


KNOWN_TRANSITIONS_FILE = Path(__file__).parent / "transitions.txt"
"""The transitions that the model took in many simulated schedules, one a line."""
PLAIN_REQUESTS = {"JoinGroup": "join", "SyncGroup": "sync"}


@dataclass(frozen=True, slots=True)
class ClassicSchedules:
    """Schedules of classic groups, within what a target allows."""

    scope: ScheduleScope

    @property
    def default_role(self) -> MemberRole:
        """A dynamic member with one protocol, a long session and a short rebalance timeout."""
        return MemberRole()

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """See `generate_schedules`."""
        return generate_schedules(self.scope, seed, batch, size)

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """See `moves.scenario_of`."""
        return scenario_of(schedule)

    def shortcuts(self, schedule: Schedule, events: Sequence[Event], sequence: int) -> tuple[Schedule, ...]:
        """See `find_shortcuts`."""
        return find_shortcuts(schedule, self.scope, events, sequence)

    def simpler_moves(self, move: Move) -> Iterator[Move]:
        """An ordinary request in the place of a repeated one, and a short wait in the place of one that only takes
        time."""
        if move.kind == "again":
            yield Move(PLAIN_REQUESTS.get(str(move.get("api")), "heartbeat"), move.who)
        elif move.kind != "wait":
            yield Move("wait", move.who)

    def simpler_roles(self, role: MemberRole) -> Iterator[MemberRole]:
        """The role with one of its fields as in the default role."""
        if role.instance != 0:
            yield replace(role, instance=0)
        if role.group != 0:
            yield replace(role, group=0)
        if role.client != NEWEST:
            yield replace(role, client=NEWEST)
        if role.subscription != 0:
            yield replace(role, subscription=0)
        if role.offer != "a":
            yield replace(role, offer="a")
        if role.session != LONG:
            yield replace(role, session=LONG)
        if role.rebalance != SHORT:
            yield replace(role, rebalance=SHORT)


@cache
def coverage_goals() -> CoverageGoals:
    """The transitions and rules of the classic coordinator."""
    file = files(__package__).joinpath(KNOWN_TRANSITIONS_FILE.name)  # also in a zip file
    lines = file.read_text(encoding="utf-8").splitlines()
    guards = {name: rule.guard for name, rule in RULES.items()}
    return CoverageGoals(frozenset(Transition.parse(line) for line in lines), guards)
