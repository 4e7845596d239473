"""Folds the view of a client from events; what responses tell of its membership is in `news`. It judges nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.model.errors import Error
from fencepost.traces.classic.client import news
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.messages import (
    MOVED,
    UNSUPPORTED,
    error_in,
    out_of_range,
    partitions_in,
    read_committed,
)
from fencepost.traces.classic.client.refusals import RETRIED
from fencepost.traces.classic.client.standings import EXCHANGE_APIS
from fencepost.traces.classic.client.view import SLOW_MS, ClientView, Debt, has_no_generation
from fencepost.traces.events import Event, Kind, Operation


def follow_application(view: ClientView, event: Event) -> None:
    """Something happened between the kit and the application."""
    if event.kind is Kind.INTERNAL and event.api == "driver":
        about = event.body
        view.application = Application(
            is_driven=True,
            limit=about.get("max_poll_records", 0),
            has_callbacks=bool(about.get("callbacks")),
            has_lost="lost" in about.get("callbacks", ()),
            calls_anywhere=bool(about.get("callbacks_anywhere")),
            calls_in_parts=bool(about.get("callbacks_per_partition")),
            has_auto_commit=bool(about.get("auto_commit")),
            has_interval=bool(about.get("poll_interval", True)),
            auto_commit_ms=about.get("auto_commit_ms", 0),
            timeouts=about.get("timeouts", {}),
            polled_at=event.time,
        )
    application = view.application
    if not application.is_driven:
        return
    if application.command is not None:
        note_overdue_poll(view, event)
    if event.kind is Kind.CALLBACK or (event.kind is Kind.INTERNAL and event.api in ("command", "result")):
        begun, lasts = view.slow_callback or (0, 0)
        takes = event.body.get("takes_ms", 0)
        if event.kind is Kind.CALLBACK and takes >= SLOW_MS:
            view.slow_callback = event.time, takes
        elif not application.calls_anywhere or event.time >= begun + lasts:  # else it may run beside what comes next
            view.slow_callback = None
    if event.kind is Kind.CALLBACK:
        take_callback(view, event)
    elif event.kind is Kind.POLL:
        application.take_records(event)
    elif event.kind is Kind.INTERNAL and event.api == "command":
        begin_command(view, application, event)
    elif event.kind is Kind.INTERNAL and event.api == "result" and application.command is not None:
        end_command(view, application, event)


def take_callback(view: ClientView, event: Event) -> None:
    """The listener is called; who calls partitions lost has read the first news that the generation is over, though
    commits that it has prepared before may still come."""
    application = view.application
    application.in_callback = event if event.body.get("commits") else None
    application.has_asked_in_callback |= bool(event.body.get("commits"))
    if view.is_by_hand(event.time):
        return
    if event.api == "lost" and partitions_in(event) and not application.is_ending:
        view.lost_at = event.time if any(map(has_no_generation, view.knowledge.standings)) else view.lost_at
    if application.calls_in_parts:
        application.take_part(event)
    elif event.api != "assigned":
        application.give_up(event)
    else:
        if application.assignments:
            applied, is_fitting = application.applied_by(partitions_in(event), view.is_cooperative)
            if is_fitting:
                view.knowledge = view.knowledge.narrow(lambda each: each.assignment == applied)
        application.take_assigned(event, view.is_cooperative)


def learn_written(view: ClientView, event: Event) -> None:
    """Records are written to partitions."""
    for name, count in event.body["records"].items():
        topic, _, number = name.rpartition("/")
        partition = topic, int(number)
        view.ends[partition] = view.ends.get(partition, 0) + count
        if name in event.body.get("markers", ()):
            view.markers.add((partition, view.ends[partition]))
            view.ends[partition] += 1
    view.application.last_written, view.written_at = event.sequence, event.time


def begin_command(view: ClientView, application: Application, event: Event) -> None:
    """The application does something."""
    if application.idle_since is not None and view.join is not None:
        if view.stops_silently(event.time):
            view.leave("HBT-08", "its application did not poll", event)
        elif application.has_interval and application.unpolled_time(event.time) > view.earliest_timeout:
            view.may_leave("its application did not poll", event)
    if event.body["do"] == "poll":
        application.last_unpolled = application.idle_time(event.time)
        application.poll_due = event.time + event.body["ms"] if "ms" in event.body else None
        if not application.has_failed_poll:
            application.polled_at = None
    application.last_idle = 0 if application.idle_since is None else event.time - application.idle_since
    application.command, application.began, application.idle_since = event.body, event.time, None
    application.command_sequence = event.sequence
    application.began_without_coordinator = view.is_looking_up
    application.returned = 0
    if event.body["do"] == "assign":
        application.manual_since = event.time
    if event.body["do"] == "resume":
        application.paused -= partitions_in(event)


def end_command(view: ClientView, application: Application, event: Event) -> None:
    """The application is done with what it did."""
    command = application.command
    assert command is not None
    application.in_callback = None
    if command["do"] == "poll" and "error" in event.body:
        application.passing.clear()
    application.has_asked_in_callback = False
    match command["do"]:
        case "poll":
            application.note_end_of_poll(event)
            if application.overdue_time(event.time) > view.knowledge.grace:
                application.held_up = event.time - application.overdue_time(event.time), event.time
        case "subscribe" | "assign" | "close" | "unsubscribe" if event.body.get("error") != UNSUPPORTED:
            end_membership(view, application, command, event)
        case "pause" if "error" not in event.body:
            application.paused |= frozenset((topic, number) for topic, number in command["partitions"])
            application.paused_since = event.time
        case "seek" if "error" not in event.body:
            partition = str(command["topic"]), int(command["partition"])
            application.seek(partition, command["offset"])
        case "rejoin" if "error" not in event.body:
            application.has_asked, told = True, "the application asked for a rebalance"
            view.owe(Debt("MEMBER-37", "JoinGroup", event.time, event.sequence, told))
        case "listener" if "error" not in event.body:
            application.has_lost = bool(command.get("lost", application.has_lost))
    application.last_busy = event.time - application.began
    application.command, application.idle_since = None, event.time


def end_membership(view: ClientView, application: Application, command: Mapping[str, Any], event: Event) -> None:
    """The application has other partitions from now on, or will be assigned others."""
    if command["do"] == "assign":
        application.owned = frozenset((topic, number) for topic, number in command["partitions"])
        application.positions.clear()
    elif command["do"] == "subscribe":
        subscribe(view, application, command, event)
    else:
        application.has_ended, application.revoked = True, frozenset()
        if view.instance is not None or (application.began_without_coordinator and view.left is None):
            # It leaves without a request: it need not send one, or knows nobody to send it to.
            view.leave("", "it unsubscribed", event)
            view.has_left_silently = True
        if application.manual_since is not None:
            application.manual_since, application.owned = None, frozenset()


def subscribe(view: ClientView, application: Application, command: Mapping[str, Any], event: Event) -> None:
    """The application has subscribed."""
    application.has_asked = True
    application.pattern = command.get("pattern", "")
    application.wanted, application.wanted_since = frozenset(command.get("topics", ())), event.time
    if view.join is None or application.pattern or application.wanted == news.subscribed_topics(view):
        application.wanted = None
    elif not view.has_unread_subscription:
        told = f"the application subscribed to {', '.join(sorted(application.wanted))}"
        view.owe(Debt("MEMBER-27", "JoinGroup", event.time, event.sequence, told))


def note_overdue_poll(view: ClientView, event: Event) -> None:
    """A client that is held up in a poll for as long as its poll interval may leave as one that is not polled."""
    application, is_member = view.application, view.join is not None and not view.may_be_out
    if application.has_interval and is_member and application.overdue_time(event.time) > view.earliest_timeout:
        view.may_leave("its application did not poll", event)


def begin_request(view: ClientView, operation: Operation, event: Event) -> None:
    """A request of a driven client arrives: first what it says of its application."""
    application = view.application
    if not application.is_driven or view.is_by_hand(event.time):
        return
    if operation.api == "JoinGroup":
        note_overdue_poll(view, event)
        application.in_callback = application.committing_since = None
        application.kept = frozenset()
        if not view.is_ending and view.protocols and not view.is_cooperative and application.has_been_assigned:
            if application.has_ended:
                application.owned = frozenset()  # whether it was told that is CALLBACK-11
            application.kept = application.owned
        application.revoked = frozenset()
        application.assignments.clear()
    elif operation.api == "OffsetCommit":
        has_reason = view.rebalance_told is not None or view.growth is not None or bool(view.debts)
        if application.committing_since is None and has_reason:
            application.committing_since = event.time


def end_request(view: ClientView, operation: Operation, event: Event) -> None:
    """A request of a driven client has arrived."""
    application = view.application
    if not application.is_driven:
        return
    if operation.api == "JoinGroup" and not view.is_by_hand(event.time):
        application.has_ended = application.has_asked = False
    if operation.api == "JoinGroup" and application.wanted is not None:
        is_other = news.subscribed_topics(view) != application.wanted
        if not is_other or event.time - application.wanted_since > view.knowledge.grace:  # else it was made before
            application.wanted = None
    elif operation.api == "LeaveGroup" and not (application.is_ending or application.has_ended or view.is_ending):
        requirement, told = "HBT-08", "it left, since the application did not poll"
        if not application.has_interval:
            requirement, told = "", "it left by itself"
        view.leave(requirement, told, event)


def end_response(view: ClientView, operation: Operation, event: Event) -> None:
    """A response to a driven client leaves the cluster."""
    application = view.application
    if operation.api == "Fetch":
        for partition in out_of_range(event, view.topic_names):  # it begins where the reset policy says
            application.positions.pop(partition, None)
            application.out_of_range.add(partition)
            application.sought.discard(partition)
    if not application.is_driven:
        return
    if operation.api in RETRIED:
        told = error_in(event)
        application.passing[operation.api] = Error(told).name if told in RETRIED[operation.api] else ""
    if operation.api == "FindCoordinator" and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        application.lookup_refused = event.sequence
    if operation.api == "OffsetFetch":
        rows = read_committed(event.body, view.topic_names)
        application.starts |= {partition: offset for partition, offset in rows if offset >= 0}


# --- Requests, responses, losses, and all other events.

GROUP_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"})
"""Requests to the coordinator of a group."""
SETTLING_MS = 500
"""How long a client that was held up may take to read what came meanwhile."""
REQUESTS: Mapping[str, Callable[[ClientView, Operation, Event], None]] = {
    "JoinGroup": news.take_join,
    "SyncGroup": news.take_sync,
    "Heartbeat": news.take_sign,
    "OffsetCommit": news.take_sign,
    "LeaveGroup": news.take_leave,
}
RESPONSES: Mapping[str, Callable[[ClientView, Operation, Event], None]] = {
    "FindCoordinator": news.take_lookup,
    "Metadata": news.learn_metadata,
    "JoinGroup": news.learn_join,
    "SyncGroup": news.learn_sync,
    "Heartbeat": news.learn_of_membership,
    "OffsetCommit": news.learn_of_membership,
    "OffsetFetch": news.learn_offsets,
}


def settle(view: ClientView, operation: Operation, event: Event) -> None:
    """A request arrives: what had certainly been read when it was sent, for all requests but JoinGroup as far as the
    client has shown since that it was not held up. A process that was held up sends by its timers before it reads."""
    view.now = event.time
    if view.is_recorded:
        news.begin_recorded_request(view, operation, event)
    while len(view.sent_at) > 1 and view.sent_at[1] <= event.time - SETTLING_MS:
        view.sent_at.popleft()
    is_known = bool(view.sent_at) and view.sent_at[0] <= event.time - SETTLING_MS
    awake_until, read_until, grace = view.sent_at[0] if is_known else 0, event.time, view.knowledge.grace
    if view.slow_callback is None:
        awake_until = min(awake_until, view.application.awake_until(event.time, grace))
        read_until = view.application.read_until(event.time, grace)
    view.awake_until = awake_until
    view.sent_at.append(event.time)
    view.knowledge = view.knowledge.settle(read_until if operation.api == "JoinGroup" else awake_until)


def take_request(view: ClientView, operation: Operation, event: Event, *, is_readable: bool) -> None:
    """A request arrives: its connection is open, or open again."""
    waiting = view.exchange_outstanding()
    given_up = waiting.handle if waiting is not None and waiting.connection == event.connection else 0
    view.knowledge = view.knowledge.become(lambda each: each.reopen(event.connection, given_up))
    begin_request(view, operation, event)
    view.settle_debts(operation.api, event.sequence)
    if is_readable and operation.api in REQUESTS:
        REQUESTS[operation.api](view, operation, event)
    if is_readable:
        end_request(view, operation, event)
    if operation.api in GROUP_APIS:
        view.coordinator_connection, view.coordinator_lost = operation.connection, None
    view.outstanding[operation.handle] = operation


def take_response(view: ClientView, operation: Operation, event: Event) -> None:
    """A response leaves the cluster."""
    view.outstanding.pop(operation.handle, None)
    if operation.api == "SyncGroup" and view.has_expired(event.time):
        view.may_close(event.connection)
    if operation.api in RESPONSES:
        RESPONSES[operation.api](view, operation, event)
    if operation.api == "Heartbeat":
        view.debts = view.debts_without("FindCoordinator")
    error = event.body.get("error_code", 0)
    if operation.api in (*EXCHANGE_APIS, "Heartbeat") and error not in MOVED:
        view.heard = event.time
    if operation.api == "SyncGroup" and not error:
        view.assigned_at = event.time
    end_response(view, operation, event)
    if view.is_recorded:
        news.end_recorded_response(view, operation)


def take_loss(view: ClientView, operation: Operation, event: Event) -> None:
    """The connection of a request ends before its response."""
    view.outstanding.pop(operation.handle, None)
    if operation.connection == view.coordinator_connection and view.coordinator_lost is None:
        view.coordinator_lost = event.time
    if operation.api == "OffsetFetch":
        view.offsets_failed = event.time
    if operation.api in ("Heartbeat", "FindCoordinator") and view.last_sign is not None:
        view.last_sign = event.time  # nobody was there to get one
    news.learn_loss(view, operation, event)


def take_other(view: ClientView, event: Event, *, is_own: bool) -> None:
    """Something happens beside the client's requests, perhaps in its own application."""
    if is_own:
        follow_application(view, event)
    match event.kind, event.api:
        case Kind.FAULT, "hangup":
            view.hung_up.add(event.connection)
            view.knowledge = view.knowledge.also(lambda each: each.miss(event.connection))
        case Kind.FAULT, "doubled":
            view.may_close(event.connection)
            view.has_doubled = True
        case Kind.INTERNAL, "written":
            learn_written(view, event)
        case Kind.INTERNAL, "program" if event.body["state"] == "asked to end":
            view.asked_to_end = event.time
        case Kind.INTERNAL, "program" if event.body["state"] == "ended":
            view.ended = event.time


def end(view: ClientView, time: int) -> None:
    """The trace ends: everything that is older than the grace has been read."""
    view.knowledge = view.knowledge.settle(time)
