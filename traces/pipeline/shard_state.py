"""The state of a shard that is judged while its trace goes on."""

import json
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, TypeAlias

from fencepost.traces.events import MAX_LOOKAHEAD, Event, Kind, Lookahead, Order, PairedEvent
from fencepost.traces.files.jsonl import EventOrder, MalformedLineError, decode_event, decode_header
from fencepost.traces.files.rotating_writer import RecordingPart, is_next_part, recording_part_of
from fencepost.traces.files.trace_files import RequestFormError, check_request_form
from fencepost.traces.judge.judge import Judge, UnknownProtocol
from fencepost.traces.pipeline.judge_corpus import make_shard_judge
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    MAX_QUOTED_BYTES,
    WHOLE_TRACE,
)
from fencepost.traces.verdict import Violation, initial_violations

VIOLATION, FOLLOWING, WITHDRAWN, QUARANTINED, UNJUDGED = "violation", "following", "withdrawn", "quarantine", "unjudged"
"""The kinds of news."""
HEADER, EVENT, BAD, MALFORMED, END = "header", "event", "bad", "malformed", "end"
"""The kinds of lines: `BAD` and `MALFORMED` have the reason in the place of a line, and `END` none. All buckets of a
trace get `MALFORMED`."""

ReportedKey: TypeAlias = tuple[int, str, str, tuple[str, ...]]


class UnjudgeableError(ValueError):
    """A message of a trace is not one that can be judged; the message is the reason."""


class NewLine(NamedTuple):
    """A line of a trace: the part of the recording, the file or partition, the number of the line or the offset, the
    kind, and the line itself."""

    part: int
    path: str
    line: int
    kind: str
    text: bytes


class News(NamedTuple):
    """Something found: where, its kind, the sequence number of the request and the group, and more as JSON."""

    path: str
    kind: str
    sequence: int | None
    group: str | None
    value: str


def malformed_reason(event: Event) -> str:
    """Why a request cannot be judged; "" if it can, and for all other events."""
    if event.kind is Kind.REQUEST:
        try:
            check_request_form(event.api, event.version, event.body)
        except RequestFormError as error:
            return f"event {event.sequence}: {error}"
    return ""


@dataclass(slots=True)
class ShardState:
    """The state of judging one shard of a trace: its judge, the events that wait, and the violations reported."""

    judge: Judge
    part: RecordingPart = ("", 0)
    last_sequence: int = -1
    ahead: Lookahead = field(default_factory=lambda: Lookahead(()))
    waiting: deque[tuple[int, PairedEvent]] = field(default_factory=deque)
    reported: dict[ReportedKey, str] = field(default_factory=dict)
    """The violations that were reported and stand, as JSON."""
    order: EventOrder | None = None
    """Checks the order of events in the present part of a topic; lines of files are checked as they are read."""
    path: str = ""
    """The file or partition of the present part."""
    last_line: bytes = b""

    def add_event(self, place: int, event: Event, *, goes_on: bool) -> None:
        """Take in an event at its place; if the part `goes_on` with the one before, skip what it repeats."""
        if goes_on and (event.sequence <= self.last_sequence or event.api == "continued"):
            return
        while self.waiting and place > self.waiting[0][0] + MAX_LOOKAHEAD:
            self.judge_next()
        self.waiting.append((place, self.ahead.pair_event(event)))
        self.last_sequence = event.sequence

    def judge_ready(self) -> None:
        """Judge the events that wait for no response.

        In a totally ordered trace a coordinator may respond although the connection is gone.
        """
        is_total = self.judge.header.order is not Order.INTERVALS
        while self.waiting:
            event, operation = self.waiting[0][1]
            is_open = event.kind is Kind.REQUEST and event.sequence in self.ahead.open_operations
            if is_open and operation is not None and (is_total or not operation.lost):
                return
            self.judge_next()

    def end(self) -> None:
        """Judge the waiting events at the end of the trace."""
        while self.waiting:
            self.judge_next()
        self.judge.finish()

    def judge_next(self) -> None:
        """Judge the event that has waited longest. Raises `UnjudgeableError`."""
        event, operation = self.waiting.popleft()[1]
        try:
            self.judge.on_event(event, operation)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = f"the judge cannot go on: {type(error).__name__}: {error}"
            raise UnjudgeableError(f"event {event.sequence}: {reason}") from None

    def new_findings(self) -> Iterator[tuple[str, int, str, str]]:
        """Yield kind, sequence number, group and value of each new violation, and of each reported one that the judge
        took back, because the response may depend on members that the trace does not show.

        The requirements are those that a report names: no recommendation, and only of violations that follow from none
        before them.
        """
        standing = self.judge.violations
        first = set(map(id, initial_violations(standing)))
        is_recommendation = self.judge.protocol.specification.is_recommendation
        now: dict[ReportedKey, str] = {}
        for violation in standing:
            broken = tuple(each for each in violation.requirements if not is_recommendation(each))
            if broken or not violation.requirements:
                key, value = key_of(violation, broken), json.dumps({**asdict(violation), "requirements": broken})
                now[key] = value
                if key not in self.reported:
                    yield VIOLATION if id(violation) in first else FOLLOWING, violation.sequence, violation.group, value
        for key, value in self.reported.items():
            if key not in now:
                yield WITHDRAWN, key[0], key[1], value
        self.reported = now


def key_of(violation: Violation, broken: tuple[str, ...]) -> ReportedKey:
    """What makes a violation the one that was reported."""
    return violation.sequence, violation.group, violation.api, broken


class ShardAdvance:
    """Takes new lines of one bucket of one trace into its state, and gathers what is found."""

    def __init__(self, bucket: int, buckets: int, state: ShardState | None = None) -> None:
        self.bucket = bucket
        self.buckets = buckets
        self.state = state
        self.found: list[News] = []
        self.is_lost = False
        """Lines come that no header precedes; they are not judged."""
        self.goes_on = False

    def take_lines(self, lines: Iterable[NewLine]) -> None:
        """Take in lines, in order, and report what came of them."""
        where = ""
        try:
            for line in lines:
                where = line.path
                try:
                    self.take_line(line)
                except UnjudgeableError as error:
                    self.give_up(line.path, str(error))
            self.report()
        except UnjudgeableError as error:
            self.give_up(where, str(error))

    def take_line(self, line: NewLine) -> None:
        """Take in one line."""
        state = self.state
        if line.kind == HEADER:
            self.begin_part(line)
        elif line.kind == BAD:
            self.quarantine(line, line.text.decode())
        elif line.kind == MALFORMED:
            self.give_up(line.path, line.text.decode() if self.bucket in (LOOKUPS_SHARD, WHOLE_TRACE) else "")
        elif line.kind == END:
            self.end_trace()
            self.is_lost = False
        elif state is None:
            if line.kind == EVENT and not self.is_lost:
                self.quarantine(line, "no header comes before it")
                self.is_lost = True
        elif state.order is None:
            state.add_event(line.line, decode_event(line.text), goes_on=self.goes_on)
        elif line.text != state.last_line:
            self.take_checked(state, state.order, line)

    def take_checked(self, state: ShardState, order: EventOrder, line: NewLine) -> None:
        """Take in a line of a topic, which nobody has checked yet; after a bad one nothing of the trace is judged."""
        try:
            event = decode_event(line.text)
            order.check(event)
        except MalformedLineError as flaw:
            self.quarantine(line, str(flaw))
            self.end_trace()
            self.is_lost = True
            return
        if reason := malformed_reason(event):
            raise UnjudgeableError(reason)
        state.last_line = line.text
        state.add_event(line.line, event, goes_on=self.goes_on)

    def begin_part(self, line: NewLine) -> None:
        """Begin a trace, or go on with the next part of its recording."""
        try:
            header = decode_header(line.text)
        except MalformedLineError as flaw:
            self.quarantine(line, str(flaw))
            self.end_trace()
            self.is_lost = True
            return
        part, self.is_lost = recording_part_of(header), False
        self.report()
        self.goes_on = self.state is not None and is_next_part(self.state.part, part)
        if not self.goes_on:
            self.end_trace()
        try:
            state = self.state = self.state or ShardState(make_shard_judge(header, (self.bucket,), self.buckets).judge)
        except UnknownProtocol as error:
            self.give_up(line.path, str(error))
            return
        state.part, state.path = part, line.path
        if self.bucket == WHOLE_TRACE:
            state.order, state.last_line = EventOrder(header.order), b""

    def end_trace(self) -> None:
        """The trace is over."""
        if self.state is not None:
            self.state.end()
            self.report()
            self.state = None

    def give_up(self, where: str, reason: str) -> None:
        """Take back all that was reported of the trace, and judge it no more: it is wrong, and not the target. With a
        `reason`, tell it."""
        if self.state is not None:
            for key, value in self.state.reported.items():
                self.found.append(News(where, WITHDRAWN, key[0], key[1], value))
            self.state = None
        if reason:
            self.found.append(News(where, UNJUDGED, None, None, json.dumps({"reason": reason})))
        self.is_lost = True

    def quarantine(self, line: NewLine, reason: str) -> None:
        """Report a line that is none."""
        told = {"line": line.line, "reason": reason, "text": line.text[:MAX_QUOTED_BYTES].decode("utf-8", "replace")}
        self.found.append(News(line.path, QUARANTINED, None, None, json.dumps(told)))

    def report(self) -> None:
        """Judge the events that wait for nothing, and report what is new."""
        if self.state is not None:
            self.state.judge_ready()
            self.found += (News(self.state.path, *news) for news in self.state.new_findings())


def advance_shard(
    bucket: int, buckets: int, known: bytes | None, lines: Iterable[NewLine]
) -> tuple[list[News], bytes | None]:
    """What is found in new lines of a bucket of a trace, and the state after them; None if the trace is over."""
    advance = ShardAdvance(bucket, buckets)
    if known is not None:
        advance.state, advance.is_lost = pickle.loads(known)
    advance.take_lines(lines)
    is_open = advance.state is not None or advance.is_lost
    return advance.found, pickle.dumps((advance.state, advance.is_lost)) if is_open else None
