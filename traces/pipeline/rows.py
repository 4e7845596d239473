"""Conversion of a trace to rows: each line is a row of the table of events or of the quarantine.

A row has the line itself, which the judge reads, and columns for queries. The row of a response also has fields of its
request, so that queries need no join of the two.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import CLASSIC, Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.files.trace_files import MalformedLine, RequestFormError, check_request_form, read_lines
from fencepost.traces.message_fields import (
    accepted_offsets,
    assigned_partitions,
    common_error,
    double_assigned,
    encodable_text,
    int32,
    log_end_offsets,
    named_groups,
    poll_counts,
    topic_names,
)
from fencepost.traces.pipeline.files import open_input

Body = Mapping[str, Any]
MAX_IDLE_IDS = 1_000
"""Maximum number of idle member ids remembered for each group."""
MAX_GENERATIONS = 100
"""Maximum number of numbers of which the highest generation is remembered for each group."""
MEMBER_ONLY_APIS = frozenset({"Heartbeat", "SyncGroup"})
"""APIs that succeed for members only."""
COMMIT_GENERATION = "generation_id_or_member_epoch"
"""The generation in a commit, as Kafka has named the field since its newer protocol."""
STATIC_PREFIX, DYNAMIC_PREFIX = "i ", "m "
SHARED_BUCKET = -1
"""The bucket of events that concern no single group."""
WHOLE_TRACE = -2
"""The bucket of a shard that is a whole trace."""
LOOKUPS_SHARD = -1
"""The bucket of the shard of lookups, which is also that of events about no single group."""
UNRELATED_BUCKET = -3
"""The bucket of events that only the shard of a whole trace has."""
UNRELATED_APIS = frozenset({"ApiVersions", "Fetch", "ListOffsets", "Produce"})
UNRELATED_KINDS = frozenset({Kind.POLL, Kind.CALLBACK})
MAX_QUOTED_BYTES = 1_000
"""Maximum number of bytes kept of a bad line."""
MAX_INT64 = 2**63 - 1
ROW_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that a message of an odd form can cause where its fields are taken out of it."""
REPEATED_LINE = "the same line again"
FIRST_PART = 1


@dataclass(frozen=True, slots=True)
class Membership:
    """The identity behind a member id, and how long in ms it certainly stays a member after its last request."""

    identity: str
    timeout: int


@dataclass(slots=True)
class Incarnation:
    """One life of a group: its number, and the time until which each identity certainly is a member."""

    number: int = 0
    certain_members: dict[str, int] = field(default_factory=dict)
    members: dict[str, Membership] = field(default_factory=dict)
    leave_times: dict[str, int] = field(default_factory=dict)
    """Time of the last request to remove each identity."""
    generations: dict[int, int] = field(default_factory=dict)
    """The highest generation that was joined in each number of this term."""
    joined: dict[str, int] = field(default_factory=dict)
    """The number in which each member id joined, of this term."""

    def begin_term(self) -> None:
        """Begin a new number in another term of the coordinator: nothing that was before is certain."""
        self.begin_next()
        self.generations.clear()
        self.joined.clear()

    def note_generation(self, member: str, generation: int, *, is_new: bool) -> None:
        """Note that a member joined a generation; its id may just have been issued."""
        self.generations[self.number] = max(generation, self.generations.get(self.number, 0))
        if is_new or member not in self.joined:
            self.joined[member] = self.number
        drop_oldest(self.generations, MAX_GENERATIONS)
        drop_oldest(self.joined, MAX_IDLE_IDS + 2 * len(self.certain_members))

    def number_since(self, member: str) -> int | None:
        """The number with the highest generation since a member joined; None if the term does not show when it did."""
        since = self.joined.get(member)
        if since is None:
            return None
        later = [number for number in self.generations if number >= since]
        return max(later, key=lambda number: self.generations[number], default=None)

    def begin_next(self) -> None:
        """Begin a new number: the next response may be of another incarnation."""
        self.number += 1
        self.certain_members.clear()

    def confirm_member(self, member: Membership, since: int) -> None:
        """Note that `member` was a member at `since`, unless it was asked to leave later."""
        if since > self.leave_times.get(member.identity, -1):
            self.certain_members[member.identity] = max(
                self.certain_members.get(member.identity, 0), since + member.timeout
            )

    def forget_idle_ids(self) -> None:
        """Forget member ids without a certain member, if there are many."""
        if len(self.members) > MAX_IDLE_IDS + 2 * len(self.certain_members):
            self.members = {id: each for id, each in self.members.items() if each.identity in self.certain_members}
            self.leave_times.clear()


def drop_oldest(known: dict[Any, int], most: int) -> None:
    """Forget the oldest entries beyond `most`."""
    while len(known) > most:
        del known[next(iter(known))]


class Incarnations:
    """Tracks the incarnations of all groups of one trace, event by event.

    An incarnation has the responses that certainly belong to one life of a group within one term of its coordinator.
    Generations repeat in another term and in another life of the group, so the invariants hold within one incarnation
    only. A group does not end before it is empty; so an incarnation continues while a member is certain. Without a
    certain member the next response begins a new number, although the group may still be the same: queries over
    incarnations report only true violations, and may miss some.

    A commit of a member that is accepted shows more: the member has been in the group since it joined, for no id is
    issued twice. So all numbers since then are of one life, and the commit gets the one of them with the highest
    generation.
    """

    def __init__(self, header: Header) -> None:
        # Clients see a response some time after it was sent; at most the grace is assumed.
        self.delay = header.grace if header.order is Order.INTERVALS else 0
        self.groups: dict[str, Incarnation] = {}

    def on_restart(self) -> None:
        """Begin new incarnations of all groups after a restart of the target."""
        for incarnation in self.groups.values():
            incarnation.begin_term()

    def on_request(self, api: str, body: Body, group: str, time: int) -> int | None:
        """Note a request. Returns the number of its incarnation if it is a member's commit and is accepted."""
        incarnation = self.groups.get(group)
        if incarnation is None:
            return None
        if api == "LeaveGroup":
            self.on_leave(incarnation, body, time)
        if api in ("OffsetCommit", "TxnOffsetCommit") and claimed_generation(body) >= 0:
            return incarnation.number_since(str(body.get("member_id")))
        return None

    def on_leave(self, incarnation: Incarnation, body: Body, time: int) -> None:
        """Note the members that a LeaveGroup request removes."""
        rows = body.get("members")
        for row in rows if isinstance(rows, list) else [body]:
            if isinstance(row, dict):
                incarnation.joined.pop(str(row.get("member_id")), None)
                known = incarnation.members.get(str(row.get("member_id")))
                for who in (identity_of(None, row.get("group_instance_id")), known.identity if known else ""):
                    incarnation.certain_members.pop(who, None)
                    incarnation.leave_times[who] = time

    def on_response(self, api: str, request: Body, response: Body, group: str, sent: int, time: int) -> int:
        """Note a response, and return the number of its incarnation. `sent` is the time of the request."""
        incarnation = self.groups.setdefault(group, Incarnation())
        error = response.get("error_code")
        if error in COORDINATOR_NOT_READY:
            incarnation.begin_term()
        elif all(until < time for until in incarnation.certain_members.values()):
            incarnation.begin_next()
        if api == "JoinGroup":
            if error == 0:
                self.on_join(incarnation, request, response, sent, time)
        elif (api in MEMBER_ONLY_APIS and error == 0) or (
            api == "OffsetCommit" and claimed_generation(request) >= 0 and has_accepted_offset(response)
        ):
            known = incarnation.members.get(str(request.get("member_id")))
            if known is not None:
                incarnation.confirm_member(known, sent)
        return incarnation.number

    def on_join(self, incarnation: Incarnation, request: Body, response: Body, sent: int, time: int) -> None:
        """Note the member that a successful JoinGroup response confirms."""
        member, session = response.get("member_id"), request.get("session_timeout_ms")
        rebalance = request.get("rebalance_timeout_ms", session)
        if not isinstance(member, str) or type(session) is not int or type(rebalance) is not int:
            return
        incarnation.forget_idle_ids()
        generation = response.get("generation_id")
        if type(generation) is int:
            incarnation.note_generation(member, generation, is_new=request.get("member_id") != member)
        known = Membership(identity_of(member, request.get("group_instance_id")), min(session, rebalance))
        incarnation.members[member] = known
        if sent > incarnation.leave_times.get(known.identity, -1):
            incarnation.confirm_member(known, max(sent, time - self.delay))


def claimed_generation(request: Body) -> int:
    """The generation in which a commit claims a membership; -1 if it claims none."""
    generation = request.get("generation_id", request.get(COMMIT_GENERATION, -1))
    return generation if type(generation) is int else -1


def identity_of(member: object, instance: object) -> str:
    """The identity behind a member id: that of a static member is its instance id."""
    return f"{STATIC_PREFIX}{instance}" if instance is not None else f"{DYNAMIC_PREFIX}{member}"


def has_accepted_offset(response: Body) -> bool:
    """Whether at least one offset of a commit was accepted."""
    topics = response.get("topics")
    return isinstance(topics, list) and any(
        row.get("error_code") == 0
        for topic in topics
        if isinstance(topic, dict)
        for row in topic.get("partitions") or ()
        if isinstance(row, dict)
    )


def bucket_of(group: str, buckets: int) -> int:
    """The bucket of a group among `buckets`, from 0."""
    return zlib.crc32(group.encode("utf-8", "surrogatepass")) % buckets


def is_unrelated(kind: str, api: str) -> bool:
    """Whether the judge of a group learns nothing from such an event. Most events of real clients are of this kind."""
    return kind in UNRELATED_KINDS or (api in UNRELATED_APIS and kind in (Kind.REQUEST, Kind.RESPONSE))


class Row(NamedTuple):
    """One event. Times are in milliseconds since the trace began; None means unknown or not applicable."""

    trace: str
    line: int
    sequence: int
    time: int
    connection: int
    member: str
    kind: str
    api: str
    version: int
    of: int | None
    group: str | None
    intact: bool
    """Whether no earlier line of the trace is missing."""
    text: bytes
    incarnation: int | None = None
    sent: int | None = None
    error: int | None = None
    member_id: str | None = None
    instance: str | None = None
    generation: int | None = None
    leader: str | None = None
    accepted: bool | None = None
    owned: list[str] | None = None
    double_assigned: list[str] | None = None
    offsets: list[tuple[str, int, int]] | None = None
    poll_counts: list[tuple[str, int, int]] | None = None
    at: int | None = None
    """In microseconds since 1970."""
    library: str | None = None
    library_version: str | None = None
    is_unrelated: bool = False
    """Whether the judge of a part of the trace learns nothing from it."""


class BadLine(NamedTuple):
    """Lines that are not events: the number of the first, how many, and the reason."""

    trace: str
    line: int
    lines: int
    reason: str
    text: bytes


@dataclass(slots=True)
class RequestContext:
    """A request in flight: its fields that the row of its response needs."""

    api: str
    body: Mapping[str, Any]
    group: str | None
    time: int
    incarnation: int | None = None
    """The number of its incarnation if it is accepted, where that shows more than its response."""
    is_unrelated: bool = False


@dataclass(slots=True)
class RowReader:
    """Reads the trace in the file at `path`, a path or a URI, or "" if that is its name, too; the other fields are
    complete once `rows` is exhausted."""

    trace: str
    path: str = ""
    header: Header | None = None
    header_line: bytes = b""
    lines: int = 0
    events: int = 0
    unrelated: int = 0
    """How many events before the first flaw are unrelated to groups and lookups."""
    quarantined: int = 0
    flaw: str = ""
    """The first reason why events are missing, with its place."""
    flawed: int | None = None
    """Number of the first line after which events are missing."""
    marked: bool = False
    """Whether it must be judged as a whole: it has checks or routes, or is not of the classic protocol."""
    is_later_part: bool = False
    """Whether it begins with the requests in flight at the end of another part of its recording."""
    continued: int | None = None
    """Number of the line with the event `continued`, which comes after these."""
    groups: dict[str, int] = field(default_factory=dict)
    """Number of events that concern only this group, for each group; 0 for one named only together with others."""
    began: int | None = None
    """In microseconds since 1970."""
    open_requests: dict[int, RequestContext] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)
    """Topic names by id."""
    incarnations: Incarnations | None = None
    open_file: Callable[[str], BinaryIO] = open_input
    """Opens the path."""

    def rows(self) -> Iterator[Row | BadLine]:
        """Yield a row for every line but the header. A line that no row can be made of is the last that is read."""
        try:
            yield from self.read_rows()
        except ROW_ERRORS as error:
            lost = self.lines - (self.header is not None) - self.events - self.quarantined
            reason = f"no row can be made of it, and the rest is not read: {type(error).__name__}: {error}"
            bad = self.bad_line(self.lines, b"", encodable_text(reason), harmless=False)
            self.quarantined += lost
            yield bad._replace(lines=lost)

    def read_rows(self) -> Iterator[Row | BadLine]:
        """As `rows`; raises one of `ROW_ERRORS` for a line that no row can be made of."""
        before, unheaded = b"", 0
        for line in read_lines(self.path or self.trace, self.open_file):
            says = line.content
            self.lines += bool(line.text)
            if isinstance(says, Header):
                self.header, self.header_line, self.incarnations = says, line.text, Incarnations(says)
                self.marked, self.began = says.protocol != CLASSIC, began_us(says)
                self.is_later_part = recording_part_of(says)[1] > FIRST_PART
            elif isinstance(says, Event) and is_in_range(says):
                row = self.event_row(line.number, line.text, says)
                self.events += 1
                self.unrelated += row.is_unrelated and row.intact
                yield row
            elif self.header is None and line.number > 1:
                unheaded += 1
            else:
                reason = says.reason if isinstance(says, MalformedLine) else "a number needs more than 64 bits"
                again = line.text == before and bool(before)
                yield self.bad_line(line.number, line.text, REPEATED_LINE if again else reason, harmless=again)
            before = line.text
        if unheaded:
            self.quarantined += unheaded
            yield BadLine(encodable_text(self.trace), 2, unheaded, "the trace has no header", b"")

    def bad_line(self, number: int, line: bytes, reason: str, *, harmless: bool) -> BadLine:
        """The row of a line that is not an event; unless `harmless`, the trace is flawed from here on."""
        self.quarantined += bool(line)
        if self.flawed is None and not harmless:
            self.flawed = number
            self.flaw = f"{self.trace}:{number}: {reason}" if number else f"{self.trace}: {reason}"
        return BadLine(encodable_text(self.trace), number, int(bool(line)), reason, line[:MAX_QUOTED_BYTES])

    def event_row(self, number: int, line: bytes, event: Event) -> Row:
        common = Row(
            encodable_text(self.trace),
            number,
            event.sequence,
            event.time,
            event.connection,
            encodable_text(event.member),
            event.kind.value,
            encodable_text(event.api),
            event.version,
            event.of,
            None,
            self.flawed is None,
            line,
            at=None if self.began is None else self.began + event.time * 1_000,
        )
        if self.header is not None and self.header.protocol != CLASSIC:
            return common  # the columns for queries are those of classic groups
        if event.kind in (Kind.REQUEST, Kind.RESPONSE):
            try:
                return (self.request_row if event.kind is Kind.REQUEST else self.response_row)(common, event)
            except ROW_ERRORS:  # the judge says what is wrong with the message
                return common
        match event.kind:
            case Kind.FAULT if event.api in ("restart", "moved") and self.incarnations is not None:
                self.incarnations.on_restart()
            case Kind.INTERNAL:
                self.marked |= event.api in ("check", "routed")
                if event.api == "continued" and self.continued is None:
                    self.continued = number
                if event.api in ("unknown", "continued") and self.incarnations is not None:
                    self.incarnations.on_restart()
            case Kind.POLL:
                return common._replace(poll_counts=poll_counts(event.body), is_unrelated=True)
            case Kind.CALLBACK:
                return common._replace(is_unrelated=True)
        request = self.open_requests.get(event.of) if event.of is not None else None
        if event.kind is Kind.FAULT and self.header is not None and self.header.order is Order.INTERVALS:
            self.open_requests.pop(event.of or 0, None)
        return common if request is None else common._replace(group=request.group)

    def request_row(self, common: Row, event: Event) -> Row:
        groups = named_groups(event.body)
        for each in groups:
            self.groups.setdefault(each, 0)
        group = groups[0] if len(groups) == 1 else None
        context = self.open_requests[event.sequence] = RequestContext(event.api, event.body, group, event.time)
        if group is None:
            context.is_unrelated = not groups and self.is_unrelated_request(event)
            told = (encodable_text(event.body.get(f"client_software_{each}")) for each in ("name", "version"))
            library, version = told if event.api == "ApiVersions" else (None, None)
            return common._replace(is_unrelated=context.is_unrelated, library=library, library_version=version)
        self.groups[group] += 1
        if self.incarnations is not None:
            context.incarnation = self.incarnations.on_request(event.api, event.body, group, event.time)
        found = common._replace(group=encodable_text(group))
        if event.api == "SyncGroup":
            return found._replace(
                double_assigned=double_assigned(event.body), generation=int32(event.body.get("generation_id"))
            )
        return found

    def is_unrelated_request(self, event: Event) -> bool:
        """Whether groups and lookups have nothing to do with a request about no group. The judge has to see one that is
        not well formed, and which of those repeat the part before depends on whether that part is there."""
        is_repeated = self.is_later_part and self.continued is None
        if is_repeated or not is_unrelated(event.kind, event.api):
            return False
        try:
            check_request_form(event.api, event.version, event.body)
        except RequestFormError:
            return False
        return True

    def response_row(self, common: Row, event: Event) -> Row:
        request = self.open_requests.pop(event.of or 0, None)
        if request is None:  # the request is in quarantine, as its numbers do not fit into columns
            return common
        response, body = event.body, request.body
        found = common._replace(sent=request.time, error=common_error(response))
        if event.api == "Metadata":
            self.topic_names |= topic_names(response)
        elif event.api in ("Fetch", "ListOffsets"):
            found = found._replace(offsets=log_end_offsets(event.api, body, response, self.topic_names))
        if request.group is None or self.incarnations is None:
            return found._replace(is_unrelated=request.is_unrelated and found.error not in COORDINATOR_NOT_READY)
        self.groups[request.group] += 1
        incarnation = self.incarnations.on_response(event.api, body, response, request.group, request.time, event.time)
        joined = event.api == "JoinGroup"
        generation = response.get("generation_id") if joined else body.get("generation_id", body.get(COMMIT_GENERATION))
        found = found._replace(
            group=encodable_text(request.group),
            incarnation=incarnation,
            member_id=encodable_text(response.get("member_id") if joined else body.get("member_id")),
            instance=encodable_text(body.get("group_instance_id")),
            generation=int32(generation),
        )
        if joined:
            return found._replace(leader=encodable_text(response.get("leader")))
        if event.api == "SyncGroup":
            return found._replace(owned=assigned_partitions(response) if response.get("error_code") == 0 else None)
        if event.api in ("OffsetCommit", "TxnOffsetCommit"):
            offsets = accepted_offsets(body, response, self.topic_names)
            if offsets is not None and request.incarnation is not None:
                found = found._replace(incarnation=request.incarnation)
            return found._replace(accepted=offsets is not None, offsets=offsets)
        return found


def began_us(header: Header) -> int | None:
    """When a trace began, in microseconds since 1970; None if its header does not tell."""
    try:
        began = datetime.fromisoformat(header.implementation.get("began", ""))
    except ValueError:
        return None
    return round((began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp() * 1_000) * 1_000


def is_in_range(event: Event) -> bool:
    """Whether the numbers of an event fit into columns."""
    numbers = (event.sequence, event.time, event.connection, event.of or 0)
    return min(numbers) >= -MAX_INT64 and max(numbers) <= MAX_INT64 and int32(event.version) is not None
