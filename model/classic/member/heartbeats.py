"""The background worker and polls: heartbeats, session, poll interval, join procedure (member.md 1.2, 3)."""

from fencepost.model.classic.core.state import HeartbeatRequest, HeartbeatResponse, LeaveRequest
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    CallbackPlace,
    Client,
    ClientContext,
    Closing,
    Problem,
    SentKind,
    Unanswered,
    end_poll,
    next_handle,
)
from fencepost.model.classic.member.commits import (
    commit_periodically,
    complete_rebalance,
    is_exchanging,
    lost_partitions,
    notice_changes,
    prepare,
    send_waiting_commits,
)
from fencepost.model.classic.member.joining import send_join
from fencepost.model.classic.member.lookup import (
    COORDINATOR_MOVED,
    fetch_offsets,
    find_coordinator,
    lose_coordinator,
    send_request,
    tell_reports,
)
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import MAX_REASON_LENGTH
from fencepost.model.classic.member.step import ClientStep, Poll, RaiseFailure, SendRequest, then
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
    # The response to SyncGroup that a poll would have taken is dropped: nothing is waited for.
    member = client.member if client.synced is None else core.disconnect(client.member).member
    step = core.leave(member, handle)
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


# --- A poll: the join procedure as far as it goes, then auto-commit and positions (member.md 1.2, 4.3).


def poll(client: Client, given: Poll, context: ClientContext) -> ClientStep:
    """The application polls."""
    if client.closing is not Closing.OPEN:
        return ClientStep(client, (RaiseFailure(Problem.CLOSED),), ("client.poll.closed",))
    if client.callback is not None:
        return ClientStep(client, (), ("client.poll.in-callback",))
    clocks = evolve(
        client.clocks,
        poll=context.now + given.timeout + client.settings.max_poll_interval,
        polling_until=context.now + given.timeout if given.timeout else 0,
    )
    told = tell_reports(evolve(client, clocks=clocks))
    return then(ClientStep(told.client, told.outputs, ("client.poll",)), context, continue_poll)


def is_polling(client: Client, context: ClientContext) -> bool:
    """Whether a poll is under way that no callback interrupts."""
    return client.callback is None and context.now < client.clocks.polling_until


def continue_poll(client: Client, context: ClientContext) -> ClientStep:
    """What a poll does, as far as it goes without a response."""
    failure = Error.FENCED_INSTANCE_ID if client.is_fenced else client.failure
    if failure is not None:
        raised = end_poll(evolve(client, failure=None), context)
        return ClientStep(raised, (RaiseFailure(failure),), ("client.poll.raise",))
    if client.is_manual:
        return then(
            ClientStep(client), context, find_if_needed, send_waiting_commits, commit_periodically, fetch_offsets
        )
    if not client.topics and client.pattern is None:
        return ClientStep(client, (), ("client.poll.no-subscription",))
    step = then(ClientStep(client), context, find_coordinator, send_waiting_commits, notice_changes)
    if step.client.coordinator is None:
        return step
    if step.client.member.rejoins or is_exchanging(step.client) or lost_partitions(step.client):
        return then(step, context, rebalance)
    return then(step, context, send_heartbeat_in_poll, commit_periodically, fetch_offsets)


def find_if_needed(client: Client, context: ClientContext) -> ClientStep:
    """FindCoordinator of a client that assigns its partitions itself, if it asks the coordinator for something."""
    wants = client.commits or any(one.offset is None for one in client.positions) or client.settings.auto_commit
    return find_coordinator(client, context) if wants else ClientStep(client)


def rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The join procedure as far as it goes: prepare, send JoinGroup, wait, complete."""
    if client.synced is not None and not lost_partitions(client):
        return complete_rebalance(client, context)
    if is_exchanging(client) and not lost_partitions(client):
        return ClientStep(client, (), ("client.join.waiting",))
    step = prepare(client, context)
    if step.client.callback is not None or not step.client.is_prepared:
        return step
    if is_exchanging(step.client):
        return ClientStep(step.client, step.outputs, (*step.rules, "client.join.waiting"))
    return then(step, context, send_join)


def enforce_rebalance(client: Client, reason: str) -> ClientStep:
    """The application asks for a rebalance, which the next poll begins (MEMBER-37)."""
    step = core.ask_rejoin(client.member)
    asked = evolve(client, member=step.member, reason=reason or "the application asked for a rebalance")
    return ClientStep(asked, (), (step.rule,))
