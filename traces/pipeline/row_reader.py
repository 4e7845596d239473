"""Conversion of a trace to rows: each line is a row of the table of events or of the quarantine.

A row has the line itself, which the judge reads, and columns for queries. The row of a response also has fields of its
request, so that queries need no join of the two.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import CLASSIC, Event, Header, Kind, Order
from fencepost.traces.files.request_form import RequestFormError, check_request_form
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.files.trace_files import MalformedLine, read_lines
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
from fencepost.traces.pipeline.file_systems import open_input
from fencepost.traces.pipeline.incarnations import COMMIT_GENERATION, Incarnations
from fencepost.traces.pipeline.shards import is_unrelated

SHARED_BUCKET = -1
"""The bucket of events that concern no single group."""
MAX_QUOTED_BYTES = 1_000
"""Maximum number of bytes kept of a bad line."""
MAX_INT64 = 2**63 - 1
ROW_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that a message of an odd form can cause where its fields are taken out of it."""
REPEATED_LINE = "the same line again"
FIRST_PART = 1


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
                self.marked = says.protocol != CLASSIC
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
            return common._replace(is_unrelated=context.is_unrelated)
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


def is_in_range(event: Event) -> bool:
    """Whether the numbers of an event fit into columns."""
    numbers = (event.sequence, event.time, event.connection, event.of or 0)
    return min(numbers) >= -MAX_INT64 and max(numbers) <= MAX_INT64 and int32(event.version) is not None
