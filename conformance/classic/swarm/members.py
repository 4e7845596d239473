"""The members of a swarm: how many of which kind, what happens to them when, and what each of them is watched for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from fencepost.adapters.classic.client.bodies import ReturnedRecords
from fencepost.adapters.classic.client.client import Pace, ReferenceClient
from fencepost.adapters.classic.client.links import AwaitedResponse, Network
from fencepost.model.classic.member.client import Callback, CallbackKind
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, RANGE, ClientSettings, Strategy
from fencepost.model.classic.member.step import ClientInput, CommitOffsets
from fencepost.model.groups.messages import Partition
from fencepost.model.wire.codec import Body

# --- The plan of a swarm: how many members of which kind, and what happens to them when.

UPGRADE: tuple[tuple[Strategy, ...], ...] = ((RANGE,), (COOPERATIVE_STICKY, RANGE), (COOPERATIVE_STICKY,))
"""The assignors before, between and after two rolling restarts from eager to cooperative (KIP-429)."""
WAVES = 10
"""A rolling restart comes to a tenth of the processes at once: the group may settle before the next."""


class SwarmKind(StrEnum):
    """How the members of a swarm rebalance."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    MIXED = "mixed"
    """In the middle of an upgrade: members offer range alone, or both; each restart is a step of the upgrade."""
    UPGRADE = "upgrade"
    """A whole upgrade: all begin with range, each is restarted to offer both, then each to offer the other alone."""


class SwarmEventKind(StrEnum):
    """What happens to a process."""

    CRASH = "crash"
    CLOSE = "close"
    FREEZE = "freeze"
    DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class SwarmEvent:
    """Something that happens to a process, at a time in seconds; it is over `lasts` seconds later."""

    at: float
    kind: SwarmEventKind
    process: int
    lasts: float


@dataclass(frozen=True, slots=True)
class SwarmPlan:
    """A swarm of members on one topic. Members start within the first sixth of the `seconds`; in the next four
    sixths `events` things happen, and records are written."""

    members: int = 30
    kind: SwarmKind = SwarmKind.EAGER
    partitions: int = 30
    seconds: float = 60.0
    events: int = 12
    records: int = 20
    """How many are written to each partition, ten times."""
    seed: int = 0
    settle_seconds: float = 60.0
    """How long the group may take at the end until every record was returned."""

    def strategies_of(self, process: int, restarts: int, step: int = 0) -> tuple[Strategy, ...]:
        """The assignors of a process after a number of restarts, at a step of an upgrade."""
        match self.kind:
            case SwarmKind.EAGER:
                return UPGRADE[0]
            case SwarmKind.COOPERATIVE:
                return UPGRADE[2]
            case SwarmKind.UPGRADE:
                return UPGRADE[step]
            case _:
                # Nobody leaves range behind while others have nothing else: that takes the second round of restarts.
                return UPGRADE[min(process % 2 + restarts, 1)]

    def starts(self) -> list[float]:
        """When each process starts."""
        return [number * self.seconds / 6 / self.members for number in range(self.members)]

    def upgrade_times(self, step: int) -> list[float]:
        """When each process is restarted for a step of the upgrade, the first or the second."""
        lasts = self.seconds / 3
        waves = (number * WAVES // self.members for number in range(self.members))
        return [self.seconds / 6 + lasts * (step - 1 + wave / WAVES) for wave in waves]

    def draw_events(self, session_seconds: float) -> list[SwarmEvent]:
        """What happens, in the order of time. Freezing lasts longer than a session, anything else not as long."""
        random = Random(f"swarm {self.seed}")
        drawn = []
        for _ in range(self.events):
            kind = random.choice(list(SwarmEventKind))
            lasts = session_seconds * 1.5 if kind is SwarmEventKind.FREEZE else random.uniform(0.1, session_seconds / 2)
            at = random.uniform(self.seconds / 6, self.seconds * 5 / 6)
            drawn.append(SwarmEvent(at, kind, random.randrange(self.members), lasts))
        return sorted(drawn, key=lambda event: event.at)


# --- What has to hold of all members together: one owner, no commit of a fenced member, every record; and owners'
# absence.
#
# Times are milliseconds. A member is one life of a process: one that starts again is another.

MAX_VIOLATIONS = 20


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that must not happen, when it did, and the members that did it."""

    rule: str
    time: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which a partition had no owner."""

    partition: Partition
    since: int
    until: int

    @property
    def duration(self) -> int:
        """How long it lasted."""
        return self.until - self.since


ONE_OWNER = "one owner in a generation"
FENCED_COMMIT = "no commit of a fenced member"
NO_LOSS = "no commit beyond what was returned"
GenerationOf = Callable[[str], int]
"""The present generation of a member, -1 for none."""


@dataclass(slots=True)
class SwarmWatch:
    """Follows all members. `generation_of` tells the generation that a member is in."""

    now: Callable[[], int]
    generation_of: GenerationOf
    newest: int = -1
    """The newest generation that a coordinator has told a member."""
    owners: dict[Partition, set[str]] = field(default_factory=dict)
    returned: dict[Partition, set[int]] = field(default_factory=dict)
    repeated: int = 0
    """Records that were returned again."""
    since: dict[Partition, int] = field(default_factory=dict)
    """When a partition lost its last owner."""
    first_owned: dict[Partition, int] = field(default_factory=dict)
    """When a partition had an owner for the first time."""
    absences: list[Absence] = field(default_factory=list)
    violations: list[Mishap] = field(default_factory=list)
    assignments: int = 0
    accepted: int = 0
    refused: int = 0
    """Commits that the coordinator accepted, or refused."""
    stale_refused: int = 0
    """Commits of a generation that was known to be over when they were sent, and that were refused."""

    def on_joined(self, generation: int) -> None:
        """The coordinator told a member of a generation."""
        self.newest = max(self.newest, generation)

    def on_assigned(self, member: str, generation: int, partitions: Iterable[Partition]) -> None:
        """A member is called back about partitions that it is assigned in a generation."""
        self.assignments += 1
        now = self.now()
        for partition in partitions:
            self.check_owner(member, generation, partition, "is assigned")
            self.owners.setdefault(partition, set()).add(member)
            self.first_owned.setdefault(partition, now)
            if (since := self.since.pop(partition, None)) is not None:
                self.absences.append(Absence(partition, since, now))

    def on_given_up(self, member: str, partitions: Iterable[Partition]) -> None:
        """A member has revoked or lost partitions, or is gone with them."""
        for partition in partitions:
            owners = self.owners.get(partition, set())
            if member in owners:
                owners.discard(member)
                if not owners:
                    self.since[partition] = self.now()

    def on_gone(self, member: str) -> None:
        """A member crashed, closed or froze: nobody consumes what it owned."""
        self.on_given_up(member, [partition for partition, owners in self.owners.items() if member in owners])

    def on_records(self, member: str, generation: int, partition: Partition, offsets: Sequence[int]) -> None:
        """A poll of a member returned records of a partition."""
        self.check_owner(member, generation, partition, "returns records of")
        known = self.returned.setdefault(partition, set())
        self.repeated += sum(offset in known for offset in offsets)
        known.update(offsets)

    def check_owner(self, member: str, generation: int, partition: Partition, what: str) -> None:
        """Nobody else owns the partition who is in the same generation, if that is the present one."""
        if generation != self.newest:
            return
        others = sorted(
            each for each in self.owners.get(partition, set()) - {member} if self.generation_of(each) == generation
        )
        if others:
            where = f"{partition[0]}/{partition[1]}"
            self.violate(
                ONE_OWNER, f"{member} {what} {where}, which {', '.join(others)} owns in generation {generation}"
            )

    def on_commit(
        self, member: str, generation: int, newest_when_sent: int, offsets: Mapping[Partition, int], error: int
    ) -> None:
        """The response to a commit, with the newest generation that was known when it was sent."""
        is_stale = generation < newest_when_sent
        if error:
            self.refused += 1
            self.stale_refused += is_stale
            return
        self.accepted += 1
        if is_stale:
            self.violate(
                FENCED_COMMIT,
                f"a commit of {member} in generation {generation} is accepted; "
                f"generation {newest_when_sent} was there before it was sent",
            )
        for partition, offset in offsets.items():
            if offset > 0 and (missing := set(range(offset)) - self.returned.get(partition, set())):
                where = f"{partition[0]}/{partition[1]}"
                self.violate(
                    NO_LOSS, f"{member} commits {offset} for {where}; record {min(missing)} was never returned"
                )

    def violate(self, rule: str, sentence: str) -> None:
        """Something must not happen that did."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(Mishap(rule, self.now(), sentence))


# --- A member of a swarm: the reference client with an application that polls, commits, freezes and is watched.

SWARM_PACE = Pace(cycle=0.25, metadata=5.0, fetch=0.5)
"""Slow enough for hundreds of members in one process."""
RECORDS_PER_POLL = 500


class SwarmMember(ReferenceClient):
    """One life of a process, with a name of its own."""

    def __init__(
        self, name: str, settings: ClientSettings, network: Network, now: Callable[[], int], watch: SwarmWatch
    ) -> None:
        super().__init__(settings, network, now, SWARM_PACE)
        self.name = name
        self.fetcher.limit = RECORDS_PER_POLL
        self.is_frozen = False
        self._watch = watch
        self._kept: list[ClientInput] = []
        self._newest_when_sent: dict[int, int] = {}

    @property
    def generation(self) -> int:
        """The generation that it is in, -1 for none."""
        return self.client.member.generation

    def start(self, topic: str) -> None:
        """Begin to consume a topic."""
        self.topics = {topic}
        self.begin()
        self.start_task(self._consume(topic))

    async def _consume(self, topic: str) -> None:
        await self.has_metadata.wait()  # a leader that knows no topics would plan for none
        await self.poll_forever([topic])

    def freeze(self) -> None:
        """Do nothing until it thaws, as a process that is stopped."""
        self.is_frozen = True
        self._watch.on_gone(self.name)

    def thaw(self) -> None:
        """Go on: commit what it believes to be its own, and then hear what has happened meanwhile."""
        self.is_frozen = False
        kept, self._kept = self._kept, []
        self.give(CommitOffsets(is_sync=False))
        for given in kept:
            self.give(given)

    def give(self, given: ClientInput) -> None:
        """As `ReferenceClient.give`; a frozen client hears of nothing."""
        if self.is_frozen:
            self._kept.append(given)
        else:
            super().give(given)

    def poll(self, timeout_ms: int = 0) -> bool:
        """As `ReferenceClient.poll`; a frozen client does not poll."""
        return not self.is_frozen and super().poll(timeout_ms)

    # -- what is watched ------------------------------------------------------------------------------------------

    def on_records(self, returned: list[ReturnedRecords]) -> None:
        """Tell the watch."""
        for taken in returned:
            if taken.offsets:
                self._watch.on_records(self.name, self.generation, taken.partition, taken.offsets)

    def on_callback(self, callback: Callback) -> None:
        """Tell the watch, and return from the callback."""
        if callback.kind is CallbackKind.ASSIGNED:
            self._watch.on_assigned(self.name, self.generation, callback.partitions)
        else:
            self._watch.on_given_up(self.name, callback.partitions)
        super().on_callback(callback)

    def transmit(self, api: str, body: Body, handle: int, node: int) -> None:
        """Take note of what is known when a commit is sent."""
        if api == "OffsetCommit":
            self._newest_when_sent[handle] = self._watch.newest
        super().transmit(api, body, handle, node)

    def take_response(self, sent: AwaitedResponse, body: Body) -> None:
        """Tell the watch of generations and of commits."""
        if sent.api == "JoinGroup" and not body["error_code"]:
            self._watch.on_joined(body["generation_id"])
        elif sent.api == "OffsetCommit":
            self._tell_commit(sent, body)
        super().take_response(sent, body)

    def _tell_commit(self, sent: AwaitedResponse, body: Body) -> None:
        errors = {
            (topic["name"], row["partition_index"]): row["error_code"]
            for topic in body["topics"]
            for row in topic["partitions"]
        }
        offsets: dict[Partition, int] = {
            (topic["name"], row["partition_index"]): row["committed_offset"]
            for topic in sent.request["topics"]
            for row in topic["partitions"]
        }
        accepted = {partition: offset for partition, offset in offsets.items() if not errors.get(partition)}
        error = 0 if accepted else next(iter(errors.values()), 0)
        newest = self._newest_when_sent.pop(sent.handle, -1)
        generation = sent.request["generation_id_or_member_epoch"]
        self._watch.on_commit(self.name, generation, newest, accepted, error)
