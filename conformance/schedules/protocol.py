"""The interface between the schedule engine and a protocol."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Move, Role, Schedule
from fencepost.traces.events import Event
from fencepost.traces.model_transitions import Transition


@dataclass(frozen=True, slots=True)
class CoverageGoals:
    """What coverage is measured against: the transitions that the model is known to take, and the guard of each rule.

    The guard of a rule that applies only after a failure of the target is "".
    """

    transitions: frozenset[Transition] = frozenset()
    rules: Mapping[str, str] = field(default_factory=dict)


class ScheduleProtocol(Protocol):
    """A protocol as the engine sees it. Implementations are immutable, hashable by value, and can be pickled.

    For one that derives from it, actors are all alike and no move has a simpler one, unless it says otherwise.
    """

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def default_role(self) -> Role:
        """The simplest role of an actor; shrinking puts it in the place of others."""
        return None

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """`size` schedules with names of their own; the same for the same arguments."""
        ...

    def shortcuts(self, schedule: Schedule, events: Sequence[Event], sequence: int) -> Sequence[Schedule]:
        """Shorter schedules with the same cast, the shortest first: each may fail as the run of `schedule` with these
        events did at request `sequence`. Shrinking begins with the first that does."""
        return ()

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        """Moves to try in the place of this one when shrinking, beside the move with fewer options."""
        return ()

    def simpler_roles(self, role: Role) -> Iterable[Role]:
        """Roles to try in the place of this one when shrinking, the simplest first."""
        return ()


class TargetScheduleProtocol(ScheduleProtocol, Protocol):
    """A protocol whose schedules are played on targets."""

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the schedule and checks no requirement; it needs "restart" if the schedule does."""
        ...
