"""Follows one client of the classic protocol.

Theory of operation. A trace shows what left the cluster, not what the client has read. So `ClientView`, the view,
keeps the standings that the client may have: one after each piece of news that it may not have read yet (`Knowledge`).
A request is allowed if one of them allows it, and leaves behind those that came before that one. A stable member that
was told of nothing, and wants nothing, has no reason to join: whoever joins has read more (`standings_at_join`).

The view is folded from the events, and judges nothing. What they mean is judged by monitors (`MONITORS`), which see the
view and write nothing but their own state: each can be taken away, and the others say what they said before.

What cannot be read accuses nobody: a subscription of unknown bytes is WIRE-01, and what rests on it is inconclusive.
What is missing is looked for when the client is asked to end, so that a clean close hides nothing.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.traces.classic.client import (
    callbacks,
    commits,
    draining,
    driven,
    heartbeats,
    joins,
    membership,
    news,
    pace,
    plans,
    records,
    refusals,
    starts,
)
from fencepost.traces.classic.client.messages import MOVED, UNSUPPORTED, error_in
from fencepost.traces.classic.client.plans import OwnershipHistory
from fencepost.traces.classic.client.standings import Knowledge
from fencepost.traces.classic.client.view import EXCHANGE_APIS, ClientView
from fencepost.traces.classic.history import StateHistory
from fencepost.traces.client_judge.judge import Evidence, build_violation
from fencepost.traces.client_judge.monitors import Findings, Monitor, Monitors, Seen, after, monitors_in
from fencepost.traces.events import Event, Header, Kind, Operation
from fencepost.traces.history.recordings import RecordingParts, ShownViolation
from fencepost.traces.verdict import PASSING, CheckStatus, TraceVerdict

GROUP_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"})
"""Requests to the coordinator of a group."""
SETTLING_MS = 500
"""How long a client that was held up may take to read what came meanwhile."""
MONITORS = monitors_in(
    *(starts, pace, draining, plans, records, commits, callbacks, refusals, heartbeats, joins, membership)
)
Look = Callable[[ClientView, Operation, Event], None]
REQUESTS: Mapping[str, Look] = {
    "JoinGroup": news.take_join,
    "SyncGroup": news.take_sync,
    "Heartbeat": news.take_sign,
    "OffsetCommit": news.take_sign,
    "LeaveGroup": news.take_leave,
}
RESPONSES: Mapping[str, Look] = {
    "FindCoordinator": news.take_lookup,
    "Metadata": news.learn_metadata,
    "JoinGroup": news.learn_join,
    "SyncGroup": news.learn_sync,
    "Heartbeat": news.learn_of_membership,
    "OffsetCommit": news.learn_of_membership,
    "OffsetFetch": news.learn_offsets,
}


class ClassicClient:
    """One client of the classic protocol, followed through a trace. Findings are about these requirements alone."""

    def __init__(
        self,
        header: Header,
        label: str,
        requirements: Mapping[str, Requirement] = CLIENT_CATALOGUE,
        monitors: Iterable[Monitor] = MONITORS,
        *,
        is_recorded: bool = False,
    ) -> None:
        self.evidence = Evidence(requirements)
        self.view = ClientView(Knowledge(header.grace), header.clock == "virtual", is_recorded, is_recorded)
        self._monitors = Monitors(monitors, self.evidence)
        self._label = label
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
        view = self.view
        view.now = event.time
        if view.is_recorded:
            news.begin_recorded_request(view, operation)
        awake_until, read_until, grace = self._awake_until(event.time), event.time, view.knowledge.grace
        if view.slow_callback is None:
            awake_until = min(awake_until, view.application.awake_until(event.time, grace))
            read_until = view.application.read_until(event.time, grace)
        if operation.api == "JoinGroup":
            view.read_until = read_until
        view.awake_until = awake_until
        view.knowledge = view.knowledge.settle(read_until if operation.api == "JoinGroup" else awake_until)
        self._sent_at.append(event.time)
        if operation.api == "JoinGroup":
            if view.refused_on == event.connection:  # it has read that, and keeps the connection
                view.doubtful.pop(event.connection, None)
            view.refused_on = -1
        if "_findings" not in event.body:
            self._monitors.show("before", view, Seen(event, operation))
        driven.begin_request(view, operation, event)
        view.settle_debts(operation.api, event.sequence)
        if "_findings" not in event.body:
            if operation.api in REQUESTS:
                REQUESTS[operation.api](view, operation, event)
            driven.end_request(view, operation, event)
        if operation.api in GROUP_APIS:
            view.coordinator_connection, view.coordinator_lost = operation.connection, None
        view.outstanding[operation.handle] = operation
        if view.doubtful.get(event.connection, event.time) + view.knowledge.grace < event.time:
            del view.doubtful[event.connection]  # it is still open, and in use
        if "_findings" not in event.body:
            self._monitors.show("after", view, Seen(event, operation))

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response left the cluster; on a connection that the cluster has closed it is lost."""
        view = self.view
        if event.connection in view.hung_up:
            self.on_loss(operation, event)
            return
        self._monitors.show("before", view, Seen(event, operation))
        view.outstanding.pop(operation.handle, None)
        if operation.api == "SyncGroup" and view.has_expired(event.time):
            view.doubtful[event.connection] = event.time
        error = event.body.get("error_code", 0)
        if operation.api in RESPONSES:
            RESPONSES[operation.api](view, operation, event)
        if operation.api == "Heartbeat":
            view.debts = view.debts_without("FindCoordinator")
        if operation.api in (*EXCHANGE_APIS, "Heartbeat") and error not in MOVED:
            view.heard = event.time
        if operation.api == "SyncGroup" and not error:
            view.assigned_at = event.time
        driven.end_response(view, operation, event)
        if view.is_recorded:
            news.end_recorded_response(view, operation)
        if operation.api in EXCHANGE_APIS and event.connection not in view.doubtful:
            view.last_exchange_news = event.sequence
        if error_in(event) in news.ELSEWHERE and operation.api in GROUP_APIS:
            view.doubtful[event.connection] = event.time
            view.refused_on = event.connection if operation.api in EXCHANGE_APIS else view.refused_on
        self._monitors.show("after", view, Seen(event, operation))

    def on_loss(self, operation: Operation, event: Event) -> None:
        """The connection ended before the response."""
        view, seen = self.view, Seen(event, operation, is_loss=True)
        self._monitors.show("before", view, seen)
        view.outstanding.pop(operation.handle, None)
        if operation.connection == view.coordinator_connection and view.coordinator_lost is None:
            view.coordinator_lost = event.time
        if operation.api == "OffsetFetch":
            view.offsets_failed = event.time
        if operation.api in ("Heartbeat", "FindCoordinator") and view.last_sign is not None:
            view.last_sign = event.time  # nobody was there to get one
        news.learn_loss(view, operation, event)
        if operation.api in EXCHANGE_APIS:
            view.last_exchange_news = event.sequence
        self._monitors.show("after", view, seen)

    def on_other(self, event: Event) -> None:
        """Something happened beside the client's requests."""
        view, seen = self.view, Seen(event, is_foreign=event.member not in ("", self._label))
        is_result = event.kind is Kind.INTERNAL and event.api == "result" and view.application.command is not None
        if view.has_doubled and is_result and event.body.get("error", UNSUPPORTED) != UNSUPPORTED:
            self.evidence.close()
        self._monitors.show("before", view, seen)
        if event.member == self._label:
            driven.follow_application(view, event)
        if event.kind is Kind.FAULT and event.api == "hangup":
            view.hung_up.add(event.connection)
            if view.exchange is not None:
                view.exchange.is_excused = True
            news.doubt_assignment(view, event)
        if event.kind is Kind.FAULT and event.api == "doubled":
            view.doubtful[event.connection] = event.time
            view.has_doubled = True
        if event.kind is Kind.INTERNAL and event.api == "written":
            driven.learn_written(view, event)
        if event.kind is Kind.INTERNAL and event.api == "program":
            self._follow_program(event)
        self._monitors.show("after", view, seen)

    def _follow_program(self, event: Event) -> None:
        """The program is asked to end, or ends."""
        view = self.view
        if event.body["state"] == "asked to end":
            view.asked_to_end = event.time
        elif event.body["state"] == "ended":
            view.ended = event.time
            if view.has_doubled and view.asked_to_end is None:
                self.evidence.close()

    def on_end(self, time: int) -> None:
        """The trace ends."""
        self.view.knowledge = self.view.knowledge.settle(time)
        self._monitors.show("end", self.view, time)
        if self.view.application.held_up is not None:
            self.evidence.drop_remarks()  # most recommendations say how soon something is done

    def verdict(self, events: int) -> TraceVerdict:
        """What was found."""
        return TraceVerdict(tuple(self.evidence.violations), tuple(self.evidence.checks), events=events)


# --- Follows the members in a recording: what their requests to the coordinator show, seen from a place between the
# two.
#
# Nothing is known of their applications, of their other connections, and of what was before the recording. So a member
# is followed from a JoinGroup on; it may forget its id at any time, as it may have been reset for a reason of its own;
# and what it does not do is a violation only if it is heard long after that.

RECORDED_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"})
SHOWN = (
    *("MEMBER-04", "MEMBER-06", "MEMBER-07", "MEMBER-08", "MEMBER-09", "MEMBER-10", "MEMBER-11", "MEMBER-12"),
    *("MEMBER-13", "MEMBER-14", "MEMBER-16", "MEMBER-29", "MEMBER-33", "MEMBER-34"),
    *("HBT-02", "HBT-04", "MCOMMIT-03", "MCOMMIT-08", "MCOMMIT-11"),
    *("ASSIGN-01", "ASSIGN-02", "ASSIGN-03", "ASSIGN-04", "RANGE-01", "RANGE-02", "RANGE-06", "RR-01", "RR-04"),
    *("STICKY-01", "STICKY-02", "STICKY-03", "STICKY-04", "STICKY-18"),
    *("COOP-01", "COOP-03", "COOP-04", "COOP-08", "COOP-09", "COOP-10", "COOP-13", "COOP-17"),
    *("WIRE-01", "WIRE-03", "WIRE-04", "WIRE-05", "WIRE-06"),
)
"""What a recording shows of a member. The others are about its application, its lookups, its fetches or its end, or
they count milliseconds, of which a process that stood still, and the way to the recorder, take any number."""
MAX_MEMBERS = 10_000
"""How many members are followed at a time; of more, those that were heard last."""
PATIENCE = 3
"""How many times as long a member may take to join again as one whose application polls all the time: it may be busy,
then in its listener, then committing."""
KEPT_EVENTS = 64
"""How many of the last events of a member are kept to show a violation."""


@dataclass(slots=True)
class RecordedMember:
    """One member that is followed."""

    client: ClassicClient
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    known: int = 0
    """How many violations were handed out."""


@after("Heartbeat request")
def judge_recorded_debts(view: ClientView, seen: Seen) -> Findings:
    """A member that sends heartbeats has joined again by now, if it was told to."""
    for debt in view.debts.values():
        patience, waited = PATIENCE * view.patience_for(debt.api), seen.event.time - debt.since
        if debt.api == "JoinGroup" and waited > patience:
            title, expected = "No JoinGroup follows", f"JoinGroup within {patience} ms"
            observed = f"none for {waited} ms, but heartbeats"
            yield build_violation(debt.requirement, seen.event.sequence, title, expected, observed, debt.news)


RECORDED_MONITORS = (*MONITORS, judge_recorded_debts)


class RecordedMembers:
    """The members in a recording, of all groups or of those that are chosen."""

    requirements: ClassVar[Mapping[str, Requirement]] = {
        id: requirement for id, requirement in CLIENT_CATALOGUE.items() if id in SHOWN
    }

    def __init__(self, header: Header, owns_group: Callable[[str], bool] | None = None) -> None:
        self._header = header
        self._owns_group = owns_group
        self._members: OrderedDict[tuple[str, str], RecordedMember] = OrderedDict()
        """By label and group, those that were heard last at the end."""
        self.checks: Counter[tuple[str, CheckStatus]] = Counter()
        """How often a requirement was kept, by its id, and how."""
        self.notes: dict[str, str] = {}
        """The first remark on a requirement."""

    def on_event(self, event: Event, operation: Operation | None) -> Iterator[ShownViolation]:
        """Take the next event of the recording, and yield what it shows to be wrong."""
        if event.kind is Kind.INTERNAL and event.api == "unknown":
            self._forget(event.body.get("group"))
        if operation is None or operation.api not in RECORDED_APIS:
            return
        place = operation.member, str(operation.body.get("group_id"))
        member = self._find(place, operation, event)
        if member is None:
            return
        member.events.append(event)
        if event.kind is Kind.REQUEST:
            member.client.on_request(operation, event)
        elif event.kind is Kind.RESPONSE:
            member.client.on_response(operation, event)
        elif event.kind is Kind.FAULT:
            member.client.on_loss(operation, event)
        yield from self._collect(place, member)

    def _find(self, place: tuple[str, str], operation: Operation, event: Event) -> RecordedMember | None:
        """The member that an event is about, None if it is followed by nobody. A message that cannot be read, or that
        somebody else may have sent for the member, ends the following."""
        member = self._members.get(place)
        if "_findings" in operation.body or "_findings" in event.body or "_size" in event.body:
            self._members.pop(place, None)
            return None
        if operation.api == "OffsetCommit" and not operation.body["member_id"]:
            return None  # of no member
        if member is None:
            is_join = event.kind is Kind.REQUEST and operation.api == "JoinGroup"
            begins = is_join and operation.body["protocol_type"] == "consumer"
            if not begins or (self._owns_group and not self._owns_group(place[1])):
                return None
            client = ClassicClient(
                self._header, operation.member, self.requirements, RECORDED_MONITORS, is_recorded=True
            )
            member = self._members[place] = RecordedMember(client)
        elif event.kind is Kind.REQUEST and is_for_others(member, operation):
            del self._members[place]
            return None
        self._members.move_to_end(place)
        if len(self._members) > MAX_MEMBERS:
            self._members.popitem(last=False)
        return member

    def _forget(self, group: str | None) -> None:
        """Messages are missing: of this group, or of any."""
        for place in [place for place in self._members if group in (None, place[1])]:
            del self._members[place]

    def _collect(self, place: tuple[str, str], member: RecordedMember) -> Iterator[ShownViolation]:
        """Count what holds, and yield the violations that are new."""
        label, group = place
        evidence = member.client.evidence
        for check in evidence.checks:
            if check.status in PASSING:
                self.checks[check.requirement, check.status] += 1
                if check.note:
                    self.notes.setdefault(check.requirement, check.note)
        evidence.checks.clear()
        for violation in evidence.violations[member.known :]:
            title = f"{label} in group {group!r}: {violation.title}"
            yield replace(violation, group=group, title=title), tuple(member.events)
        member.known = len(evidence.violations)


def is_for_others(member: RecordedMember, operation: Operation) -> bool:
    """Whether somebody else may send a LeaveGroup in the name of the member, or the member one for somebody else."""
    if operation.api != "LeaveGroup":
        return False
    latest = member.client.view.knowledge.latest
    named = [row["member_id"] for row in operation.body.get("members") or (operation.body,)]
    is_elsewhere = operation.connection != member.client.view.coordinator_connection
    return is_elsewhere or named != [latest.member_id]


RECORDINGS = RecordingParts(StateHistory, OwnershipHistory, RecordedMembers, RecordedMembers.requirements)
"""What recordings of classic groups show."""
