"""What a trace shows of a group where it does not show everything: its past, or what happened in a gap.

A group is judged from a moment on at which its state is known: from its beginning if its first round has none but
members that were seen to come, and otherwise from the first moment at which a whole round was seen and nothing is in
flight. Until then nothing is said about it. Offsets are taken as they are first shown. Members that a trace does not
show at all make everything about their group uncertain.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.core.state import FREE, Group, Phase
from fencepost.model.classic.messages.requests import (
    Commit,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    Offset,
    Partition,
    Request,
    Sync,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.traces.events import Body
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.judge.classic.matching import fetched_bodies, fetched_rows
from fencepost.traces.judge.classic.offset_expiry import is_unset
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.observe.round_reconstruction import RoundSeen
from fencepost.traces.judge.search.configuration import Configuration, Part
from fencepost.traces.judge.search.configuration import Fault as Misfit
from fencepost.traces.operations import Operation

if TYPE_CHECKING:
    from fencepost.traces.judge.judge import Judge

MOST_MOMENTS = 20_000
"""How much of a group is kept until its first round is seen."""
LINGER_MS = 60_000
"""How long an id that nobody saw given out may be waited for: a session timeout, of which clients choose less."""
EPOCHS_SINCE = 5
"""The first version of OffsetFetch that shows an offset in full."""
MOST_IDS = 10_000
"""How many member ids of a group are remembered."""
OF_SETTINGS = frozenset(
    {
        Error.INVALID_SESSION_TIMEOUT,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.OFFSET_METADATA_TOO_LARGE,
    }
)
"""Errors that depend on how the target is set."""
ASSUMED = "what it shows depends on settings of the target, which the trace does not tell"
BEFORE = "what was before is not known, and no round was seen from its beginning to its end"
STRANGERS = "it has members that the trace does not show"


@dataclass(slots=True)
class Unseen:
    """A group whose state is not known."""

    open: dict[int, Part] = field(default_factory=dict)
    moments: list[tuple[Part, int, bool]] | None = field(default_factory=list)
    """Everything since, as long as it may have been from the group's beginning: what, when, sent or answered."""
    issued: set[str] = field(default_factory=set)
    """Ids that were given out since."""
    round: RoundSeen = field(default_factory=RoundSeen)
    is_active: bool = False
    """Members were heard of."""

    def keep(self, part: Part, time: int, *, sent: bool) -> None:
        """Take note of a request or an answer."""
        self.is_active |= isinstance(part.request, Join | Sync | Heartbeat | Leave)
        if self.moments is not None:
            self.moments.append((part, time, sent))
            if len(self.moments) > MOST_MOMENTS:
                self.moments = None


class Sight:
    """What is known of the groups of one trace. As long as nothing is said to be unknown, it has no part in judging."""

    def __init__(self, *, settings_assumed: bool = False) -> None:
        self.is_partial = False
        self.settings_assumed = settings_assumed
        self.since = 0
        self.unseen: dict[str, Unseen] = {}
        self.ids: dict[str, dict[str, None]] = {}
        self.offsets: dict[str, set[Partition]] = {}
        """Offsets that are known, by group."""
        self.faults: dict[str, int] = {}
        """How many faults there were when a group was taken up."""

    # --- what is lost -------------------------------------------------------------------------------------------

    def forget(self, judge: "Judge", time: int) -> None:
        """Nothing that was known of groups holds any more."""
        self.is_partial = True
        self.since = time
        judge.lookup.forget()
        self.unseen = {group: Unseen(open=unseen.open, moments=None) for group, unseen in self.unseen.items()}
        for group in list(judge.searches):
            self.lose(judge, group)

    def lose(self, judge: "Judge", group: str) -> None:
        """Nothing that was known of this group holds any more."""
        search = judge.searches.pop(group)
        judge.settle(search)
        judge.stopped.pop(group, None)
        left = {handle: part for handle, part in search.parts.items() if not part.operation.lost}
        self.unseen[group] = Unseen(open=left, moments=None if left else [])
        self.offsets.pop(group, None)

    def withdraw(self, judge: "Judge", group: str) -> None:
        """Whatever was said of this group may be owed to somebody unseen."""
        before = self.faults.get(group, 0)
        judge.faults[before:] = [fault for fault in judge.faults[before:] if fault.group != group]
        judge.inconclusive.append(f"group {group!r}: {STRANGERS}")
        self.lose(judge, group)

    def excuses(self, judge: "Judge", group: str, part: Part) -> bool:
        """An answer that fits nothing says no more than that less is known than was thought."""
        answer = part.operation.answer or {}
        if answer and errors_in(answer) <= NOT_READY:
            self.lose(judge, group)
            return True
        sender = getattr(getattr(part.request, "core", None), "member", None)
        if (sender is not None and sender not in self.ids[group]) or self.strangers(judge, group, part.operation):
            self.withdraw(judge, group)
            return True
        return False

    def lingers(self, judge: "Judge", part: Part, misfit: Misfit, time: int) -> bool:
        """A round may have waited for an id that was handed out before, an offset may be of an older transaction."""
        group, touched = part.request.group, isinstance(part.request, Fetch) or misfit.fields & {"time", "state"}
        errors = errors_in(part.operation.answer or {}) | {getattr(misfit.expected, "error", 0)}
        if self.settings_assumed and (misfit.fields & {"time", "state"} or errors & OF_SETTINGS):
            judge.inconclusive.append(f"group {group!r}: {ASSUMED}")
        elif time <= self.since + LINGER_MS and touched:
            judge.inconclusive.append(f"group {group!r}: an answer may be owed to what was before the trace")
        else:
            return False
        self.lose(judge, group)
        return True

    def unresolved(self) -> tuple[str, ...]:
        """The groups of which nothing could be said in the end."""
        return tuple(f"group {group!r}: {BEFORE}" for group, unseen in self.unseen.items() if unseen.is_active)

    # --- what is seen -------------------------------------------------------------------------------------------

    def holds(self, judge: "Judge", operation: Operation, request: Request) -> bool:
        """The request is not to be judged: its group is not known yet, or its answer is not."""
        group, part = request.group, Part(operation, request)
        if group in judge.searches:
            return self.skips(judge, part)
        unseen = self.unseen.setdefault(group, Unseen())
        unseen.open[operation.handle] = part
        unseen.keep(part, operation.sent, sent=True)
        return True

    def answered(self, judge: "Judge", operation: Operation, time: int) -> None:
        """An answer was seen: perhaps a group is known by it."""
        if operation.api == "JoinGroup" and operation.body.get("group_id") in judge.searches:
            group = operation.body["group_id"]
            if self.strangers(judge, group, operation):
                self.withdraw(judge, group)
            self.learn(group, operation)
        for group, unseen in list(self.unseen.items()):
            part = unseen.open.pop(operation.handle, None)
            if part is None:
                continue
            self.learn(group, operation)
            unseen.keep(part, time, sent=False)
            unseen.round.answered(part, time)
            if operation.api == "JoinGroup" and not operation.body.get("member_id"):
                unseen.issued.add((operation.answer or {}).get("member_id", ""))
            if self.began(judge, group, unseen, part) or self.settled(judge, group, unseen, time):
                del self.unseen[group]

    def ended(self, operation: Operation) -> None:
        """A request lost its connection: what came of it is not known."""
        for unseen in self.unseen.values():
            if unseen.open.pop(operation.handle, None) is not None:
                unseen.round.is_over = True

    def learn(self, group: str, operation: Operation) -> None:
        """Remember whom the trace shows."""
        ids = self.ids.setdefault(group, {})
        for shown in (operation.body.get("member_id"), (operation.answer or {}).get("member_id")):
            if shown and operation.answer and operation.answer.get("error_code") in (0, Error.MEMBER_ID_REQUIRED):
                ids[shown] = None
        while len(ids) > MOST_IDS:
            del ids[next(iter(ids))]

    def strangers(self, judge: "Judge", group: str, operation: Operation) -> bool:
        """An answer tells of members that the trace does not show."""
        answer = operation.answer or {}
        if operation.api != "JoinGroup" or answer.get("error_code") != Error.NONE:
            return False
        others = judge.searches[group].parts.values()
        joining = [part.operation for part in others if part.operation.api == "JoinGroup"]
        known = {each.answer.get("member_id") for each in (operation, *joining) if each.answer is not None}
        anonymous = any(each.answer is None for each in joining)
        return not anonymous and not set(members_told(answer)) <= known | set(self.ids.get(group, ()))

    # --- what is known again ------------------------------------------------------------------------------------

    def began(self, judge: "Judge", group: str, unseen: Unseen, part: Part) -> bool:
        """The first round is complete, and all its members were seen to come: so there were none before."""
        answer = part.operation.answer or {}
        if unseen.moments is None or part.operation.api != "JoinGroup" or not answer.get("members"):
            return False
        moments, unseen.moments = unseen.moments, None
        joining = {(each.operation.answer or {}).get("member_id") for each in unseen.open.values()}
        if answer["error_code"] or not set(members_told(answer)) <= unseen.issued | joining:
            return False
        generation = answer["generation_id"] - 1
        long_ago = -judge.settings.offsets_retention
        kind = getattr(part.request, "core").protocol_type  # noqa: B009 (a JoinGroup has one)
        empty = Group(generation=generation, protocol_type=kind, slots=(FREE,)) if generation else None
        world = World(empty, frozenset() if empty else None, emptied=long_ago, stored=empty)
        kept = (len(judge.faults), len(judge.inconclusive), judge.rules.copy(), judge.transitions.copy())
        self.take_up(judge, group, world, 0)
        for each, time, sent in moments:
            if group in judge.searches and (not sent or not self.skips(judge, each)):
                judge.advance(group, each, time, sent=sent)
        if group in judge.searches and group not in judge.stopped and len(judge.faults) == kept[0]:
            return True
        # It had members after all, of which nothing was heard but that things took longer.
        judge.searches.pop(group, None)
        judge.stopped.pop(group, None)
        del judge.faults[kept[0] :], judge.inconclusive[kept[1] :]
        judge.rules, judge.transitions = kept[2], kept[3]
        self.unseen[group] = unseen
        return False

    def settled(self, judge: "Judge", group: str, unseen: Unseen, time: int) -> bool:
        """A whole round was seen, all of its members have their assignments, and nothing is in flight."""
        known = unseen.round.group(time) if not unseen.open else None
        if known is None:
            return False
        self.take_up(judge, group, known, time)
        return True

    def take_up(self, judge: "Judge", group: str, world: World, time: int) -> None:
        """Judge the group from here on."""
        self.faults[group] = len(judge.faults)
        self.offsets[group] = set()
        judge.search(group).configurations = [Configuration(world, clock=time, decisions=judge.decisions)]

    # --- offsets ------------------------------------------------------------------------------------------------

    def skips(self, judge: "Judge", part: Part) -> bool:
        """Take offsets that are not known yet as this answer shows them; true if it cannot be judged even then."""
        request, operation = part.request, part.operation
        search = judge.searches[request.group]
        if not isinstance(request, Fetch):
            return False
        if operation.answer is None:
            return True
        rows = fetched_rows(operation.version, operation.answer, request.group, search.cluster.names)
        bodies = fetched_bodies(operation.version, operation.answer, request.group)
        committed = committed_in(part for part in search.parts.values())
        known = self.offsets[request.group].union(*(one.world.offsets for one in search.configurations))
        new = {where: row for where, row in rows.items() if where not in known}
        if operation.version < EPOCHS_SINCE and not all(map(is_unset, new.values())):
            return True
        if len(bodies) != 1 or bodies[0].get("error_code") or any(row.get("error_code") for row in new.values()):
            return True
        long_ago = -judge.settings.offsets_retention
        shown = {where: offset_in(row, long_ago) for where, row in new.items() if not is_unset(row)}
        self.offsets[request.group] |= new.keys() - committed
        if shown:
            search.configurations = [with_offsets(one, shown) for one in search.configurations]
        return False


def offset_in(row: Body, committed: int) -> Offset:
    """An offset as an answer shows it."""
    epoch = row.get("committed_leader_epoch", -1)
    return Offset(row["committed_offset"], epoch, row.get("metadata") or "", None, committed)


def with_offsets(one: Configuration, shown: dict[Partition, Offset]) -> Configuration:
    """The configuration with offsets that were there all the time."""
    group = one.world.group
    if group is None:
        group = Group(Phase.EMPTY)
    return alter(one, world=alter(one.world, group=group, offsets={**shown, **one.world.offsets}))


def committed_in(parts: Iterator[Part]) -> set[Partition]:
    """The partitions that commits in flight are about."""
    return {where for part in parts if isinstance(part.request, Commit) for where, _ in part.request.offsets}


def members_told(answer: Any) -> Iterator[str]:
    """Whom an answer to JoinGroup tells of."""
    yield answer.get("leader") or ""
    for member in answer.get("members") or ():
        yield member.get("member_id") or ""
