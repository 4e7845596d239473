"""Follows the members in a recording: what their requests to the coordinator show, seen from a place between the two.

Nothing is known of their applications, of their other connections, and of what was before the recording. So a member is
followed from a JoinGroup on; it may forget its id at any time, as it may have been reset for a reason of its own; and
what it does not do is a violation only if it is heard long after that.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_subscription
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.traces.client_judge.classic.client import ClassicClient
from fencepost.traces.client_judge.classic.endings import patience_for
from fencepost.traces.client_judge.classic.knowledge import Phase
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Event, Header, Kind, Operation
from fencepost.traces.verdict import PASSING, CheckStatus, Violation

ShownViolation: TypeAlias = tuple[Violation, tuple[Event, ...]]
"""What a member did wrong, with its last events up to that. The title names the member and its group."""
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"})
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

    def on_request(self, operation: Operation, event: Event) -> None:
        """The member sent a request."""
        state = self.client.state
        if operation.api == "JoinGroup" and state.installed is not None and self._may_have_dropped(operation):
            state.installed, state.is_installed_doubtful = None, True
        state.may_have_left = True
        self.client.on_request(operation, event)
        if operation.api == "Heartbeat":
            self._judge_debts(event)

    def _may_have_dropped(self, operation: Operation) -> bool:
        """Whether the member may have no longer, or never, what it was assigned last: it was reset, or its application
        has subscribed to other topics meanwhile, so that it refused the assignment."""
        topics = subscribed_topics(operation)
        return not operation.body["member_id"] or any(
            topic not in topics for topic, _ in self.client.state.installed or ()
        )

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response passed the recorder."""
        state = self.client.state
        self.client.on_response(operation, event)
        if operation.api == "JoinGroup" and state.exchange is not None:
            state.exchange.has_metadata = True  # it may have come on another connection
        is_stable = operation.api == "SyncGroup" and state.knowledge.latest.phase is Phase.STABLE
        state.is_installed_doubtful |= is_stable and state.installed is None

    def _judge_debts(self, event: Event) -> None:
        """A member that sends heartbeats has joined again by now, if it was told to."""
        state = self.client.state
        for requirement, debt in tuple(state.debts.items()):
            patience = PATIENCE * patience_for(state, debt.api)
            waited = event.time - debt.since
            if debt.api == "JoinGroup" and waited > patience:
                title, expected = "No JoinGroup follows", f"JoinGroup within {patience} ms"
                observed = f"none for {waited} ms, but heartbeats"
                found = build_violation(requirement, event.sequence, title, expected, observed, debt.news)
                state.evidence.violate(found)
                del state.debts[requirement]


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
        if operation is None or operation.api not in MEMBER_APIS:
            return
        place = operation.member, str(operation.body.get("group_id"))
        member = self._find(place, operation, event)
        if member is None:
            return
        member.events.append(event)
        if event.kind is Kind.REQUEST:
            member.on_request(operation, event)
        elif event.kind is Kind.RESPONSE:
            member.on_response(operation, event)
        elif event.kind is Kind.FAULT:
            member.client.on_loss(operation, event)
        yield from self._collect(place, member)

    def _find(self, place: tuple[str, str], operation: Operation, event: Event) -> RecordedMember | None:
        """The member that an event is about, None if it is followed by nobody. A message that cannot be read, or that
        somebody else may have sent for the member, ends the following."""
        member = self._members.get(place)
        if not is_readable(operation, event):
            self._members.pop(place, None)
            return None
        if operation.api == "OffsetCommit" and not operation.body["member_id"]:
            return None  # of no member
        if member is None:
            if not begins_membership(operation, event) or (self._owns_group and not self._owns_group(place[1])):
                return None
            member = self._members[place] = self._follow(operation.member)
        elif event.kind is Kind.REQUEST and is_for_others(member, operation):
            del self._members[place]
            return None
        self._members.move_to_end(place)
        if len(self._members) > MAX_MEMBERS:
            self._members.popitem(last=False)
        return member

    def _follow(self, label: str) -> RecordedMember:
        """Begin to follow a member, of which nothing is known."""
        client = ClassicClient(self._header, label, self.requirements)
        client.state.is_recorded = client.state.has_found = True
        return RecordedMember(client)

    def _forget(self, group: str | None) -> None:
        """Messages are missing: of this group, or of any."""
        for place in [place for place in self._members if group in (None, place[1])]:
            del self._members[place]

    def _collect(self, place: tuple[str, str], member: RecordedMember) -> Iterator[ShownViolation]:
        """Count what holds, and yield the violations that are new."""
        label, group = place
        evidence = member.client.state.evidence
        for check in evidence.checks:
            if check.status in PASSING:
                self.checks[check.requirement, check.status] += 1
                if check.note:
                    self.notes.setdefault(check.requirement, check.note)
        evidence.checks.clear()
        member.client.state.rhythm.gaps.clear()
        for violation in evidence.violations[member.known :]:
            title = f"{label} in group {group!r}: {violation.title}"
            yield replace(violation, group=group, title=title), tuple(member.events)
        member.known = len(evidence.violations)


def subscribed_topics(operation: Operation) -> frozenset[str]:
    """The topics that a JoinGroup subscribes to."""
    found: set[str] = set()
    for protocol in operation.body["protocols"]:
        with suppress(ConsumerProtocolError):
            found.update(decode_subscription(protocol["metadata"]).topics)
    return frozenset(found)


def is_readable(operation: Operation, event: Event) -> bool:
    """Whether the message was decoded without findings."""
    return "_findings" not in operation.body and "_findings" not in event.body and "_size" not in event.body


def begins_membership(operation: Operation, event: Event) -> bool:
    """Whether a consumer joins a group."""
    is_join = event.kind is Kind.REQUEST and operation.api == "JoinGroup"
    return is_join and operation.body["protocol_type"] == "consumer"


def is_for_others(member: RecordedMember, operation: Operation) -> bool:
    """Whether somebody else may send a LeaveGroup in the name of the member, or the member one for somebody else."""
    if operation.api != "LeaveGroup":
        return False
    latest = member.client.state.knowledge.latest
    named = [row["member_id"] for row in operation.body.get("members") or (operation.body,)]
    is_elsewhere = operation.connection != member.client.state.coordinator_connection
    return is_elsewhere or named != [latest.member_id]
