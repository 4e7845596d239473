"""Heartbeats and the clocks of a client, held against what its application does: a monitor."""

from dataclasses import dataclass

from fencepost.model.classic.member.member import MemberState
from fencepost.model.errors import Error
from fencepost.traces.classic.client.messages import is_found
from fencepost.traces.classic.client.view import PARKED_MS, SLOW_MS, ClientView, blame_request, check_request
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Findings, Seen, after, at_end, before, build_pass, check
from fencepost.traces.events import Event, Operation

HARMLESS_ERRORS = frozenset({Error.UNKNOWN_SERVER_ERROR, Error.COORDINATOR_LOAD_IN_PROGRESS})
"""The errors of heartbeats that may pass."""
STEADY = 3
"""So many heartbeats show a rhythm, and a silence of so many is one."""
LEAVING_MS = 3_000
"""How late a client that is not polled may leave, or stop its heartbeats."""
RESTING_MS = 1_200
"""When a member that would join again of its own accord has done so."""
PATIENCE_MS = 3_000
"""How long after its session timeout a client may take to look for the coordinator."""


@dataclass(slots=True)
class Heartbeats:
    """When heartbeats came. Times in milliseconds."""

    last: int = 0
    steady: int = 0
    """How many came while the application polled."""
    longest: int = 0
    """The longest time between these."""
    failed: int | None = None
    """When one got an error that may pass, if none came since."""
    outage: int = 0
    """How long the coordinator could not be found, the last time, if no heartbeat came since."""
    has_sign_while_waiting: bool = False
    """Whether one came since the last SyncGroup."""

    @property
    def usual(self) -> int:
        """The longest time between heartbeats so far, 0 if there were too few."""
        return self.longest if self.steady >= STEADY else 0

    # --- Heartbeats and their responses.

    @before("Heartbeat request")
    def judge_heartbeat(self, view: ClientView, seen: Seen) -> Findings:
        """A Heartbeat arrives: of a membership that the client has (`judge_membership` says so), and soon enough."""
        operation, event, latest, sequence = seen.request, seen.event, view.knowledge.latest, seen.event.sequence
        standing = view.standing_of(operation)
        if standing is None or view.is_joining(operation):
            return
        self.has_sign_while_waiting = True
        if standing.member.state == MemberState.COMPLETING_REBALANCE:
            yield build_pass("HBT-03", sequence)
        if latest.requirement == "MEMBER-14" and latest.generation == standing.generation:
            yield build_pass("MEMBER-14", sequence)
        if view.rebalance_told is not None and event.time > view.rebalance_told + view.knowledge.grace:
            yield build_pass("HBT-05", sequence)
        yield from judge_gap(view, sequence, event.time)
        yield from self.judge_rest(view, event)
        yield from self.judge_rhythm(view, operation, event)
        yield from judge_clocks(view, operation)

    def judge_rest(self, view: ClientView, event: Event) -> Findings:
        """A cooperative member that kept everything in a rebalance does not ask for another one."""
        exchange = view.exchange
        has_kept_all = view.is_cooperative and view.rounds >= 2 and not view.given_up and view.rebalance_told is None
        if (
            exchange is not None
            and exchange.sync is not None
            and event.time - exchange.time > RESTING_MS
            and has_kept_all
        ):
            yield build_pass("COOP-05", event.sequence)

    def judge_rhythm(self, view: ClientView, operation: Operation, event: Event) -> Findings:
        """A heartbeat that failed is repeated soon."""
        if self.failed is not None and self.usual:
            waited, usual = event.time - self.failed, self.usual
            title, expected = "A heartbeat that failed is not repeated soon", f"less than {usual} ms later"
            yield check_request(view, waited < usual, "HBT-14", operation, title, expected, f"{waited} ms later")
        elif self.last and self.failed is None and view.application.idle_since is None:
            self.steady, self.longest = self.steady + 1, max(self.longest, event.time - self.last)
        self.failed, self.last = None, event.time
        if self.outage > view.rebalance_timeout > 0:
            self.outage = 0
            yield build_pass("HBT-15", event.sequence)

    @after("Heartbeat response")
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """The response to a Heartbeat leaves."""
        if seen.event.body.get("error_code", 0) in HARMLESS_ERRORS:
            self.failed = seen.event.time

    @before("FindCoordinator response")
    def take_lookup(self, view: ClientView, seen: Seen) -> None:
        """The response to FindCoordinator leaves."""
        if is_found(seen.event) and view.lost_since is not None:
            self.outage = seen.event.time - view.lost_since

    @before("FindCoordinator request")
    def judge_lookup(self, view: ClientView, seen: Seen) -> Findings:
        """A client whose heartbeats have no response looks for the coordinator again."""
        if view.session_timeout and unheard_heartbeat(view, seen.event.time, view.session_timeout // 2) is not None:
            yield build_pass("HBT-11", seen.event.sequence)

    @before("SyncGroup request")
    def take_sync(self, view: ClientView, seen: Seen) -> None:
        """A SyncGroup arrives."""
        self.has_sign_while_waiting = False

    @before("JoinGroup response", "SyncGroup response")
    def judge_answer(self, view: ClientView, seen: Seen) -> Findings:
        """JoinGroup has its response, for which no heartbeat was to come, or SyncGroup: not one in half a session
        timeout is unusual then."""
        operation, waited = seen.request, seen.event.time - seen.request.sent_at
        if operation.api == "JoinGroup":
            yield from (build_pass("HBT-04", seen.event.sequence),) if waited > PARKED_MS else ()
        elif waited > view.session_timeout / 2 and not self.has_sign_while_waiting:
            title, observed = "No heartbeat while SyncGroup has no response", f"none for {waited} ms"
            yield blame_request("HBT-03", operation, title, "heartbeats", observed)

    # --- The application.

    @before("command internal")
    def judge_command(self, view: ClientView, seen: Seen) -> Findings:
        """The application goes on after it has done nothing for a while: heartbeats came, or came no more."""
        application, event = view.application, seen.event
        yield from self.judge_slow_callback(view, seen)
        yield from judge_idleness(view, event.time)
        if application.idle_since is None or view.join is None:
            return
        idle, silence = event.time - application.idle_since, event.time - max(self.last, application.idle_since)
        if view.stops_silently(event.time):
            limit = view.rebalance_timeout + LEAVING_MS
            title, expected = "A static member sends heartbeats that is not polled", f"none after {limit} ms"
            is_right, observed = silence >= idle - limit, f"one {idle - silence} ms after the last poll"
            yield check(is_right, "HBT-07", event.sequence, title, expected, observed)
        elif application.has_interval and application.unpolled_time(event.time) > view.earliest_timeout:
            return
        elif SLOW_MS <= idle < view.earliest_timeout and view.is_at_rest:
            yield from self.judge_silence(view, event, silence, "A slow application stops the heartbeats")

    @before("callback", "JoinGroup request")
    def judge_slow_callback(self, view: ClientView, seen: Seen) -> Findings:
        """Something happens in the application, or the client joins: a slow callback is over by then (HBT-12)."""
        if view.slow_callback is not None and view.knowledge.latest.is_stable:
            begun, takes = view.slow_callback
            if takes < view.earliest_timeout and seen.event.time - begun >= takes:
                silence = seen.event.time - max(self.last, begun)
                yield from self.judge_silence(view, seen.event, silence, "A slow callback stops the heartbeats")

    def judge_silence(self, view: ClientView, event: Event, silence: int, title: str) -> Findings:
        """Heartbeats came while the application was slow; none was to come before JoinGroup had its response
        (HBT-04)."""
        allowed = STEADY * self.usual + view.knowledge.grace
        has_joined = view.exchange is not None and event.time - view.exchange.time <= allowed
        if self.usual and not has_joined:
            expected, observed = f"one in {self.usual} ms", f"none for {silence} ms"
            yield check(silence <= allowed, "HBT-12", event.sequence, title, expected, observed)

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """A command is over: in a long poll the client has not left."""
        yield from self.judge_slow_callback(view, seen)
        took, timeout = seen.event.time - view.application.began, view.rebalance_timeout
        if view.application.does("poll") and took > timeout > 0 and view.left is None:
            yield build_pass("HBT-09", seen.event.sequence)

    @before("LeaveGroup request")
    def judge_leave(self, view: ClientView, seen: Seen) -> Findings:
        """LeaveGroup comes since the application closes, or since it has not polled for too long."""
        application, operation, time = view.application, seen.request, seen.event.time
        if not application.is_driven or view.is_by_hand(time):
            return
        if view.slow_callback is not None and application.is_ending:
            begun, takes = view.slow_callback
            title, expected = "LeaveGroup during the callback", f"LeaveGroup {takes} ms after the callback began"
            is_right, observed = time - begun >= takes - view.knowledge.grace, f"{time - begun} ms after"
            yield check_request(view, is_right, "MEMBER-22", operation, title, expected, observed)
        if application.is_ending or application.has_ended or view.is_ending:
            return
        yield from judge_clocks(view, operation)
        idle, limit = application.idle_time(time), view.earliest_timeout
        if time - application.began <= view.knowledge.grace:  # it may have left before that
            idle = max(idle, application.last_unpolled, application.last_busy)
        # Without a connection, LeaveGroup waits for one, which is only made in a poll; heartbeats do not come then.
        is_late = view.may_be_out and time - self.last > view.knowledge.grace
        if application.has_interval and idle > limit:
            yield build_pass("HBT-06", seen.event.sequence)
        elif application.has_interval and application.held_up_time(time) <= limit and not is_late:
            outage = self.outage if view.lost_since is None else time - view.lost_since
            requirement = "HBT-15" if outage > view.rebalance_timeout > 0 else "HBT-09"
            title, observed = "A client leaves that is polled", f"LeaveGroup {idle} ms after the last poll"
            yield blame_request(requirement, operation, title, "no LeaveGroup", observed)

    # --- Silence, when the client is asked to end and when the trace ends.

    @before("program internal", "LeaveGroup request")
    def judge_absence(self, view: ClientView, seen: Seen) -> Findings:
        """The client is asked to end: what its time had passed for until then is missing, however it goes on."""
        if (time := view.ending_time(seen)) is not None:
            yield from judge_gap(view, view.join_sequence, time, at_end=True)

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends."""
        yield from judge_idleness(view, time) if view.application.is_driven else ()
        if view.is_over or view.last_sign is None or view.join is None:
            return
        yield from judge_gap(view, view.join_sequence, time, at_end=True)
        unheard = unheard_heartbeat(view, time, view.session_timeout + PATIENCE_MS)
        if unheard is not None:
            title, expected = "A client whose heartbeats have no response waits", "FindCoordinator"
            yield blame_request("HBT-11", unheard, title, expected, f"none for {time - unheard.sent_at} ms")


def unheard_heartbeat(view: ClientView, time: int, milliseconds: int) -> Operation | None:
    """A heartbeat that has had no response for so long, None if there is none."""
    waiting = (each for each in view.outstanding.values() if each.api == "Heartbeat")
    return next((each for each in waiting if time - each.sent_at > milliseconds), None)


def judge_gap(view: ClientView, sequence: int, time: int, *, at_end: bool = False) -> Findings:
    """No more than a session timeout has passed since the last sign of life of a stable member."""
    if view.last_sign is None or not view.session_timeout:
        return
    waiting = (each for each in view.outstanding.values() if each.api in ("Heartbeat", "FindCoordinator"))
    if any(time - each.sent_at > view.session_timeout // 2 for each in waiting):
        return  # the next one waits for its response, or for the coordinator to be found
    held_up = view.application.held_up
    if held_up is not None and held_up[1] > view.last_sign:
        return
    gap, allowed = time - view.last_sign, view.session_timeout + view.knowledge.grace
    requirement = "HBT-01" if view.rebalance_told is None else "HBT-05"
    if gap > allowed:
        title, expected, told = (
            "Heartbeats are too rare",
            f"one in {view.session_timeout} ms",
            view.knowledge.latest.news,
        )
        yield build_violation(requirement, sequence, title, expected, f"none for {gap} ms", told)
    elif requirement == "HBT-01" and not at_end:
        yield build_pass(requirement, sequence)


def judge_clocks(view: ClientView, operation: Operation) -> Findings:
    """LeaveGroup or Heartbeat arrives: a JoinGroup that has just succeeded, after longer than a clock runs, has started
    that anew. A lookup says nothing: there are clients that look up the coordinator at any time."""
    exchange, clock = view.exchange, min(view.session_timeout, view.rebalance_timeout)
    if exchange is None or view.has_left or not clock or exchange.time - exchange.operation.sent_at <= clock:
        return
    since = operation.sent_at - exchange.time
    if operation.api != "Heartbeat" and since < view.knowledge.grace and not view.is_ending:
        title, observed = "A clock goes on that JoinGroup has started anew", f"{operation.api} after {since} ms"
        yield blame_request("HBT-16", operation, title, f"{operation.api} no sooner than after {clock} ms", observed)
    elif operation.api == "Heartbeat" and since >= view.knowledge.grace:
        yield build_pass("HBT-16", operation.handle - 1)


def judge_idleness(view: ClientView, time: int) -> Findings:
    """A dynamic member whose application has not polled for longer than its poll interval has left."""
    application = view.application
    since = max(application.idle_since or 0, view.exchange.time if view.exchange is not None else 0)
    idle = 0 if application.idle_since is None else time - since
    is_member = view.knowledge.latest.is_stable and view.left is None and view.instance is None
    is_member &= application.has_interval and not view.is_ending and view.join is not None
    limit = view.rebalance_timeout + LEAVING_MS
    # LeaveGroup waits for another connection, which some make in a poll alone; one that stays sends heartbeats.
    is_cut_off = view.coordinator_lost is not None and view.coordinator_lost <= since + limit
    if is_member and idle > limit and not is_cut_off:
        title, expected = "A client stays that is not polled", f"LeaveGroup after {view.rebalance_timeout} ms"
        yield build_violation("HBT-06", view.join_sequence, title, expected, f"none for {idle} ms")
