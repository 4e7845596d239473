"""The events of a run, in the order in which they happen, as plain data.

    RunStarted, then ScenarioFinished for every scenario and ScheduleFinished for every random schedule, ScheduleShrunk
    for every shortest failing schedule, ViolationConfirmed as soon as a replay shows a violation again, Progress
    after each of the former, and at last RunFinished with the report, also if the run was cut short.

Progress displays, reports and saved traces are made from them and from nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fencepost.conformance.results import Failure, Report
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import TraceVerdict

__all__ = [
    "Progress",
    "RunEvent",
    "RunFinished",
    "RunStarted",
    "ScenarioFinished",
    "ScheduleFinished",
    "ScheduleShrunk",
    "ViolationConfirmed",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The target was reached. `target` describes it and has a "name"; `requirements` are the ids to be judged;
    `scenarios` (tours included) and `schedules` say how many of each are planned."""

    target: Mapping[str, str]
    seed: int
    requirements: tuple[str, ...]
    scenarios: int
    schedules: int


@dataclass(frozen=True, slots=True)
class ScenarioFinished:
    """A scenario was played and judged.

    `requirements` are those it was written for and `violated` those its trace violates, not yet confirmed by a replay.
    `unsupported` or `blocked` give the reason if it ended early, else they are empty.
    """

    name: str
    requirements: tuple[str, ...]
    header: Header
    events: tuple[Event, ...]
    verdict: TraceVerdict
    violated: frozenset[str] = frozenset()
    unsupported: str = ""
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleFinished:
    """A random schedule was played and judged: its number of events, the requirements it violates, and why it could
    not be judged to its end ("" if it could)."""

    name: str
    events: int
    violated: frozenset[str] = frozenset()
    undecided: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleShrunk:
    """The shortest schedule that was found to violate `requirement`, with its trace; `confirmed` if replays agree. A
    run that is cut short emits those that it has not shrunk."""

    name: str
    requirement: str
    header: Header
    events: tuple[Event, ...]
    confirmed: bool


@dataclass(frozen=True, slots=True)
class ViolationConfirmed:
    """A replay violated a requirement once more: `name` is the scenario or schedule that was replayed.

    The report fails the requirement, unless later runs show another cause or it is a declared deviation.
    """

    requirement: str
    name: str
    failure: Failure


HEAVY_COST = 9
"""About how much longer a random schedule takes than a scenario on virtual time: it is drawn, and has more steps."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: `done` of `total` schedules (or `unit`), after `seconds`.

    `failures` counts the requirements found violated so far; `current` names what is being tested now. Of schedules
    that are played side by side the `waits` that are left are told, in seconds; for others the pace is that since
    `pace_from`: seconds, and how many schedules were done then. `heavy` schedules of those that are left are random
    ones, while the pace is that of scenarios.
    """

    done: int
    total: int
    seconds: float
    failures: int = 0
    current: str = ""
    unit: str = "schedules"
    waits: float | None = None
    pace_from: tuple[float, int] = (0.0, 0)
    heavy: int = 0

    def seconds_left(self) -> float | None:
        """Seconds left, by the waits that are left, or if the rest goes on at the present pace; None while there is
        none."""
        seconds, done = self.seconds - self.pace_from[0], self.done - self.pace_from[1]
        if self.total < self.done or self.waits is not None:
            return self.waits
        return seconds / done * (self.total - self.done + (HEAVY_COST - 1) * self.heavy) if done > 0 else None


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over."""

    report: Report


RunEvent: TypeAlias = (
    RunStarted | ScenarioFinished | ScheduleFinished | ScheduleShrunk | ViolationConfirmed | Progress | RunFinished
)
