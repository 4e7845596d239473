"""Requests of a member, what it owes, and how it leaves, held against what the client may know of its membership:
monitors."""

import signal
from contextlib import suppress
from dataclasses import dataclass

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment
from fencepost.model.classic.messages import read_offsets
from fencepost.traces.classic.client.messages import (
    NO_GENERATION,
    UNSUPPORTED,
    describe_id,
    describe_partitions,
    generation_in,
)
from fencepost.traces.classic.client.standings import Standing
from fencepost.traces.classic.client.view import RESETS, ClientView, Debt, blame_request, check_request
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import (
    Finding,
    Findings,
    Seen,
    at_end,
    before,
    build_pass,
    check,
    leave_open,
)
from fencepost.traces.events import Operation
from fencepost.traces.verdict import CheckResult, CheckStatus

MAX_CLOSING_MS = 10_000
"""How long a client may take to close after its LeaveGroup failed."""
GROUP_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"})


@before("Heartbeat request")
def judge_heartbeat(view: ClientView, seen: Seen) -> Findings:
    """A Heartbeat arrives: of a membership that the client has, and not while it joins."""
    operation = seen.request
    if view.is_joining(operation):
        title, expected = "Heartbeat while JoinGroup has no response", "no heartbeat"
        yield blame_request("HBT-04", operation, title, expected, "Heartbeat")
    elif view.standing_of(operation) is None:
        yield judge_stale(view, operation, "HBT-02", "HBT-04")
    else:
        yield build_pass("HBT-02", operation.handle - 1)


@before("OffsetCommit request")
def judge_commit(view: ClientView, seen: Seen) -> Findings:
    """An OffsetCommit of the group arrives."""
    operation, open_one = seen.request, view.exchange_outstanding()
    if view.is_no_member:
        return
    is_syncing = open_one is not None and open_one.connection == operation.connection
    if view.is_joining(operation) or is_syncing:
        waiting = "JoinGroup" if view.is_joining(operation) else "SyncGroup"
        title, expected = f"OffsetCommit while {waiting} has no response", "no commit"
        yield blame_request("MCOMMIT-08", operation, title, expected, "OffsetCommit")
        return
    standing = view.standing_of(operation)
    if standing is None:
        yield judge_stale(view, operation, "MCOMMIT-03", "MCOMMIT-11")
        return
    yield build_pass("MCOMMIT-03", operation.handle - 1)
    committed = frozenset(partition for partition, _ in read_offsets(operation.body, view.topic_names))
    allowed = view.knowledge.allowed_partitions() | view.given_up
    observed = describe_partitions(committed)
    if any(topic in view.foreign_topics for topic, _ in committed):
        title, expected = "Commit of a topic that is not subscribed", "the assignment is not applied"
        yield blame_request("MEMBER-20", operation, title, expected, observed)
    elif view.knowledge.latest.requirement != "MEMBER-20":  # else it has what it must not apply
        title, expected = "The commit covers partitions that are not assigned", describe_partitions(allowed)
        yield check_request(view, committed <= allowed, "MCOMMIT-18", operation, title, expected, observed)


def judge_stale(view: ClientView, operation: Operation, stale: str, memberless: str) -> Finding:
    """A request carries a membership that the client does not have: `stale` is broken if it has another one,
    `memberless` if it has none, or what says that it has none any more."""
    knowledge, certain = view.knowledge, view.knowledge.standings[0]
    sent = operation.body["member_id"], generation_in(operation)
    observed = f"{operation.api} of generation {sent[1]} as {describe_id(sent[0])}"
    requirement = stale
    if sent[1] == NO_GENERATION or all(each.generation == NO_GENERATION for each in knowledge.standings):
        has_kept = certain.requirement in RESETS and sent in knowledge.former
        requirement, expected = (
            certain.requirement if has_kept else memberless,
            f"no {operation.api}: it has no generation",
        )
    else:
        current = next(each for each in reversed(knowledge.standings) if each.generation != NO_GENERATION)
        expected = f"generation {current.generation} as {describe_id(current.member_id)}"
        expected += f", or no {operation.api}" if current is not knowledge.latest else ""
    title = (
        f"{operation.api} of a membership that is over" if sent in knowledge.former else f"{operation.api} of nobody"
    )
    return blame_request(requirement, operation, title, expected, observed, knowledge.latest.news)


@before(*(f"{api} request" for api in GROUP_APIS))
def judge_request_by_hand(view: ClientView, seen: Seen) -> Findings:
    """An application that has assigned its partitions itself has no member."""
    if view.is_by_hand(seen.event.time):
        title, expected = "A request of a member without a subscription", "no request of a member"
        yield blame_request("MEMBER-26", seen.request, title, expected, seen.request.api)


@at_end
def judge_by_hand(view: ClientView, time: int) -> Findings:
    """An assignment by hand is over, or the trace: it has lasted for a while, and there was nothing to blame."""
    since = view.application.manual_since
    if since is not None and time - since > view.knowledge.grace:
        yield build_pass("MEMBER-26", 0)
        yield build_pass("CALLBACK-18", 0)


@before("result internal")
def judge_end_by_hand(view: ClientView, seen: Seen) -> Findings:
    """The application unsubscribes or closes."""
    if view.application.is_ending and seen.event.body.get("error") != UNSUPPORTED:
        yield from judge_by_hand(view, seen.event.time)


@before(*(f"{api} request" for api in (*GROUP_APIS, "OffsetCommit", "OffsetFetch")))
def judge_first_request(view: ClientView, seen: Seen) -> Findings:
    """The first request to the coordinator of a group comes after a lookup (MEMBER-01)."""
    if view.coordinator_connection < 0:
        title, expected = "A group request before the lookup", "FindCoordinator first"
        yield check_request(view, view.has_found, "MEMBER-01", seen.request, title, expected, seen.request.api)


@before("SyncGroup response")
def judge_unread_assignment(view: ClientView, seen: Seen) -> Findings:
    """An assignment comes to a client of which nobody knows what it subscribes to."""
    is_late = view.exchange is not None and view.has_left
    if seen.event.body.get("error_code") or is_late or not view.has_unread_subscription:
        return
    with suppress(ConsumerProtocolError):
        topics = {topic for topic, _ in decode_assignment(seen.event.body.get("assignment") or b"")}
        if not all(view.application.matches(topic) for topic in topics):
            note = "the subscription cannot be read (WIRE-01), so nobody knows what is outside of it"
            yield leave_open("MEMBER-20", seen.event.sequence, note)


# --- Debts.


@before("JoinGroup request", "FindCoordinator request", "OffsetFetch request")
def judge_payment(view: ClientView, seen: Seen) -> Findings:
    """A request pays what was owed with it."""
    for debt in view.debts.values():
        if debt.api == seen.request.api and debt.sequence < seen.event.sequence:
            yield build_pass(debt.requirement, seen.event.sequence)


@before("program internal", "LeaveGroup request")
def judge_absence(view: ClientView, seen: Seen) -> Findings:
    """The client is asked to end: a JoinGroup whose time had passed until then is missing, however it goes on."""
    time = view.ending_time(seen)
    if time is None or view.is_kept_waiting(time):
        return
    for debt in view.debts.values():
        if debt.api == "JoinGroup" and time - debt.since > view.patience_for(debt.api):
            yield miss_payment(debt, time, view.patience_for(debt.api))


@at_end
def judge_debts(view: ClientView, time: int) -> Findings:
    """The trace ends."""
    yield from (judge_debt(view, debt, time) for debt in view.debts.values() if not view.is_over)


def judge_debt(view: ClientView, debt: Debt, time: int) -> Finding:
    """What the client owes is overdue, or the trace ends too early to say so."""
    waited, patience = time - debt.since, view.patience_for(debt.api)
    if waited > patience and not view.is_kept_waiting(time):
        return miss_payment(debt, time, patience)
    note = f"{debt.news}, and no {debt.api} came within {waited} ms; the client may take {patience} ms"
    return leave_open(debt.requirement, debt.sequence, note)


def miss_payment(debt: Debt, time: int, patience: int) -> Finding:
    """The violation by a client that does not pay what it owes."""
    title, expected = f"No {debt.api} follows", f"{debt.api} within {patience} ms"
    return build_violation(
        debt.requirement, debt.sequence, title, expected, f"none for {time - debt.since} ms", debt.news
    )


# --- Leaving.


@dataclass(slots=True)
class Leaving:
    """How a client leaves that is asked to end.

    `standing` is the membership that it had then; `has_no_coordinator` says that it knew no coordinator that it could
    tell; `exit_code` is that of the program, None as long as it runs."""

    standing: Standing | None = None
    has_no_coordinator: bool = False
    exit_code: int | None = None

    @before("program internal")
    def take_program(self, view: ClientView, seen: Seen) -> None:
        """The program is asked to end, or ends."""
        body = seen.event.body
        if body["state"] == "asked to end":
            self.standing, self.has_no_coordinator = view.knowledge.latest, view.is_looking_up
        elif body["state"] == "ended":
            self.exit_code = body["code"]

    @before("LeaveGroup request")
    def judge_leave(self, view: ClientView, seen: Seen) -> Findings:
        """A LeaveGroup arrives."""
        if view.instance is not None:
            title, expected = "A static member leaves by itself", "no LeaveGroup"
            yield blame_request("MEMBER-23", seen.request, title, expected, "LeaveGroup")

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends: the client has left the group, if it is dynamic, and is gone."""
        requirement, asked = self.requirement(view), view.asked_to_end
        if asked is None:
            return
        if requirement == "MEMBER-23":
            yield from (build_pass(requirement, 0),) if view.ended is not None and view.left is None else ()
        elif requirement and view.left is not None:
            waited = view.left.sent_at - asked
            is_prompt = view.ended is not None or waited < view.earliest_timeout  # else it was not polled
            title, observed = "The client does not leave when it closes", f"LeaveGroup after {waited} ms"
            yield check(is_prompt, requirement, view.left.handle - 1, title, "LeaveGroup", observed)
        elif requirement:
            yield from self.judge_absent_leave(view, requirement, time - asked)
        yield from self.judge_failed_leave(view, time)

    def judge_absent_leave(self, view: ClientView, requirement: str, waited: int) -> Findings:
        """No LeaveGroup has come: perhaps since the client waits for its coordinator."""
        is_waiting = view.lost_since is not None or any(each.api != "Fetch" for each in view.outstanding.values())
        if self.has_no_coordinator:
            note = "the client knows no coordinator that it could tell"
            yield CheckResult(requirement, 0, CheckStatus.NOT_OBSERVED, note)
        elif self.exit_code == -signal.SIGTERM:
            note = "the program ends at SIGTERM without closing its client"
            yield CheckResult(requirement, 0, CheckStatus.NOT_OBSERVED, note)
        elif view.ended is not None:
            title, observed = "The client ends without leaving", "none before it ended"
            yield build_violation(requirement, 0, title, "LeaveGroup", observed)
        elif waited > MAX_CLOSING_MS and not is_waiting:
            observed = f"none for {waited} ms"
            yield build_violation(requirement, 0, "The client does not leave", "LeaveGroup", observed)

    def requirement(self, view: ClientView) -> str:
        """What says whether the client leaves, by the membership that it had when it was asked to end."""
        if view.instance is not None:
            return "MEMBER-23"
        if self.standing is None or not self.standing.member_id:
            return ""
        if self.standing.generation != NO_GENERATION:
            return "MEMBER-22"
        return "MEMBER-24" if self.standing.requirement == "MEMBER-05" else ""  # no other id has it just got

    def judge_failed_leave(self, view: ClientView, time: int) -> Findings:
        """A LeaveGroup that fails does not block closing. How long a client waits for a response is its own affair."""
        left = view.left
        if left is None or left.response is None or left.responded_at is None or not left.response.get("error_code"):
            return
        waited = time - left.responded_at
        if view.ended is not None:
            yield build_pass("MEMBER-25", left.handle - 1)
        elif waited > MAX_CLOSING_MS:
            title, observed = "LeaveGroup blocks closing", f"it still runs after {waited} ms"
            yield build_violation("MEMBER-25", left.handle - 1, title, "the program ends", observed)
