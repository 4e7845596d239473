"""The differences of two targets that were tested by the same schedules: the fault of one, versions, or latitude of the
protocol."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.conformance.analysis.failures import TOLD_APIS, MemberLabels
from fencepost.conformance.results import ExitCode, Report, RequirementResult, Verdict
from fencepost.model.errors import error_name
from fencepost.traces.events import Body, Event, Kind

MORE_APIS = frozenset({"OffsetDelete", "TxnOffsetCommit", "DescribeGroups", "DeleteGroups"})
COMPARED_APIS = TOLD_APIS - {"FindCoordinator"} | MORE_APIS
"""The requests whose responses depend on the group alone."""
OTHERS_FIELDS = frozenset(
    {"throttle_time_ms", "group_id", "client_host", "error_message", "authorized_operations", "topic_id"}
)
"""Fields of responses that differ from run to run."""
SILENCE: Mapping[str, str] = {"response": "none"}


class DifferenceKind(StrEnum):
    """Why two targets differ."""

    FAULT = "fault"
    """One of them breaks a requirement."""
    VERSION = "version"
    """They have other versions of APIs, or go by other releases of Kafka."""
    LATITUDE = "latitude"
    """The protocol leaves it open."""


@dataclass(frozen=True, slots=True)
class TargetDifference:
    """What two targets do differently. `subject` is a requirement, an API, a setting or a field of a response; `one`
    and `other` say in words what the first and the second do; it was seen so many `times`, first in `where`."""

    kind: DifferenceKind
    subject: str
    title: str
    one: str
    other: str
    times: int = 1
    where: str = ""


@dataclass(frozen=True, slots=True)
class PlayedTarget:
    """What a run on one target shows: its report, its decisions on reference differences, and its traces by the names
    of the schedules, of those that violate nothing."""

    report: Report
    decisions: Mapping[str, bool] = field(default_factory=dict)
    traces: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.report.target["name"]


@dataclass(frozen=True, slots=True)
class TargetComparison:
    """The differences of two targets, and the requirements of which nothing is known on one of them."""

    one: PlayedTarget
    other: PlayedTarget
    differences: tuple[TargetDifference, ...]
    undecided: tuple[str, ...]

    def of_kind(self, kind: DifferenceKind) -> list[TargetDifference]:
        """The differences of a kind."""
        return [each for each in self.differences if each.kind is kind]

    def exit_code(self) -> ExitCode:
        """A fault of one that the other has not is a violation."""
        if self.of_kind(DifferenceKind.FAULT):
            return ExitCode.VIOLATION
        is_open = self.undecided or self.one.report.cut_short or self.other.report.cut_short
        return ExitCode.INCONCLUSIVE if is_open else ExitCode.CONFORMANT


def compare_played(one: PlayedTarget, other: PlayedTarget) -> TargetComparison:
    """Compare two targets that were tested by the same schedules."""
    others = {each.id: each for each in other.report.results}
    pairs = [(each, others[each.id]) for each in one.report.results if each.id in others]
    undecided = [each.id for each, found in pairs if Verdict.INCONCLUSIVE in (each.verdict, found.verdict)]
    differences = (
        *_faults(pairs, one.report),
        *_harm(one.report, other.report),
        *_versions(one, other),
        *_settings(one.report, other.report),
        *_latitudes(one, other),
    )
    return TargetComparison(one, other, differences, tuple(undecided))


# -- faults -----------------------------------------------------------------------------------------------------------


def _faults(pairs: Iterable[tuple[RequirementResult, RequirementResult]], report: Report) -> Iterator[TargetDifference]:
    """The requirements that one target breaks and the other keeps."""
    for one, other in pairs:
        broken = [each for each in (one, other) if each.failures]
        if len(broken) == 1 and Verdict.PASS in (one.verdict, other.verdict):
            title = report.specification.requirements[one.id].title
            where = broken[0].failures_by_length()[0].trace
            first, second = _describe_result(one), _describe_result(other)
            yield TargetDifference(DifferenceKind.FAULT, one.id, title, first, second, where=where)


def _describe_result(result: RequirementResult) -> str:
    if not result.failures:
        return "keeps it"
    return f"breaks it: {result.failures_by_length()[0].title}"


def _harm(one: Report, other: Report) -> Iterator[TargetDifference]:
    """What no requirement speaks of, and one target alone was seen to do."""
    kinds = [{each.kind: each for each in report.unclassified} for report in (one, other)]
    for kind in sorted(kinds[0].keys() ^ kinds[1].keys()):
        first, second = (found[kind].title if kind in found else "does not" for found in kinds)
        yield TargetDifference(DifferenceKind.FAULT, "unclassified", "no requirement speaks of it", first, second)


# -- versions and settings --------------------------------------------------------------------------------------------


def _versions(one: PlayedTarget, other: PlayedTarget) -> Iterator[TargetDifference]:
    """The APIs with other versions, and the reference differences that the targets decide otherwise."""
    apis = [report.facts.apis if report.facts is not None else {} for report in (one.report, other.report)]
    for api in sorted(apis[0].keys() | apis[1].keys()):
        first, second = ("{}-{}".format(*found[api]) if api in found else "not offered" for found in apis)
        if first != second:
            yield TargetDifference(DifferenceKind.VERSION, api, "versions", first, second)
    specification = one.report.specification
    for name in sorted(one.decisions.keys() & other.decisions.keys()):
        if one.decisions[name] != other.decisions[name] and name in specification.differences:
            found = specification.differences[name]
            first, second = (specification.describe_side(name, each.decisions[name]) for each in (one, other))
            yield TargetDifference(DifferenceKind.VERSION, found.id, found.requirement, first, second)


def _settings(one: Report, other: Report) -> Iterator[TargetDifference]:
    """The settings with other values."""
    settings = [report.facts.settings if report.facts is not None else {} for report in (one, other)]
    for name in settings[0]:
        values = [found[name].value if name in found else None for found in settings]
        if values[0] != values[1]:
            first, second = ("not told" if value is None else str(value) for value in values)
            yield TargetDifference(DifferenceKind.LATITUDE, name, "setting", first, second)


# -- responses --------------------------------------------------------------------------------------------------------


def _latitudes(one: PlayedTarget, other: PlayedTarget) -> list[TargetDifference]:
    """The fields that differ in responses that the model allows both targets, the most frequent first."""
    found: dict[tuple[str, str, str, str, DifferenceKind], list[str]] = defaultdict(list)
    for name in one.traces:
        if name in other.traces:
            for key in _differing_fields(one.traces[name], other.traces[name]):
                found[key].append(name)
    differences = [
        TargetDifference(kind, f"{api}.{path}", "response", first, second, len(names), names[0])
        for (api, path, first, second, kind), names in found.items()
    ]
    return sorted(differences, key=lambda each: (-each.times, each.subject))


def _differing_fields(
    one: tuple[Event, ...], other: tuple[Event, ...]
) -> list[tuple[str, str, str, str, DifferenceKind]]:
    """The fields that differ in the first response that does, with both values; later responses may differ for that."""
    fields = _response_fields(one), _response_fields(other)
    for first, second in _same_requests(one, other):
        kind = DifferenceKind.LATITUDE if first.version == second.version else DifferenceKind.VERSION
        mine, others = fields[0].get(first.sequence, SILENCE), fields[1].get(second.sequence, SILENCE)
        paths = [path for path in sorted(mine.keys() & others.keys()) if mine[path] != others[path]]
        if paths:
            told = [path for path in paths if path in ("response", "error_code")] or paths
            return [(first.api, path, mine[path], others[path], kind) for path in told]
    return []


def _same_requests(one: tuple[Event, ...], other: tuple[Event, ...]) -> list[tuple[Event, Event]]:
    """The requests of one trace with those of the other, in order. What one trace asks oftener than the other, until it
    sees something, has no counterpart."""
    asked = _requests_by_sender(one), _requests_by_sender(other)
    return sorted(
        (
            pair
            for sender in asked[0].keys() & asked[1].keys()
            if len(asked[0][sender]) == len(asked[1][sender])
            for pair in zip(asked[0][sender], asked[1][sender], strict=True)
        ),
        key=lambda pair: pair[0].sequence,
    )


def _requests_by_sender(events: Iterable[Event]) -> dict[tuple[str, str], list[Event]]:
    """The requests to be compared, in order, by the label of their sender and their API."""
    found: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event.kind is Kind.REQUEST and event.api in COMPARED_APIS:
            found[event.member, event.api].append(event)
    return found


def _response_fields(events: tuple[Event, ...]) -> dict[int | None, Mapping[str, str]]:
    """The fields of each response in words, by the number of its request, with names for what every run calls anew."""
    groups = {str(each.body["group_id"]) for each in events if each.body.get("group_id")}
    names = {**dict.fromkeys(groups, "GROUP"), **MemberLabels(events).labels}
    renamed = [(id, names[id]) for id in sorted(names, key=len, reverse=True)]
    return {
        event.of: _fields_in_words(event.body, renamed)
        for event in events
        if event.kind is Kind.RESPONSE and event.api in COMPARED_APIS
    }


def _fields_in_words(body: Body, renamed: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Each field by its path, with its values in all rows, whatever their order."""
    values: dict[str, list[str]] = defaultdict(list)
    for path, value in _leaves("", body):
        for id, name in renamed:
            value = value.replace(id, name)
        values[path].append(value)
    return {"response": "one"} | {path: ", ".join(sorted(some)) for path, some in values.items()}


def _leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    """The values in a response that are no rows, in words, each with its path; of rows their number."""
    name = path.rpartition(".")[2]
    if name in OTHERS_FIELDS or name.startswith("_"):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list | tuple):
        yield path, f"{len(value)} rows"
        for inner in value:
            yield from _leaves(path, inner)
    elif name == "error_code" and isinstance(value, int):
        yield path, error_name(value)
    else:
        yield path, value if isinstance(value, str) else repr(value)
