"""What is known of registrations, channels and offsets from messages alone, and what holds of the requirements."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.model.push.consumer import OffsetTable, accept_offset, ping_period, removal_time
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import Interest, Registration
from fencepost.model.push.specification import PUSH
from fencepost.traces.events import Body, Event
from fencepost.traces.push.world import Partition
from fencepost.traces.verdict import CheckResult, CheckStatus, FieldDifference, Violation

# The times of one channel: when pings are due, when the lease of a consumer is over, which retry a ping is.


@dataclass(slots=True)
class ChannelTimes:
    """One registration as its pings and responses show it. Times are milliseconds of the trace.

    A message is seen up to `slack` after it was sent, and a timer fires up to `slack` late.
    """

    session_timeout: int
    slack: int
    registered_at: int
    heard_at: int
    """When the consumer sent its last response."""
    pinged_at: int | None = None
    held_since: int | None = None
    freed_at: int = 0
    unanswered: int = 0
    """How many pings were seen since the last one that was answered."""
    pings: int = 0
    answered: int = 0
    """The number of the last ping that was answered."""
    answered_at: int = 0
    before_answer: tuple[int, int] = (0, 0)
    """`unanswered` and `answered` before the last answer, which the coordinator may not have had."""
    awaited: list[int] = field(default_factory=list)
    """The numbers of the pings that are not answered, in order."""

    @property
    def lease_end(self) -> int:
        """Before this moment the coordinator cannot take the consumer for dead."""
        return removal_time(self.heard_at, self.session_timeout, 0)

    def on_ping(self, body: Body, now: int) -> Iterator[tuple[str, str, str, str]]:
        """The requirements that a ping breaks, each with the field, what was expected and what was seen."""
        period = ping_period(self.session_timeout)
        if self.pinged_at is not None and now < self.pinged_at + period - self.slack:
            told = f"not before {self.pinged_at + period} ms"
            yield "PUSH-08", "early", told, f"{now} ms"
        in_flight = bool(self.answered) and now <= self.answered_at + self.slack
        counts = {self.unanswered, *([self.before_answer[0]] if in_flight else [])}
        if body["num_retries"] not in counts:
            yield "PUSH-12", "num_retries", str(self.unanswered), str(body["num_retries"])
        known = {self.answered, *([self.before_answer[1]] if in_flight else [])}
        if body.get("confirmed", self.answered) not in known:
            yield "PUSH-42", "confirmed", str(self.answered), str(body["confirmed"])
        self.pings += 1
        self.unanswered += 1
        self.pinged_at = now
        self.awaited.append(self.pings)

    def on_ping_response(self, now: int) -> None:
        """The consumer has answered the oldest ping."""
        if self.awaited:
            self.before_answer = self.unanswered, self.answered
            self.answered, self.answered_at = self.awaited.pop(0), now
            self.unanswered = len(self.awaited)
        self.heard_at = now

    def overdue_ping(self, now: int) -> int | None:
        """When the ping was due that is missing by `now`; None if none is."""
        if self.held_since is not None:
            return None
        due = max((self.pinged_at or self.registered_at) + ping_period(self.session_timeout), self.freed_at)
        return due if now > due + 2 * self.slack and now <= self.lease_end else None


# What is known of one registration from its channel alone.


@dataclass(slots=True)
class MemberFacts:
    """A registration as its channel shows it. Attempts go by their numbers on the wire."""

    consumer: str
    connection: int
    interest: Interest
    times: ChannelTimes
    is_registered: bool = False
    is_closed: bool = False
    is_past: bool = False
    """Its coordinator has lost its place since."""
    may_close: bool = False
    """Its registration was refused, or it broke the rules."""
    stop: int | None = None
    """The attempt of the last Stop."""
    has_stopped: bool = False
    """That Stop is answered."""
    start: int | None = None
    """The attempt of the last Start."""
    held: bool = False
    """A Stop was seen, and the Start after it is not answered."""
    late_answers: set[int] = field(default_factory=set)
    """The attempts whose Stop it answered after a newer one had begun for others."""
    share: tuple[Partition, ...] = ()
    """Of the last Start."""
    fetching: tuple[Partition, ...] = ()
    """What it has said that it fetches."""

    @property
    def registration(self) -> Registration:
        """Its id and the number of its channel."""
        return self.consumer, self.connection

    @property
    def is_open(self) -> bool:
        """Whether it is registered on a channel that is not closed."""
        return self.is_registered and not self.is_closed

    def on_command(self, event: Event, number: int, partitions: tuple[Partition, ...]) -> None:
        """A Stop or Start was seen."""
        if event.api == "Stop":
            self.stop, self.has_stopped, self.held = number, False, True
        else:
            self.start, self.share = number, partitions

    def on_response(self, event: Event, number: int, error: int) -> None:
        """It responds to a Stop or Start of this attempt."""
        if event.api == "Stop":
            self.fetching = ()
            self.has_stopped = self.has_stopped or number == self.stop
            if number != self.stop:
                self.late_answers.add(number)
        elif number == self.start:
            self.held = False
            self.times.freed_at = event.time
            if not error:
                self.fetching = self.share


# What a trace shows of the requirements of push: those that hold, and the wording of those that do not.


class ShownRequirements:
    """Collects the requirements that a trace puts to the test, with the event that first shows each to hold."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self.broken: set[str] = set()

    def add(self, event: Event, *requirements: str) -> None:
        """An event shows that these hold."""
        for each in requirements:
            self.shown.setdefault(each, event.sequence)

    def check_results(self) -> tuple[CheckResult, ...]:
        """A passed check for each requirement that was shown and not broken."""
        shown = sorted(self.shown.items())
        return tuple(CheckResult(id, at, CheckStatus.PASS) for id, at in shown if id not in self.broken)

    def violation(
        self, event: Event, group: str, requirement: str, field: str, expected: str, observed: str, rule: str = ""
    ) -> Violation:
        """The violation of a requirement ("" for one that no requirement speaks of) that an event shows."""
        self.broken.add(requirement)
        guard = PUSH.rules[rule].guard if rule in PUSH.rules else ""
        return Violation(
            event.sequence,
            group,
            event.api,
            (field,),
            observed,
            (expected,),
            rule,
            guard,
            (requirement,) if requirement else (),
            kind=f"{event.api} {field} {requirement}",
            differences=(FieldDifference(field, expected, observed),),
        )


# The offsets that the coordinator knows, as its consumers have reported them.


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group. Before anything is reported, whatever a Start has is taken for what is recorded."""

    table: OffsetTable = field(default_factory=OffsetTable)
    owners: dict[Partition, int] = field(default_factory=dict)
    """The connection of the consumer that was told last to fetch a partition."""
    earlier: dict[Partition, list[tuple[int, int]]] = field(default_factory=dict)
    """Offsets before the newest, each with the moment when it was replaced."""
    has_failed_over: bool = False
    """A coordinator that kept offsets in memory may have lost the newest."""

    def on_start(self, connection: int, entries: Iterable[Body]) -> None:
        """A consumer is told where to begin."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            self.owners[partition] = connection
            if partition not in self.earlier:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], True, REPAIRED)
                self.earlier[partition] = []

    def on_report(self, connection: int, entries: Iterable[Body], now: int) -> None:
        """A consumer says how far it is."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            before, is_owner = self.table.offset(partition), self.owners.get(partition) == connection
            if entry["offset"] != before and is_owner:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], is_owner, REPAIRED)
                self.earlier.setdefault(partition, []).append((before, now))

    def wrong_offsets(self, entries: Iterable[Body], now: int, slack: int) -> Iterator[tuple[Partition, int, int]]:
        """The partitions of a Start whose offset is not the last one reported, with both."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            if partition not in self.earlier:
                continue
            newest = self.table.offset(partition)
            allowed = {old for old, until in self.earlier[partition] if self.has_failed_over or now <= until + slack}
            if entry["offset"] not in allowed | {newest}:
                yield partition, newest, entry["offset"]
