"""The reference client as one function: client and input in; client, outputs and rules out.

What the protocol decides is decided by the proved functions of `member.py`; the modules beside it add what safety does
not need. The application, the network and the clock are inputs, and so are all choices: when a poll happens, what the
listener does, when records are returned. Nothing here reads a clock or draws a number.
"""

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse, LeaveResponse, SyncResponse
from fencepost.model.classic.member.client import (
    CallbackPlace,
    Client,
    ClientContext,
    Closing,
    FindCoordinatorResponse,
    ListOffsetsResponse,
    SentKind,
    Unanswered,
)
from fencepost.model.classic.member.commits import (
    on_application_commit,
    on_commit_response,
    on_completion_callback,
    on_prepare_callback,
    send_waiting_commits,
)
from fencepost.model.classic.member.heartbeats import (
    ask_heartbeat,
    continue_poll,
    enforce_rebalance,
    is_polling,
    on_heartbeat_response,
    poll,
    work,
)
from fencepost.model.classic.member.joining import on_join_response, on_sync_response
from fencepost.model.classic.member.leaving import (
    assign_manually,
    close,
    continue_closing,
    on_leave_callback,
    receive_metadata,
    restart,
    subscribe,
    unsubscribe,
)
from fencepost.model.classic.member.lookup import (
    lookup_failed,
    on_disconnect,
    on_find_response,
    on_offsets,
    on_starts,
    pause,
    retry_offsets,
    return_records,
    seek,
    without_unanswered,
)
from fencepost.model.classic.member.step import (
    AskHeartbeat,
    AssignManually,
    ClientInput,
    ClientStep,
    Close,
    CommitOffsets,
    CoordinatorDisconnected,
    EnforceRebalance,
    ListenerReturned,
    MetadataArrived,
    PausePartition,
    Poll,
    ResponseArrived,
    Restart,
    ReturnRecords,
    Seek,
    Subscribe,
    TimePassed,
    Unsubscribe,
    join_steps,
    then,
)
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetFetchResponse, PartitionErrors

CONTINUES = (ResponseArrived, ListenerReturned, CoordinatorDisconnected, TimePassed)
"""The inputs after which a poll that is under way goes on."""


def handle_input(client: Client, given: ClientInput, context: ClientContext) -> ClientStep:
    """The step of a client on an input; a poll that is under way goes on after it."""
    step = take_input(client, given, context)
    if isinstance(given, CONTINUES):
        step = then(step, context, continue_closing)
        if is_polling(step.client, context) and not closes(step.client):
            step = then(step, context, continue_poll)
    return step


def closes(client: Client) -> bool:
    """Whether the client is closing or closed."""
    return client.closing is not Closing.OPEN


def take_input(client: Client, given: ClientInput, context: ClientContext) -> ClientStep:
    """The step of a client on an input, without what a poll does after it."""
    match given:
        case Poll():
            return poll(client, given, context)
        case ResponseArrived(handle, _):
            return take_response(client, handle, given, context)
        case TimePassed():
            return let_time_pass(client, context)
        case ListenerReturned(raised):
            return take_listener(client, raised, context)
        case CommitOffsets():
            return on_application_commit(client, given, context)
        case ReturnRecords():
            return return_records(client, given, context)
        case CoordinatorDisconnected():
            return on_disconnect(client, context)
        case MetadataArrived(topics):
            return receive_metadata(client, topics)
        case AskHeartbeat():
            return ask_heartbeat(client, context)
        case _:
            return take_request(client, given, context)


def take_request(client: Client, given: ClientInput, context: ClientContext) -> ClientStep:
    """The step on something that the application asks for now and then."""
    match given:
        case Subscribe():
            return subscribe(client, given)
        case AssignManually():
            return assign_manually(client, given)
        case EnforceRebalance(reason):
            return enforce_rebalance(client, reason)
        case Seek():
            return seek(client, given)
        case PausePartition():
            return pause(client, given)
        case Unsubscribe():
            return unsubscribe(client, context)
        case Close():
            return close(client, context)
        case Restart(settings):
            return restart(client, settings)
        case _:
            raise TypeError(f"{type(given).__name__} is no input of a client")


def take_listener(client: Client, raised: bool, context: ClientContext) -> ClientStep:
    """The callback that runs returns."""
    callback = client.callback
    if callback is None:
        return ClientStep(client, (), ("client.callback.none",))
    client = evolve(client, callback=None)
    if callback.place is CallbackPlace.PREPARE:
        return on_prepare_callback(client, callback.partitions, raised, context)
    if callback.place is CallbackPlace.LEAVE:
        return on_leave_callback(client, raised, context)
    return on_completion_callback(client, callback.kind, raised, context)


def take_response(client: Client, handle: int, given: ResponseArrived, context: ClientContext) -> ClientStep:
    """The response to an unanswered request; any other is late."""
    if isinstance(given.response, LeaveResponse):
        return ClientStep(client, (), ("client.leave.answered",))
    commit = next((commit for commit in client.commits if commit.handle == handle), None)
    if commit is not None and isinstance(given.response, PartitionErrors):
        return on_commit_response(client, commit, given.response, context)
    sent = next((request for request in client.unanswered if request.handle == handle), None)
    if sent is None:
        return ClientStep(client, (), ("client.response.late",))
    client = without_unanswered(client, handle)
    match given.response:
        case HeartbeatResponse() as response if sent.request is not None:
            return on_heartbeat_response(client, sent.request, response, context)
        case JoinResponse() as response:
            return on_join_response(client, handle, response, context)
        case SyncResponse() as response:
            return on_sync_response(client, handle, response, context)
        case FindCoordinatorResponse() as response:
            return then(on_find_response(client, response, context), context, send_waiting_commits)
        case OffsetFetchResponse() as response:
            return on_offsets(client, handle, response, context)
        case ListOffsetsResponse() as response:
            return on_starts(client, handle, response)
        case _:
            return ClientStep(client, (), ("client.response.late",))


def let_time_pass(client: Client, context: ClientContext) -> ClientStep:
    """Requests that took too long are given up, commits are repeated, and the worker does its cycle."""
    step = ClientStep(client)
    overdue = [request for request in client.unanswered if context.now >= request.deadline]
    for request in overdue:
        step = join_steps(step, give_up_request(step.client, request, context))
    late = [commit for commit in step.client.commits if commit.handle and context.now >= commit.deadline]
    if late:
        step = then(
            ClientStep(step.client, step.outputs, (*step.rules, "client.request.timeout")), context, on_disconnect
        )
    return then(step, context, send_waiting_commits, work)


def give_up_request(client: Client, request: Unanswered, context: ClientContext) -> ClientStep:
    """A request without a response for too long counts as a lost connection."""
    if request not in client.unanswered:
        return ClientStep(client)
    rules = ("client.request.timeout",)
    if request.kind is SentKind.FIND:
        failed = lookup_failed(without_unanswered(client, request.handle), context)
        return ClientStep(failed.client, failed.outputs, (*rules, *failed.rules))
    if request.kind is SentKind.LIST_OFFSETS:
        given_up = retry_offsets(without_unanswered(client, request.handle), request.handle, context)
        return ClientStep(given_up, (), (*rules, "client.offsets.retry"))
    lost = on_disconnect(client, context)
    return ClientStep(lost.client, lost.outputs, (*rules, *lost.rules))
