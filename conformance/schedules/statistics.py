"""What came of the random schedules of a run: counted, and what fails kept for another look."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.play import Played
from fencepost.conformance.schedules.classic.generation import Drawn
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.traces.model_transitions import Transition

SUSPECTS = 3
"""How many schedules that break one requirement are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one schedule. `undecided` says what was missing if it could not be judged; `played` is there if
    something is broken."""

    drawn: Drawn
    events: int
    rules: Mapping[str, int]
    transitions: Mapping[Transition, int]
    broken: frozenset[str] = frozenset()
    undecided: str = ""
    played: Played | None = None

    @classmethod
    def of(cls, drawn: Drawn, played: Played) -> "Outcome":
        """What a schedule showed."""
        verdict = played.verdict
        found = broken(played)
        missing = verdict.inconclusive[0] if verdict.inconclusive else played.blocked
        kept = played if found else None
        return cls(drawn, len(played.events), verdict.rules, verdict.transitions, found, missing, kept)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A schedule that broke a requirement once, as it was played."""

    schedule: Schedule
    played: Played

    def under(self, requirement: str) -> Played:
        """What was played, under a name that tells what it shows."""
        scenario = self.played.scenario
        return replace(self.played, scenario=replace(scenario, name=f"{scenario.name}-{requirement}"))


@dataclass(slots=True)
class Tally:
    """Everything that came of the schedules so far."""

    schedules: int = 0
    events: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[Transition] = field(default_factory=Counter)
    foretold: Counter[Transition] = field(default_factory=Counter)
    undecided: dict[str, str] = field(default_factory=dict)
    """What was missing, by schedule."""
    suspects: dict[str, list[Suspect]] = field(default_factory=dict)
    """By requirement, the shortest first."""

    def keep(self, one: Outcome) -> None:
        """Count what came of a schedule."""
        self.schedules += 1
        self.events += one.events
        self.rules.update(one.rules)
        self.transitions.update(one.transitions)
        self.foretold.update(one.drawn.transitions)
        if one.undecided and not one.broken:
            self.undecided[one.drawn.schedule.name] = one.undecided
        if one.played is None:
            return
        for requirement in sorted(one.broken):
            known = self.suspects.setdefault(requirement, [])
            known.append(Suspect(one.drawn.schedule, one.played))
            known.sort(key=lambda each: len(each.played.events))
            del known[SUSPECTS:]
