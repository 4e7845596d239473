"""The end of a driven client: LeaveGroup of one that is asked to, or not polled, and the end of its trace."""

from fencepost.model.errors import error_name
from fencepost.traces.client_judge.classic.application import Application
from fencepost.traces.client_judge.classic.draining import judge_end_of_draining
from fencepost.traces.client_judge.classic.heartbeats import has_been_lost, judge_clocks
from fencepost.traces.client_judge.classic.knowledge import Phase
from fencepost.traces.client_judge.classic.news import first_error
from fencepost.traces.client_judge.classic.records import judge_last_commit
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.client_judge.classic.unawaited import judge_reports
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Event, Operation

LEAVING_MS = 3_000
"""How late a client that is not polled may leave."""
MIN_POLLS = 10
"""The polls after which a failure should have reached the application."""


def judge_leave_of_application(
    state: ClientState, application: Application, operation: Operation, event: Event
) -> None:
    """LeaveGroup comes since the application closes, or since it has not polled for too long."""
    judge_leave_in_callback(state, operation, event)
    if application.is_ending or application.has_ended or state.is_ending:
        if application.command is not None and application.command["do"] == "close":
            judge_last_commit(state, application, operation, "MCOMMIT-07")
            judge_early_leave(state, application, operation, event)
        return
    idle = application.idle_time(event.time)
    judge_clocks(state, operation, event)
    if event.time - application.began <= state.knowledge.grace:  # it may have left before that
        idle = max(idle, application.last_unpolled, application.last_busy)
    if not application.has_interval:
        return  # it has another reason
    limit = state.earliest_timeout
    if idle > limit:
        state.evidence.hold("HBT-06", event.sequence)
    elif application.held_up_time(event.time) <= limit and not has_left_late(state, event.time):
        title, expected = "A client leaves that is polled", "no LeaveGroup"
        requirement = "HBT-15" if has_been_lost(state, event.time) else "HBT-09"
        state.violate(requirement, operation, title, expected, f"LeaveGroup {idle} ms after the last poll")


def judge_early_leave(state: ClientState, application: Application, operation: Operation, event: Event) -> None:
    """LeaveGroup of a client that closes comes when its last commit is over, or has taken long."""
    since = event.time - state.knowledge.grace
    commits = [each for each in state.outstanding.values() if each.api == "OffsetCommit"]
    is_hasty = any(each.sent_at >= application.began and each.sent_at > since for each in commits)
    title, expected = "LeaveGroup before the last commit is over", "LeaveGroup after its response"
    if is_hasty and application.has_auto_commit:
        state.violate("MCOMMIT-07", operation, title, expected, "OffsetCommit without a response")


def has_left_late(state: ClientState, time: int) -> bool:
    """Whether the client may have left while it was not polled, though its LeaveGroup comes now: without a connection,
    that waits for one, which is only made in a poll. A member that has left sends no heartbeats."""
    return state.may_have_left and time - state.rhythm.last > state.knowledge.grace


def judge_leave_in_callback(state: ClientState, operation: Operation, event: Event) -> None:
    """LeaveGroup of a client that is asked to leave comes after its callback, which may take long (MEMBER-22)."""
    if state.rhythm.callback is None or state.application is None or not state.application.is_ending:
        return
    begun, takes = state.rhythm.callback
    title, expected = "LeaveGroup during the callback", f"LeaveGroup {takes} ms after the callback began"
    waited = event.time - begun
    state.check(waited >= takes - state.knowledge.grace, "MEMBER-22", operation, title, expected, f"{waited} ms after")


def judge_end_of_application(state: ClientState, time: int) -> None:
    """The trace of a driven client ends."""
    application, evidence = state.application, state.evidence
    if application is None:
        return
    end_manual_assignment(state, application, time)
    if application.refused is not None and application.polls_since >= MIN_POLLS:
        told = application.refused
        title = f"What {told.api} got does not reach the application"
        expected, observed = "a poll that fails", f"{application.polls_since} polls that do not"
        news = f"{told.api} got {error_name(first_error(told.body))} at {told.time} ms"
        evidence.violate(build_violation(application.refusal, told.sequence, title, expected, observed, news))
    judge_end_of_draining(state, application)
    judge_reports(state)
    exchange = state.exchange
    if exchange is not None and exchange.is_late and time - exchange.time > state.knowledge.grace:
        evidence.hold("MEMBER-29", exchange.sequence)
    judge_idleness(state, application, time)
    if application.held_up is not None:
        evidence.drop_remarks()  # most recommendations say how soon something is done


def end_manual_assignment(state: ClientState, application: Application, time: int) -> None:
    """The application has not assigned its partitions itself any more."""
    if application.manual_since is None:
        return
    if time - application.manual_since > state.knowledge.grace:
        for requirement in ("MEMBER-26", "CALLBACK-18"):
            state.evidence.hold(requirement, 0)
    application.manual_since, application.owned = None, frozenset()


def judge_idleness(state: ClientState, application: Application, time: int) -> None:
    """A dynamic member whose application has not polled for longer than its poll interval has left."""
    since = max(application.idle_since or 0, state.exchange.time if state.exchange is not None else 0)
    idle = 0 if application.idle_since is None else time - since
    is_member = state.knowledge.latest.phase is Phase.STABLE and state.left is None and state.instance is None
    is_member &= application.has_interval and not state.is_ending
    limit = state.rebalance_timeout + LEAVING_MS
    if is_member and state.join is not None and idle > limit and not waits_for_connection(state, since + limit):
        title, expected = "A client stays that is not polled", f"LeaveGroup after {state.rebalance_timeout} ms"
        sequence, observed = state.join.handle - 1, f"none for {idle} ms"
        state.evidence.violate(build_violation("HBT-06", sequence, title, expected, observed))


def waits_for_connection(state: ClientState, time: int) -> bool:
    """Whether the client had lost its connection by then, and may have left: LeaveGroup waits for another one, which
    some make in a poll alone. One that stays sends heartbeats."""
    return state.coordinator_lost is not None and state.coordinator_lost <= time
