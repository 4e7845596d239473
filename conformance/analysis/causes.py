"""Causes: which failed requirements are one, and which failure an undecided requirement follows from."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from fencepost.conformance.analysis.failures import TIMES
from fencepost.conformance.results import Failure, Remark, RemarkKind, Report, RequirementResult, Verdict
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.verdict import FieldDifference

# -- causes -----------------------------------------------------------------------------------------------------------

NO_ERROR = "NONE"
"""How a difference shows an error code that says that all is well."""
NO_RESPONSE = "response"
"""The difference of a response that never came."""
CLOSED = "the connection was closed"
"""How a difference shows that the target closed the connection instead of responding."""
NO_MEMBERS = "no members"
"""How a state in words says so."""


class Harm(StrEnum):
    """What a cause does to those who use the target, the worst first."""

    DOWN = "target down"
    LOSS = "data lost or revived"
    SHARING = "partitions given to two or to none"
    FENCING = "stale request accepted"
    STUCK = "no response"
    REFUSAL = "right request refused"
    EARLY = "rebalance ends too early"
    VALUE = "wrong value"
    TIMING = "wrong time"
    ADMINISTRATION = "wrong report to administrators"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a target does wrong: the failure that shows it best, and the requirements that it violates.

    The requirement of that failure comes first; `alike` are those that are violated by the same wrong response of the
    same rule. What brings a target down violates no requirement in particular.
    """

    requirements: tuple[str, ...]
    failure: Failure | None
    alike: frozenset[str] = frozenset()
    title: str = ""
    """What is wrong, in a line."""
    harm: Harm = Harm.VALUE


LOOKING_APIS = frozenset({"DescribeGroups", "ListGroups", "FindCoordinator"})
DELETING_APIS = frozenset({"DeleteGroups", "OffsetDelete"})
NOTHING_THERE = frozenset({"GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})
"""Errors that say that a request names nothing that exists: one that succeeds instead harms nothing."""
UNFINISHED = "UNSTABLE_OFFSET_COMMIT"
"""The error of a fetch of offsets that a transaction may change yet; who gets offsets instead reads the old ones."""
REMOVED = "UNKNOWN_MEMBER_ID"
"""The error that a member gets once it is removed."""
ONLY_REBALANCING = frozenset({NO_ERROR, "REBALANCE_IN_PROGRESS"})
"""The errors of a member that is not removed."""
OFFSETS = frozenset({"committed_offset", "number of rows for the partition"})
SHARES = frozenset({"assignment", "leader", "members", "protocol_name"})
LASTING = frozenset({"restart", "graceful-move", "second-node"})
"""Capabilities that requirements need which are about what a group keeps."""


def harm_of(failure: Failure | None, needs: Iterable[str] = ()) -> Harm:
    """The harm of what a failure shows, by the API and the first wrong field of its response, and by the capabilities
    that its requirement needs."""
    if failure is None or not failure.differences:
        return Harm.DOWN if failure is not None and failure.is_harm else Harm.VALUE
    first, api = failure.differences[0], api_of(failure)
    if first.name == NO_RESPONSE:
        return Harm.DOWN if first.observed == CLOSED else Harm.STUCK
    if not LASTING.isdisjoint(needs) and first.name not in TIMES:
        return Harm.LOSS
    if is_error_code(first):
        return harm_of_error(api, first)
    if first.name in OFFSETS:
        return Harm.LOSS
    if api in LOOKING_APIS:
        return Harm.ADMINISTRATION
    if first.name in SHARES:
        return Harm.SHARING
    if first.name in TIMES:
        return Harm.EARLY if first.name == "early" else Harm.TIMING
    return Harm.VALUE


def harm_of_error(api: str, wrong: FieldDifference) -> Harm:
    """The harm of a wrong error in the response of an API."""
    is_accepted, expected = wrong.observed == NO_ERROR, frozenset(wrong.expected.split(" or "))
    if api in LOOKING_APIS or (is_accepted and expected <= NOTHING_THERE):
        return Harm.ADMINISTRATION
    if is_accepted:
        return Harm.LOSS if api in DELETING_APIS or UNFINISHED in expected else Harm.FENCING
    is_refused = NO_ERROR in expected or (wrong.observed == REMOVED and expected <= ONLY_REBALANCING)
    return Harm.REFUSAL if is_refused else Harm.VALUE


def api_of(failure: Failure) -> str:
    """The API of the wrong response."""
    return failure.title.partition(" ")[0]


ShownResult: TypeAlias = tuple[RequirementResult, Failure | None]
"""A failed requirement and its shortest failure, if any is shown."""


def find_causes(report: Report) -> tuple[Cause, ...]:
    """The causes of all failed requirements, and what brought the target down: the most harmful first, of those as
    harmful the one that most requirements depend on, then the one that the shortest schedule shows.

    Failures have one cause if any of their traits is the same, directly or by others between them.
    """
    members: dict[int, list[ShownResult]] = {}
    cause_of: dict[Hashable, int] = {}
    requirements = report.specification.requirements
    needs = {id: requirement.needs for id, requirement in requirements.items()}
    undecided = Counter(id for result in report.results for id in result.causes)
    for place, result in enumerate(report.failed_results()):
        shown = next(iter(result.failures_by_length()), None)
        traits = traits_of(shown, needs.get(result.id, ())) if shown is not None else (result.id,)
        first, *others = sorted({cause_of[each] for each in traits if each in cause_of}) or [place]
        for other in others:
            members[first] += members.pop(other)
        cause_of.update(dict.fromkeys(traits, first))
        cause_of = {trait: first if cause in others else cause for trait, cause in cause_of.items()}
        members.setdefault(first, []).append((result, shown))
    harmful = (Cause((), each, title=each.title, harm=Harm.DOWN) for each in report.unclassified if each.is_harm)

    def place_of(cause: Cause) -> tuple[int, int, tuple[bool, int]]:
        reach = sum(1 + undecided[id] for id in cause.requirements)
        return list(Harm).index(cause.harm), -reach, schedule_length(cause.failure)

    found = (build_cause(each, needs) for each in members.values())
    return tuple(sorted((*harmful, *found), key=place_of))


def traits_of(failure: Failure, needs: tuple[str, ...]) -> tuple[Hashable, ...]:
    """What failures of one cause have in common, as hashable traits of the failure of a requirement with these needs.
    Those of several APIs, or of what happens with and without a restart, are several things to mend.

    - The kind.
    - The first wrong value in place of the same one. An API may have several reasons to refuse what is to succeed with
      the same error, so that counts only for errors in place of others; a number has the same value for many reasons,
      so that counts under the same rule alone.
    - A wrong error in the same state. Where there are members, the same error may have to do with different ones, so
      that counts only in states without.
    """
    is_lasting = not LASTING.isdisjoint(needs)
    about: tuple[Hashable, ...] = api_of(failure), is_lasting
    traits: list[Hashable] = [(is_lasting, failure.kind or failure.title or failure.observed)]
    for first in failure.differences[:1]:
        is_error = is_error_code(first)
        rule = failure.rule if first.observed.isdigit() else ""
        if first.name not in TIMES and not (is_error and first.expected == NO_ERROR):
            traits.append((*about, first.name, rule, expected_value(first), first.observed))
        has_members = "members" in failure.state and NO_MEMBERS not in failure.state
        if is_error and first.observed != NO_ERROR and not has_members:
            traits.append((*about, failure.state, first.name, first.observed))
    return tuple(traits)


def expected_value(difference: FieldDifference) -> str:
    """What is expected of a response; of one that never came the error code alone, and nothing of one that the end of
    its connection kept from coming."""
    if difference.name != NO_RESPONSE:
        return difference.expected
    return "" if difference.observed == CLOSED else difference.expected.partition(",")[0]


def is_error_code(difference: FieldDifference) -> bool:
    """Whether it is in an error code."""
    return difference.name.rpartition(".")[2] == "error_code"


def build_cause(members: list[ShownResult], needs: Mapping[str, tuple[str, ...]]) -> Cause:
    """The cause of failures that belong together: one shows it whose requirement speaks of the very response, the
    shortest of these."""

    def place_of(place: int) -> tuple[bool, tuple[bool, int]]:
        result, shown = members[place]
        return shown is None or repr(result.id) not in shown.kind, schedule_length(shown)

    best = min(range(len(members)), key=place_of)
    ordered = [members[best], *members[:best], *members[best + 1 :]]
    shown = ordered[0][1]
    alike = (result.id for result, other in ordered[1:] if other is None or (shown and other.kind == shown.kind))
    ids = tuple(result.id for result, _ in ordered)
    return Cause(ids, shown, frozenset(alike), describe_cause(ordered), harm_of(shown, needs.get(ids[0], ())))


def describe_cause(members: Sequence[ShownResult]) -> str:
    """What is wrong, in a line: the wrong value of the first failure, and all that is expected in its place."""
    shown = members[0][1]
    if shown is None:
        return "a violation of which no failure is shown"
    if not shown.differences:
        return shown.title or shown.observed
    first = shown.differences[0]
    others = (other.differences[0] for _, other in members if other is not None and other.differences)
    alike = (each.expected for each in others if (each.name, each.observed) == (first.name, first.observed))
    expected = " or ".join(dict.fromkeys((first.expected, *alike)))
    return f"{shown.title}: expected {expected}, observed {first.observed}"


def schedule_length(failure: Failure | None) -> tuple[bool, int]:
    """The order of failures: those with a schedule first, short ones before long ones."""
    return (failure is None or not failure.schedule, len(failure.schedule) if failure is not None else 0)


_ID = r"(?<![\w./-])[A-Z]+-\d+(?![\w/-]|\.\w)"
"""The id of a requirement in a note; in a path it is none."""
_IDS = re.compile(rf"{_ID}(?:, {_ID})*")
UNCONFIRMED = "a wrong response that no failure here explains"
"""What blocks a requirement where nothing that is named failed."""


def resolve_causes(results: Iterable[RequirementResult]) -> list[RequirementResult]:
    """The results, inconclusive ones with the failed requirements that they follow from.

    A note names the violations that blocked a requirement in its own trace, or some scenarios of one that passed. What
    they follow from in turn counts, so that a note names nothing but requirements that failed.
    """
    by_id = {result.id: result for result in results}
    return [resolve_cause(result, by_id) for result in by_id.values()]


def resolve_cause(result: RequirementResult, by_id: Mapping[str, RequirementResult]) -> RequirementResult:
    """The result with its causes, if it is inconclusive and its note names any requirement; a pass with its note."""
    if result.verdict not in (Verdict.INCONCLUSIVE, Verdict.PASS) or _IDS.search(result.note) is None:
        return result
    causes = tuple(sorted(failed_causes(result, by_id)))
    note = _IDS.sub(", ".join(causes) or UNCONFIRMED, result.note)
    return replace(result, note=note, causes=causes if result.verdict is Verdict.INCONCLUSIVE else ())


def failed_causes(result: RequirementResult, by_id: Mapping[str, RequirementResult]) -> set[str]:
    """The failed requirements that the note of an inconclusive one leads to, directly or by other notes."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [result]
    while todo:
        for id in re.findall(_ID, todo.pop().note):
            named = by_id.get(id)
            if named is None or id in seen:
                continue
            seen.add(id)
            if named.verdict in (Verdict.FAIL, Verdict.KNOWN):
                found.add(id)
            elif named.verdict is Verdict.INCONCLUSIVE:
                todo.append(named)
    return found


# -- passes where the sources are ambiguous ---------------------------------------------------------------------------


def note_ambiguities(
    results: Iterable[RequirementResult], decisions: Mapping[str, bool], specification: Specification
) -> Iterator[RequirementResult]:
    """The results; a pass of which nothing else is told gets a remark if its requirement is ambiguous and `decisions`
    has a side."""
    sides: dict[str, list[str]] = {}
    differences = specification.differences
    for name in sorted(decisions.keys() & differences.keys(), key=lambda name: differences[name].id):
        side = specification.describe_side(name, decisions[name])
        sides.setdefault(differences[name].requirement, []).append(side)
    for result in results:
        if result.verdict is Verdict.PASS and not result.comment and result.id in sides:
            yield replace(result, remark=Remark(RemarkKind.AMBIGUOUS, "; ".join(sides[result.id])))
        else:
            yield result


# -- failures of an older Apache Kafka --------------------------------------------------------------------------------


def describe_older_kafka(requirements: Mapping[str, Requirement], release: str) -> dict[str, str]:
    """By id of each requirement that Apache Kafka of this release does not keep yet, a note that says so.

    There are none if `release` is "".
    """
    return {
        id: f"as Apache Kafka before {requirement.since.release} ({requirement.since.source})"
        for id, requirement in requirements.items()
        if requirement.since is not None and release and requirement.since.is_after(release)
    }


# -- two reports on a target compared ---------------------------------------------------------------------------------

CHECKED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.KNOWN})
BROKEN = frozenset({Verdict.FAIL, Verdict.KNOWN})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The requirements that only the newer report has as failed, those that only the older one has, and those that only
    the older or only the newer one checks."""

    broken: tuple[str, ...]
    mended: tuple[str, ...]
    no_longer_checked: tuple[str, ...]
    newly_checked: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Something is newly broken, or no longer checked."""
        return bool(self.broken or self.no_longer_checked)


def compare_reports(old: Report, new: Report) -> Comparison:
    """How a report differs from an older one. A requirement that a report does not have is not checked there."""
    before, after = verdicts_in(old), verdicts_in(new)
    ids = list(dict.fromkeys([*before, *after]))

    def chosen(one: Mapping[str, Verdict], other: Mapping[str, Verdict], group: frozenset[Verdict]) -> tuple[str, ...]:
        return tuple(id for id in ids if one.get(id) in group and other.get(id) not in group)

    broken = chosen(after, before, BROKEN)
    mended = tuple(id for id in chosen(before, after, BROKEN) if after.get(id) is Verdict.PASS)
    return Comparison(broken, mended, chosen(before, after, CHECKED), chosen(after, before, CHECKED))


def verdicts_in(report: Report) -> dict[str, Verdict]:
    """The verdicts of a report by requirement."""
    return {result.id: result.verdict for result in report.results}
