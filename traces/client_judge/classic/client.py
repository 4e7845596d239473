"""Follows one client of the classic protocol."""

from collections import deque
from collections.abc import Callable, Mapping

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic import (
    application_end,
    committing,
    draining,
    driven,
    endings,
    heartbeats,
    joining,
    listening,
    membership,
    news,
    progress,
    reading,
    repeats,
    unawaited,
)
from fencepost.traces.client_judge.classic.groups import REPEATED, judge_groups
from fencepost.traces.client_judge.classic.growth import learn_metadata
from fencepost.traces.client_judge.classic.heartbeats import is_looking_up
from fencepost.traces.client_judge.classic.knowledge import Knowledge
from fencepost.traces.client_judge.classic.state import EXCHANGE_APIS, ClientState
from fencepost.traces.client_judge.evidence import Evidence
from fencepost.traces.events import Event, Header, Kind, Operation
from fencepost.traces.verdict import TraceVerdict

GROUP_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"})
"""Requests to the coordinator of a group."""
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat"})
"""Requests whose responses start a client's clock of its session anew."""
LOOKED_FOR = GROUP_APIS - {"LeaveGroup"}
"""Requests after whose refusal by a node that does not coordinate the group the client looks for another one."""
SETTLING_MS = 500
"""How long a client that was held up may take to read what came meanwhile."""
Look = Callable[[ClientState, Operation, Event], None]
REQUESTS: Mapping[str, Look] = {
    "JoinGroup": joining.judge_join,
    "SyncGroup": joining.judge_sync,
    "Heartbeat": membership.judge_heartbeat,
    "OffsetCommit": membership.judge_commit,
    "LeaveGroup": membership.judge_leave,
    "Fetch": reading.judge_fetch,
    "OffsetFetch": reading.judge_offset_fetch,
}
RESPONSES: Mapping[str, Look] = {
    "JoinGroup": news.learn_join,
    "SyncGroup": news.learn_sync,
    "Heartbeat": news.learn_of_membership,
    "OffsetCommit": news.learn_of_membership,
    "OffsetFetch": reading.learn_offsets,
}


class ClassicClient:
    """One client of the classic protocol, followed through a trace. Findings are about these requirements alone."""

    def __init__(self, header: Header, label: str, requirements: Mapping[str, Requirement] = CLIENT_CATALOGUE) -> None:
        self._evidence = Evidence(requirements)
        self.state = ClientState(Knowledge(header.grace), self._evidence, header.clock == "virtual")
        self._progress = progress.Progress()
        self._label = label
        self._has_asked = False
        self._sent_at: deque[int] = deque()
        """When the client sent requests, from the last that is older than `SETTLING_MS` on."""

    def _awake_until(self, time: int) -> int:
        """The latest moment by which the client has certainly read what was on its way: it sent a request then, and
        has had time since. A process that was held up sends by its timers before it reads."""
        while len(self._sent_at) > 1 and self._sent_at[1] <= time - SETTLING_MS:
            self._sent_at.popleft()
        return self._sent_at[0] if self._sent_at and self._sent_at[0] <= time - SETTLING_MS else 0

    def on_request(self, operation: Operation, event: Event) -> None:
        """The client sent a request; one that cannot be read is left alone."""
        state = self.state
        awake_until, read_until, grace = self._awake_until(event.time), event.time, state.knowledge.grace
        if state.application is not None and state.rhythm.callback is None:
            awake_until = min(awake_until, state.application.awake_until(event.time, grace))
            read_until = state.application.read_until(event.time, grace)
        if operation.api == "JoinGroup":
            state.read_until = read_until
        state.knowledge.settle(read_until if operation.api == "JoinGroup" else awake_until)
        self._sent_at.append(event.time)
        if operation.api == "JoinGroup":
            if state.refused_on == event.connection:  # it has read that, and keeps the connection
                state.doubtful.pop(event.connection, None)
            state.refused_on = -1
        driven.judge_request_of_application(state, operation, event)
        repeats.judge_repeat(state, operation, event)
        if "_findings" not in event.body:
            progress.follow_request(state, self._progress, operation, event)
        if operation.api == "FindCoordinator":
            membership.judge_lookup(state, operation, event)
            membership.note_lookup(state, operation)
        elif operation.api in GROUP_APIS:
            membership.judge_former_coordinator(state, operation, awake_until)
        if "_findings" not in event.body:
            if operation.api in GROUP_APIS and not self._has_asked:
                self._has_asked = True
                title, expected = "A group request before the lookup", "FindCoordinator first"
                state.check(state.has_found, "MEMBER-01", operation, title, expected, operation.api)
            if operation.api in REQUESTS:
                REQUESTS[operation.api](state, operation, event)
            driven.follow_request(state, operation, event)
        if operation.api in GROUP_APIS:
            state.coordinator_connection, state.coordinator_lost = operation.connection, None
        state.outstanding[operation.handle] = operation
        if state.doubtful.get(event.connection, event.time) + state.knowledge.grace < event.time:
            del state.doubtful[event.connection]  # it is still open, and in use

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response left the cluster; on a connection that the cluster has closed it is lost."""
        state = self.state
        if event.connection in state.hung_up:
            self.on_loss(operation, event)
            return
        state.outstanding.pop(operation.handle, None)
        if operation.api == "SyncGroup" and joining.has_expired(state, event.time):
            state.doubtful[event.connection] = event.time
        error = event.body.get("error_code", 0)
        repeats.note_failure(state, operation, event)
        if operation.api == "FindCoordinator":
            rows = event.body.get("coordinators") or (event.body,)
            is_found = any(not row["error_code"] for row in rows)
            state.has_found |= is_found
            state.moved = None if is_found else state.moved
            heartbeats.note_lookup(state, event, is_found)
        elif operation.api == "Metadata":
            learn_metadata(state, event)
        elif operation.api in RESPONSES:
            RESPONSES[operation.api](state, operation, event)
        if operation.api == "Heartbeat":
            heartbeats.note_heartbeat_response(state, event)
            state.forgive("FindCoordinator")
        if operation.api in MEMBER_APIS and error not in news.MOVED:
            state.heard = event.time
        driven.follow_response(state, operation, event)
        progress.follow_response(state, self._progress, operation, event)
        if operation.api in EXCHANGE_APIS and event.connection not in state.doubtful:
            state.last_exchange_news = event.sequence
        if news.first_error(event.body) in news.ELSEWHERE and operation.api in GROUP_APIS:
            state.doubtful[event.connection] = event.time
            state.refused_on = event.connection if operation.api in EXCHANGE_APIS else state.refused_on
        if operation.api == "JoinGroup" and error == Error.COORDINATOR_LOAD_IN_PROGRESS:
            state.join_failure = event.time
        is_sent_since = operation.api in LOOKED_FOR and operation.handle > state.looked_at
        if is_sent_since and repeats.error_in(event) == Error.NOT_COORDINATOR:
            state.moved = event

    def on_loss(self, operation: Operation, event: Event) -> None:
        """The connection ended before the response."""
        state = self.state
        state.outstanding.pop(operation.handle, None)
        if operation.connection == state.coordinator_connection and state.coordinator_lost is None:
            state.coordinator_lost = event.time
        if state.application is not None and operation.api == "OffsetCommit":
            state.application.is_commit_doubtful = True
            unawaited.note_response(state, operation, event)
            if not unawaited.is_unawaited(state, operation):
                committing.owe_commit(state, state.application, "the connection of its OffsetCommit was closed", event)
        membership.note_loss(state, operation, event)
        if operation.api == "OffsetFetch":
            state.offsets_failed = event.time
        if operation.api in ("Heartbeat", "FindCoordinator") and state.last_sign is not None:
            state.last_sign = event.time  # nobody was there to get one
        state.buffers.forget()
        news.learn_loss(state, operation, event)
        if operation.api in EXCHANGE_APIS:
            state.last_exchange_news = event.sequence

    def on_other(self, event: Event) -> None:
        """Something happened beside the client's requests."""
        state = self.state
        if event.member == self._label:
            driven.follow_application(state, event)
        if event.kind is Kind.FAULT and event.api == "hangup":
            state.hung_up.add(event.connection)
            state.buffers.forget()  # the last response on it may never be read
            if state.exchange is not None:
                state.exchange.is_excused = True
            membership.doubt_assignment(state, event)
        elif event.kind is Kind.REQUEST and event.api == "SyncGroup":
            state.generations_of_others[event.sequence] = event.body.get("generation_id", -1)
        elif event.kind is Kind.RESPONSE and event.api == "SyncGroup" and state.application is not None:
            listening.judge_hand_over(state, state.application, event)
        if event.kind is Kind.FAULT and event.api == "doubled":
            state.doubtful[event.connection] = event.time
            state.has_doubled = True
        if event.kind is Kind.INTERNAL and event.api == "written":
            driven.learn_written(state, event)
            self._progress.written_at = event.time
        if event.kind is Kind.INTERNAL and event.api == "delivered":
            state.has_delivered |= draining.is_in_part(state, event)
            if state.application is not None:
                draining.learn_delivery(state, state.application, event)
        if event.kind is Kind.INTERNAL and event.api == "group":
            state.groups.tell(event)
        if event.kind is Kind.INTERNAL and event.api == REPEATED:
            state.groups.repeat()
        if event.kind is not Kind.INTERNAL or event.api != "program":
            return
        if event.body["state"] == "asked to end":
            state.asked_to_end, state.standing_at_end = event.time, state.knowledge.latest
            state.ends_without_coordinator = is_looking_up(state)
        elif event.body["state"] == "ended":
            state.ended, state.exit_code = event.time, event.body["code"]
            if state.has_doubled and state.asked_to_end is None:
                self._evidence.close()

    def on_end(self, time: int) -> None:
        """The trace ends."""
        state = self.state
        state.knowledge.settle(time)
        if not endings.is_over(state) and state.last_sign is not None and state.join is not None:
            membership.judge_silence(state, time)
            membership.judge_unheard(state, time)
        joining.tell_unsynced(state)
        endings.judge_waiting_commit(state, time)
        endings.judge_debts(state, time)
        state.groups.finish(time, state.ended is not None)
        judge_groups(state.groups, self._evidence)
        endings.judge_leaving(state, time)
        reading.judge_fetch_order(state)
        progress.judge_progress(state, self._progress, time)
        application_end.judge_end_of_application(state, time)

    def verdict(self, events: int) -> TraceVerdict:
        """What was found."""
        return TraceVerdict(tuple(self._evidence.violations), tuple(self._evidence.checks), events=events)
