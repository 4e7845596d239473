"""The results of a run, as plain data: a verdict for each requirement, its failures, and coverage of the model."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from fencepost import __version__
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.verdict import FieldDifference


@dataclass(frozen=True, slots=True)
class Kit:
    """The kit that made a report: its version, how many `requirements` its catalogue has, and the SHA-256 of their ids,
    levels, sentences, sources, needs and releases."""

    version: str
    requirements: int
    catalogue: str


def describe_kit(specification: Specification) -> Kit:
    """This kit, with the requirements of a specification."""
    rows = [
        [each.id, each.level, each.title, each.sentence, each.source, each.needs, str(each.since or "")]
        for each in specification.requirements.values()
    ]
    text = json.dumps(rows, separators=(",", ":"))
    return Kit(__version__, len(rows), hashlib.sha256(text.encode()).hexdigest())


class NamedBy(StrEnum):
    """Who says what the target is."""

    PROFILE = "profile"
    TARGET = "target"
    NOBODY = "nobody"
    """It is known by its address."""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The options of a run as they are in `Plan`, and the `command` line that they make."""

    command: tuple[str, ...]
    only: tuple[str, ...]
    exclude: tuple[str, ...]
    smoke: bool
    slow: bool
    intrusive: bool
    seed: int
    schedules: int
    tours: int
    max_failures: int | None
    seconds: float | None
    shrink_seconds: float | None


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """A profile: the deviations that it declares with their reasons, the capabilities that it offers, the settings that
    it states, and whether these override what the target says."""

    known: Mapping[str, str]
    offers: tuple[str, ...]
    settings: Mapping[str, int]
    override: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the kit ran: the version of Python, the operating system, the processors, and the job of continuous
    integration with the commit that it tests ("" for none)."""

    python: str
    os: str
    cpus: int
    ci: str
    commit: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a report comes from. `started` is a time in UTC such as 2026-01-31T12:00:00Z. The plan is there if a target
    was asked, the profile if one was given; `about` is what it says of the target."""

    started: str
    machine: Machine
    plan: PlanRecord | None = None
    profile: ProfileRecord | None = None
    named_by: NamedBy = NamedBy.NOBODY
    about: Mapping[str, str] = field(default_factory=dict)


# --- What was found.


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


class Scope(StrEnum):
    """How much of the catalogue a run sets out to exercise."""

    FULL = "full"
    SELECTED = "selected"
    """Requirements chosen by their ids."""
    SMOKE = "smoke"
    """The scenarios of a quick run."""
    TRACES = "traces"
    """What recorded traces happen to show."""


class RemarkKind(StrEnum):
    """What is to be said of a requirement that is kept."""

    UNUSUAL = "unusual"
    """Allowed, but not as Apache Kafka has it."""
    AMBIGUOUS = "ambiguous"
    """The sources differ, and the target is like one of them."""


@dataclass(frozen=True, slots=True)
class Remark:
    """How a target keeps a requirement, where that is to be told."""

    kind: RemarkKind
    text: str

    def __str__(self) -> str:
        return f"{'unusual' if self.kind is RemarkKind.UNUSUAL else 'ambiguous in the sources'}: {self.text}"


class ExitCode(IntEnum):
    """The exit codes of every command."""

    CONFORMANT = 0
    VIOLATION = 1
    COULD_NOT_RUN = 2
    INCONCLUSIVE = 3


WENT_DOWN = "the target went down"
ERROR_NAME = re.compile(r"[A-Z][A-Z_]+\b")
"""An error at the beginning of a response in words."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One violation: the observed response, the allowed ones, and how to reproduce it.

    `trace` names the trace, `step` is the sequence number of the offending event in it, `guard` is the condition
    under which the response would be right, `schedule` the shortest schedule known to show the violation, a step a
    line, `replay` the command that runs it again ("" if there is none), and `replayed` whether it was confirmed that
    way. `title` says in a line what is wrong, and `differences` which fields are; `rule` is the rule of the model that
    applies, with its guard, and `state` the state of the group; `wrong_step` counts the step of the schedule that gets
    the wrong response from 1 and is 0 if it is not in the schedule; failures that are alike have the same `kind`;
    `excerpt` is a trace that shows it, as text ("" if that is too long, or another failure of the requirement is
    shorter).
    """

    trace: str
    step: int
    observed: str
    allowed: tuple[str, ...]
    guard: str
    schedule: tuple[str, ...] = ()
    replay: str = ""
    replayed: bool = False
    title: str = ""
    differences: tuple[FieldDifference, ...] = ()
    rule: str = ""
    state: str = ""
    wrong_step: int = 0
    kind: str = ""
    excerpt: str = ""

    @property
    def is_harm(self) -> bool:
        """Whether the target went down instead of responding."""
        return self.observed == WENT_DOWN

    def describe_model(self) -> str:
        """What the model would have done, and why, in a sentence; without a rule the reason alone."""
        if not self.rule:
            return self.guard
        rule, _, guard = self.rule.partition(": ")
        if not guard or not self.allowed:
            return ""
        error = ERROR_NAME.match(self.allowed[0])
        does = f"answers {error[0]}" if error is not None else "waits"
        if self.allowed[0].startswith(("listed", "not listed")):
            does = "lists the group" if self.allowed[0].startswith("listed") else "does not list the group"
        return f"{does}, since {guard} (rule {rule})"

    def numbered_steps(self) -> Iterator[str]:
        """The steps of the schedule, numbered, with a mark behind the one that gets the wrong response."""
        for number, step in enumerate(self.schedule, 1):
            yield f"{number}. {step}{'   <-- wrong response' if number == self.wrong_step else ''}"


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """The verdict on one requirement. `note` gives the reason; `checks` counts the responses that were checked for it;
    `causes` are the failed requirements that an inconclusive one follows from; a pass may have a `remark`.
    `more_failures` counts those of recorded traces that `failures` leaves out."""

    id: str
    verdict: Verdict
    note: str = ""
    checks: int = 0
    failures: tuple[Failure, ...] = ()
    causes: tuple[str, ...] = ()
    remark: Remark | None = None
    more_failures: int = 0

    @property
    def comment(self) -> str:
        """The remark and the note in a line, "" if there is neither."""
        return "; ".join(str(each) for each in (self.remark, self.note) if each)

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


class EndKind(StrEnum):
    """What ended a run before its schedules did."""

    INTERRUPTED = "interrupted"
    """A signal, or a caller that cancelled it."""
    TARGET_DOWN = "target-down"
    """The target stopped answering, or could not be started or killed as its profile says."""
    STOPPED = "stopped"
    """A limit that the plan sets: time, or failures."""
    HARNESS_FAILED = "harness-failed"
    """The kit could not go on: an error in it, or a file that could not be written."""
    UNREADABLE = "unreadable"
    """Recorded traces that could not be read, or not to their end; the others were judged."""
    QUARANTINED = "quarantined"
    """Traces in a corpus that could not be read, or not to their end: these parts are in its quarantine."""
    NOT_STARTED = "could-not-run"
    """Nothing was tested: the target could not be used, or the options are wrong."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended before its schedules did.

    `reason` says it in words. `seconds` is when, after the start of the run; `during` names the scenario or schedule
    that was being played ("" if none was); `last_sign` is when the target was heard for the last time, None if it was
    not or does not matter; `detail` has the traceback of an error of the kit.
    """

    kind: EndKind
    reason: str
    seconds: float = 0.0
    during: str = ""
    last_sign: float | None = None
    detail: str = ""


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
    ended before its schedules did, or left something undecided, and `ended` how it ended before (None if it did not);
    `coverage` is there if random schedules were played; `undecided` tells what is left open, and why;
    `scope` says how much the run set out to exercise; the `specification` has the requirements of all results;
    `unclassified` are violations that no requirement speaks of; `facts` are there if a target was asked;
    `idle_findings` tell what it did while the kit was idle that no requirement forbids and no broker should do;
    `provenance` tells how the report came about, and `kit` which other kit made it (None for this one); `members` is
    the report on the members of the groups, if the traces are recordings of real ones.
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
    ended: Ending | None = None
    scope: Scope = Scope.FULL
    specification: Specification = field(default=DEFAULT_SPECIFICATION, repr=False)
    unclassified: tuple[Failure, ...] = ()
    facts: TargetFacts | None = None
    idle_findings: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, compare=False)
    kit: Kit | None = field(default=None, compare=False)
    members: "Report | None" = None

    def summary(self) -> dict[Verdict, int]:
        """How many requirements got each verdict; every verdict is a key."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}

    @property
    def is_conformant(self) -> bool:
        """No requirement is violated, none stayed inconclusive and the run was not cut short."""
        return self.exit_code() is ExitCode.CONFORMANT

    def checked_count(self) -> int:
        """The number of requirements with a verdict of their own: pass, fail or known."""
        return sum(result.verdict in (Verdict.PASS, Verdict.FAIL, Verdict.KNOWN) for result in self.results)

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
        """A violation outweighs everything; a run that left something undecided, or checked nothing, is never
        conformant, nor is a target that was busy while it was idle."""
        summary = self.summary()
        if summary[Verdict.FAIL] or self.unclassified or (self.members is not None and self.members.failed_results()):
            return ExitCode.VIOLATION
        if self.ended is not None and self.ended.kind in (EndKind.NOT_STARTED, EndKind.UNREADABLE):
            return ExitCode.COULD_NOT_RUN
        is_open = self.cut_short or self.idle_findings or summary[Verdict.INCONCLUSIVE]
        if is_open or not summary[Verdict.PASS] + summary[Verdict.KNOWN]:
            return ExitCode.INCONCLUSIVE
        return ExitCode.CONFORMANT
