"""A run under way: what was planned, what was played, and what follows from it so far."""

import random
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis import aggregation
from fencepost.conformance.analysis.aggregation import Origin
from fencepost.conformance.analysis.reference_differences import noted
from fencepost.conformance.analysis.root_cause import Blame, broken, is_crash, violations
from fencepost.conformance.execution.play import Played
from fencepost.conformance.execution.saving import decided, save_failure, trace_file
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import Selection
from fencepost.conformance.scenarios.classic.tours import Touring
from fencepost.conformance.schedules.coverage import coverage
from fencepost.conformance.schedules.engine import Series
from fencepost.conformance.schedules.statistics import Tally
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
    found: list[Played] = field(default_factory=list)
    """What random schedules showed broken, under names of their own."""
    tally: Tally = field(default_factory=Tally)
    violated: set[str] = field(default_factory=set)
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
        self.tell(broken(one), one.scenario.name)

    def tell(self, violated: frozenset[str], name: str) -> None:
        """Say how far the run has come."""
        self.violated |= violated
        done = len({one.scenario.name for one in self.played}) + self.tally.schedules
        total = len(self.selection.scenarios) + self.plan.schedules
        self.progress(Progress(done, total, time.monotonic() - self.begun, len(self.violated), name))

    async def follow(self, series: Series) -> None:
        """Play random schedules, then see again and make short what they show broken and no scenario does."""
        self.tally = series.tally
        await series.run(lambda outcome: self.tell(outcome.broken, outcome.drawn.schedule.name))
        for requirement in self.unconfirmed():
            if requirement in self.unconfirmed():
                played, again = await series.confirm(requirement)
                self.confirmed[played.scenario.name] = again
                self.found.append(played)
                save_failure(self.plan, played)

    def unconfirmed(self) -> list[str]:
        """What random schedules broke, was asked for, and is not confirmed."""
        settled = frozenset[str]().union(*self.confirmed.values())
        asked = {requirement.id for requirement in self.selection.wanted}
        return sorted((self.tally.suspects.keys() & asked) - settled)

    def not_replayed(self) -> list[Played]:
        """What random schedules broke in a run that was cut short before they could be seen to fail again."""
        tried = {each.scenario.name for each in self.found}
        left = [self.tally.suspects[requirement][0].under(requirement) for requirement in self.unconfirmed()]
        return [played for played in left if played.scenario.name not in tried]

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
        runs = [*self.played, *self.found, *self.not_replayed()]
        results = aggregation.results(self.selection, runs, self.confirmed, known, self.origin)
        return Report(
            target=target,
            seed=self.plan.seed,
            results=tuple(noted(results, self.decisions)),
            rules=aggregation.coverage([*(one.verdict.rules for one in self.played), self.tally.rules]),
            schedules=len(self.played) + self.tally.schedules,
            events=sum(len(one.events) for one in self.played) + self.tally.events,
            coverage=coverage(self.tally, [one.verdict for one in self.played]) if self.plan.schedules else None,
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
        if not ids:
            on_tour = isinstance(played.scenario.play, Touring)
            again = ["--tours", str(plan.tours)] if on_tour else ["--schedules", str(plan.schedules)]
            return Origin(
                name, shlex.join(["fencepost", "test", plan.target, *again, "--seed", str(plan.seed), *profile])
            )
        return Origin(name, shlex.join(["fencepost", "test", plan.target, "--only", *ids, *profile]))


def in_order(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """The scenarios in the order of this seed; 0 keeps the order they are written in."""
    ordered = list(scenarios)
    if seed:
        random.Random(seed).shuffle(ordered)
    return ordered
