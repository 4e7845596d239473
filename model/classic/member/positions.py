"""Positions: where a partition starts that was just assigned, and how a position moves (member.md 4.1, 4.5)."""

from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    ListOffsets,
    ListOffsetsResponse,
    Position,
    Problem,
    SentKind,
    Unanswered,
    end_poll,
    is_returnable,
    next_handle,
    position_of,
)
from fencepost.model.classic.member.lookup import COORDINATOR_MOVED, add_unanswered, lose_coordinator, send_request
from fencepost.model.classic.member.settings import ResetPolicy
from fencepost.model.classic.member.step import ClientStep, PausePartition, ReturnRecords, Seek, SendRequest
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import NO_OFFSET, OffsetFetch, OffsetFetchResponse, Partition

OFFSET_FETCH_VERSION = 7
"""The first version that can ask for stable offsets (KIP-447)."""
RETRIED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNSTABLE_OFFSET_COMMIT, Error.REQUEST_TIMED_OUT})
"""Errors of an OffsetFetch that is repeated without looking for the coordinator."""


def with_position(client: Client, changed: Position) -> Client:
    """The client with this position in the place of that of the partition."""
    positions = tuple(changed if one.partition == changed.partition else one for one in client.positions)
    return evolve(client, positions=positions)


def fetch_offsets(client: Client, context: ClientContext) -> ClientStep:
    """OffsetFetch of the partitions that have no position and were not asked for (MCOMMIT-19)."""
    missing = tuple(one for one in client.positions if one.offset is None and not one.asked)
    if not missing:
        return ClientStep(client)
    if client.coordinator is None or context.now < client.clocks.offsets_retry:
        return ClientStep(client, (), ("client.offsets.backoff",))
    handle = next_handle(client)
    for one in missing:
        client = with_position(client, evolve(one, asked=handle))
    partitions = tuple(one.partition for one in missing)
    request = OffsetFetch(client.settings.group, handle, OFFSET_FETCH_VERSION, partitions, True)
    sent = Unanswered(handle, SentKind.FETCH_OFFSETS, context.now + client.settings.request_timeout)
    return send_request(client, request, sent, "client.offsets.fetch")


def forget_asked(client: Client, handle: int) -> Client:
    """The client whose partitions wait no longer for the response to this request."""
    positions = tuple(evolve(one, asked=0) if one.asked == handle else one for one in client.positions)
    return evolve(client, positions=positions)


def retry_offsets(client: Client, handle: int, context: ClientContext) -> Client:
    """The client that asks for offsets once more, after a backoff."""
    retry = context.now + client.settings.retry_backoff
    return evolve(forget_asked(client, handle), clocks=evolve(client.clocks, offsets_retry=retry))


def on_offsets(client: Client, handle: int, response: OffsetFetchResponse, context: ClientContext) -> ClientStep:
    """OffsetFetch is answered."""
    if response.error in COORDINATOR_MOVED:
        step = lose_coordinator(retry_offsets(client, handle, context), context)
        return ClientStep(step.client, step.outputs, ("client.offsets.moved", *step.rules))
    if response.error in RETRIED:
        return ClientStep(retry_offsets(client, handle, context), (), ("client.offsets.retry",))
    if response.error != Error.NONE:
        raised = evolve(forget_asked(client, handle), failure=response.error)
        return ClientStep(raised, (), ("client.offsets.fatal",))
    asked = tuple(one for one in client.positions if one.asked == handle)
    if not asked:
        return ClientStep(client, (), ("client.offsets.late",))
    if any(response.offsets.get(one.partition, NO_OFFSET) is None for one in asked):
        return ClientStep(retry_offsets(client, handle, context), (), ("client.offsets.unstable",))
    uncommitted: list[Partition] = []
    for one in asked:
        offset = response.offsets.get(one.partition) or NO_OFFSET
        if offset.offset < 0:
            uncommitted.append(one.partition)
        else:
            client = with_position(client, evolve(one, offset=offset.offset, asked=0))
    step = ClientStep(client, (), ("client.offsets.committed",))
    return reset_positions(step, tuple(uncommitted), context) if uncommitted else step


def reset_positions(step: ClientStep, partitions: tuple[Partition, ...], context: ClientContext) -> ClientStep:
    """ListOffsets of partitions without a committed offset; the policy NONE has the next poll raise."""
    client = step.client
    settings = client.settings
    handle = 0 if settings.reset_policy is ResetPolicy.NONE else next_handle(client)
    for one in client.positions:
        if one.partition in partitions:
            client = with_position(client, evolve(one, asked=handle))
    if not handle:
        return ClientStep(
            evolve(client, failure=Problem.NO_OFFSET), step.outputs, (*step.rules, "client.offsets.no-policy")
        )
    sent = Unanswered(handle, SentKind.LIST_OFFSETS, context.now + settings.request_timeout)
    request = ListOffsets(handle, partitions, settings.reset_policy.value)
    outputs = (*step.outputs, SendRequest(handle, request))
    return ClientStep(add_unanswered(client, sent), outputs, (*step.rules, "client.offsets.reset"))


def on_starts(client: Client, handle: int, response: ListOffsetsResponse) -> ClientStep:
    """ListOffsets is answered; positions that have changed since are left as they are."""
    for partition, offset in response.offsets:
        position = position_of(client, partition)
        if position is not None and position.asked == handle:
            client = with_position(client, evolve(position, offset=offset, asked=0))
    return ClientStep(forget_asked(client, handle), (), ("client.offsets.start",))


def seek(client: Client, given: Seek) -> ClientStep:
    """The application sets a position; what was asked about the partition is of no use any more."""
    position = position_of(client, given.partition)
    if position is None:
        return ClientStep(client, (), ("client.position.not-assigned",))
    return ClientStep(
        with_position(client, evolve(position, offset=given.offset, asked=0)), (), ("client.position.seek",)
    )


def pause(client: Client, given: PausePartition) -> ClientStep:
    """The application pauses or resumes a partition."""
    position = position_of(client, given.partition)
    if position is None:
        return ClientStep(client, (), ("client.position.not-assigned",))
    return ClientStep(
        with_position(client, evolve(position, is_paused=given.is_paused)), (), ("client.position.pause",)
    )


def return_records(client: Client, given: ReturnRecords, context: ClientContext) -> ClientStep:
    """A poll returns records, and the position moves (POLL-10, -11, -13, -19); others are dropped."""
    position = position_of(client, given.partition)
    if position is None or not is_returnable(client, given.partition) or position.offset != given.first:
        return ClientStep(client, (), ("client.records.dropped",))
    moved = with_position(client, evolve(position, offset=given.following))
    return ClientStep(end_poll(moved, context), (), ("client.records.returned",))
