"""Names the violations of random schedules: each after the requirement whose own scenario shows the like.

A schedule shows that something is wrong, and the judge names the requirement of the rule that the response departs
from. A member whose commits do not keep its session is found by a commit that is refused, so COMMIT-01 is named. The
scenario of COMMIT-19 asks exactly this. If it fails on the same target, it says more, and the violation of the schedule
follows from that of COMMIT-19.

So every violation of a schedule is compared with the independent violations of scenarios. One is near if it departs
from the same rule, in the same API, in the same fields, on a path of the same rules. The nearest requirement is named
if it is near enough; else the one of the judge stays.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencepost.conformance.analysis.causes import NO_ERROR, is_error_code
from fencepost.model.catalogue.specification import Rule
from fencepost.traces.judge.groups.silence_watch import MISSING
from fencepost.traces.verdict import Violation

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
class Evidence:
    """A violation of a requirement, with the rules that applied in its run, and how often."""

    requirement: str
    violation: Violation
    rules: Mapping[str, int]
    breadth: int = 1
    """How many scenarios look at the requirement."""


def neighbouring_families(found: Evidence, rules: Mapping[str, Rule]) -> frozenset[str]:
    """The families of requirements that may say more of what a schedule has found: its own, and those of the rules on
    its path."""
    on_path = (id for name in found.rules if name in rules for id in rules[name].requirements)
    return frozenset(family_of(id) for id in (found.requirement, *found.violation.requirements, *on_path))


def name_requirement(found: Evidence, scenarios: Iterable[Evidence]) -> str:
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
    alike = [] if are_few else [each for each in neighbours if has_same_error(found.violation, each.violation)]
    nearest = max(
        alike or neighbours,
        key=lambda each: nearness(found, each) - OFF_PATH_COST * (not is_on_path(found, each)),
        default=None,
    )
    needed = MIN_NEARNESS if are_few or alike else MIN_NEARNESS_AMONG_MANY
    if nearest is None or nearness(found, nearest) < needed:
        return found.requirement
    return nearest.requirement


def observed_errors(violation: Violation) -> frozenset[str]:
    """The wrong errors that were seen."""
    return frozenset(each.observed for each in violation.differences if is_error_code(each))


def has_same_error(one: Violation, other: Violation) -> bool:
    """Whether the same API gave the same wrong error, and not just none."""
    return one.api == other.api and not observed_errors(one).isdisjoint(observed_errors(other) - {NO_ERROR})


def is_specific(violation: Violation, rules: Mapping[str, Rule]) -> bool:
    """Whether the judge has more to say of a violation than which rule it departs from."""
    rule = rules.get(violation.rule)
    return rule is None or violation.requirements != rule.requirements[:1]


def is_on_path(found: Evidence, other: Evidence) -> bool:
    """Whether the rule that a scenario departs from applied in the schedule."""
    return other.violation.rule == found.violation.rule or other.violation.rule in found.rules


def nearness(found: Evidence, other: Evidence) -> float:
    """How near a violation of a scenario is to that of a schedule."""
    one, two = found.violation, other.violation
    return (
        SAME_KIND * (one.kind == two.kind and TIME not in one.fields)
        + SAME_RULE * (one.rule == two.rule)
        + SAME_API * (one.api == two.api)
        + SAME_FIELDS * (one.fields == two.fields)
        + SAME_PATH * path_likeness(found.rules, other.rules)
        + SAME_FAMILY * (family_of(found.requirement) == family_of(other.requirement))
        + SAME_VIOLATION * (other.requirement in one.requirements)
        - BREADTH_COST * (other.breadth - 1)
    )


def path_likeness(some: Mapping[str, int], others: Mapping[str, int]) -> float:
    """The share of rules that two paths have in common, from 0 to 1."""
    either = some.keys() | others.keys()
    return len(some.keys() & others.keys()) / len(either) if either else 0.0


def family_of(requirement: str) -> str:
    """The part of an id before the number."""
    return requirement.partition("-")[0]
