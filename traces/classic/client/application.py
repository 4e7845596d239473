"""The application of a driven client: its commands, its partitions and its positions, as the trace shows them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.classic.client.messages import partitions_in
from fencepost.traces.events import Event

HELD_UP_MS = 3_000
"""How long the requests of a client may take to arrive that was held up until just now."""


@dataclass(slots=True)
class Application:
    """The application under way. Times in milliseconds; `limit` is the most records that a poll may return, 0 if that
    is not known; `has_lost` says whether it is called back about lost partitions."""

    is_driven: bool = False
    """Whether the trace shows what the application does."""
    limit: int = 0
    has_callbacks: bool = True
    """Whether the client calls back: else only the responses to SyncGroup tell its partitions."""
    has_lost: bool = True
    calls_anywhere: bool = False
    """Whether it calls back on threads of its own, as clients do that push records."""
    calls_in_parts: bool = False
    """Whether it calls back about each partition by itself."""
    has_auto_commit: bool = False
    has_interval: bool = True
    """Whether the client leaves when it is not polled."""
    auto_commit_ms: int = 0
    """The interval of periodic commits, 0 if that is not known."""
    timeouts: Mapping[str, int] = field(default_factory=dict)
    """The session timeout and the poll interval that the client has, as `session` and `rebalance`."""
    command: Mapping[str, Any] | None = None
    """The command that is carried out."""
    command_sequence: int = -1
    """The sequence number of its event."""
    began: int = 0
    idle_since: int | None = None
    """When the last command ended, None while one is carried out."""
    last_idle: int = 0
    """How long the application did nothing before the command under way, or the last one."""
    polled_at: int | None = None
    """When the last poll ended that may have started the clock of polls anew, or the application began; None while one
    is carried out. A poll that fails may fail before it does."""
    has_failed_poll: bool = False
    """The last poll has failed."""
    poll_due: int | None = None
    """When the poll under way, or the last one, was to end: later, the client is held up, or calls back."""
    held_up: tuple[int, int] | None = None
    """Since when a poll should have been over that ended far too late, and when it ended, of the last one."""
    last_unpolled: int = 0
    """How long the application had not polled before the poll under way, or the last one."""
    last_busy: int = 0
    """How long the last command took: longer than it should if the client was held up."""
    owned: frozenset[TopicPartition] = frozenset()
    """The partitions by the callbacks."""
    kept: frozenset[TopicPartition] = frozenset()
    """What an eager member had not given up when it sent its last JoinGroup."""
    revoked: frozenset[TopicPartition] = frozenset()
    """Those that were revoked since the last JoinGroup, or callback about assigned ones."""
    has_been_assigned: bool = False
    last_assigned: int = -1
    """The sequence number of the last callback about assigned partitions."""
    assignments: list[frozenset[TopicPartition]] = field(default_factory=list)
    """The assignments that the client was told since the last callback about assigned partitions."""
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets of the next records to return, of partitions of which some were returned or sought."""
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    """The committed offsets that the client was told."""
    last_written: int = -1
    """The sequence number of the last event of records that were written."""
    retained: frozenset[TopicPartition] = frozenset()
    """Partitions that stayed through the last rebalance."""
    paused: frozenset[TopicPartition] = frozenset()
    paused_since: int = 0
    sought: set[TopicPartition] = field(default_factory=set)
    before_seek: dict[TopicPartition, int] = field(default_factory=dict)
    """The positions that partitions had before they were sought, the highest since records were returned."""
    returned: int = 0
    """The records that the poll under way has returned."""
    out_of_range: set[TopicPartition] = field(default_factory=set)
    """The partitions that the reset policy gives a position, since they were assigned."""
    in_callback: Event | None = None
    """The callback that commits, as long as its commit may come."""
    has_asked_in_callback: bool = False
    """A callback of the command under way has committed."""
    committing_since: int | None = None
    """When the first commit came since there is a reason to join, if the client has not joined since."""
    wanted: frozenset[str] | None = None
    """The topics of the last subscription, if it is another one than that of the last JoinGroup."""
    wanted_since: int = 0
    has_asked: bool = False
    """It has subscribed, or asked for a rebalance, since the last JoinGroup."""
    has_ended: bool = False
    """The subscription of the last JoinGroup is over: LeaveGroup may be on its way."""
    manual_since: int | None = None
    passing: dict[str, str] = field(default_factory=dict)
    """The names of the errors that pass of the last responses, by the API, since a poll has failed."""
    began_without_coordinator: bool = False
    """The command under way began when the client knew no coordinator."""
    pattern: str = ""
    """The pattern that is subscribed to."""
    lookup_refused: int = -1
    """The sequence number of the last lookup that was refused for authorization."""

    def applied_by(
        self, partitions: frozenset[TopicPartition], is_cooperative: bool
    ) -> tuple[frozenset[TopicPartition], bool]:
        """The assignment that a callback about assigned partitions is about, and whether it fits that."""
        kept = self.owned if is_cooperative else frozenset[TopicPartition]()
        fitting = [each for each in self.assignments if each - kept == partitions]
        return (fitting or self.assignments)[-1], bool(fitting)

    def take_part(self, event: Event) -> None:
        """The listener is called about one partition of several."""
        partitions = partitions_in(event)
        if event.api != "assigned":
            self.give_up(event)
        else:
            self.owned |= partitions
            self.begin_anew(partitions)
        if self.assignments and self.owned == self.assignments[-1]:
            self.retained = frozenset()
            self.complete(event)

    def take_assigned(self, event: Event, is_cooperative: bool) -> None:
        """The listener is called about assigned partitions."""
        partitions, owned = partitions_in(event), self.owned
        self.begin_anew(partitions)
        if not self.assignments:
            self.owned |= partitions
            return
        latest, _ = self.applied_by(partitions, is_cooperative)
        self.retained = owned & latest if is_cooperative else frozenset()
        self.owned = (owned & latest) | partitions if is_cooperative else partitions
        self.complete(event)

    def begin_anew(self, partitions: frozenset[TopicPartition]) -> None:
        """These partitions begin at what is committed, and are not paused."""
        self.paused -= partitions
        for partition in partitions:
            self.positions.pop(partition, None)
            self.out_of_range.discard(partition)

    def complete(self, event: Event) -> None:
        """The application was told of its last assignment."""
        self.assignments.clear()
        self.revoked = frozenset()
        self.has_been_assigned, self.last_assigned = True, event.sequence

    def give_up(self, event: Event) -> None:
        """The listener is called about revoked or lost partitions."""
        self.owned -= partitions_in(event)
        if event.api == "revoked" or self.calls_in_parts:
            self.revoked |= partitions_in(event)

    def take_records(self, event: Event) -> None:
        """A poll returns records."""
        self.returned += len(event.body["records"])
        for topic, number, offset in event.body["records"]:
            partition = str(topic), int(number)
            if partition in self.positions:
                self.sought.discard(partition)
            self.positions[partition] = offset + 1

    def note_end_of_poll(self, event: Event) -> None:
        """A poll ends."""
        self.has_failed_poll = "error" in event.body
        if not self.has_failed_poll:
            self.polled_at = event.time
        elif self.polled_at is None:
            self.polled_at = self.began

    def idle_time(self, time: int) -> int:
        """For how long the application has not polled."""
        return 0 if self.polled_at is None else time - self.polled_at

    def unpolled_time(self, time: int) -> int:
        """For how long a client may count that it was not polled: one that is held up begins with the poll before."""
        return max(self.idle_time(time), self.overdue_time(time))

    def overdue_time(self, time: int) -> int:
        """For how long a poll should have been over: a client that is held up may count it as time without polls."""
        return 0 if self.poll_due is None else time - self.poll_due

    def held_up_time(self, time: int) -> int:
        """The same, from the last poll on that ended far too late: what the client did in it may arrive still."""
        is_recent = self.held_up is not None and time - self.held_up[1] < HELD_UP_MS
        return time - self.held_up[0] if self.held_up is not None and is_recent else self.overdue_time(time)

    def awake_until(self, time: int, grace: int) -> int:
        """The latest moment by which a client that is not held up has read what came: a poll that is under way for too
        long, or has been until just now, shows one that is."""
        if self.is_polling and self.overdue_time(time) > grace:
            return time - self.overdue_time(time)
        if self.held_up is not None and self.held_up[1] + grace > time:
            return self.held_up[0]
        return time

    def read_until(self, time: int, grace: int) -> int:
        """The same for a client that joins: before a poll that has just begun, its thread of heartbeats may have read
        nothing for as long as there was none."""
        has_just_begun = self.is_polling and self.began + grace > time and self.last_unpolled > grace
        return min(self.awake_until(time, grace), self.began - self.last_unpolled if has_just_begun else time)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The position of a partition is another one from now on."""
        former = self.before_seek.get(partition, 0) if partition in self.sought else 0
        self.before_seek[partition] = max(former, self.positions.get(partition, 0))
        self.positions[partition] = offset
        self.sought.add(partition)

    def has_had(self, partition: TopicPartition, offset: int) -> bool:
        """Whether a commit of this offset may have been made before a partition was sought, and had to wait."""
        return partition in self.sought and offset <= self.before_seek.get(partition, 0)

    def next_of(self, partition: TopicPartition) -> int:
        """The offset of the next record to return, as far as it is known."""
        return self.positions.get(partition, self.starts.get(partition, 0))

    def matches(self, topic: str) -> bool:
        """Whether it subscribes to a pattern that a topic matches: its leader may know that topic first."""
        return bool(self.pattern and re.fullmatch(self.pattern, topic))

    def does(self, *commands: str) -> bool:
        """Whether one of these commands is carried out."""
        return self.command is not None and self.command["do"] in commands

    @property
    def is_ending(self) -> bool:
        """Whether a command is carried out after which the client has no partitions."""
        return self.does("close", "unsubscribe")

    @property
    def is_polling(self) -> bool:
        """Whether a poll is carried out."""
        return self.does("poll")
