"""The rhythm of a client's heartbeats and its clocks, held against what its application does."""

from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.application import Application, check_event
from fencepost.traces.client_judge.classic.knowledge import Phase, Standing
from fencepost.traces.client_judge.classic.rhythm import STEADY
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.events import Event, Operation

PASSING_ERRORS = frozenset({Error.UNKNOWN_SERVER_ERROR, Error.COORDINATOR_LOAD_IN_PROGRESS})
"""The errors of heartbeats that may pass."""
LEAVING_MS = 3_000
"""How late a client that is not polled may leave, or stop its heartbeats."""
SLOW_MS = 3_000
"""How long an application has to do nothing to be slow."""


def note_heartbeat(state: ClientState, operation: Operation, event: Event) -> None:
    """A Heartbeat of a membership that the client has arrives."""
    rhythm, application = state.rhythm, state.application
    gap = event.time - rhythm.last
    if rhythm.failed is not None and rhythm.usual:
        waited = event.time - rhythm.failed
        title, expected = "A heartbeat that failed is not repeated soon", f"less than {rhythm.usual} ms later"
        state.check(waited < rhythm.usual, "HBT-14", operation, title, expected, f"{waited} ms later")
    elif rhythm.last and rhythm.failed is None and (application is None or application.idle_since is None):
        rhythm.gaps.append(gap)
    rhythm.failed, rhythm.last = None, event.time
    if rhythm.outage > state.rebalance_timeout > 0:
        state.evidence.hold("HBT-15", event.sequence)
        rhythm.outage = 0


def note_heartbeat_response(state: ClientState, event: Event) -> None:
    """The response to a Heartbeat leaves."""
    if event.body.get("error_code", 0) in PASSING_ERRORS:
        state.rhythm.failed = event.time


def note_lookup(state: ClientState, event: Event, is_found: bool) -> None:
    """The response to FindCoordinator leaves."""
    rhythm = state.rhythm
    if is_found and rhythm.lost_since is None:
        return
    if state.last_sign is not None:  # nobody was there to get a heartbeat
        state.last_sign = event.time
    if not is_found:
        rhythm.lost_since = event.time if rhythm.lost_since is None else rhythm.lost_since
    elif rhythm.lost_since is not None:
        rhythm.outage, rhythm.lost_since, rhythm.found_at = event.time - rhythm.lost_since, None, event.time


def is_looking_up(state: ClientState) -> bool:
    """Whether the client knows no coordinator as far as it has said: it has asked for one and was told none."""
    return state.rhythm.lost_since is not None or any(
        each.api == "FindCoordinator" for each in state.outstanding.values()
    )


def has_no_coordinator(state: ClientState, time: int) -> bool:
    """Whether the coordinator cannot be found, or does not respond: the client cannot ask it for offsets."""
    return state.rhythm.lost_since is not None or state.is_unheard(time, state.knowledge.grace)


def has_been_lost(state: ClientState, time: int) -> bool:
    """Whether the coordinator could not be found for longer than the poll interval."""
    rhythm = state.rhythm
    lost = rhythm.outage if rhythm.lost_since is None else time - rhythm.lost_since
    return lost > state.rebalance_timeout > 0


def judge_end_of_idleness(state: ClientState, application: Application, event: Event) -> None:
    """The application goes on after it has done nothing for a while: heartbeats came, or came no more."""
    if application.idle_since is None or state.join is None:
        return
    idle, rhythm = event.time - application.idle_since, state.rhythm
    silence = event.time - max(rhythm.last, application.idle_since)
    limit = state.rebalance_timeout + LEAVING_MS
    is_stable = state.knowledge.latest.phase is Phase.STABLE and state.rebalance_told is None
    is_stable &= state.exchange_outstanding() is None
    if state.instance is not None and application.has_interval and idle > limit and is_stable:
        title, expected = "A static member sends heartbeats that is not polled", f"none after {limit} ms"
        observed = f"one {idle - silence} ms after the last poll"
        check_event(state.evidence, silence >= idle - limit, "HBT-07", event, title, expected, observed)
        news = "its application did not poll"
        state.leave_silently(Standing("", requirement="HBT-08", news=news, sequence=event.sequence, time=event.time))
    elif application.has_interval and application.unpolled_time(event.time) > state.earliest_timeout:
        state.may_have_left = True
    elif SLOW_MS <= idle < state.earliest_timeout and is_stable and rhythm.usual:
        allowed = STEADY * rhythm.usual + state.knowledge.grace
        title, expected = "A slow application stops the heartbeats", f"one in {rhythm.usual} ms"
        if may_be_silent(state, event, allowed):
            return
        check_event(state.evidence, silence <= allowed, "HBT-12", event, title, expected, f"none for {silence} ms")


def note_overdue_poll(state: ClientState, application: Application, time: int) -> None:
    """A client that is held up in a poll for as long as its poll interval may leave as one that is not polled."""
    is_overdue = application.overdue_time(time) > state.earliest_timeout
    if application.has_interval and state.join is not None and is_overdue:
        state.may_have_left = True


def judge_silence_of_waiting(state: ClientState, operation: Operation, time: int) -> None:
    """Heartbeats come while SyncGroup has no response: not one in half a session timeout is unusual."""
    waited = time - operation.sent_at
    if waited > state.session_timeout / 2 and not state.has_sign_while_waiting:
        title, observed = "No heartbeat while SyncGroup has no response", f"none for {waited} ms"
        state.violate("HBT-03", operation, title, "heartbeats", observed)


def may_be_silent(state: ClientState, event: Event, milliseconds: int) -> bool:
    """Whether JoinGroup had no response until less than so long ago: before, no heartbeat was to come (HBT-04)."""
    return state.exchange is not None and event.time - state.exchange.time <= milliseconds


def note_slow_callback(state: ClientState, event: Event) -> None:
    """A callback begins; a slow one is over, and heartbeats came meanwhile."""
    takes = event.body.get("takes_ms", 0)
    state.rhythm.callback = (event.time, takes) if takes >= SLOW_MS else None


def judge_slow_callback(state: ClientState, event: Event) -> None:
    """Something happens in the application: a slow callback is over by then (HBT-12)."""
    rhythm, callback = state.rhythm, state.rhythm.callback
    rhythm.callback = None
    if callback is None or not rhythm.usual or state.knowledge.latest.phase is not Phase.STABLE:
        return
    begun, takes = callback
    if takes >= state.earliest_timeout or event.time - begun < takes:
        return
    silence, allowed = event.time - max(rhythm.last, begun), STEADY * rhythm.usual + state.knowledge.grace
    if may_be_silent(state, event, allowed):
        return
    title, expected = "A slow callback stops the heartbeats", f"one in {rhythm.usual} ms"
    check_event(state.evidence, silence <= allowed, "HBT-12", event, title, expected, f"none for {silence} ms")


def judge_clocks(state: ClientState, operation: Operation, event: Event) -> None:
    """FindCoordinator, LeaveGroup or Heartbeat arrives: a JoinGroup that has just succeeded, after longer than a clock
    runs, has started that anew."""
    exchange = state.exchange
    clock = min(state.session_timeout, state.rebalance_timeout)
    if exchange is None or exchange.is_excused or not clock or exchange.time - exchange.operation.sent_at <= clock:
        return
    since = event.time - exchange.time
    title, expected = (
        "A clock goes on that JoinGroup has started anew",
        f"{operation.api} no sooner than after {clock} ms",
    )
    if operation.api != "Heartbeat" and since < state.knowledge.grace and not state.is_ending:
        state.violate("HBT-16", operation, title, expected, f"{operation.api} after {since} ms")
    elif operation.api == "Heartbeat" and since >= state.knowledge.grace:
        state.evidence.hold("HBT-16", event.sequence)
