"""The results of a run, as plain data: a verdict for each requirement, its failures, and coverage of the model."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """The verdict of a run on one requirement."""

    PASS = "pass"
    FAIL = "fail"
    KNOWN = "known"
    """Violated, and declared in the profile as a deviation."""
    UNSUPPORTED = "unsupported"
    """Needs a capability that the target does not claim or the profile does not offer."""
    NOT_OBSERVED = "not-observed"
    """The run did not exercise it."""
    INCONCLUSIVE = "inconclusive"
    """Exercised, but the run could not decide it."""


class ExitCode(IntEnum):
    """The exit codes of every command."""

    CONFORMANT = 0
    VIOLATION = 1
    COULD_NOT_RUN = 2
    INCONCLUSIVE = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """One violation: the observed response, the allowed ones, and how to reproduce it.

    `trace` names the trace, `step` is the sequence number of the offending event in it, `guard` is the
    condition that was false, `schedule` the shortest schedule known to show the violation, a step a line,
    `replay` the command that runs it again ("" if there is none), and `replayed` whether it was confirmed that way.
    """

    trace: str
    step: int
    observed: str
    allowed: tuple[str, ...]
    guard: str
    schedule: tuple[str, ...] = ()
    replay: str = ""
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """The verdict on one requirement. `note` gives the reason, or what is unusual; `checks` counts the responses that
    were checked for it."""

    id: str
    verdict: Verdict
    note: str = ""
    checks: int = 0
    failures: tuple[Failure, ...] = ()

    def failures_by_length(self) -> list[Failure]:
        """The failures, those with the shortest schedule first and those without any last."""
        return sorted(self.failures, key=lambda failure: (not failure.schedule, len(failure.schedule)))


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """How often a rule of the model explained a response, and the ids of its requirements."""

    seen: int
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The transitions and rules of the model that a run with random schedules covered on its target.

    `undecided` names schedules that could not be judged, and what was missing; `transitions` were seen so many times;
    `missed` could be taken as far as is known and were not, the nearest first, with how near the best schedule came;
    `rules` are those never seen, likewise.
    """

    schedules: int
    undecided: Mapping[str, str]
    transitions: Mapping[str, int]
    missed: Mapping[str, str]
    rules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SettingFact:
    """A setting of the target: its value, None if it is not known, and its origin (profile, override, broker, probe,
    kit, no limit met, not told)."""

    value: int | None
    origin: str


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What was known about the target of a run: `settings` by name, the versions of `apis` that it shares with the kit,
    the `capabilities` that it has, those that are `off` with the lines that would switch them on, and `remarks`."""

    settings: Mapping[str, SettingFact]
    apis: Mapping[str, tuple[int, int]]
    capabilities: tuple[str, ...]
    off: Mapping[str, str]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a run.

    `target` describes what was judged and has at least a "name"; `results` are in catalogue order and hold only
    the requirements that were asked for; `rules` is keyed by rule name; `cut_short` says that the run
    ended before its schedules did; `coverage` is there if random schedules were played; `undecided` tells what recorded
    traces leave open, and why; `facts` are there if a target was asked;
    `idle_findings` tell what it did while the kit was idle that no requirement forbids and no broker should do.
    """

    target: Mapping[str, str]
    seed: int
    results: tuple[RequirementResult, ...]
    rules: Mapping[str, RuleCoverage] = field(default_factory=dict)
    schedules: int = 0
    events: int = 0
    seconds: float = 0.0
    cut_short: bool = False
    coverage: Coverage | None = None
    undecided: tuple[str, ...] = ()
    facts: TargetFacts | None = None
    idle_findings: tuple[str, ...] = ()

    def summary(self) -> dict[Verdict, int]:
        """How many requirements got each verdict; every verdict is a key."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}

    @property
    def is_conformant(self) -> bool:
        """No requirement is violated, none stayed inconclusive and the run was not cut short."""
        return self.exit_code() is ExitCode.CONFORMANT

    def failed_results(self) -> tuple[RequirementResult, ...]:
        """The results of the requirements that are violated."""
        return tuple(result for result in self.results if result.verdict is Verdict.FAIL)

    def result(self, id: str) -> RequirementResult:
        """The result for a requirement. Raises `KeyError` if the run was not asked for it."""
        found = next((result for result in self.results if result.id == id), None)
        if found is None:
            raise KeyError(id)
        return found

    def exit_code(self) -> ExitCode:
        """A violation outweighs everything; a run that left something undecided is never conformant, nor is a target
        that was busy while it was idle."""
        summary = self.summary()
        if summary[Verdict.FAIL]:
            return ExitCode.VIOLATION
        if self.cut_short or summary[Verdict.INCONCLUSIVE] or self.idle_findings:
            return ExitCode.INCONCLUSIVE
        return ExitCode.CONFORMANT
