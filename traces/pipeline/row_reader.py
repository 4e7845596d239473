"""A trace as rows: every line of it as a row of the table of events, or of the quarantine.

A row has the line itself, which is what is judged, and beside it what queries ask for. An answer's row also has what
its request said, so that no query needs to bring the two together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import Flaw, survey
from fencepost.traces.pipeline.incarnations import Lives
from fencepost.traces.pipeline.message_fields import (
    doubled,
    error_of,
    granted,
    groups_of,
    log_ends,
    offsets_of,
    polled,
    small,
    text,
    topic_names,
)

SHARED = -1
"""The bucket of what concerns no single group."""
QUOTED = 1_000
"""How many bytes of a bad line are kept."""
BIGGEST = 2**63 - 1
AGAIN = "the same line again"


class Row(NamedTuple):
    """One event. Times in milliseconds since the trace began; None is unknown, or does not apply."""

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
    """Nothing before it is missing."""
    text: bytes
    life: int | None = None
    sent: int | None = None
    error: int | None = None
    member_id: str | None = None
    instance: str | None = None
    generation: int | None = None
    leader: str | None = None
    accepted: bool | None = None
    owned: list[str] | None = None
    doubled: list[str] | None = None
    offsets: list[tuple[str, int, int]] | None = None
    polled: list[tuple[str, int, int]] | None = None


class Bad(NamedTuple):
    """Lines that are no events: the first of them, how many, and why."""

    trace: str
    line: int
    lines: int
    reason: str
    text: bytes


@dataclass(slots=True)
class Request:
    """A request in flight, or the last thing known of it."""

    api: str
    body: Mapping[str, Any]
    group: str | None
    time: int


@dataclass(slots=True)
class Reader:
    """Reads one trace; once it is read, says what there was to read."""

    trace: str
    header: Header | None = None
    header_line: bytes = b""
    lines: int = 0
    events: int = 0
    quarantined: int = 0
    flawed: int | None = None
    """The first line from which on something is missing."""
    marked: bool = False
    """It has remarks on single answers, which are about all of the trace."""
    continued: int | None = None
    """The line that says that it goes on where another part of its recording ended."""
    groups: dict[str, int] = field(default_factory=dict)
    """How many events each group has to itself; with others, it is only named."""
    open: dict[int, Request] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Topics by their ids."""
    lives: Lives | None = None

    def rows(self) -> Iterator[Row | Bad]:
        """Every line but the header."""
        before, unheaded = b"", 0
        for line in survey(self.trace):
            says = line.says
            self.lines += bool(line.text)
            if isinstance(says, Header):
                self.header, self.header_line, self.lives = says, line.text, Lives(says)
            elif isinstance(says, Event) and is_in_range(says):
                self.events += 1
                yield self.row(line.number, line.text, says)
            elif self.header is None and line.number > 1:
                unheaded += 1
            else:
                reason = says.reason if isinstance(says, Flaw) else "a number needs more than 64 bits"
                again = line.text == before and bool(before)
                yield self.bad(line.number, line.text, AGAIN if again else reason, harmless=again)
            before = line.text
        if unheaded:
            self.quarantined += unheaded
            yield Bad(self.trace, 2, unheaded, "there is no header to read it by", b"")

    def bad(self, number: int, line: bytes, reason: str, *, harmless: bool) -> Bad:
        """A line that is no event."""
        self.quarantined += bool(line)
        if self.flawed is None and not harmless:
            self.flawed = number
        return Bad(self.trace, number, int(bool(line)), reason, line[:QUOTED])

    def row(self, number: int, line: bytes, event: Event) -> Row:
        """The row of an event."""
        common = Row(
            self.trace,
            number,
            event.sequence,
            event.time,
            event.connection,
            text(event.member),
            event.kind.value,
            text(event.api),
            event.version,
            event.of,
            None,
            self.flawed is None,
            line,
        )
        match event.kind:
            case Kind.REQUEST:
                return self.request(common, event)
            case Kind.ANSWER:
                return self.answer(common, event)
            case Kind.FAULT if event.api == "restart" and self.lives is not None:
                self.lives.restarted()
            case Kind.INTERNAL:
                self.marked |= event.api in ("evidence", "routed")
                if event.api == "continued" and self.continued is None:
                    self.continued = number
                if event.api in ("unknown", "continued") and self.lives is not None:
                    self.lives.restarted()
            case Kind.POLL:
                return common._replace(polled=polled(event.body))
        request = self.open.get(event.of) if event.of is not None else None
        if event.kind is Kind.FAULT and self.header is not None and self.header.order is Order.INTERVALS:
            self.open.pop(event.of or 0, None)
        return common if request is None else common._replace(group=request.group)

    def request(self, common: Row, event: Event) -> Row:
        """The row of a request."""
        groups = groups_of(event.body)
        for each in groups:
            self.groups.setdefault(each, 0)
        group = groups[0] if len(groups) == 1 else None
        self.open[event.sequence] = Request(event.api, event.body, group, event.time)
        if group is None:
            return common
        self.groups[group] += 1
        if self.lives is not None:
            self.lives.requested(event.api, event.body, group, event.time)
        found = common._replace(group=text(group))
        if event.api == "SyncGroup":
            return found._replace(doubled=doubled(event.body), generation=small(event.body.get("generation_id")))
        return found

    def answer(self, common: Row, event: Event) -> Row:
        """The row of an answer."""
        request = self.open.pop(event.of or 0, None)
        if request is None:  # its numbers did not fit
            return common
        answer, body = event.body, request.body
        found = common._replace(sent=request.time, error=error_of(answer))
        if event.api == "Metadata":
            self.names |= topic_names(answer)
        elif event.api in ("Fetch", "ListOffsets"):
            found = found._replace(offsets=log_ends(event.api, body, answer, self.names))
        if request.group is None or self.lives is None:
            return found
        self.groups[request.group] += 1
        life = self.lives.answered(event.api, body, answer, request.group, request.time, event.time)
        joined = event.api == "JoinGroup"
        generation = answer.get("generation_id") if joined else body.get("generation_id", body.get(COMMIT_GENERATION))
        found = found._replace(
            group=text(request.group),
            life=life,
            member_id=text(answer.get("member_id") if joined else body.get("member_id")),
            instance=text(body.get("group_instance_id")),
            generation=small(generation),
        )
        if joined:
            return found._replace(leader=text(answer.get("leader")))
        if event.api == "SyncGroup":
            return found._replace(owned=granted(answer) if answer.get("error_code") == 0 else None)
        if event.api in ("OffsetCommit", "TxnOffsetCommit"):
            offsets = offsets_of(body, answer, self.names)
            return found._replace(accepted=offsets is not None, offsets=offsets)
        return found


COMMIT_GENERATION = "generation_id_or_member_epoch"


def is_in_range(event: Event) -> bool:
    """Its numbers fit into columns."""
    numbers = (event.sequence, event.time, event.connection, event.of or 0)
    return min(numbers) >= -BIGGEST and max(numbers) <= BIGGEST and small(event.version) is not None
