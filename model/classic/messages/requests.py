"""The requests of members of a classic group, beside those that every group gets, and all responses to them."""

from dataclasses import dataclass

from fencepost.model.classic.core.state import CoreResponse, HeartbeatRequest, JoinRequest, LeaveRequest, SyncRequest
from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.messages import GroupRequest, GroupResponse, OffsetCommit, TxnOffsetCommit


@fast_frozen
@dataclass(frozen=True, slots=True)
class JoinGroup:
    """JoinGroup as sent."""

    group: str
    core: JoinRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class SyncGroup:
    """SyncGroup as sent; `complete` is false from v5 if protocol type or name is null (SYNC-06). `failure` is the
    leader's reason why there is no assignment: only the proposal of client-side assignment has it."""

    group: str
    core: SyncRequest
    complete: bool
    failure: Error = Error.NONE


@fast_frozen
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat as sent."""

    group: str
    core: HeartbeatRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """LeaveGroup as sent."""

    group: str
    core: LeaveRequest


Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup | GroupRequest
Response = CoreResponse | GroupResponse


def handle_of(request: Request) -> int:
    """The handle that the answer to this request will carry."""
    if isinstance(request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit | TxnOffsetCommit):
        return request.core.handle
    return request.handle
