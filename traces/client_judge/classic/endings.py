"""The end of a client and of its trace: leaving, and debts."""

import signal

from fencepost.traces.client_judge.classic.joining import requirement_of_sync
from fencepost.traces.client_judge.classic.knowledge import NO_GENERATION
from fencepost.traces.client_judge.classic.state import MIN_PATIENCE_MS, ClientState, Debt
from fencepost.traces.client_judge.evidence import build_violation

MAX_CLOSING_MS = 10_000
"""How long a client may take to close after its LeaveGroup failed."""


def judge_debts(state: ClientState, time: int) -> None:
    """What the client owes is overdue, or the trace ends too early to say so."""
    if is_over(state):
        judge_debt_of_manual(state, time)
        return
    for debt in state.debts.values():
        patience = patience_for(state, debt.api)
        if time - debt.since > patience and not state.is_unheard(time, MIN_PATIENCE_MS):
            title, expected = f"No {debt.api} follows", f"{debt.api} within {patience} ms"
            observed = f"none for {time - debt.since} ms"
            state.evidence.violate(
                build_violation(debt.requirement, debt.sequence, title, expected, observed, debt.news)
            )
        else:
            state.evidence.leave_open(debt.requirement, debt.sequence, describe_open(debt, time, patience))
    judge_missing_sync(state, time)


def judge_debt_of_manual(state: ClientState, time: int) -> None:
    """An application that has left its group, and assigned its partitions itself, goes on with its auto-commits."""
    debt = state.debts.get("MCOMMIT-17")
    if debt is None or state.is_ending:
        return
    patience = patience_for(state, debt.api)
    title, expected = f"No {debt.api} follows", f"{debt.api} within {patience} ms"
    if time - debt.since > patience:
        observed = f"none for {time - debt.since} ms"
        state.evidence.violate(build_violation("MCOMMIT-17", debt.sequence, title, expected, observed, debt.news))


def judge_waiting_commit(state: ClientState, time: int) -> None:
    """A commit that the application waits for is not tried again, though nothing else is waited for (MCOMMIT-14)."""
    debt = state.debts.pop("MCOMMIT-14", None)
    end = time if state.asked_to_end is None else state.asked_to_end
    is_held_up = state.rhythm.lost_since is not None or any(
        end - each.sent_at > MIN_PATIENCE_MS / 2 for each in state.outstanding.values() if each.api != "Fetch"
    )
    if debt is not None and state.ended is None and not is_held_up and end - debt.since > patience_for(state, debt.api):
        title, expected = "A commit is not tried again", "OffsetCommit again, or a failure"
        observed = f"neither for {end - debt.since} ms"
        violation = build_violation(debt.requirement, debt.sequence, title, expected, observed, debt.news)
        state.evidence.violate(violation)


def is_over(state: ClientState) -> bool:
    """Whether nothing more is to be expected of the client."""
    return state.is_ending or state.left is not None


def patience_for(state: ClientState, api: str) -> int:
    """How long the client may take for a request: for JoinGroup, as long as its application may take for a poll."""
    own = max(state.rebalance_timeout, state.session_timeout) if api == "JoinGroup" else 0
    return max(own, MIN_PATIENCE_MS) + state.knowledge.grace


def describe_open(debt: Debt, time: int, patience: int) -> str:
    """Why a debt says nothing yet."""
    return f"{debt.news}, and no {debt.api} came within {time - debt.since} ms; the client may take {patience} ms"


def judge_missing_sync(state: ClientState, time: int) -> None:
    """A JoinGroup that succeeded is followed by SyncGroup."""
    exchange = state.exchange
    if exchange is None or exchange.is_synced or exchange.is_excused:
        return
    if time - exchange.time > MIN_PATIENCE_MS + state.knowledge.grace:
        requirement = requirement_of_sync(exchange)
        expected = f"SyncGroup of generation {exchange.generation}"
        observed = f"none for {time - exchange.time} ms"
        state.evidence.violate(
            build_violation(requirement, exchange.sequence, "No SyncGroup after JoinGroup", expected, observed)
        )


def judge_leaving(state: ClientState, time: int) -> None:
    """A client that was asked to end has left the group, if it is dynamic, and is gone."""
    if state.asked_to_end is None:
        return
    requirement = leaving_requirement(state)
    is_killed = state.exit_code == -signal.SIGTERM
    if requirement == "MEMBER-23":
        if state.ended is not None and state.left is None:
            state.evidence.hold(requirement, 0)
    elif requirement and state.left is not None:
        waited, interval = state.left.sent_at - state.asked_to_end, state.earliest_timeout
        is_prompt = state.ended is not None or waited < interval  # else it has left since it was not polled
        title, observed = "The client does not leave when it closes", f"LeaveGroup after {waited} ms"
        violation = build_violation(requirement, state.left.handle - 1, title, "LeaveGroup", observed)
        state.evidence.judge(is_prompt, violation)
    elif requirement and state.ends_without_coordinator:
        state.evidence.miss(requirement, "the client knows no coordinator that it could tell")
    elif requirement and is_killed:
        state.evidence.miss(requirement, "the program ends at SIGTERM without closing its client")
    elif requirement and state.ended is not None:
        state.evidence.violate(
            build_violation(requirement, 0, "The client ends without leaving", "LeaveGroup", "none before it ended")
        )
    elif requirement and time - state.asked_to_end > MAX_CLOSING_MS and not is_waiting(state):
        observed = f"none for {time - state.asked_to_end} ms"
        state.evidence.violate(build_violation(requirement, 0, "The client does not leave", "LeaveGroup", observed))
    judge_failed_leave(state, time)


def is_waiting(state: ClientState) -> bool:
    """Whether a client waits for its coordinator, which it cannot find or which owes it a response."""
    return state.rhythm.lost_since is not None or any(each.api != "Fetch" for each in state.outstanding.values())


def leaving_requirement(state: ClientState) -> str:
    """What says whether the client leaves, by the membership that it had when it was asked to end."""
    if state.instance is not None:
        return "MEMBER-23"
    standing = state.standing_at_end
    if standing is None or not standing.member_id:
        return ""
    if standing.generation != NO_GENERATION:
        return "MEMBER-22"
    return "MEMBER-24" if standing.requirement == "MEMBER-05" else ""  # no other id is one that it has just got


def judge_failed_leave(state: ClientState, time: int) -> None:
    """A LeaveGroup that fails does not block closing. How long a client waits for a response is its own affair."""
    left = state.left
    if left is None or left.response is None or left.responded_at is None or not left.response.get("error_code"):
        return
    waited = time - left.responded_at
    if state.ended is not None:
        state.evidence.hold("MEMBER-25", left.handle - 1)
    elif waited > MAX_CLOSING_MS:
        observed = f"it still runs after {waited} ms"
        state.evidence.violate(
            build_violation("MEMBER-25", left.handle - 1, "LeaveGroup blocks closing", "the program ends", observed)
        )
