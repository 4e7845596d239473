"""Follows one client of the classic protocol.

Theory of operation. A trace shows what left the cluster, not what the client has read. So `ClientView`, the view,
keeps the set of standings that the client may be in (`standings`). A request is allowed if one of them sends it, and
narrows the set. A stable member that was told of nothing, and wants nothing, has no reason to join: whoever joins has
read more (`standings_at_join`).

The view is folded from the events (`fold`, `news`), and judges nothing. What they mean is judged by monitors, which see
the view and write nothing but their own state: each can be taken away, and the others say what they said before.

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
    fold,
    heartbeats,
    joins,
    membership,
    pace,
    plans,
    records,
    refusals,
    starts,
)
from fencepost.traces.classic.client.messages import UNSUPPORTED
from fencepost.traces.classic.client.plans import OwnershipHistory
from fencepost.traces.classic.client.standings import Knowledge
from fencepost.traces.classic.client.view import ClientView
from fencepost.traces.classic.history import StateHistory
from fencepost.traces.client_judge.judge import Evidence, build_violation
from fencepost.traces.client_judge.monitors import Findings, Monitor, Monitors, Seen, after, monitors_in
from fencepost.traces.events import Event, Header, Kind, Operation
from fencepost.traces.history.recordings import RecordingParts, ShownViolation
from fencepost.traces.verdict import PASSING, CheckStatus, TraceVerdict

MONITORS = monitors_in(
    *(starts, pace, draining, plans, records, commits, callbacks, refusals, heartbeats, joins, membership)
)


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

    def on_request(self, operation: Operation, event: Event) -> None:
        """The client sent a request; one that cannot be read is left alone."""
        seen, is_readable = Seen(event, operation), "_findings" not in event.body
        fold.settle(self.view, operation, event)
        if is_readable:
            self._monitors.show("before", self.view, seen)
        fold.take_request(self.view, operation, event, is_readable=is_readable)
        if is_readable:
            self._monitors.show("after", self.view, seen)

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response left the cluster; on a connection that the cluster has closed it is lost."""
        if event.connection in self.view.hung_up:
            self.on_loss(operation, event)
            return
        self._monitors.show("before", self.view, Seen(event, operation))
        fold.take_response(self.view, operation, event)
        self._monitors.show("after", self.view, Seen(event, operation))

    def on_loss(self, operation: Operation, event: Event) -> None:
        """The connection ended before the response."""
        seen = Seen(event, operation, is_loss=True)
        self._monitors.show("before", self.view, seen)
        fold.take_loss(self.view, operation, event)
        self._monitors.show("after", self.view, seen)

    def on_other(self, event: Event) -> None:
        """Something happened beside the client's requests. Who got a response twice may then fail in any way."""
        view, seen = self.view, Seen(event, is_foreign=event.member not in ("", self._label))
        is_result = seen.name == "result internal" and view.application.command is not None
        if view.has_doubled and is_result and event.body.get("error", UNSUPPORTED) != UNSUPPORTED:
            self.evidence.close()
        self._monitors.show("before", view, seen)
        fold.take_other(view, event, is_own=event.member == self._label)
        if view.has_doubled and view.ended is not None and view.asked_to_end is None:
            self.evidence.close()
        self._monitors.show("after", view, seen)

    def on_end(self, time: int) -> None:
        """The trace ends."""
        fold.end(self.view, time)
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
            monitors = (*MONITORS, judge_recorded_debts)
            client = ClassicClient(self._header, operation.member, self.requirements, monitors, is_recorded=True)
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
        for check in evidence.hand_out():
            if check.status in PASSING:
                self.checks[check.requirement, check.status] += 1
                if check.note:
                    self.notes.setdefault(check.requirement, check.note)
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
