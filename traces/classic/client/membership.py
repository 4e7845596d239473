"""Heartbeats, commits and LeaveGroup: the requests with a membership, held against the knowledge of the client."""

import signal

from fencepost.model.classic.messages import read_offsets
from fencepost.traces.classic.client.joining import judge_instance, judge_reason, requirement_of_sync
from fencepost.traces.classic.client.messages import NO_GENERATION, describe_id, describe_partitions, generation_in
from fencepost.traces.classic.client.news import RESETS, is_looking_up, judge_clocks, note_heartbeat
from fencepost.traces.classic.client.view import MIN_PATIENCE_MS, ClientView, Debt, Phase, Standing, has_membership
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.events import Event, Operation

RESTING_MS = 1_200
"""When a member that would join again of its own accord has done so."""
PATIENCE_MS = 3_000
"""How long after its session timeout a client may take to look for the coordinator."""


def judge_heartbeat(view: ClientView, operation: Operation, event: Event) -> None:
    """A Heartbeat arrives."""
    if operation.version >= 3:
        judge_instance(view, operation)
    if is_joining(view, operation, event):
        title, expected = "Heartbeat while JoinGroup has no response", "no heartbeat"
        view.violate("HBT-04", operation, title, expected, "Heartbeat")
        return
    standing = find_standing(view, operation)
    sequence = operation.handle - 1
    if standing is None:
        judge_stale(view, operation, "HBT-02", "HBT-04")
        return
    view.evidence.hold("HBT-02", sequence)
    view.has_sign_while_waiting = True
    if standing.phase is Phase.JOINED:
        view.evidence.hold("HBT-03", sequence)
    latest = view.knowledge.latest
    if latest.requirement == "MEMBER-14" and latest.generation == standing.generation:
        view.evidence.hold("MEMBER-14", sequence)
    if view.rebalance_told is not None and event.time > view.rebalance_told + view.knowledge.grace:
        view.evidence.hold("HBT-05", sequence)
    note_sign(view, operation, event)
    judge_rest(view, operation, event)
    note_heartbeat(view, operation, event)
    judge_clocks(view, operation, event)


def judge_rest(view: ClientView, operation: Operation, event: Event) -> None:
    """A cooperative member that kept everything in a rebalance does not ask for another one."""
    exchange = view.exchange
    if not view.is_cooperative or exchange is None or view.rounds < 2 or view.given_up:
        return
    if exchange.is_synced and event.time - exchange.time > RESTING_MS and view.rebalance_told is None:
        view.evidence.hold("COOP-05", event.sequence)


def judge_commit(view: ClientView, operation: Operation, event: Event) -> None:
    """An OffsetCommit of the group arrives."""
    application = view.application
    if view.join is None or application.has_ended:
        return  # an application without a subscription
    if operation.version >= 7 and operation.body["member_id"]:
        judge_instance(view, operation)
    if is_joining(view, operation, event):
        title, expected = "OffsetCommit while JoinGroup has no response", "no commit"
        view.violate("MCOMMIT-08", operation, title, expected, "OffsetCommit")
        return
    open_one = view.exchange_outstanding()
    if open_one is not None and open_one.connection == operation.connection:
        title, expected = "OffsetCommit while SyncGroup has no response", "no commit"
        view.violate("MCOMMIT-08", operation, title, expected, "OffsetCommit")
        return
    standing = find_standing(view, operation)
    if standing is None:
        judge_stale(view, operation, "MCOMMIT-03", "MCOMMIT-11")
        return
    view.evidence.hold("MCOMMIT-03", operation.handle - 1)
    committed = frozenset(partition for partition, _ in read_offsets(operation.body, view.topic_names))
    allowed = view.knowledge.allowed_partitions() | standing.assignment | view.given_up
    observed = describe_partitions(committed)
    if any(topic in view.foreign_topics for topic, _ in committed):
        title, expected = "Commit of a topic that is not subscribed", "the assignment is not applied"
        view.violate("MEMBER-20", operation, title, expected, observed)
    elif view.knowledge.latest.requirement != "MEMBER-20":  # else it has what it must not apply
        title, expected = "The commit covers partitions that are not assigned", describe_partitions(allowed)
        view.check(committed <= allowed, "MCOMMIT-18", operation, title, expected, observed)
    note_sign(view, operation, event)


def judge_leave(view: ClientView, operation: Operation, event: Event) -> None:
    """A LeaveGroup arrives: from now on the client is in no group."""
    application = view.application
    if not view.is_ending and application.is_ending:
        judge_absence(view, application.began)
    view.left = operation
    if view.instance is not None:
        title, expected = "A static member leaves by itself", "no LeaveGroup"
        view.violate("MEMBER-23", operation, title, expected, "LeaveGroup")
    for row in operation.body.get("members") or ():
        if row.get("reason"):
            judge_reason(view, operation, row["reason"])
    if view.exchange is not None:
        view.exchange.is_excused = True
    view.forgive("JoinGroup")
    view.last_sign = view.installed = None
    standing = Standing(None, news="it left the group", sequence=event.sequence, time=event.time)
    view.knowledge.learn(standing)
    view.knowledge.show(event.sequence)


def is_joining(view: ClientView, operation: Operation, event: Event) -> bool:
    """Whether the request was certainly sent after a JoinGroup that has no response."""
    open_one = view.exchange_outstanding()
    if open_one is None or open_one.api != "JoinGroup":
        return False
    return open_one.connection == operation.connection or open_one.sent_at + view.knowledge.grace < event.time


def find_standing(view: ClientView, operation: Operation) -> Standing | None:
    """The standing by which the client sent the request; all news before that has arrived."""
    member_id, generation = operation.body["member_id"], generation_in(operation)
    found = view.knowledge.find(member_id, generation)
    if found is not None:
        same = (one for one in view.knowledge.standings if has_membership(one, member_id, generation))
        view.knowledge.show(next(same).sequence)
    return found


def judge_stale(view: ClientView, operation: Operation, stale: str, memberless: str) -> None:
    """A request carries a membership that the client does not have: `stale` is broken if it has another one,
    `memberless` if it has none, or what says that it has none any more."""
    knowledge = view.knowledge
    certain = knowledge.standings[0]
    sent = operation.body["member_id"], generation_in(operation)
    observed = f"{operation.api} of generation {sent[1]} as {describe_id(sent[0])}"
    requirement = stale
    if sent[1] == NO_GENERATION or all(each.generation == NO_GENERATION for each in knowledge.standings):
        has_kept = operation.api == "Heartbeat" and certain.requirement in RESETS
        has_kept &= sent[1] != NO_GENERATION
        requirement = certain.requirement if has_kept else memberless
        expected = f"no {operation.api}: it has no generation"
    else:
        current = next(each for each in reversed(knowledge.standings) if each.generation != NO_GENERATION)
        expected = f"generation {current.generation} as {describe_id(current.member_id)}"
        expected += f", or no {operation.api}" if current is not knowledge.latest else ""
    title = f"{operation.api} of a membership that is over" if knowledge.had(*sent) else f"{operation.api} of nobody"
    view.violate(requirement, operation, title, expected, observed, knowledge.latest.news)


def unheard_heartbeat(view: ClientView, time: int, milliseconds: int) -> Operation | None:
    """A heartbeat that has had no response for so long, None if there is none."""
    waiting = (each for each in view.outstanding.values() if each.api == "Heartbeat")
    return next((each for each in waiting if time - each.sent_at > milliseconds), None)


def judge_lookup(view: ClientView, operation: Operation, event: Event) -> None:
    """A client whose heartbeats have no response looks for the coordinator again."""
    view.pay("FindCoordinator", event.sequence)
    if view.session_timeout and unheard_heartbeat(view, event.time, view.session_timeout // 2) is not None:
        view.evidence.hold("HBT-11", event.sequence)


def doubt_assignment(view: ClientView, event: Event) -> None:
    """A connection ends: the response to SyncGroup that left on it a moment ago, and that the application has not been
    told of, may never be read."""
    latest, application = view.knowledge.latest, view.application
    is_told = not application.assignments
    if is_told or latest.phase is not Phase.STABLE or event.connection != view.coordinator_connection:
        return
    if event.time - latest.time <= view.knowledge.grace:
        view.installed, view.is_installed_doubtful = None, True


def note_loss(view: ClientView, operation: Operation, event: Event) -> None:
    """The connection of a heartbeat ends that has had no response for long: the client looks for the coordinator."""
    waited = event.time - operation.sent_at
    is_member = view.last_sign is not None and not view.is_ending
    if operation.api == "Heartbeat" and is_member and waited > view.session_timeout // 2 > 0:
        news = f"a Heartbeat had no response for {waited} ms"
        view.owe(Debt("HBT-11", "FindCoordinator", event.time, event.sequence, news))


def judge_unheard(view: ClientView, time: int) -> None:
    """A client has not waited for the response to a heartbeat for much longer than its session timeout."""
    unheard = unheard_heartbeat(view, time, view.session_timeout + PATIENCE_MS)
    if unheard is not None:
        title, expected = "A client whose heartbeats have no response waits", "FindCoordinator"
        observed = f"none for {time - unheard.sent_at} ms"
        view.violate("HBT-11", unheard, title, expected, observed)


def note_sign(view: ClientView, operation: Operation, event: Event) -> None:
    """The coordinator sees a sign of life of a stable member."""
    if view.last_sign is None:
        return
    if operation.api == "Heartbeat":
        judge_gap(view, operation, event.time)
    view.last_sign = event.time


def judge_gap(view: ClientView, operation: Operation, time: int) -> None:
    """No more than a session timeout has passed since the last sign of life."""
    if view.last_sign is None or not view.session_timeout:
        return
    waiting = (each for each in view.outstanding.values() if each.api in ("Heartbeat", "FindCoordinator"))
    if any(time - each.sent_at > view.session_timeout // 2 for each in waiting):
        return  # the next one waits for its response, or for the coordinator to be found
    application = view.application
    if application.held_up is not None and application.held_up[1] > view.last_sign:
        return
    gap, allowed = time - view.last_sign, view.session_timeout + view.knowledge.grace
    requirement = "HBT-01" if view.rebalance_told is None else "HBT-05"
    title, expected = "Heartbeats are too rare", f"one in {view.session_timeout} ms"
    if gap > allowed:
        view.violate(requirement, operation, title, expected, f"none for {gap} ms", view.knowledge.latest.news)
    elif requirement == "HBT-01":
        view.evidence.hold(requirement, operation.handle - 1)


def judge_silence(view: ClientView, time: int) -> None:
    """A stable member has not been silent for too long when the trace ends."""
    assert view.join is not None
    allowed = view.session_timeout + view.knowledge.grace
    if view.last_sign is not None and time - view.last_sign > allowed:
        judge_gap(view, view.join, time)


# --- The end of a client and of its trace: leaving, and debts.

MAX_CLOSING_MS = 10_000
"""How long a client may take to close after its LeaveGroup failed."""


def judge_debts(view: ClientView, time: int) -> None:
    """What the client owes is overdue, or the trace ends too early to say so."""
    if is_over(view):
        return
    for debt in view.debts.values():
        patience = patience_for(view, debt.api)
        if time - debt.since > patience and not view.is_unheard(time, MIN_PATIENCE_MS):
            title, expected = f"No {debt.api} follows", f"{debt.api} within {patience} ms"
            observed = f"none for {time - debt.since} ms"
            view.evidence.violate(
                build_violation(debt.requirement, debt.sequence, title, expected, observed, debt.news)
            )
        else:
            view.evidence.leave_open(debt.requirement, debt.sequence, describe_open(debt, time, patience))
    judge_missing_sync(view, time)


def judge_absence(view: ClientView, time: int) -> None:
    """The client is asked to end: what its time had passed for until then is missing, however it goes on."""
    application = view.application
    is_held_up = is_looking_up(view) or view.coordinator_lost is not None
    is_held_up |= max(application.idle_time(time), application.overdue_time(time)) > MIN_PATIENCE_MS / 2
    is_held_up |= application.has_failed_poll or application.held_up is not None
    if view.join is None or is_over(view) or is_held_up:
        return
    judge_silence(view, time)
    for debt in tuple(view.debts.values()):
        waited, patience = time - debt.since, patience_for(view, debt.api)
        if debt.api == "JoinGroup" and waited > patience and not view.is_unheard(time, MIN_PATIENCE_MS):
            title, expected = "No JoinGroup follows", f"JoinGroup within {patience} ms"
            found = build_violation(
                debt.requirement, debt.sequence, title, expected, f"none for {waited} ms", debt.news
            )
            view.evidence.violate(found)


def is_over(view: ClientView) -> bool:
    """Whether nothing more is to be expected of the client."""
    return view.is_ending or view.left is not None


def patience_for(view: ClientView, api: str) -> int:
    """How long the client may take for a request: for JoinGroup, as long as its application may take for a poll."""
    own = max(view.rebalance_timeout, view.session_timeout) if api == "JoinGroup" else 0
    return max(own, MIN_PATIENCE_MS) + view.knowledge.grace


def describe_open(debt: Debt, time: int, patience: int) -> str:
    """Why a debt says nothing yet."""
    return f"{debt.news}, and no {debt.api} came within {time - debt.since} ms; the client may take {patience} ms"


def judge_missing_sync(view: ClientView, time: int) -> None:
    """A JoinGroup that succeeded is followed by SyncGroup."""
    exchange = view.exchange
    if exchange is None or exchange.is_synced or exchange.is_excused:
        return
    if time - exchange.time > MIN_PATIENCE_MS + view.knowledge.grace:
        requirement = requirement_of_sync(exchange)
        expected = f"SyncGroup of generation {exchange.generation}"
        observed = f"none for {time - exchange.time} ms"
        view.evidence.violate(
            build_violation(requirement, exchange.sequence, "No SyncGroup after JoinGroup", expected, observed)
        )


def judge_leaving(view: ClientView, time: int) -> None:
    """A client that was asked to end has left the group, if it is dynamic, and is gone."""
    if view.asked_to_end is None:
        return
    requirement = leaving_requirement(view)
    is_killed = view.exit_code == -signal.SIGTERM
    if requirement == "MEMBER-23":
        if view.ended is not None and view.left is None:
            view.evidence.hold(requirement, 0)
    elif requirement and view.left is not None:
        waited, interval = view.left.sent_at - view.asked_to_end, view.earliest_timeout
        is_prompt = view.ended is not None or waited < interval  # else it has left since it was not polled
        title, observed = "The client does not leave when it closes", f"LeaveGroup after {waited} ms"
        violation = build_violation(requirement, view.left.handle - 1, title, "LeaveGroup", observed)
        view.evidence.judge(is_prompt, violation)
    elif requirement and view.ends_without_coordinator:
        view.evidence.miss(requirement, "the client knows no coordinator that it could tell")
    elif requirement and is_killed:
        view.evidence.miss(requirement, "the program ends at SIGTERM without closing its client")
    elif requirement and view.ended is not None:
        view.evidence.violate(
            build_violation(requirement, 0, "The client ends without leaving", "LeaveGroup", "none before it ended")
        )
    elif requirement and time - view.asked_to_end > MAX_CLOSING_MS and not is_waiting(view):
        observed = f"none for {time - view.asked_to_end} ms"
        view.evidence.violate(build_violation(requirement, 0, "The client does not leave", "LeaveGroup", observed))
    judge_failed_leave(view, time)


def is_waiting(view: ClientView) -> bool:
    """Whether a client waits for its coordinator, which it cannot find or which owes it a response."""
    return view.rhythm.lost_since is not None or any(each.api != "Fetch" for each in view.outstanding.values())


def leaving_requirement(view: ClientView) -> str:
    """What says whether the client leaves, by the membership that it had when it was asked to end."""
    if view.instance is not None:
        return "MEMBER-23"
    standing = view.standing_at_end
    if standing is None or not standing.member_id:
        return ""
    if standing.generation != NO_GENERATION:
        return "MEMBER-22"
    return "MEMBER-24" if standing.requirement == "MEMBER-05" else ""  # no other id is one that it has just got


def judge_failed_leave(view: ClientView, time: int) -> None:
    """A LeaveGroup that fails does not block closing. How long a client waits for a response is its own affair."""
    left = view.left
    if left is None or left.response is None or left.responded_at is None or not left.response.get("error_code"):
        return
    waited = time - left.responded_at
    if view.ended is not None:
        view.evidence.hold("MEMBER-25", left.handle - 1)
    elif waited > MAX_CLOSING_MS:
        observed = f"it still runs after {waited} ms"
        view.evidence.violate(
            build_violation("MEMBER-25", left.handle - 1, "LeaveGroup blocks closing", "the program ends", observed)
        )
