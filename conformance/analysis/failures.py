"""Failures for reports: the wrong fields of a response, and the schedule that leads to it in words."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.conformance.results import ERROR_NAME, Failure, RequirementResult
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import NO_DECISIONS, ScenarioRun, Subject
from fencepost.model.catalogue.specification import Specification
from fencepost.model.errors import error_name
from fencepost.model.wire.codec import complete_body
from fencepost.traces.events import SAVED, Event, Header, Kind
from fencepost.traces.files.jsonl import encode_event, encode_header
from fencepost.traces.judge.checks import DIFFERS_IN
from fencepost.traces.judge.diagnosis.diagnosis import format_field, format_observed
from fencepost.traces.verdict import CheckResult, FieldDifference, Violation

# -- the schedule of a failure in words -------------------------------------------------------------------------------

COMMON_FIELDS = frozenset({"group_id", "protocol_type"})
"""Fields that a schedule leaves out where they tell the same in each of its requests."""
KEY_FIELDS = frozenset({"member_id", "generation_id", "producer_epoch", "topics"})
"""Fields that a schedule shows whether or not they have their defaults, except for `NO_GENERATION`."""
NO_GENERATION = -1
MAX_LATER = 8
"""How many requests are told that came while a wrong one was parked, or after one without a response."""
TOLD_APIS = frozenset(
    {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"}
)
"""The requests of a client that a schedule tells; others only if they are what is wrong."""
SENDER_FIELDS = ("member_id", "group_instance_id")
TIMES = frozenset({"early", "late"})
"""Differences in when a response comes; the values are those of one run alone."""
QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")
ISSUED_ID = re.compile(r"FreshId\(handle=(\d+)\)")
MIN_SUBSCRIPTION = 10
"""How many bytes a subscription has at least: a version, a number of topics, and user data."""
MAX_TEXT, BEGINNING = 40, 16
"""How many characters a text is told with, and how many of a longer one."""


class MemberLabels:
    """The labels of members in place of the ids that a target issued to them, and the names of topics."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.labels: dict[str, str] = {}
        """By member id."""
        self.senders: dict[int, str] = {}
        """The label of the sender by the sequence number of the request."""
        self.topics: dict[str, str] = {}
        """The names of topics by their ids (KIP-516)."""
        ids: dict[str, int] = {}
        static: dict[str, str] = {}
        for event in events:
            if event.kind is Kind.INTERNAL and event.api == "topics":
                self.topics |= {id: name for name, id in event.body.get("ids", {}).items()}
            if event.kind is Kind.REQUEST:
                self.senders[event.sequence] = event.member
                static.setdefault(str(event.body.get("group_instance_id")), event.member)
            for member in listed_members(event):
                if label := static.get(str(member.get("group_instance_id"))):
                    self.labels.setdefault(str(member.get("member_id")), label)
            id = event.body.get("member_id") if event.kind is Kind.RESPONSE and event.api == "JoinGroup" else None
            if isinstance(id, str) and id and event.member and id not in self.labels:
                ids[event.member] = ids.get(event.member, 0) + 1
                self.labels[id] = event.member if ids[event.member] == 1 else f"{event.member}.{ids[event.member]}"

    def rename(self, text: str) -> str:
        """The text with labels in place of quoted ids, and names in place of the ids of topics."""
        for id, name in self.topics.items():
            text = text.replace(id, name)
        text = ISSUED_ID.sub(lambda found: f"a new id for {self.senders.get(int(found[1]) - 1) or 'the sender'}", text)
        return QUOTED.sub(lambda found: self.labels.get(found[1], found[0]), text)


def listed_members(event: Event) -> Iterator[Mapping[str, Any]]:
    """The static members that a response lists: that of a JoinGroup, or of a DescribeGroups."""
    if event.kind is Kind.RESPONSE and event.api in ("JoinGroup", "DescribeGroups"):
        for holder in (event.body, *event.body.get("groups", ())):
            yield from (each for each in holder.get("members", ()) if each.get("group_instance_id"))


def events_of_group(events: Sequence[Event], last: int) -> Sequence[Event]:
    """The events without the requests to other groups than that of the request with sequence number `last`, and without
    their responses."""
    group = next((event.body.get("group_id") for event in events if event.sequence == last), None)
    if group is None:
        return events
    others = {event.sequence for event in events if event.body.get("group_id") not in (None, group)}
    return [event for event in events if event.sequence not in others and event.of not in others]


def schedule_lines(events: Sequence[Event], last: int, labels: MemberLabels) -> tuple[tuple[str, ...], int]:
    """The requests and faults of a trace up to the response to the request with sequence number `last`, a line each,
    and the place of that request among them, counted from 1 (0 if it is not there)."""
    lines: list[str] = []
    place = later = 0
    routes = {event.of: f" to node {event.body['broker']}" for event in events if event.api == "routed"}
    hidden = common_values(events)
    end = next((event.sequence for event in events if event.of == last and event.kind is Kind.RESPONSE), math.inf)
    for event in events:
        if event.sequence > end or later >= MAX_LATER:
            break
        if event.kind is Kind.REQUEST:
            who = f"{event.member}: " if event.member else ""
            sent = f"{event.api} v{event.version}{routes.get(event.sequence, '')}"
            lines.append(labels.rename(f"at {event.time} ms {who}{sent} {describe_fields(event, hidden)}".rstrip()))
        elif event.kind is Kind.FAULT:
            lines.append(f"at {event.time} ms {describe_fault(event)}")
        else:
            continue
        place = len(lines) if event.sequence == last else place
        later += event.sequence > last
    sent_at = next((event.time for event in events if event.sequence == last), 0)
    if end == math.inf and place and events[-1].time > sent_at:
        lines.append(f"until {events[-1].time} ms there is no response")
    return tuple(lines), place


def common_values(events: Iterable[Event]) -> frozenset[tuple[str, str]]:
    """The values of `COMMON_FIELDS` that most requests have; an empty text is always told."""
    sent = [event.body for event in events if event.kind is Kind.REQUEST]
    counts = (Counter(str(body[name]) for body in sent if body.get(name)) for name in sorted(COMMON_FIELDS))
    common = zip(sorted(COMMON_FIELDS), (count.most_common(1) for count in counts), strict=True)
    return frozenset((name, first[0][0]) for name, first in common if first)


def client_steps(events: Sequence[Event], last: int, labels: MemberLabels) -> Iterator[str]:
    """What passed between a client and its cluster up to the event with number `last`, a line for each request, with
    its response if that came."""
    responses = {event.of: event for event in events if event.kind is Kind.RESPONSE}
    hidden = common_values(events)
    for event in events:
        if event.sequence > last:
            return
        if event.kind is Kind.REQUEST and (event.api in TOLD_APIS or event.sequence == last):
            mark = "   <-- wrong" if event.sequence == last else describe_response(responses.get(event.sequence))
            told = f"at {event.time} ms {event.member}: {event.api} v{event.version} {describe_fields(event, hidden)}"
            yield labels.rename(told.rstrip()) + mark
        elif event.kind is Kind.INTERNAL and event.api == "script":
            yield f"at {event.time} ms script: {event.body['step']}"
        elif event.kind is Kind.INTERNAL and event.api == "program":
            yield f"at {event.time} ms the client is {event.body['state']}"


def describe_response(response: Event | None) -> str:
    """A response in a few words."""
    if response is None:
        return ", without a response"
    error = response.body.get("error_code")
    return f", response {error_name(error)} at {response.time} ms" if error is not None else ""


def describe_fault(fault: Event) -> str:
    """A fault by its name, with the nodes between which a group was moved."""
    if fault.api != "moved":
        return fault.api
    return f"moved from node {fault.body['old']} to node {fault.body['new']}"


def describe_fields(request: Event, hidden: frozenset[tuple[str, str]] = frozenset()) -> str:
    """The fields of a request that differ from the defaults of their version, the ids of its sender first; the values
    in `hidden` are left out."""
    defaults = default_body(request)
    names = sorted(request.body.keys(), key=[*SENDER_FIELDS, *request.body].index)
    told = {name: request.body[name] for name in names if (name, str(request.body[name])) not in hidden}
    return ", ".join(
        f"{name}={describe_value(name, value)}"
        for name, value in told.items()
        if (name in KEY_FIELDS and value != NO_GENERATION)
        or (name in COMMON_FIELDS and value == "")
        or value != defaults.get(name)
    )


def default_body(request: Event) -> Mapping[str, Any]:
    """The request with nothing but defaults; empty if it is no message of the protocol."""
    try:
        return complete_body(f"{request.api}Request", request.version, {})
    except (KeyError, ValueError):
        return {}


def describe_value(name: str, value: Any) -> str:
    """A value in words; protocols by name, topics as `topic/0`, other rows by the values that they have."""
    if name == "protocols" and isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_protocol, value))}]"
    if name == "assignments" and isinstance(value, list | tuple):
        return f"[{', '.join(repr(row.get('member_id')) for row in value)}]"
    if name in ("topics", "groups") and isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_row, value))}]"
    return "null" if value is None else format_field(name, value)


def describe_protocol(row: Mapping[str, Any]) -> str:
    """A protocol by its name, and its metadata where that is no subscription: it is what the request is about."""
    name, metadata = str(row.get("name")), row.get("metadata")
    if not isinstance(metadata, bytes) or (metadata.startswith(b"\0") and len(metadata) >= MIN_SUBSCRIPTION):
        return name
    return f"{name} with metadata {format_field('metadata', metadata)}"


def describe_row(row: Any) -> str:
    """A topic or a group of a request, with its partitions."""
    if not isinstance(row, Mapping):
        return format_field("", row)
    name = row.get("name") or row.get("topic_id") or row.get("group_id") or ""
    partitions = row.get("partitions") or row.get("partition_indexes") or ()
    if not partitions:
        topics = row.get("topics")
        return f"{name} {describe_value('topics', topics)}" if topics else str(name)
    return ", ".join(f"{name}/{describe_partition(each)}" for each in partitions)


def describe_partition(partition: Any) -> str:
    """A partition by its number, with the offset and the metadata to be committed."""
    if not isinstance(partition, Mapping):
        return str(partition)
    told = str(partition.get("partition_index"))
    if "committed_offset" in partition:
        told += f" at {partition['committed_offset']}"
    if partition.get("committed_leader_epoch", -1) != -1:
        told += f" of epoch {partition['committed_leader_epoch']}"
    if partition.get("committed_metadata"):
        told += f" with metadata {describe_text(partition['committed_metadata'])}"
    return told


def describe_text(text: str) -> str:
    """A text; of a long one the beginning and how long it is."""
    return repr(text) if len(text) <= MAX_TEXT else f"{text[:BEGINNING]!r}... ({len(text):,} characters)"


# -- failures for reports ---------------------------------------------------------------------------------------------

MAX_EXCERPT = 64 * 1024
"""The longest excerpt of a trace, in bytes."""
MAX_EXCERPTS = 50
"""How many requirements of a report have excerpts."""
MAX_STEPS = 25
"""How many lines the schedule of a client has, the last ones."""
NOISE_APIS = frozenset({"ApiVersions", "Fetch", "Metadata"})
"""The requests that most traces of clients are full of."""


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
    told = events_of_group(events, sequence)
    labels = MemberLabels(told)
    schedule, wrong_step = schedule_lines(told, sequence, labels)
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
        unusual = tuple(unusual_differences(events, result))
        api = next((event.api for event in events if event.sequence == sequence), "")
        return replace(failure, differences=unusual, title=name_differences(api, unusual)) if unusual else failure
    rename, rules = labels.rename if violation.title else str, specification.rules
    # A time is that of one run; the value that is wrong beside it says more.
    shown = violation.differences or tuple(differences_in_words(events, violation))
    differences = sorted(shown, key=lambda each: each.name in TIMES)
    return replace(
        failure,
        observed=rename(violation.observed),
        allowed=tuple(map(rename, violation.allowed)),
        guard=labels.rename(violation.guard) if "error" in violation.fields or not violation.state else "",
        title=violation.title or name_differences(violation.api, differences),
        differences=tuple(rename_members(each, labels) for each in differences),
        rule=f"{violation.rule}: {rules[violation.rule].guard}" if violation.rule in rules else violation.rule,
        state=labels.rename(violation.state),
        kind=violation.kind,
    )


def failure_in(run: ScenarioRun, result: CheckResult, subject: Subject, origin: Origin, *, replayed: bool) -> Failure:
    """A violation in a run as a failure, with a trace that shows it."""
    excerpt = excerpt_of(run.header, run.events)
    if subject.is_watched and not excerpt and result.violation is not None:
        excerpt = shorter_excerpt(run, result.violation, subject)
    specification = subject.specification
    return build_failure(run.events, result, origin, replayed=replayed, excerpt=excerpt, specification=specification)


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


def shorter_excerpt(run: ScenarioRun, violation: Violation, subject: Subject) -> str:
    """The trace of a run without requests for records and metadata, and if it is too long still, without the events
    after the violation; "" if neither is short enough and shows the violation. It says what it leaves out, and is
    judged by the requirement of the violation alone."""
    noise = {event.sequence for event in run.events if event.api in NOISE_APIS}
    quiet = tuple(event for event in run.events if event.sequence not in noise and event.of not in noise)
    last = run.events[-1]
    body = {"requirements": [violation.requirement], "left_out": sorted(NOISE_APIS)}
    told = Event(last.sequence + 1, last.time, 0, "", Kind.INTERNAL, SAVED, 0, body)
    for some in (quiet, tuple(event for event in quiet if event.sequence <= violation.sequence)):
        kept = (*some, told)
        text = excerpt_of(run.header, kept)
        if text and violation.requirement in subject.judge(run.header, kept, NO_DECISIONS).violated:
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


def name_differences(api: str, differences: Sequence[FieldDifference]) -> str:
    """What is wrong with a response of an API, in a line."""
    names = tuple(dict.fromkeys(each.name for each in differences))
    match names:
        case ():
            return f"{api} has a wrong response"
        case ("response", *_):
            return f"{api} has no response"
        case ("early" | "late" as when, *_):
            return f"{api} response is too {when}"
        case (*wrong, "early" | "late" as when):
            return f"{api} response has the wrong {' and '.join(wrong)}, and is too {when}"
        case _:
            return f"{api} response has the wrong {' and '.join(names)}"


def unusual_differences(events: Sequence[Event], result: CheckResult) -> Iterator[FieldDifference]:
    """The fields that a failed check says a response differs in, as far as the messages have them: what the request has
    in such a field, or a text, is expected."""
    names = result.note.removeprefix(DIFFERS_IN).split(", ") if result.note.startswith(DIFFERS_IN) else []
    request = next((event.body for event in events if event.sequence == result.sequence), {})
    response = next((event.body for event in events if event.of == result.sequence and event.kind is Kind.RESPONSE), {})
    for name in names:
        found = dict(field_values(response, (name, f"{name}_id", f"error_{name}")))
        for field, value in found.items():
            if field in request and request[field] != value:
                yield FieldDifference(field, format_field(field, request[field]), format_field(field, value))
            elif not value and field not in request:
                yield FieldDifference(field, "a text", format_field(field, value))


def differences_in_words(events: Sequence[Event], violation: Violation) -> Iterator[FieldDifference]:
    """What is wrong with a response whose fields were not compared one by one: its error, or the id of the member."""
    response = next((each.body for each in events if each.of == violation.sequence and each.kind is Kind.RESPONSE), {})
    found = dict(field_values(response, ("error_code", "member_id")))
    allowed = ERROR_NAME.match(violation.allowed[0]) if violation.allowed else None
    error = format_field("error_code", found.get("error_code"))
    if allowed is not None and allowed[0] != error:
        yield FieldDifference("error_code", allowed[0], error)
    elif "member" in violation.fields:
        yield FieldDifference("member_id", "a new id", format_field("member_id", found.get("member_id")))


def field_values(body: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The values of these fields anywhere in a message; of several with one name those that are empty come last."""
    rows: list[Any] = [body]
    found: list[tuple[str, Any]] = []
    for row in rows:
        if isinstance(row, Mapping):
            found += ((name, row[name]) for name in names if name in row)
            rows += row.values()
        elif isinstance(row, list | tuple):
            rows += row
    yield from sorted(found, key=lambda each: not each[1])


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
