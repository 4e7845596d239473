"""What comes of a request whose record the log does not take (coordinator.md 5.4).

The answer is an error. What was changed for it is undone; but a write that was given up may have reached the log all
the same (`taken`), and then counts from the next loading on, or at once where nothing else holds it (LAT-16).
"""

from collections.abc import Mapping
from enum import Enum

from fencepost.model.classic.coordinator.dispatch import absorbed, handle
from fencepost.model.classic.coordinator.state import Cluster, Outcome, Reply, World, answer
from fencepost.model.classic.core.join_phase import prepare
from fencepost.model.classic.core.member_table import find, find_instance, rearm, with_slot
from fencepost.model.classic.core.state import Context, Dialect, Holder, JoinAnswer, Step, SyncAnswer
from fencepost.model.classic.messages.requests import (
    Commit,
    Delete,
    DeleteOffsets,
    Fetch,
    Join,
    Request,
    Sync,
    TransactionalCommit,
    handle_of,
)
from fencepost.model.classic.messages.responses import Answer, Fetched, PartitionErrors, Single
from fencepost.model.errors import Error
from fencepost.model.frozen import alter


class Failure(Enum):
    """Why a record is not taken."""

    UNAVAILABLE = "topic or partition unknown, or too few replicas"
    DISPLACED = "not the leader any more, or the storage fails"
    TOO_LARGE = "the record is too large"
    TIMED_OUT = "not replicated in time"


def failure_error(failure: Failure, request: Request, dialect: Dialect) -> Error:
    """The error that the request is answered with."""
    unsteady = isinstance(request, Fetch)  # it waits for writes of others, and is not to see 15
    match failure:
        case Failure.UNAVAILABLE:
            return Error.NOT_COORDINATOR if unsteady else Error.COORDINATOR_NOT_AVAILABLE
        case Failure.DISPLACED:
            return Error.NOT_COORDINATOR
        case Failure.TOO_LARGE:
            told = isinstance(request, Commit) and not dialect.oversized_is_unexpected
            return Error.INVALID_COMMIT_OFFSET_SIZE if told else Error.UNKNOWN_SERVER_ERROR
        case Failure.TIMED_OUT:
            if unsteady:
                return Error.NOT_COORDINATOR
            if dialect.late_replication_is_unavailable:
                return Error.COORDINATOR_NOT_AVAILABLE
            return Error.REBALANCE_IN_PROGRESS if isinstance(request, Join | Sync) else Error.REQUEST_TIMED_OUT


def fail(
    world: World, request: Request, failure: Failure, context: Context, cluster: Cluster, *, taken: bool = False
) -> Outcome | None:
    """Handle a request whose write fails; None if it writes nothing in this world."""
    done = handle(world, request, context, cluster)
    error = failure_error(failure, request, context.dialect)
    match request:
        case Sync() if done.rule == "sync.leader":
            return without_assignment(world, done, request, error, context, taken=taken)
        case Join() if done.rule == "join.replace.stable":
            return without_replacement(world, done, request, error, context, taken=taken)
        case Join() if world.group is None and done.world.group is not None and context.dialect.new_group_is_stored:
            after = alter(world, stored=done.world.stored) if taken else world
            return answer(after, request, JoinAnswer(error), "failure.creation")
        case Commit() | TransactionalCommit():
            return without_offsets(world, done, request, error, taken=taken)
        case Delete() if done.rule == "delete.empty":
            return answer(done.world if taken else world, request, Single(error), "failure.deletion")
        case DeleteOffsets() if (done.world.offsets, done.world.pending) != (world.offsets, world.pending):
            after = done.world if taken else world
            return answer(after, request, PartitionErrors(error=error), "failure.offset-deletion")
        case Fetch() if request.require_stable and not taken:
            return answer(world, request, Fetched(error=error), "failure.stable-fetch")
        case _:
            return None


def without_assignment(
    world: World, done: Outcome, request: Sync, error: Error, context: Context, *, taken: bool
) -> Outcome:
    """The assignment is lost: all who wait for it get the error, and the next round begins (coordinator.md 2.3)."""
    group = world.group
    assert group is not None
    index = find(group, request.core.member, Holder.MEMBER)
    slot = group.slots[index]
    waiting = with_slot(group, index, alter(slot, sync=request.core.handle, unsynced=False))
    begun, outputs = prepare(waiting, context)
    told = tuple(
        alter(each, answer=SyncAnswer(error)) if isinstance(each.answer, SyncAnswer) else each for each in outputs
    )
    after = absorbed(world, Step(begun, told, "failure.assignment"), context.now)
    return alter(after, world=alter(after.world, stored=done.world.stored)) if taken else after


def without_replacement(
    world: World, done: Outcome, request: Join, error: Error, context: Context, *, taken: bool
) -> Outcome:
    """The instance goes on under its old id, whose parked requests were refused for good (coordinator.md 2.2)."""
    group = world.group
    assert group is not None
    index = find_instance(group, request.core.instance)
    restored = with_slot(group, index, rearm(alter(group.slots[index], join=0, sync=0), context.now))
    told = JoinAnswer(error, group.generation, group.protocol_type, group.protocol, group.leader)
    fenced = tuple(reply for reply in done.replies if reply.handle != request.core.handle)
    stored = done.world.stored if taken else world.stored
    after = alter(world, group=restored, stored=stored)
    return Outcome(after, (*fenced, Reply(request.core.handle, told)), "failure.replacement")


REACHED = frozenset({Error.NONE, Error.OFFSET_METADATA_TOO_LARGE})
"""What the partitions of an accepted commit get that the coordinator was asked about."""


def without_offsets(
    world: World, done: Outcome, request: Commit | TransactionalCommit, error: Error, *, taken: bool
) -> Outcome | None:
    """No offset is stored; the member was heard all the same."""
    (reply,) = done.replies
    errors = errors_of(reply.answer)
    if Error.NONE not in errors.values():
        return None
    told = PartitionErrors({where: error if each in REACHED else each for where, each in errors.items()})
    after = alter(world, group=done.world.group) if world.group is not None else world
    return Outcome(done.world if taken else after, (Reply(handle_of(request), told),), "failure.commit")


def errors_of(reply: Answer) -> Mapping[tuple[str, int], Error]:
    """The errors by partition."""
    assert isinstance(reply, PartitionErrors)
    return reply.errors
