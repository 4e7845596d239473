"""A driven client: the commands of its application, and the requests that they ask for."""

from collections.abc import Mapping
from typing import Any

from fencepost.model.errors import error_name
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.joining import judge_told_error, note_error, refusal_in
from fencepost.traces.classic.client.messages import (
    UNSUPPORTED,
    error_in,
    first_error,
    out_of_range,
    partitions_in,
    read_committed,
)
from fencepost.traces.classic.client.news import (
    MAY_REJOIN,
    has_been_lost,
    is_looking_up,
    judge_clocks,
    judge_end_of_idleness,
    judge_slow_callback,
    note_overdue_poll,
    note_slow_callback,
    subscribed_topics,
)
from fencepost.traces.classic.client.view import EXCHANGE_APIS, ClientView, Debt, Phase, Standing, has_no_generation
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.events import Event, Kind, Operation

# --- The end of a driven client: LeaveGroup of one that is asked to, or not polled, and the end of its trace.

LEAVING_MS = 3_000
"""How late a client that is not polled may leave."""
MIN_POLLS = 10
"""The polls after which a failure should have reached the application."""


def judge_leave_of_application(view: ClientView, application: Application, operation: Operation, event: Event) -> None:
    """LeaveGroup comes since the application closes, or since it has not polled for too long."""
    judge_leave_in_callback(view, operation, event)
    if application.is_ending or application.has_ended or view.is_ending:
        return
    idle = application.idle_time(event.time)
    judge_clocks(view, operation, event)
    if event.time - application.began <= view.knowledge.grace:  # it may have left before that
        idle = max(idle, application.last_unpolled, application.last_busy)
    if not application.has_interval:
        return  # it has another reason
    limit = view.earliest_timeout
    if idle > limit:
        view.evidence.hold("HBT-06", event.sequence)
    elif application.held_up_time(event.time) <= limit and not has_left_late(view, event.time):
        title, expected = "A client leaves that is polled", "no LeaveGroup"
        requirement = "HBT-15" if has_been_lost(view, event.time) else "HBT-09"
        view.violate(requirement, operation, title, expected, f"LeaveGroup {idle} ms after the last poll")


def has_left_late(view: ClientView, time: int) -> bool:
    """Whether the client may have left while it was not polled, though its LeaveGroup comes now: without a connection,
    that waits for one, which is only made in a poll. A member that has left sends no heartbeats."""
    return view.may_have_left and time - view.rhythm.last > view.knowledge.grace


def judge_leave_in_callback(view: ClientView, operation: Operation, event: Event) -> None:
    """LeaveGroup of a client that is asked to leave comes after its callback, which may take long (MEMBER-22)."""
    if view.rhythm.callback is None or not view.application.is_ending:
        return
    begun, takes = view.rhythm.callback
    title, expected = "LeaveGroup during the callback", f"LeaveGroup {takes} ms after the callback began"
    waited = event.time - begun
    view.check(waited >= takes - view.knowledge.grace, "MEMBER-22", operation, title, expected, f"{waited} ms after")


def judge_end_of_application(view: ClientView, time: int) -> None:
    """The trace of a driven client ends."""
    application, evidence = view.application, view.evidence
    if not application.is_driven:
        return
    end_manual_assignment(view, application, time)
    if application.refused is not None and application.polls_since >= MIN_POLLS:
        told = application.refused
        title = f"What {told.api} got does not reach the application"
        expected, observed = "a poll that fails", f"{application.polls_since} polls that do not"
        news = f"{told.api} got {error_name(first_error(told.body))} at {told.time} ms"
        evidence.violate(build_violation(application.refusal, told.sequence, title, expected, observed, news))
    exchange = view.exchange
    if exchange is not None and exchange.is_late and time - exchange.time > view.knowledge.grace:
        evidence.hold("MEMBER-29", exchange.sequence)
    judge_idleness(view, application, time)
    if application.held_up is not None:
        evidence.drop_remarks()  # most recommendations say how soon something is done


def end_manual_assignment(view: ClientView, application: Application, time: int) -> None:
    """The application has not assigned its partitions itself any more."""
    if application.manual_since is None:
        return
    if time - application.manual_since > view.knowledge.grace:
        for requirement in ("MEMBER-26", "CALLBACK-18"):
            view.evidence.hold(requirement, 0)
    application.manual_since, application.owned = None, frozenset()


def judge_idleness(view: ClientView, application: Application, time: int) -> None:
    """A dynamic member whose application has not polled for longer than its poll interval has left."""
    since = max(application.idle_since or 0, view.exchange.time if view.exchange is not None else 0)
    idle = 0 if application.idle_since is None else time - since
    is_member = view.knowledge.latest.phase is Phase.STABLE and view.left is None and view.instance is None
    is_member &= application.has_interval and not view.is_ending
    limit = view.rebalance_timeout + LEAVING_MS
    if is_member and view.join is not None and idle > limit and not waits_for_connection(view, since + limit):
        title, expected = "A client stays that is not polled", f"LeaveGroup after {view.rebalance_timeout} ms"
        sequence, observed = view.join.handle - 1, f"none for {idle} ms"
        view.evidence.violate(build_violation("HBT-06", sequence, title, expected, observed))


def waits_for_connection(view: ClientView, time: int) -> bool:
    """Whether the client had lost its connection by then, and may have left: LeaveGroup waits for another one, which
    some make in a poll alone. One that stays sends heartbeats."""
    return view.coordinator_lost is not None and view.coordinator_lost <= time


GROUP_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"})


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
        note_overdue_poll(view, application, event.time)
    if event.kind is Kind.CALLBACK or (event.kind is Kind.INTERNAL and event.api in ("command", "result")):
        judge_slow_callback(view, event)
    if event.kind is Kind.CALLBACK:
        note_slow_callback(view, event)
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
        first = next((each for each in view.knowledge.standings if has_no_generation(each)), None)
        view.loss = view.loss if first is None else (first.sequence, event.time)
    if application.calls_in_parts:
        application.take_part(event)
    elif event.api != "assigned":
        application.give_up(event)
    else:
        is_known = view.is_installed_doubtful and view.knowledge.latest.member_id is not None  # the response has come
        if application.assignments and is_known:
            view.installed, _ = application.applied_by(partitions_in(event), view.is_cooperative)
            view.is_installed_doubtful = False
            if view.exchange is not None:
                view.installed_generation = view.exchange.generation
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
    view.application.last_written = event.sequence


def begin_command(view: ClientView, application: Application, event: Event) -> None:
    """The application does something."""
    judge_end_of_idleness(view, application, event)
    judge_idleness(view, application, event.time)
    if event.body["do"] == "poll":
        application.last_unpolled = application.idle_time(event.time)
        application.poll_due = event.time + event.body["ms"] if "ms" in event.body else None
        if not application.has_failed_poll:
            application.polled_at = None
    application.last_idle = 0 if application.idle_since is None else event.time - application.idle_since
    application.command, application.began, application.idle_since = event.body, event.time, None
    application.command_sequence = event.sequence
    application.began_without_coordinator = is_looking_up(view)
    application.returned = 0
    if event.body["do"] == "assign":
        application.manual_since = event.time
    if event.body["do"] == "resume":
        application.paused -= partitions_in(event)


def end_command(view: ClientView, application: Application, event: Event) -> None:
    """The application is done with what it did."""
    command = application.command
    assert command is not None
    if view.has_doubled and event.body.get("error", UNSUPPORTED) != UNSUPPORTED:
        view.evidence.close()
    application.in_callback = None
    if command["do"] == "poll" and "error" in event.body:
        judge_told_error(view, application, event)
    application.has_asked_in_callback = False
    match command["do"]:
        case "poll":
            end_poll(view, application, event)
            application.note_end_of_poll(event)
            if application.overdue_time(event.time) > view.knowledge.grace and view.rhythm.callback is None:
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
            application.has_asked, news = True, "the application asked for a rebalance"
            view.owe(Debt("MEMBER-37", "JoinGroup", event.time, event.sequence, news))
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
            news = "it unsubscribed"
            view.leave_silently(Standing(None, news=news, sequence=event.sequence, time=event.time))
            view.has_left_silently = True
        end_manual_assignment(view, application, event.time)


def subscribe(view: ClientView, application: Application, command: Mapping[str, Any], event: Event) -> None:
    """The application has subscribed."""
    application.has_asked = True
    application.pattern = command.get("pattern", "")
    application.wanted, application.wanted_since = frozenset(command.get("topics", ())), event.time
    if view.join is None or application.pattern or application.wanted == subscribed_topics(view):
        application.wanted = None
    elif not view.has_unread_subscription:
        news = f"the application subscribed to {', '.join(sorted(application.wanted))}"
        view.owe(Debt("MEMBER-27", "JoinGroup", event.time, event.sequence, news))


def end_poll(view: ClientView, application: Application, event: Event) -> None:
    """A poll returns, or fails."""
    if application.refused is not None:
        application.polls_since += 1
        if "error" in event.body:
            view.evidence.hold(application.refusal, event.sequence)
            application.refused = None
    if view.rebalance_timeout and event.time - application.began > view.rebalance_timeout and view.left is None:
        view.evidence.hold("HBT-09", event.sequence)


def judge_request_of_application(view: ClientView, operation: Operation, event: Event) -> None:
    """A request arrives whose client is driven; the state is that before it."""
    application = view.application
    if not application.is_driven:
        return
    since = application.manual_since
    if since is not None and operation.api in GROUP_APIS and since + view.knowledge.grace < event.time:
        title, expected = "A request of a member without a subscription", "no request of a member"
        view.violate("MEMBER-26", operation, title, expected, operation.api)
    elif operation.api == "JoinGroup":
        note_overdue_poll(view, application, event.time)
        judge_timeouts(view, application, operation)
        application.in_callback = application.committing_since = None
        application.kept = frozenset()
        if not view.is_ending and view.protocols and not view.is_cooperative and application.has_been_assigned:
            if application.has_ended:
                application.owned = frozenset()  # whether it was told that is CALLBACK-11
            application.kept = application.owned
        application.revoked = frozenset()
        judge_silent_retry(view, application, operation)
        application.has_ended = application.has_asked = False
        application.assignments.clear()
        if application.refused is not None and application.refused.api == "OffsetFetch":
            application.refused = None  # nobody waits for it any more
    elif operation.api == "OffsetCommit":
        if application.committing_since is None and (view.rebalance_told is not None or view.growth or view.debts):
            application.committing_since = event.time
    elif operation.api == "LeaveGroup":
        judge_leave_of_application(view, application, operation, event)


def judge_timeouts(view: ClientView, application: Application, operation: Operation) -> None:
    """JoinGroup has the timeouts that the client has."""
    body, told = operation.body, application.timeouts
    if told:
        sent = {"session": body["session_timeout_ms"], "rebalance": body.get("rebalance_timeout_ms", told["rebalance"])}
        title = "JoinGroup has other timeouts than the client"
        is_right = sent == {"session": told["session"], "rebalance": told["rebalance"]}
        view.check(is_right, "MEMBER-03", operation, title, f"{dict(told)}", f"{sent}")


def judge_silent_retry(view: ClientView, application: Application, operation: Operation) -> None:
    """A fenced member does not join again before its application was told."""
    if application.refused is not None and application.refusal == "MEMBER-19":
        title, expected = "A fenced member joins again silently", "an error for the application first"
        view.violate("MEMBER-19", operation, title, expected, "JoinGroup")


def follow_request(view: ClientView, operation: Operation, event: Event) -> None:
    """A request of a driven client was judged; the state is that after it."""
    application = view.application
    if not application.is_driven:
        return
    if operation.api == "JoinGroup" and application.wanted is not None:
        sent = subscribed_topics(view)
        if sent != application.wanted and event.time - application.wanted_since <= view.knowledge.grace:
            return  # it may have been made before
        if view.has_unread_subscription:
            application.wanted = None
            return
        title, expected = "JoinGroup has another subscription", ", ".join(sorted(application.wanted))
        view.check(sent == application.wanted, "MEMBER-27", operation, title, expected, ", ".join(sorted(sent)))
        application.wanted = None
    elif operation.api == "LeaveGroup" and not (application.is_ending or application.has_ended or view.is_ending):
        requirement, news = "HBT-08", "it left, since the application did not poll"
        if not application.has_interval:
            requirement, news = "", "it left by itself"
        standing = Standing("", requirement=requirement, news=news, sequence=event.sequence, time=event.time)
        view.knowledge.learn(standing)
        view.knowledge.show(event.sequence)


def follow_response(view: ClientView, operation: Operation, event: Event) -> None:
    """A response to a driven client leaves the cluster."""
    application, error = view.application, event.body.get("error_code", 0)
    if not application.is_driven:
        return
    is_told_otherwise = application.refusal == "MEMBER-38" and not error_in(event)
    is_told_otherwise &= application.polls_since < MIN_POLLS
    if application.refused is not None and is_told_otherwise and application.refused.api == operation.api:
        application.refused = None  # it asked again, and was told: what was refused once may be tried again
    if operation.api == "Fetch":
        for partition in out_of_range(event, view.topic_names):  # it begins where the reset policy says
            application.positions.pop(partition, None)
            application.out_of_range.add(partition)
            application.sought.discard(partition)
    refusal = refusal_in(view, operation, event)
    note_error(view, application, operation, event)
    if operation.api == "SyncGroup" and not error and not refusal:
        if not application.has_callbacks:
            application.positions.clear()  # it begins again at what is committed
        if view.installed is not None:
            application.assignments.append(view.installed)
    elif operation.api in EXCHANGE_APIS and error in MAY_REJOIN:
        return
    elif refusal:
        if application.refused is None:
            application.refused, application.polls_since, application.refusal = event, 0, refusal
    elif operation.api == "OffsetFetch":
        told = read_committed(event.body, view.topic_names)
        application.starts |= {partition: offset for partition, offset in told if offset >= 0}
