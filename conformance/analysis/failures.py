"""Failures for reports: the wrong fields of a response and the schedule that leads to it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from fencepost.conformance.analysis.schedule_text import MemberLabels, client_steps, schedule_lines
from fencepost.conformance.results import Failure, RequirementResult
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.jsonl import encode_event, encode_header
from fencepost.traces.judge.diagnosis.wording import format_observed
from fencepost.traces.verdict import CheckResult, FieldDifference, TraceVerdict, Violation

MAX_EXCERPT = 64 * 1024
"""The longest excerpt of a trace, in bytes."""
MAX_EXCERPTS = 50
"""How many requirements of a report have excerpts."""
MAX_STEPS = 25
"""How many lines the schedule of a client has, the last ones."""
NOISE_APIS = frozenset({"ApiVersions", "Fetch", "Metadata"})
"""The requests that most traces of clients are full of."""
JudgeEvents: TypeAlias = Callable[[Header, Sequence[Event]], TraceVerdict]
"""Judges the events of a trace."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is found, and the command that runs its schedule again ("" if there is none)."""

    trace: str
    replay: str


def build_failure(
    events: Sequence[Event],
    result: CheckResult,
    origin: Origin,
    *,
    replayed: bool,
    header: Header | None = None,
    excerpt: str = "",
    specification: Specification = DEFAULT_SPECIFICATION,
) -> Failure:
    """A violation as a failure, with the requests of its trace up to the violation as the schedule.

    It has the `excerpt`, or if the `header` is given the trace as a whole.
    """
    sequence, violation, note = result.sequence, result.violation, result.note
    labels = MemberLabels(events)
    schedule, wrong_step = schedule_lines(events, sequence, labels)
    if violation is not None and violation.title:
        schedule, wrong_step = tuple(client_steps(events, sequence, labels))[-MAX_STEPS:], 0
    failure = Failure(
        trace=origin.trace,
        step=sequence,
        observed=f"{observed_response(events, sequence)} ({note})",
        allowed=(note,),
        guard="",
        schedule=schedule,
        replay=origin.replay,
        replayed=replayed,
        title=note,
        wrong_step=wrong_step,
        kind=note,
        excerpt=excerpt if header is None else excerpt_of(header, events),
    )
    if violation is None:
        return failure
    rename = labels.rename if violation.title else str
    return replace(
        failure,
        observed=rename(violation.observed),
        allowed=tuple(map(rename, violation.allowed)),
        guard=labels.rename(violation.guard) if "error" in violation.fields or not violation.state else "",
        title=violation.title or describe_violation(violation),
        differences=tuple(rename_members(each, labels) for each in violation.differences),
        rule=describe_rule(violation.rule, specification.rules),
        state=labels.rename(violation.state),
        kind=violation.kind,
    )


def excerpt_of(header: Header, events: Sequence[Event]) -> str:
    """The trace as text, "" if it is longer than `MAX_EXCERPT`."""
    lines: list[bytes] = [encode_header(header)]
    size = len(lines[0])
    for event in events:
        lines.append(encode_event(event))
        size += len(lines[-1])
        if size > MAX_EXCERPT:
            return ""
    return b"".join(lines).decode("ascii")


def shortest_excerpt(header: Header, events: Sequence[Event], violation: Violation, judge: JudgeEvents) -> str:
    """The trace as text; if it is too long, without requests for records and metadata, and then without the events
    after the violation. "" if all of these are too long or do not show the violation."""
    if text := excerpt_of(header, events):
        return text
    noise = {event.sequence for event in events if event.api in NOISE_APIS}
    quiet = tuple(event for event in events if event.sequence not in noise and event.of not in noise)
    for kept in (quiet, tuple(event for event in quiet if event.sequence <= violation.sequence)):
        text = excerpt_of(header, kept)
        if text and violation.requirement in judge(header, kept).violated:
            return text
    return ""


def keep_excerpts(results: Iterable[RequirementResult]) -> Iterator[RequirementResult]:
    """The results with the excerpt of the shortest failure of each requirement alone, and of `MAX_EXCERPTS` at most."""
    left = MAX_EXCERPTS
    for result in results:
        shortest = next(iter(result.failures_by_length()), None)
        if shortest is None:
            yield result
            continue
        kept = shortest if left else None
        left -= kept is not None and bool(kept.excerpt)
        failures = (each if each is kept else replace(each, excerpt="") for each in result.failures)
        yield replace(result, failures=tuple(failures))


def describe_violation(violation: Violation) -> str:
    """What is wrong with a response, in a line."""
    names = tuple(dict.fromkeys(each.name for each in violation.differences))
    match names:
        case ():
            return f"{violation.api} has a wrong response"
        case ("response", *_):
            return f"{violation.api} has no response"
        case ("early" | "late" as when, *_):
            return f"{violation.api} response is too {when}"
        case _:
            return f"{violation.api} response has the wrong {' and '.join(names)}"


def describe_rule(name: str, rules: Mapping[str, Rule]) -> str:
    """A rule of the model by its name and its guard."""
    return f"{name}: {rules[name].guard}" if name in rules else name


def rename_members(difference: FieldDifference, labels: MemberLabels) -> FieldDifference:
    """The difference with members by their labels."""
    return replace(
        difference,
        expected=labels.rename(difference.expected),
        observed=labels.rename(difference.observed),
        place=labels.rename(difference.place),
    )


def observed_response(events: Sequence[Event], sequence: int) -> str:
    """The response to the request with this sequence number, in words."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.of == sequence:
            return format_observed(event.body)
    return "no answer"
