"""Signs of life that nobody needs: runs of heartbeats in which nothing changes are folded before the judge sees them.

A successful Heartbeat does one thing, it puts off the end of its member's session. Of three of a member the one in the
middle does nothing at all if nothing happens in the group meanwhile and the session outlasts the way from the first to
the last. It may be left out: what the judge can say of the others is the same with and without it.

What happens in a group: every request of it that is no successful Heartbeat, commit or fetch of offsets, from the
moment it is sent until it is answered, and whatever a trace tells beside messages; after what may be the end of a
coordinator the next one has to show that it has the group. Commits put sessions off, too; they
are judged, each of them. So are the heartbeats of a group in which anything was wrong before, and of one that the judge
does not follow: there each counts, as evidence.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import REQUEST, Body, Kind, Operation, PairedEvent
from fencepost.traces.judge.groups.group_judge import GroupJudge
from fencepost.traces.judge.groups.judged_protocol import FoldedEvent, JudgedTrace, PartialGroup
from fencepost.traces.message_fields import named_groups, objects_in

WINDOW = 8_192
"""How many events are looked ahead for the next sign of life."""
FIRST = 2
"""How many heartbeats of each member are kept after something has happened."""
SESSION_SHARE = 0.8
"""From what share of the shortest session timeout on two heartbeats are too far apart."""
MAX_GROUPS = 10_000
HARMLESS = frozenset({"OffsetCommit", "OffsetFetch"})
"""Requests that leave the members of a group as they are, if they succeed."""
Sender: TypeAlias = tuple[str, object, object, object]
"""A member that sends heartbeats, in one generation."""


@dataclass(slots=True)
class Sign:
    """A successful heartbeat, and how many its member has sent since something happened."""

    operation: Operation
    number: int
    kept: Operation | None
    """The one before it that is judged."""
    group: str
    is_needless: bool = False


@dataclass(slots=True)
class CalmSpell:
    """What a group does as far as it is read ahead."""

    session: int | None = None
    """The shortest session timeout that a member asked for, in milliseconds."""
    signs: dict[Sender, Sign] = field(default_factory=dict)
    """The last heartbeat of each member since something happened."""
    open: set[int] = field(default_factory=set)
    """The handles of requests that may do something, and have no response yet."""
    is_loaded: bool = True
    """Whether its coordinator certainly has it: one that loads answers every heartbeat alike."""


@dataclass(slots=True)
class HeartbeatFolding:
    """Says which events of a trace its judge need not see, and counts them as if it had seen them."""

    judge: JudgedTrace
    runs: dict[str, CalmSpell] = field(default_factory=dict)
    signs: dict[int, Sign] = field(default_factory=dict)
    """By handle, the heartbeats that the judge has not come to."""
    folded: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How many were folded, by group and by the handle of one that was judged in their place."""

    def fold(self, moments: Iterable[PairedEvent]) -> Iterator[FoldedEvent]:
        """Yield all events in order; whoever takes one hands it to the judge at once, unless it is folded."""
        waiting: deque[PairedEvent] = deque()
        for moment in moments:
            self.look_at(moment)
            waiting.append(moment)
            if len(waiting) > WINDOW:
                yield self.pass_on(waiting.popleft())
        while waiting:
            yield self.pass_on(waiting.popleft())

    def look_at(self, moment: PairedEvent) -> None:
        """Look at an event that the judge comes to later."""
        event, operation = moment
        if event.kind in (Kind.FAULT, Kind.INTERNAL):
            self.interrupt(operation)
        elif operation is not None:
            self.look_at_message(event.kind, operation)

    def look_at_message(self, kind: Kind, operation: Operation) -> None:
        """Look at a request or a response."""
        for group in named_groups(operation.body):
            run = self.run_of(group)
            if is_sign_of_life(operation):
                if kind is REQUEST and run.is_loaded and not run.open:
                    self.add_sign(run, group, operation)
            elif not is_harmless(operation):
                (run.open.add if kind is REQUEST else run.open.discard)(operation.handle)
                run.signs.clear()
                error = error_of(operation.response)
                run.is_loaded = error not in COORDINATOR_NOT_READY and (run.is_loaded or error == 0)
                session = operation.body.get("session_timeout_ms")
                if type(session) is int:
                    run.session = session if run.session is None else min(session, run.session)

    def run_of(self, group: str) -> CalmSpell:
        """What a group does; what is known of groups is forgotten if there are very many."""
        if group not in self.runs and len(self.runs) >= MAX_GROUPS:
            self.runs.clear()
        return self.runs.setdefault(group, CalmSpell())

    def interrupt(self, lost: Operation | None) -> None:
        """Something has happened to a request, or to all groups."""
        named = [] if lost is None else named_groups(lost.body)
        for run in map(self.run_of, named) if named else self.runs.values():
            run.signs.clear()
            if lost is not None:
                run.open.discard(lost.handle)
            else:
                run.open.clear()
                run.is_loaded = False

    def add_sign(self, run: CalmSpell, group: str, operation: Operation) -> None:
        """Take in a heartbeat: the one before it may be needless now."""
        body = operation.body
        sender = operation.member, body.get("member_id"), body.get("generation_id"), body.get("group_instance_id")
        last = run.signs.get(sender)
        sign = Sign(operation, 1, None, group)
        if last is not None:
            sign.number, sign.kept = last.number + 1, last.operation
        if last is not None and last.kept is not None and last.number > FIRST and is_close(run, last.kept, operation):
            last.is_needless = is_answered_before(last.operation, operation)
            sign.kept = last.kept if last.is_needless else last.operation
        run.signs[sender] = self.signs[operation.handle] = sign

    def pass_on(self, moment: PairedEvent) -> FoldedEvent:
        """An event that it is the judge's turn to see."""
        event, operation = moment
        sign = None if operation is None else self.signs.get(operation.handle)
        if sign is None or operation is None:
            return FoldedEvent(moment, False)
        if event.kind is not REQUEST:
            del self.signs[operation.handle]
            return FoldedEvent(moment, sign.is_needless)
        sign.is_needless = sign.is_needless and self.is_in_order(sign.group)
        if sign.is_needless and sign.kept is not None:
            self.folded[sign.group, sign.kept.handle] += 1
        return FoldedEvent(moment, sign.is_needless)

    def is_in_order(self, group: str) -> bool:
        """Whether the judge follows a group, and nothing was wrong in it."""
        found = self.group_judge(group)
        return found is not None and not (found.stop_reason or found.doubt or found.findings.violations)

    def group_judge(self, group: str) -> GroupJudge | None:
        """The judge of a group; None if it is not followed."""
        found = self.judge.groups.get(group)
        return found.judge if isinstance(found, PartialGroup) else found

    def settle(self) -> None:
        """Count what was folded, by the rule of the one that was judged in its place. To be called when the trace is
        over, before its verdict is asked for."""
        self.judge.commit_histories()
        for (group, handle), count in self.folded.items():
            record, judge = self.judge.records.get(handle), self.group_judge(group)
            self.judge.events += 2 * count
            if record is not None and record.rules and judge is not None:
                judge.findings.rules.update(dict.fromkeys(record.rules, count))
                if record.transition is not None:
                    judge.findings.transitions[record.transition] += count
        self.folded.clear()


def is_sign_of_life(operation: Operation) -> bool:
    """Whether a request is a Heartbeat that succeeds, and is known to."""
    return operation.api == "Heartbeat" and is_plain(operation) and error_of(operation.response) == 0


def is_harmless(operation: Operation) -> bool:
    """Whether a request leaves the members of its group as they are."""
    if operation.api not in HARMLESS or not is_plain(operation) or operation.response is None:
        return False
    rows = [row for topic in objects_in(operation.response, "topics") for row in objects_in(topic, "partitions")]
    return operation.api == "OffsetFetch" or all(row.get("error_code") == 0 for row in rows)


def is_plain(operation: Operation) -> bool:
    """Whether a request was answered, and by the one node that there is."""
    return operation.response is not None and not operation.lost and operation.broker is None


def error_of(response: Body | None) -> object:
    """The error in a response; None if it has none, not even that all is well."""
    return None if response is None else response.get("error_code")


def is_close(run: CalmSpell, kept: Operation, operation: Operation) -> bool:
    """Whether no session ends from one heartbeat to another, whenever in between they were handled."""
    responded = operation.responded_at
    return run.session is not None and responded is not None and responded - kept.sent_at < SESSION_SHARE * run.session


def is_answered_before(one: Operation, other: Operation) -> bool:
    """Whether a request was answered before another was sent."""
    return one.responded_at is not None and one.responded_at <= other.sent_at
