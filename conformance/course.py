"""A run under way: what was planned, what was played, and what follows from it so far."""

import random
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance import aggregation
from fencepost.conformance.aggregation import Origin
from fencepost.conformance.blame import Blame, broken, is_crash, violations
from fencepost.conformance.execution import Played
from fencepost.conformance.plan import Plan
from fencepost.conformance.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.selection import Selection
from fencepost.traces.events import Event, Kind
from fencepost.traces.format import write_trace
from fencepost.traces.judge.judge import judge

TRIES = 3
"""How many scenarios are replayed at most to confirm one violation."""


def size(played: Played) -> int:
    """How long a trace is."""
    return len(played.events)


@dataclass(slots=True)
class Course:
    """A run under way: what was played so far, and who is told."""

    plan: Plan
    selection: Selection
    progress: Callable[[Progress], None]
    begun: float = field(default_factory=time.monotonic)
    played: list[Played] = field(default_factory=list)
    confirmed: dict[str, frozenset[str]] = field(default_factory=dict)
    decisions: dict[str, bool] = field(default_factory=dict)

    def keep(self, one: Played) -> None:
        """A scenario was played. What it decides about the reference differences binds all later ones."""
        sides = one.verdict.decisions.items()
        contrary = {name: self.decisions[name] for name, side in sides if self.differs(name, side)}
        if contrary:
            events = tuple(decided(one.events, contrary))
            one = replace(one, events=events, verdict=judge(one.header, events))
        self.decisions.update(one.verdict.decisions)
        self.played.append(one)
        violated = len({each for played in self.played for each in broken(played)})
        seconds = time.monotonic() - self.begun
        self.progress(Progress(len(self.played), len(self.selection.scenarios), seconds, violated, one.scenario.name))

    def differs(self, name: str, side: bool) -> bool:
        """A reference difference was decided otherwise before."""
        return name in self.decisions and self.decisions[name] != side

    def suspects(self) -> list[Scenario]:
        """The scenarios to replay next: the shortest that shows each violation not confirmed so far.

        Nothing is called a failure before it was seen twice; what a few scenarios do not show again is not. A crash
        is replayed even if its requirement is violated without one.
        """
        settled = frozenset[str]().union(*self.confirmed.values())
        blame = Blame(self.played)
        looked_for: dict[str, list[Played]] = {}
        in_passing: dict[str, list[Played]] = {}
        chosen: dict[str, Scenario] = {}
        for one in sorted(self.played, key=size):
            alone = [each for each in violations(one.verdict) if not blame.behind(each, one)]
            marked = {each.requirement for each in alone if each.marked}
            for requirement in {each.requirement for each in alone} - settled:
                (looked_for if requirement in marked else in_passing).setdefault(requirement, []).append(one)
            if one.scenario.name not in self.confirmed and any(is_crash(each.fault, one) for each in alone):
                chosen[one.scenario.name] = one.scenario
        for requirement in sorted(looked_for.keys() | in_passing.keys()):
            shows = looked_for.get(requirement, []) + in_passing.get(requirement, [])
            untried = [one for one in shows if one.scenario.name not in self.confirmed]
            if untried and len(shows) - len(untried) < TRIES:
                chosen[untried[0].scenario.name] = untried[0].scenario
        return list(chosen.values())

    def report(self, target: Mapping[str, str], known: Mapping[str, str], *, cut_short: bool) -> Report:
        """Everything that is known so far."""
        return Report(
            target=target,
            seed=self.plan.seed,
            results=aggregation.results(self.selection, self.played, self.confirmed, known, self.origin),
            rules=aggregation.coverage(one.verdict for one in self.played),
            schedules=len(self.played),
            events=sum(len(one.events) for one in self.played),
            seconds=round(time.monotonic() - self.begun, 3),
            cut_short=cut_short,
        )

    def origin(self, played: Played) -> Origin:
        """Where the trace of a failure is found, and the command that runs it again."""
        plan, name = self.plan, played.scenario.name
        profile = ["--profile", str(plan.profile)] if plan.profile is not None else []
        if plan.save is not None:
            path = str(trace_file(plan.save, played))
            return Origin(path, shlex.join(["fencepost", "replay", path, plan.target, *profile]))
        ids = played.scenario.requirements
        return Origin(name, shlex.join(["fencepost", "test", plan.target, "--only", *ids, *profile]))


def decided(events: Iterable[Event], decisions: Mapping[str, bool]) -> Iterator[Event]:
    """The trace, which says by itself how reference differences were decided before it."""
    for event in events:
        tells = event.kind is Kind.INTERNAL and event.api == "topics"
        yield replace(event, body={**event.body, "decisions": dict(decisions)}) if tells else event


def trace_file(folder: Path, played: Played) -> Path:
    """Where the trace of a scenario is saved."""
    return folder / f"{played.scenario.name}.jsonl"


def in_order(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """The scenarios in the order of this seed; 0 keeps the order they are written in."""
    ordered = list(scenarios)
    if seed:
        random.Random(seed).shuffle(ordered)
    return ordered


def save(plan: Plan, played: Played) -> None:
    """Write the trace where the plan wants it."""
    if plan.traces is not None:
        write_trace(trace_file(plan.traces, played), played.header, played.events)
    if plan.save is not None and broken(played):
        write_trace(trace_file(plan.save, played), played.header, played.events)
