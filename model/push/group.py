"""A group at its coordinator: members and what they want, the messages, a rebalance phase by phase (draft, 4 to 7)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from fencepost.model.errors import FencepostError
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.dialect import Command, PushDialect

# Which topics a group wants: the `topic_count` of a registration, named topics or a wildcard (draft, 5).


class UnusableInterest(FencepostError):
    """A `topic_count` that says nothing; the message is one clear line."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Interest:
    """Topics by name with the number of streams of each, or a pattern with its number of streams."""

    streams: tuple[tuple[str, int], ...] = ()
    pattern: str = ""
    pattern_streams: int = 1

    def matches(self, topic: str) -> bool:
        """Whether the topic is named, or fits the pattern."""
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return any(name == topic for name, _ in self.streams)

    def threads_for(self, topic: str) -> int:
        """The streams for a topic, 0 for one that is not wanted."""
        if self.pattern:
            return self.pattern_streams if self.matches(topic) else 0
        return dict(self.streams).get(topic, 0)


NO_INTEREST = Interest()
"""No topic is wanted."""


def parse_interest(topic_count: str) -> Interest:
    """The interest in the field `topic_count`: a JSON object of topics with their streams as consumers of that time
    wrote it to ZooKeeper, or `*N*pattern` for a wildcard. Raises `UnusableInterest`."""
    wildcard = re.fullmatch(r"\*(\d+)\*(.+)", topic_count)
    if wildcard:
        try:
            re.compile(wildcard[2])
        except re.error as error:
            raise UnusableInterest(f"topic_count {topic_count!r}: {error}") from error
        return Interest(pattern=wildcard[2], pattern_streams=max(1, int(wildcard[1])))
    try:
        streams = json.loads(topic_count)
    except ValueError as error:
        raise UnusableInterest(f"topic_count {topic_count!r}: neither JSON nor '*N*pattern'") from error
    if (
        not isinstance(streams, dict)
        or not streams
        or not all(type(one) is int and one > 0 for one in streams.values())
    ):
        raise UnusableInterest(f"topic_count {topic_count!r}: want topics, each with a number of streams")
    return Interest(tuple(sorted(streams.items())))


def format_interest(interest: Interest) -> str:
    """The field `topic_count` of an interest."""
    if interest.pattern:
        return f"*{interest.pattern_streams}*{interest.pattern}"
    return json.dumps(dict(interest.streams))


# Which consumer gets which partitions: ranges over the threads of each topic, as the coordinator computes them.


@fast_frozen
@dataclass(frozen=True, slots=True)
class Share:
    """What one registration of a consumer is to fetch."""

    consumer: Token
    number: int
    partitions: tuple[Token, ...]


def assign_ranges(partitions: Sequence[Token], threads: Mapping[Token, int]) -> dict[Token, tuple[Token, ...]]:
    """The partitions of a topic by consumer: contiguous ranges over all threads, in the order of `threads`.

    The first threads get one more where the division leaves a rest (draft, 7 step 1.3, leaves the rule open; this is
    the range rule of the consumers of that time).
    """
    slots = [consumer for consumer, count in threads.items() for _ in range(count)]
    shares: dict[Token, tuple[Token, ...]] = dict.fromkeys(threads, ())
    if not slots:
        return shares
    size, rest = divmod(len(partitions), len(slots))
    start = 0
    for place, consumer in enumerate(slots):
        end = start + size + (place < rest)
        shares[consumer] += tuple(partitions[start:end])
        start = end
    return shares


def owners_of(shares: Sequence[Share], partitions: Sequence[Token]) -> tuple[Token, ...]:
    """The owner of each partition in this order, None of one that nobody got."""
    owner = {partition: share.consumer for share in shares for partition in share.partitions}
    return tuple(owner.get(partition) for partition in partitions)


# The messages between coordinator and consumer, as far as the handlers read them; `wire` has all fields and the bytes.
#
# Attempt numbers are a repair: in the draft's dialect no handler reads them, and they do not go over the wire.


Offsets: TypeAlias = tuple[tuple[Token, int], ...]
"""Partitions with an offset each."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """The only request of a consumer; `number` tells its registrations apart, one for each channel."""

    consumer: Token
    number: int = 0
    interest: Interest = NO_INTEREST
    session_timeout_ms: int = 6000


@fast_frozen
@dataclass(frozen=True, slots=True)
class RegisterResponse:
    """Whether the registration is accepted (error 0)."""

    error: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class PingRequest:
    """Are you alive?"""


@fast_frozen
@dataclass(frozen=True, slots=True)
class PingResponse:
    """I am, and this is how far I am in my partitions."""

    offsets: Offsets = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class StopRequest:
    """Close the fetchers."""

    attempt: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class StopResponse:
    """The fetchers are closed."""

    attempt: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartRequest:
    """Fetch these partitions."""

    attempt: int = 0
    partitions: tuple[Token, ...] = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartResponse:
    """The fetchers are started (error 0), or the request was refused."""

    attempt: int = 0
    error: int = 0


CoordinatorRequest: TypeAlias = PingRequest | StopRequest | StartRequest
ConsumerResponse: TypeAlias = PingResponse | StopResponse | StartResponse
ILLEGAL_STATE, DUPLICATE, TIMEOUT_TOO_SMALL = 1, 2, 3
"""Error codes: the draft gives none a number."""


# A group at its coordinator: the members, the rebalance bit, and the rebalance under way (draft, 5 to 7).


Registration = tuple[Token, int]
"""A consumer id, and the number of its registration."""


class RebalancePhase(StrEnum):
    """What a handler thread does next for the group."""

    COMPUTE = "compute"
    CHECK = "check"
    STOP = "stop"
    WAIT_STOP = "wait for stop"
    START = "start"
    WAIT_START = "wait for start"
    WRITE = "write"
    RESET = "reset"


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushMember:
    """A registration as the coordinator keeps it in memory."""

    consumer: Token
    number: int = 0
    interest: Interest = NO_INTEREST

    @property
    def registration(self) -> Registration:
        """Its id and number."""
        return self.consumer, self.number


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushRebalance:
    """A rebalance under way: `retries` made so far, the number of the attempt, the shares, and who is awaited."""

    phase: RebalancePhase
    retries: int = 0
    attempt: int = 0
    shares: tuple[Share, ...] = ()
    owners: tuple[Token, ...] = ()
    """The owner of each partition of the snapshot, in its order."""
    pending: frozenset[Registration] = frozenset()


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushGroup:
    """A group in the coordinator's memory."""

    members: tuple[PushMember, ...] = ()
    """Sorted by consumer id."""
    rebalancing: bool = False
    """The bit of the draft's item 2."""
    changed: bool = False
    """PUSH-H02 repaired: a change met the set bit."""
    run: PushRebalance | None = None
    completed: tuple[Share, ...] | None = None
    """The map that this coordinator completed last, as long as it may be believed."""
    read_clear: bool = False
    """PUSH-H18 as drafted: a listener has read the bit as clear, and is about to set it."""

    def member(self, consumer: Token) -> PushMember | None:
        """The member with this id."""
        return next((one for one in self.members if one.consumer == consumer), None)

    def has(self, consumer: Token, number: int) -> bool:
        """Whether this very registration is a member."""
        return any(one.consumer == consumer and one.number == number for one in self.members)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Sending:
    """A request for the channel of a registration."""

    consumer: Token
    number: int
    message: CoordinatorRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupStep:
    """What comes of a step of a group: the group, the rule, and what others have to do.

    `requests` are new entries in the queue of the group, `owners` is what goes to ZooKeeper.
    """

    group: PushGroup
    rule: str
    sendings: tuple[Sending, ...] = ()
    requests: int = 0
    owners: tuple[Token, ...] | None = None
    ends_thread: bool = False
    """PUSH-H05 as drafted: the exception ends the handler thread."""


# Registration, removal and changes of topics and partitions: what makes a group rebalance (draft, 4 to 6).


def register_consumer(
    group: PushGroup | None, request: RegisterRequest, has_topics: bool, minimum_ms: int, dialect: PushDialect
) -> tuple[PushGroup | None, GroupStep | None, str, int]:
    """The group, the trigger of its rebalance if there is one, the rule, and the error of the response.

    A group that is None is new to the coordinator; `has_topics` says whether one that it wants exists.
    """
    known = PushGroup() if group is None else group
    if known.member(request.consumer) is not None:
        return group, None, "register.duplicate", DUPLICATE
    if request.session_timeout_ms <= minimum_ms:
        return group, None, "register.timeout-too-small", TIMEOUT_TOO_SMALL
    member = PushMember(request.consumer, request.number, request.interest)
    members = tuple(sorted((*known.members, member), key=lambda one: str(one.consumer)))
    joined = evolve(known, members=members)
    if group is not None:
        return joined, trigger_rebalance(joined, dialect), "register.accepted", 0
    if not has_topics:
        return joined, None, "register.no-topics", 0
    # 5, handleNewGroup 3.1: the bit is created as true, and the member change that follows finds it set.
    created = evolve(joined, rebalancing=True)
    return created, GroupStep(created, "trigger.new-group", requests=1), "register.accepted", 0


def remove_consumer(group: PushGroup, consumer: Token, number: int, dialect: PushDialect) -> GroupStep | None:
    """The group without a consumer that is taken for dead; None if it has no such member.

    As drafted, whoever has the id now is removed.
    """
    gone = group.member(consumer)
    if gone is None or (dialect.numbers_registrations and gone.number != number):
        return None
    left = evolve(group, members=tuple(one for one in group.members if one is not gone))
    if not left.members:
        return GroupStep(left, "remove.last")
    return trigger_rebalance(left, dialect)


def trigger_rebalance(group: PushGroup, dialect: PushDialect) -> GroupStep:
    """Set the bit and ask for a rebalance; where the bit is set already, remember the change or forget it."""
    if not group.rebalancing:
        return GroupStep(evolve(group, rebalancing=True), "trigger.queued", requests=1)
    if dialect.remembers_changes:
        return GroupStep(evolve(group, changed=True), "trigger.remembered")
    return GroupStep(group, "trigger.forgotten")


def partitions_changed(group: PushGroup, dialect: PushDialect) -> GroupStep:
    """A listener hears of a new topic or partition of the group's (draft, 4): in one step, or reading first."""
    if dialect.compares_and_sets:
        return trigger_rebalance(group, dialect)
    if group.rebalancing:
        if dialect.remembers_changes:
            return GroupStep(evolve(group, changed=True), "trigger.remembered")
        return GroupStep(group, "trigger.forgotten")
    return GroupStep(evolve(group, read_clear=True), "listener.read-clear")


def listener_sets(group: PushGroup) -> GroupStep | None:
    """PUSH-H18 as drafted: the listener that has read the bit as clear sets it, whatever it is by now."""
    if not group.read_clear:
        return None
    return GroupStep(evolve(group, read_clear=False, rebalancing=True), "listener.set", requests=1)


# A rebalance, phase by phase: compute, check, stop, start, wait, write, reset (draft, 7).

COMPUTE, CHECK, STOP, WAIT_STOP, START, WAIT_START, WRITE, RESET = RebalancePhase
Topics = Mapping[str, Sequence[Token]]
"""The partitions of each topic that exists."""


def take_request(group: PushGroup) -> GroupStep:
    """A handler thread takes the request at the head of its queue."""
    return GroupStep(evolve(group, run=PushRebalance(COMPUTE)), "rebalance.taken")


def compute_assignment(group: PushGroup, topics: Topics) -> GroupStep | None:
    """Take members and partitions, and compute who gets what (steps 1 to 1.3)."""
    run = in_phase(group, COMPUTE)
    if run is None:
        return None
    parts: dict[Token, tuple[Token, ...]] = {one.consumer: () for one in group.members}
    for topic, partitions in sorted(topics.items()):
        threads = {one.consumer: one.interest.threads_for(topic) for one in group.members}
        for consumer, part in assign_ranges(
            partitions, {who: count for who, count in threads.items() if count}
        ).items():
            parts[consumer] += part
    shares = tuple(Share(one.consumer, one.number, parts[one.consumer]) for one in group.members)
    owners = owners_of(shares, [each for _, partitions in sorted(topics.items()) for each in partitions])
    run = PushRebalance(CHECK, run.retries, shares=shares, owners=owners)
    return GroupStep(evolve(group, run=run), "rebalance.computed")


def check_necessity(group: PushGroup, recorded: tuple[Token, ...] | None, dialect: PushDialect) -> GroupStep | None:
    """Compare the map with the `recorded` owners of all partitions, None if there are none (step 3)."""
    run = in_phase(group, CHECK)
    if run is None:
        return None
    matches = recorded is not None and None not in run.owners and recorded == run.owners
    believed = not dialect.trusts_own_map_only or group.completed == run.shares
    if matches and believed:
        return GroupStep(evolve(group, run=evolve(run, phase=RESET)), "rebalance.unnecessary")
    phase = START if dialect.command is Command.RESTART else STOP
    return GroupStep(evolve(group, run=evolve(run, phase=phase)), "rebalance.necessary")


def send_stops(group: PushGroup, attempt: int, dialect: PushDialect) -> GroupStep | None:
    """Send Stop to every member of the snapshot (step 4.1). `attempt` is a number that no earlier message carries."""
    run = in_phase(group, STOP)
    if run is None:
        return None
    waits = dialect.command is Command.STOP_RESPONSE and bool(run.shares)
    pending = registrations(run.shares) if waits else frozenset()
    run = evolve(run, phase=WAIT_STOP if waits else START, attempt=attempt, pending=pending)
    completed = None if dialect.stop_voids_map else group.completed
    sendings = tuple(Sending(share.consumer, share.number, StopRequest(attempt)) for share in run.shares)
    return GroupStep(evolve(group, run=run, completed=completed), "rebalance.stopping", sendings)


def send_starts(group: PushGroup, attempt: int) -> GroupStep | None:
    """Send each member its own part with Start (step 4.2)."""
    run = in_phase(group, START)
    if run is None:
        return None
    run = evolve(run, phase=WAIT_START if run.shares else WRITE, attempt=attempt, pending=registrations(run.shares))
    sendings = tuple(Sending(one.consumer, one.number, StartRequest(attempt, one.partitions)) for one in run.shares)
    return GroupStep(evolve(group, run=run), "rebalance.starting", sendings)


def receive_response(
    group: PushGroup, consumer: Token, number: int, response: ConsumerResponse, dialect: PushDialect
) -> GroupStep:
    """Count a response of a consumer, whose channel has this registration's number, for the attempt under way."""
    run = group.run
    awaited = run is not None and is_awaited(run, response, dialect)
    if run is None or not awaited:
        return GroupStep(group, "response.ping" if isinstance(response, PingResponse) else "response.not-awaited")
    if dialect.numbers_registrations:
        counted = {one for one in run.pending if one == (consumer, number)}
    else:
        counted = {one for one in run.pending if one[0] == consumer}
    if not counted:
        return GroupStep(group, "response.not-awaited")
    pending = run.pending - counted
    if pending:
        return GroupStep(evolve(group, run=evolve(run, pending=pending)), "response.counted")
    after = START if run.phase is WAIT_STOP else WRITE
    rule = "rebalance.all-stopped" if run.phase is WAIT_STOP else "rebalance.all-started"
    return GroupStep(evolve(group, run=evolve(run, phase=after, pending=pending)), rule)


def is_awaited(run: PushRebalance, response: ConsumerResponse, dialect: PushDialect) -> bool:
    """Whether the response counts for the phase that the rebalance is in."""
    if run.phase not in (WAIT_STOP, WAIT_START):
        return False
    if isinstance(response, PingResponse):
        # PUSH-H14: without offsets it has the bytes of a successful StartResponse.
        return not dialect.types_responses and not response.offsets and run.phase is WAIT_START
    if dialect.numbers_attempts and response.attempt != run.attempt:
        return False
    if isinstance(response, StartResponse) and response.error:
        return False
    return isinstance(response, StopResponse if run.phase is WAIT_STOP else StartResponse)


def time_out_wait(group: PushGroup, max_retries: int, dialect: PushDialect) -> GroupStep | None:
    """The wait for responses has timed out: try again, or give up (step 5)."""
    run = group.run
    if run is None or run.phase not in (WAIT_STOP, WAIT_START):
        return None
    return fail_attempt(group, run, max_retries, dialect)


def fail_attempt(group: PushGroup, run: PushRebalance, max_retries: int, dialect: PushDialect) -> GroupStep:
    """The attempt has failed: one more, unless the retries are used up."""
    if run.retries < max_retries:
        again = PushRebalance(COMPUTE, run.retries + 1)
        return GroupStep(evolve(group, run=again), "rebalance.retried")
    if not dialect.releases_on_failure:
        return GroupStep(evolve(group, run=None), "rebalance.failed", ends_thread=True)
    waits = bool(group.members)
    left = evolve(group, run=None, rebalancing=waits, changed=False)
    return GroupStep(left, "rebalance.released", requests=int(waits))


def record_owners(group: PushGroup, max_retries: int, dialect: PushDialect) -> GroupStep | None:
    """Write the new owners to ZooKeeper (step 5). Repaired: only if every registration of the attempt is a member."""
    run = in_phase(group, WRITE)
    if run is None:
        return None
    gone = [one for one in run.shares if not group.has(one.consumer, one.number)]
    if dialect.numbers_registrations and gone:
        return fail_attempt(group, run, max_retries, dialect)
    done = evolve(group, run=evolve(run, phase=RESET), completed=run.shares)
    return GroupStep(done, "rebalance.recorded", owners=run.owners)


def reset_bit(group: PushGroup) -> GroupStep | None:
    """The rebalance has succeeded: clear the bit, or go on where a change was remembered."""
    if in_phase(group, RESET) is None:
        return None
    again = group.changed and bool(group.members)
    done = evolve(group, run=None, rebalancing=again, changed=False)
    return GroupStep(done, "rebalance.again" if again else "rebalance.finished", requests=int(again))


def in_phase(group: PushGroup, phase: RebalancePhase) -> PushRebalance | None:
    """The rebalance under way if it is in this phase."""
    return group.run if group.run is not None and group.run.phase is phase else None


def registrations(shares: Iterable[Share]) -> frozenset[Registration]:
    """Whose shares these are."""
    return frozenset((one.consumer, one.number) for one in shares)
