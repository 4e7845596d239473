"""The responses of a group without members, given before the core is asked."""

from fencepost.model.classic.core.state import (
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Output,
    Phase,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.errors import Error


def empty_group_step(group: Group, request: SyncRequest | HeartbeatRequest) -> Step | None:
    """Before the core is asked: a group without members knows nobody (SYNC-02, HB-02)."""
    if group.phase != Phase.EMPTY:
        return None
    if isinstance(request, SyncRequest):
        return Step(group, (Output(request.handle, SyncResponse(Error.UNKNOWN_MEMBER_ID)),), "sync.empty")
    return Step(group, (Output(request.handle, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)),), "heartbeat.empty")
