"""A source operator: its client, the queue between its threads, and what drains, checkpoints and resets do to it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.controller import (
    UNSOUGHT,
    Names,
    Offsets,
    OperatorCheckpoint,
    Record,
    keys_of,
    known_offsets,
    lay_over,
    no_offsets,
    put_offset,
)
from fencepost.model.region.settings import RegionDialect


class ClientState(StrEnum):
    """The states of the page (Operator Function)."""

    SUBSCRIBED = "subscribed"
    RECORDS_FETCHED = "records fetched"
    RESET_PENDING = "reset pending"
    RESET_COMPLETE = "reset complete"


class Membership(StrEnum):
    """What the operator's Kafka client believes."""

    OUT = "out"
    JOINING = "joining"
    """It has sent JoinGroup and waits for its assignment."""
    MEMBER = "member"


class Polling(StrEnum):
    """How the event thread polls."""

    OFF = "off"
    THROTTLED = "throttled"
    FULL = "full"


Notice = tuple[int, Offsets]
"""A notification that the merge of a checkpoint is complete, with the map."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator has in its memory: nothing of it outlives its process."""

    positions: Offsets
    """Of the Kafka client: the next offset to fetch of each assigned partition."""
    offsets: Offsets
    """The offset manager: the offset after the last submitted tuple of each partition, or the position sought."""
    seek_map: Offsets
    state: ClientState = ClientState.SUBSCRIBED
    membership: Membership = Membership.OUT
    queue: tuple[Record, ...] = ()
    drained: tuple[Record, ...] = ()
    """The drain buffer."""
    hand: Record | None = None
    """The message that the process thread has taken and not submitted."""
    polling: Polling = Polling.FULL
    is_drained: bool = False
    notice: Notice | None = None
    is_map_old: bool = False
    """REGION-H13: a checkpoint was completed since the seek map was made."""
    is_up: bool = True

    @property
    def assigned(self) -> tuple[int, ...]:
        """The partitions that the operator holds for its own: the keys of its offset manager."""
        return keys_of(self.offsets)


@fast_frozen
@dataclass(frozen=True, slots=True)
class OperatorStep:
    """What comes of a step: the operator, the rule, and what others have to do."""

    operator: Operator
    rule: str
    requests_reset: bool = False
    variables: Offsets | None = None
    """The control variables, if they change."""
    submitted: Record | None = None


RESET_OR_NEW = (ClientState.SUBSCRIBED, ClientState.RESET_COMPLETE)


def new_operator(partitions: int) -> Operator:
    """An operator that has subscribed (I4)."""
    nothing = no_offsets(partitions)
    return Operator(nothing, nothing, nothing)


def relaunch(operator: Operator) -> Operator:
    """An operator whose PE has come back: it polls only after its first reset (I5)."""
    return evolve(new_operator(len(operator.offsets)), polling=Polling.OFF)


def crash(operator: Operator) -> Operator:
    """The PE is gone with everything in it."""
    return evolve(relaunch(operator), is_up=False)


def request_reset_from(operator: Operator) -> OperatorStep:
    """Clear the queue, stop polling, request a reset in force mode and wait for it (R2)."""
    pending = evolve(operator, queue=(), polling=Polling.OFF, state=ClientState.RESET_PENDING)
    return OperatorStep(pending, "revoke.requests-reset", requests_reset=True)


def on_revoked(operator: Operator) -> OperatorStep:
    """onPartitionsRevoked for everything, or onPartitionsLost (R1 to R3); the client joins again."""
    joining = evolve(operator, positions=no_offsets(len(operator.positions)), membership=Membership.JOINING)
    if operator.state in RESET_OR_NEW:
        return OperatorStep(joining, "revoke.ignored")
    if operator.state is ClientState.RESET_PENDING:
        return OperatorStep(joining, "revoke.pending")
    return request_reset_from(joining)


def on_assigned(
    operator: Operator,
    partitions: tuple[int, ...],
    variables: Offsets,
    dialect: RegionDialect,
    starts: Offsets | None = None,
) -> OperatorStep:
    """onPartitionsAssigned after a revocation of everything (A1 to A3). `starts` are the start positions, 0 if None."""
    every = range(len(operator.offsets))
    unsought = tuple(UNSOUGHT if one in partitions else None for one in every)
    kept = tuple(operator.offsets[one] if one in partitions else None for one in every)
    member = evolve(operator, membership=Membership.MEMBER, positions=unsought, offsets=lay_over(unsought, kept))
    if operator.state is ClientState.RECORDS_FETCHED:
        # No revocation came before (H09): nothing says what to do.
        if dialect.assigns_eagerly:
            return request_reset_from(member)
        return OperatorStep(member, "assign.no-rule")
    if operator.state is ClientState.RESET_PENDING:
        return OperatorStep(member, "assign.pending")
    if dialect.outdates_seek_map and operator.is_map_old and partitions:
        return request_reset_from(member)
    found, made = start_offsets(operator.seek_map, variables, partitions, starts)
    known = lay_over(found, operator.seek_map) if dialect.checkpoints_seek_map else operator.seek_map
    sought = evolve(member, positions=found, offsets=found, seek_map=known)
    return OperatorStep(sought, "assign.sought", variables=None if made == variables else made)


def on_added(operator: Operator, added: tuple[int, ...]) -> OperatorStep:
    """A cooperative onPartitionsAssigned, which names new partitions alone (H09): A1 takes the others for gone. The
    client goes on with what it had, and begins a partition that nobody sought where the log begins."""
    every = range(len(operator.offsets))
    offsets = tuple(
        (UNSOUGHT if operator.offsets[one] is None else operator.offsets[one]) if one in added else None
        for one in every
    )
    positions = tuple(0 if one in added else operator.positions[one] for one in every)
    return OperatorStep(evolve(operator, offsets=offsets, positions=positions), "assign.added")


def start_offsets(
    seek_map: Offsets, variables: Offsets, partitions: tuple[int, ...], starts: Offsets | None = None
) -> tuple[Offsets, Offsets]:
    """Where the partitions are sought, and the control variables after that (A2): the seek map, else the variable, else
    the start position, which goes into a new variable."""
    found, made = no_offsets(len(variables)), variables
    for partition in partitions:
        offset = seek_map[partition]
        if offset is None:
            if made[partition] is None:
                made = put_offset(made, partition, 0 if starts is None else starts[partition])
            offset = made[partition]
        found = put_offset(found, partition, offset)
    return found, made


def fetch(operator: Operator, partition: int) -> OperatorStep:
    """One record of a poll: into the queue, or dropped by an operator that waits for a reset (P2, P3)."""
    offset = operator.positions[partition] or 0
    further = evolve(operator, positions=put_offset(operator.positions, partition, offset + 1))
    if operator.state is ClientState.RESET_PENDING:
        return OperatorStep(further, "poll.dropped")
    queue = (*operator.queue, (partition, offset))
    return OperatorStep(evolve(further, queue=queue, state=ClientState.RECORDS_FETCHED), "poll.queued")


def take_message(operator: Operator, permit: bool, dialect: RegionDialect) -> OperatorStep | None:
    """The process thread takes a message: before it has a permit, repaired with one (P6)."""
    if operator.hand is not None or not operator.queue or (dialect.takes_with_permit and not permit):
        return None
    polling = Polling.FULL if permit and operator.polling is Polling.THROTTLED else operator.polling
    taken = evolve(operator, hand=operator.queue[0], queue=operator.queue[1:], polling=polling)
    return OperatorStep(taken, "process.taken")


def submit_message(operator: Operator, permit: bool, dialect: RegionDialect) -> OperatorStep | None:
    """Submit the message in hand, and keep the offset after it (P7).

    A permit that was got before the message was taken is still held.
    """
    if operator.hand is None or not (permit or dialect.takes_with_permit):
        return None
    partition, offset = operator.hand
    idle = evolve(operator, hand=None)
    if dialect.drops_late_messages:
        is_late = operator.offsets[partition] is None or operator.state is ClientState.RESET_PENDING
        if is_late or operator.membership is not Membership.MEMBER:
            return OperatorStep(idle, "process.dropped")
    after = evolve(idle, offsets=put_offset(operator.offsets, partition, offset + 1))
    return OperatorStep(after, "process.submitted", submitted=operator.hand)


# Drain, checkpoint and reset at an operator (page, Drain processing, Reset processing).


def drain(operator: Operator) -> OperatorStep:
    """Stop polling and put the queue aside (D1, D2). The caller commits `offsets_to_commit`."""
    aside = evolve(operator, polling=Polling.OFF, drained=operator.queue, queue=(), is_drained=True)
    return OperatorStep(aside, "drain.drained")


def offsets_to_commit(operator: Operator) -> Offsets:
    """What a drain commits in one request (D3)."""
    return known_offsets(operator.offsets)


def is_fit_for_checkpoint(operator: Operator, is_member: bool, dialect: RegionDialect) -> bool:
    """Whether the operator agrees to a checkpoint (H04, H05); `is_member` says whether the group still has it."""
    holds = operator.membership is Membership.MEMBER
    if dialect.vetoes_checkpoint:
        if operator.state is ClientState.RESET_PENDING or UNSOUGHT in operator.offsets:
            return False
        if not holds and operator.assigned:
            return False
    return not (dialect.checks_membership and holds and not is_member)


def write_checkpoint(operator: Operator, name: str, names: Names, dialect: RegionDialect) -> OperatorCheckpoint:
    """The operator's part of a checkpoint (K1)."""
    base = operator.seek_map if dialect.checkpoints_seek_map else no_offsets(len(operator.offsets))
    return OperatorCheckpoint(name, names, known_offsets(operator.offsets), base)


def resume(operator: Operator) -> OperatorStep:
    """The checkpoint is complete: put the drain buffer back and poll (K2)."""
    queue = (*operator.drained, *operator.queue)
    running = evolve(
        operator, queue=queue, drained=(), polling=Polling.FULL, is_drained=False, notice=None, is_map_old=True
    )
    return OperatorStep(running, "checkpoint.resumed")


def reset_to(
    operator: Operator,
    seek_map: Offsets,
    variables: Offsets,
    dialect: RegionDialect,
    rule: str,
    starts: Offsets | None = None,
) -> OperatorStep:
    """Stop polling, clear buffer and queue, seek what is assigned, poll throttled (X1, X4). `starts` are the start
    positions, 0 if None."""
    found, made = start_offsets(seek_map, variables, keys_of(operator.positions), starts)
    after = evolve(
        operator,
        seek_map=lay_over(found, seek_map) if dialect.checkpoints_seek_map else seek_map,
        positions=found,
        offsets=found,
        queue=(),
        drained=(),
        polling=Polling.THROTTLED,
        state=ClientState.RESET_COMPLETE,
        is_drained=False,
        is_map_old=False,
    )
    return OperatorStep(after, rule, variables=None if made == variables else made)


def reset_to_initial(
    operator: Operator, variables: Offsets, dialect: RegionDialect, starts: Offsets | None = None
) -> OperatorStep:
    """Seek the control variables (X1); repaired, know those of all partitions."""
    assigned = keys_of(operator.positions)
    every = (
        variables
        if dialect.checkpoints_seek_map
        else tuple(offset if partition in assigned else None for partition, offset in enumerate(variables))
    )
    return reset_to(operator, every, variables, dialect, "reset.initial", starts)


def reset_to_merge(
    operator: Operator, checkpoint: int, variables: Offsets, dialect: RegionDialect, starts: Offsets | None = None
) -> OperatorStep | None:
    """Seek the merged map, if its notification has come (X4)."""
    if operator.notice is None or operator.notice[0] != checkpoint:
        return None
    merged = operator.notice[1]
    known = lay_over(variables, merged) if dialect.checkpoints_seek_map else merged
    return reset_to(operator, known, variables, dialect, "reset.merged", starts)


# The metrics of an operator (page, Partition assignment, Drain processing).


@fast_frozen
@dataclass(frozen=True, slots=True)
class DrainTimes:
    """The time of the last drain and the longest one, in milliseconds."""

    last_ms: int = 0
    longest_ms: int = 0


def count_drain(times: DrainTimes, took_ms: int) -> DrainTimes:
    """The times after a drain."""
    return DrainTimes(took_ms, max(times.longest_ms, took_ms))


def assignment_metrics(partitions: Iterable[tuple[str, int]]) -> tuple[int, int]:
    """The numbers of assigned partitions and of their topics."""
    held = set(partitions)
    return len(held), len({topic for topic, _ in held})
