"""The classic protocol as the schedule engine sees it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from fencepost.conformance.classic.schedules import interpreter
from fencepost.conformance.classic.schedules.generation import generate_schedules
from fencepost.conformance.classic.schedules.moves.cast import LONG, NEWEST, SHORT, MemberRole
from fencepost.conformance.classic.schedules.shortcuts import find_shortcuts
from fencepost.conformance.run.schedule import CoverageGoals, GeneratedSchedule, Move, Schedule, ScheduleScope
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue import RULES
from fencepost.traces.events import Event
from fencepost.traces.model_transitions import Transition

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
        """See `interpreter.scenario_of`."""
        return interpreter.scenario_of(schedule)

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
