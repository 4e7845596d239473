"""The background worker: heartbeats, the client's view of its session, and the poll interval (member.md 3)."""

from fencepost.model.classic.core.state import HeartbeatRequest, HeartbeatResponse, LeaveRequest
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    CallbackPlace,
    Client,
    ClientContext,
    Closing,
    SentKind,
    Unanswered,
    next_handle,
)
from fencepost.model.classic.member.lookup import COORDINATOR_MOVED, find_coordinator, lose_coordinator, send_request
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import MAX_REASON_LENGTH
from fencepost.model.classic.member.step import ClientStep, SendRequest, then
from fencepost.model.classic.messages import Heartbeat, LeaveGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve

POLL_TIMEOUT_REASON = "consumer poll timeout has expired."


def work(client: Client, context: ClientContext) -> ClientStep:
    """One cycle of the worker, with its checks in their order (member.md 3.1)."""
    if client.is_manual or client.closing in (Closing.COMMITTING, Closing.CLOSED) or is_closing(client):
        return ClientStep(client, (), ("client.worker.off",))
    if client.member.state not in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE):
        return ClientStep(client, (), ("client.worker.idle",))
    if client.settings.dialect.heartbeats_in_poll:
        return ClientStep(client, (), ("client.worker.in-poll",))
    if client.coordinator is None:
        return then(ClientStep(client, (), ("client.worker.lookup",)), context, find_coordinator)
    if context.now >= client.clocks.session:
        lost = lose_coordinator(client, context)
        return ClientStep(lost.client, lost.outputs, ("client.worker.session-expired", *lost.rules))
    if context.now >= client.clocks.poll:
        return leave_group(client, POLL_TIMEOUT_REASON, "client.worker.poll-expired")
    if context.now < client.clocks.heartbeat:
        return ClientStep(client, (), ("client.worker.sleep",))
    return send_heartbeat(client, context)


def is_closing(client: Client) -> bool:
    """Whether the last callback before the end runs."""
    callback = client.callback
    return callback is not None and callback.place is CallbackPlace.LEAVE and client.closing is Closing.CLOSING


def send_heartbeat(client: Client, context: ClientContext) -> ClientStep:
    """Heartbeat, as the proved member sends it: none in UNJOINED and PREPARING_REBALANCE (HBT-04)."""
    handle = next_handle(client)
    step = core.heartbeat(client.member, handle)
    if not step.sent_requests:
        return ClientStep(client, (), (step.rule,))
    request = step.sent_requests[0].request
    assert isinstance(request, HeartbeatRequest)
    due = context.now + client.settings.heartbeat_interval
    client = evolve(client, clocks=evolve(client.clocks, heartbeat=due))
    deadline = context.now + client.settings.request_timeout
    sent = Unanswered(handle, SentKind.HEARTBEAT, deadline, request)
    return send_request(client, Heartbeat(client.settings.group, request), sent, step.rule)


def send_heartbeat_in_poll(client: Client, context: ClientContext) -> ClientStep:
    """The heartbeat of a poll that is due, as before KIP-62."""
    if not client.settings.dialect.heartbeats_in_poll or context.now < client.clocks.heartbeat:
        return ClientStep(client)
    if client.member.state != MemberState.STABLE:
        return ClientStep(client)
    return send_heartbeat(client, context)


def ask_heartbeat(client: Client, context: ClientContext) -> ClientStep:
    """The application asks for a heartbeat by itself, a method that KIP-41 rejected."""
    if client.coordinator is None:
        return find_coordinator(client, context)
    step = send_heartbeat(client, context)
    return ClientStep(step.client, step.outputs, ("client.heartbeat.asked", *step.rules))


def leave_group(client: Client, reason: str, rule: str) -> ClientStep:
    """The membership ends; LeaveGroup goes out if the member is dynamic and the coordinator is known (3.4)."""
    handle = next_handle(client)
    step = core.leave(client.member, handle)
    gone = evolve(client, member=step.member, is_prepared=False, is_committed=False, synced=None, last_handle=handle)
    rules = (rule, step.rule)
    sent = [one.request for one in step.sent_requests if one.when]
    if not sent or client.coordinator is None:
        return ClientStep(gone, (), (*rules, "client.leave.silent"))
    request = sent[0]
    assert isinstance(request, LeaveRequest)
    message = LeaveGroup(client.settings.group, request)
    return ClientStep(gone, (SendRequest(handle, message, reason[:MAX_REASON_LENGTH]),), (*rules, "client.leave.send"))


def on_heartbeat_response(
    client: Client, request: HeartbeatRequest, response: HeartbeatResponse, context: ClientContext
) -> ClientStep:
    """Heartbeat is answered (member.md 1.5)."""
    error = response.error
    if error in COORDINATOR_MOVED:
        moved = lose_coordinator(client, context)
        return ClientStep(moved.client, moved.outputs, ("client.heartbeat.moved", *moved.rules))
    step = core.on_heartbeat_response(client.member, request, response)
    told = evolve(client, member=step.member)
    if step.rule == "member.heartbeat.rebalance":
        reason = client.reason or "the group is already rebalancing"
        return ClientStep(extend_session(evolve(told, reason=reason), context), (), (step.rule,))
    if step.rule == "member.late-answer":
        return ClientStep(extend_session(client, context), (), (step.rule,))
    if step.rule == "member.heartbeat.fenced":
        reset = evolve(told, is_prepared=False, failure=Error.FENCED_INSTANCE_ID)
        return ClientStep(reset, (), (step.rule,))
    if step.rule != "member.heartbeat.answered":
        return ClientStep(evolve(told, is_prepared=False), (), (step.rule,))
    if error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        rule = "member.heartbeat.answered" if error == Error.NONE else "client.heartbeat.already-joining"
        return ClientStep(extend_session(client, context), (), (rule,))
    retry = context.now + min(client.settings.retry_backoff, client.settings.heartbeat_interval)
    return ClientStep(evolve(client, clocks=evolve(client.clocks, heartbeat=retry)), (), ("client.heartbeat.failed",))


def extend_session(client: Client, context: ClientContext) -> Client:
    """The client whose session timer starts anew."""
    session = context.now + client.settings.session_timeout
    return evolve(client, clocks=evolve(client.clocks, session=session))
