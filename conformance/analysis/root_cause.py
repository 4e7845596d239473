"""Which violations are independent, and which follow from another one.

A coordinator that does one thing wrong gives wrong answers in many situations, most of them set up to look at something
else. Only the requirement that speaks of the wrong thing is to be reported for it.

Violations of random schedules are named after the requirement whose own scenario shows the like.
A schedule shows that something is wrong, and the judge names the requirement of the rule that the response departs
from. A member whose commits do not keep its session is found by a commit that is refused, so COMMIT-01 is named. The
scenario of COMMIT-19 asks exactly this. If it fails on the same target, it says more, and the violation of the schedule
follows from that of COMMIT-19.

So every violation of a schedule is compared with the independent violations of scenarios. One is near if it departs
from the same rule, in the same API, in the same fields, on a path of the same rules. The nearest requirement is named
if it is near enough; else the one of the judge stays.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fencepost.conformance.analysis.causes import NO_ERROR, is_error_code
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import ScenarioRun, Subject
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.model.errors import Error, error_name
from fencepost.traces.events import Kind
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.groups.group_judge import MISSING
from fencepost.traces.verdict import PASSING, UNCLASSIFIED, CheckResult, CheckStatus, Violation, violations_in

# -- the names of violations of random schedules ----------------------------------------------------------------------

MIN_NEARNESS, MIN_NEARNESS_AMONG_MANY = 0.2, 2.0
"""How near a violation of a scenario has to be for a schedule to follow from it, where scenarios violate few
requirements, and where they violate many: the fewer there are, the less likely a schedule shows something else."""
FEW_REQUIREMENTS = 8
EXACT_FIELDS = frozenset({MISSING})
"""Fields of violations in which the judge names the requirement that says just this."""
TIME = "time"
SAME_KIND, SAME_RULE, SAME_API, SAME_FIELDS = 3.0, 1.0, 1.0, 0.5
SAME_PATH, SAME_FAMILY, SAME_VIOLATION = 2.0, 1.0, 3.0
"""What each likeness counts; a path counts by the share of rules in common."""
OFF_PATH_COST = 1.5
"""What it costs a scenario, compared with others, to depart from a rule that did not apply in the schedule: what it
shows wrong there cannot be what went wrong in the schedule first."""
BREADTH_COST = 0.1
"""What each further scenario of a requirement costs: one that many scenarios look at is about much, one that a single
scenario looks at is as specific as can be."""


@dataclass(frozen=True, slots=True)
class ViolationOnPath:
    """A violation of a requirement, with the rules that applied in its run, and how often."""

    requirement: str
    violation: Violation
    rules: Mapping[str, int]
    breadth: int = 1
    """How many scenarios look at the requirement."""


def neighbouring_families(found: ViolationOnPath, rules: Mapping[str, Rule]) -> frozenset[str]:
    """The families of requirements that may say more of what a schedule has found: its own, and those of the rules on
    its path."""
    on_path = (id for name in found.rules if name in rules for id in rules[name].requirements)
    return frozenset(family_of(id) for id in (found.requirement, *found.violation.requirements, *on_path))


def name_requirement(found: ViolationOnPath, scenarios: Iterable[ViolationOnPath]) -> str:
    """The requirement that says most of what a schedule has found: one that scenarios violate, or its own.

    `scenarios` are the independent violations of scenarios on the same target; of two as near the first counts. Among
    many, those come first in which the same API gives the same wrong error.
    """
    neighbours = list(scenarios)
    if not EXACT_FIELDS.isdisjoint(found.violation.fields):
        return found.requirement
    if any(each.requirement == found.requirement for each in neighbours):
        return found.requirement
    are_few = len({each.requirement for each in neighbours}) <= FEW_REQUIREMENTS
    of_api = [] if are_few else [each for each in neighbours if each.violation.api == found.violation.api]
    errors = observed_errors(found.violation) - {NO_ERROR}
    alike = [each for each in of_api if not errors.isdisjoint(observed_errors(each.violation))]
    on_path = {found.violation.rule, *found.rules}
    nearest = max(
        alike or neighbours,
        key=lambda each: nearness(found, each) - OFF_PATH_COST * (each.violation.rule not in on_path),
        default=None,
    )
    needed = MIN_NEARNESS if are_few or alike else MIN_NEARNESS_AMONG_MANY
    if nearest is None or nearness(found, nearest) < needed:
        return found.requirement
    return nearest.requirement


def observed_errors(violation: Violation) -> frozenset[str]:
    """The wrong errors that were seen."""
    return frozenset(each.observed for each in violation.differences if is_error_code(each))


def is_specific(violation: Violation, rules: Mapping[str, Rule]) -> bool:
    """Whether the judge has more to say of a violation than which rule it departs from."""
    rule = rules.get(violation.rule)
    return rule is None or violation.requirements != rule.requirements[:1]


def nearness(found: ViolationOnPath, other: ViolationOnPath) -> float:
    """How near a violation of a scenario is to that of a schedule."""
    one, two = found.violation, other.violation
    either = found.rules.keys() | other.rules.keys()
    shared = len(found.rules.keys() & other.rules.keys()) / len(either) if either else 0.0
    return (
        SAME_KIND * (one.kind == two.kind and TIME not in one.fields)
        + SAME_RULE * (one.rule == two.rule)
        + SAME_API * (one.api == two.api)
        + SAME_FIELDS * (one.fields == two.fields)
        + SAME_PATH * shared
        + SAME_FAMILY * (family_of(found.requirement) == family_of(other.requirement))
        + SAME_VIOLATION * (other.requirement in one.requirements)
        - BREADTH_COST * (other.breadth - 1)
    )


def family_of(requirement: str) -> str:
    """The part of an id before the number."""
    return requirement.partition("-")[0]


# -- causes -----------------------------------------------------------------------------------------------------------

SHARED_FIELDS = frozenset({"error", "entries", "partitions"})
"""Fields with errors, and the rows of offsets, which nearly every requirement checks; each of the others is the subject
of a few."""
BLOCKED_BY = "blocked by "
"""How the judge begins a note on what another violation kept it from judging."""
INCIDENTAL_NOTE = "blocked by another violation: it holds wherever a scenario looks at it"


@dataclass(frozen=True, slots=True)
class Attribution:
    """A violation in a run, and the requirements that it follows from: none if it is independent, None if it follows
    from another one of no requirement in particular."""

    result: CheckResult
    run: ScenarioRun
    causes: frozenset[str] | None = frozenset()

    @property
    def requirement(self) -> str:
        """The requirement that is violated."""
        return self.result.requirement

    @property
    def is_independent(self) -> bool:
        """It follows from no other violation."""
        return self.causes == frozenset()

    @property
    def note(self) -> str:
        """What it follows from, in words; "" if it is independent."""
        if self.causes is None:
            return INCIDENTAL_NOTE
        return BLOCKED_BY + ", ".join(sorted(self.causes)) if self.causes else ""


class RootCauses:
    """The violations of all runs, and their causes.

    A random schedule has no requirements of its own: its violations follow from those of the nearest scenario.
    Nothing follows from a requirement that is not `chargeable`, for no report says that it failed.
    """

    def __init__(
        self,
        runs: Sequence[ScenarioRun],
        specification: Specification = DEFAULT_SPECIFICATION,
        chargeable: frozenset[str] | None = None,
    ) -> None:
        self.specification = specification
        self.chargeable = frozenset(specification.requirements) if chargeable is None else chargeable
        self.satisfied = satisfied_requirements(runs)
        self.owners = find_owners(runs, self.satisfied, self.chargeable)
        self.checked: dict[Hashable, list[str]] = {}
        """By wrong answer, the requirements whose checks it failed."""
        self.broken_rules: dict[Hashable, dict[str, None]] = {}
        """By rule and manner in which it is broken, those of its requirements whose own scenarios show that, and that
        are satisfied nowhere."""
        self.crash_violations: list[str] = []
        """The requirements whose checks a crash of the target failed."""
        self.independent: frozenset[str] = frozenset()
        """The requirements with a violation that follows from no other one."""
        self.knows_circles = False
        """The independent requirements are known, so that a circle of causes can be told."""
        self.shown_by_scenarios: tuple[ViolationOnPath, ...] = ()
        """The independent violations of the scenarios' own requirements."""
        found = [(each, played) for played in runs for each in violations_in(played.verdict)]
        for each, played in found:
            if each.is_checked and each.violation is not None and each.requirement in self.chargeable:
                self.checked.setdefault(wrong_answer(each.violation), []).append(each.requirement)
                is_broken = (
                    each.requirement in self.requirements_of_rule(each.violation)
                    and each.requirement not in self.satisfied
                )
                if is_broken and each.requirement in played.scenario.requirements:
                    self.broken_rules.setdefault(manner_of(each.violation), {})[each.requirement] = None
                if is_crash(each.violation, played):
                    self.crash_violations.append(each.requirement)
        self.independent, self.knows_circles = self.find_independent(found), True
        self.shown_by_scenarios = tuple(self.find_shown(found, runs))
        self.independent = self.find_independent(found)

    def find_independent(self, found: Iterable[tuple[CheckResult, ScenarioRun]]) -> frozenset[str]:
        """The requirements with a violation that follows from no other one, as far as is known."""
        independent = (each.requirement for each, run in found if self.causes_of(each, run) == frozenset())
        return self.chargeable.intersection(independent)

    def find_shown(
        self, found: Iterable[tuple[CheckResult, ScenarioRun]], runs: Iterable[ScenarioRun]
    ) -> Iterator[ViolationOnPath]:
        """The independent violations of the scenarios' own requirements, in the order of the runs."""
        breadth = Counter(id for run in runs for id in dict.fromkeys(run.scenario.requirements))
        for each, run in found:
            fault, id = each.violation, each.requirement
            is_own = id in self.chargeable and (each.is_checked or id in run.scenario.requirements)
            if fault is not None and run.scenario.requirements and is_own and self.causes_of(each, run) == frozenset():
                yield ViolationOnPath(id, fault, run.verdict.rules, breadth[id])

    def attributions_in(self, run: ScenarioRun) -> list[Attribution]:
        """The violations in a run, with their causes."""
        return [Attribution(each, run, self.causes_of(each, run)) for each in violations_in(run.verdict)]

    def name_cause(self, violation: CheckResult, run: ScenarioRun) -> str:
        """The requirement that says most of a violation: the first that it follows from, or its own."""
        return min(self.causes_of(violation, run) or {violation.requirement})

    def causes_of(self, violation: CheckResult, run: ScenarioRun) -> frozenset[str] | None:
        """The requirements that a violation follows from: none if it is independent, None if it follows from another
        one of no requirement in particular.

        A circle ends at a violation that a scenario checks: what follows from nothing independent is so itself.
        """
        causes = self.find_causes(violation, run)
        if not causes or not violation.is_checked or not self.knows_circles:
            return causes
        return causes if causes & self.independent else frozenset()

    def find_causes(self, violation: CheckResult, run: ScenarioRun) -> frozenset[str] | None:
        """The requirements that a violation follows from by itself, independent or not."""
        id, fault = violation.requirement, violation.violation
        if id == UNCLASSIFIED and fault is not None and not run.scenario.requirements:
            return self.errors_known_until(fault, run) | self.timers_known_before(fault, run)
        others: Iterable[str] = self.presumed_by(id)
        if fault is not None and not run.scenario.requirements:
            if others:
                return frozenset(others)
            named = name_requirement(ViolationOnPath(id, fault, run.verdict.rules), self.shown_by_scenarios)
            if named != id:
                return frozenset({named})
            if any(each.requirement == id for each in self.shown_by_scenarios):
                return frozenset()
        if fault is not None:
            owner = self.owners.get(wrong_answer(fault), id)
            of_rule = self.broken_rules.get(manner_of(fault), {})
            if of_rule and id not in self.requirements_of_rule(fault):
                others = of_rule
            elif id not in (owner, *fault.requirements, *self.requirements_of_rule(fault)):
                others = (owner,)
            elif not violation.is_checked and id not in run.scenario.requirements:
                same = self.crash_violations if is_crash(fault, run) else self.checked.get(wrong_answer(fault), [])
                others = others if id in same else same or others
                if not others and self.checked and id in self.satisfied and fault.state:
                    timers = frozenset[str]() if run.scenario.requirements else self.timers_known_before(fault, run)
                    return timers or None
        return frozenset(root for each in others for root in self.presumed_by(each) or (each,))

    def requirements_of_rule(self, fault: Violation) -> tuple[str, ...]:
        """The requirements of the rule that applies to a violation."""
        rule = self.specification.rules.get(fault.rule)
        return rule.requirements if rule is not None else ()

    def errors_known_until(self, fault: Violation, run: ScenarioRun) -> frozenset[str]:
        """The requirements that scenarios violate by errors that the group got up to a violation, too. The judge may
        have explained these by what never happened."""
        asked = {event.sequence: event for event in run.events if event.kind is Kind.REQUEST}
        told = {
            (event.api, error_name(code))
            for event in run.events
            if event.of in asked and event.of <= fault.sequence and asked[event.of].body.get("group_id") == fault.group
            for code in errors_in(event.body) - {Error.NONE}
        }
        return frozenset(
            each.requirement
            for each in self.shown_by_scenarios
            if any((each.violation.api, error) in told for error in observed_errors(each.violation))
        )

    def timers_known_before(self, fault: Violation, run: ScenarioRun) -> frozenset[str]:
        """The requirements about timers on the path to a violation that scenarios violate. No response shows that a
        timer fires, and where one fires otherwise the judge no longer knows the state."""
        names = (*run.verdict.rules, *fault.timers)
        rules = (self.specification.rules[name] for name in names if name in self.specification.rules)
        fired = {id for rule in rules if not rule.api for id in rule.requirements}
        violated = {each.requirement for each in self.shown_by_scenarios}
        return frozenset(id for id in violated if fired & {id, *self.specification.prerequisites.get(id, ())})

    def is_shown_by_scenario(self, violation: CheckResult) -> bool:
        """Whether a scenario shows the same wrong fields and errors in the responses of the same rule."""
        fault = violation.violation
        return fault is not None and any(
            (each.violation.api, each.violation.rule, each.violation.fields) == (fault.api, fault.rule, fault.fields)
            and observed_errors(each.violation) == observed_errors(fault)
            for each in self.shown_by_scenarios
        )

    def presumed_by(self, id: str) -> frozenset[str]:
        """The prerequisites of a requirement that are violated independently."""
        return prerequisites_of(id, self.specification.prerequisites) & self.independent

    def name_blocking(self, fault: Violation, run: ScenarioRun) -> tuple[str, ...]:
        """The requirements by which a violation of a run is known: what it follows from, else those whose checks show
        it, else those of its rule."""
        answer = wrong_answer(fault)
        shown = [self.owners[answer]] if answer in self.owners else self.checked.get(answer) or fault.requirements
        named: dict[str, None] = {}
        for id in shown:
            violation = CheckResult(
                id, fault.sequence, CheckStatus.FAIL, violation=fault, is_checked=id not in fault.requirements
            )
            named.update(dict.fromkeys(sorted(self.causes_of(violation, run) or (id,))))
        return tuple(named)

    def rename_blocking(self, note: str, run: ScenarioRun) -> str:
        """The note, with the violation of the run that it names by the requirements by which that is known."""
        for fault in run.verdict.violations:
            named = f"{BLOCKED_BY}{', '.join(fault.requirements)}"
            if fault.requirements and (note == named or f"{named} at " in note):
                return note.replace(named, f"{BLOCKED_BY}{', '.join(self.name_blocking(fault, run))}")
        return note


def find_root_causes(
    subject: Subject, runs: Sequence[ScenarioRun], chargeable: frozenset[str] | None = None
) -> RootCauses:
    """The causes of the violations of some runs. What a subject does that is watched follows from nothing else."""
    return RootCauses(() if subject.is_watched else runs, subject.specification, chargeable)


def chargeable_requirements(
    requirements: Mapping[str, Requirement], left_out: Mapping[str, str], not_told: frozenset[str]
) -> frozenset[str]:
    """The requirements that a violation can be charged to: those whose needs are offered and whose settings are told.

    `left_out` has the reasons why no scenario checks some of them. One that needs nothing is judged in passing.
    """
    unsupported = {id for id, reason in left_out.items() if reason and id in requirements and requirements[id].needs}
    return frozenset(requirements) - unsupported - not_told


def is_crash(fault: Violation | None, run: ScenarioRun) -> bool:
    """The target went down instead of responding."""
    return fault is not None and run.crashed and "closed" in fault.fields


def wrong_answer(fault: Violation) -> Hashable:
    """What violations have in common that are the same wrong answer: the kind; of a wrong error the API, the
    requirements and the errors seen, whatever the rule."""
    if "error" not in fault.fields or "time" in fault.fields or not fault.requirements:
        return fault.kind
    return fault.api, fault.fields, fault.requirements, observed_errors(fault)


def manner_of(fault: Violation) -> Hashable:
    """What violations have in common that break one rule in the same manner: the kind; a round that is not begun shows
    in an early answer or in the generation before."""
    is_too_low = fault.fields == ("generation",) and any(
        difference.observed.isdecimal() and difference.expected == str(int(difference.observed) + 1)
        for difference in fault.differences
    )
    is_no_round = is_too_low or any(difference.name == "early" for difference in fault.differences)
    return fault.rule, "no round" if is_no_round else fault.kind


def prerequisites_of(id: str, prerequisites: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The prerequisites of a requirement, and theirs."""
    found: set[str] = set()
    todo = [id]
    while todo:
        for each in prerequisites.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return frozenset(found)


def satisfied_requirements(runs: Sequence[ScenarioRun]) -> frozenset[str]:
    """The requirements with a passed check in any of the runs."""
    return frozenset(
        mark.requirement for played in runs for mark in played.verdict.check_results if mark.status in PASSING
    )


def find_owners(
    runs: Sequence[ScenarioRun], satisfied: frozenset[str], chargeable: frozenset[str]
) -> dict[Hashable, str]:
    """By wrong answer the chargeable requirement about it, if it is violated somewhere and satisfied nowhere.

    The same wrong answer elsewhere is a consequence, whatever else a scenario wanted to show by it.
    """
    owners: dict[Hashable, str] = {}
    for played in runs:
        marked = {(mark.sequence, mark.requirement) for mark in played.verdict.check_results}
        for violation in violations_in(played.verdict):
            fault, owner = violation.violation, violation.requirement
            if fault is None or owner not in fault.requirements or owner not in chargeable:
                continue
            is_own, is_broken = (violation.sequence, owner) in marked, owner not in satisfied
            if fault.fields == ("time",):
                is_owner = is_own and is_broken
            else:
                is_shared = fault.tolerated or "error" in fault.fields or set(fault.fields) <= SHARED_FIELDS
                is_owner = is_shared and (is_own or is_broken)
            if is_owner:
                owners.setdefault(wrong_answer(fault), owner)
    return owners
