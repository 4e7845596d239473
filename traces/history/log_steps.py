"""The history of groups by the lines that their coordinator logged."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.traces.events import Body
from fencepost.traces.history.builder import (
    EMPTY,
    MAX_NAMES,
    STABLE,
    CauseKind,
    ChangeCause,
    HoldKind,
    PhaseHold,
    TimelineBuilder,
)

NEAR_MS = 200
"""How far apart lines about one thing may be: several threads write them."""
CLIENT_REASON = re.compile(r";? ?client reason: (?P<told>.*?)\.?$")
NAMES = re.compile(r"^(?:Set\(|\[)?(.*?)[\])]?$")
REASONS: tuple[tuple[re.Pattern[str], CauseKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"removing member (?P<names>\S+) on LeaveGroup.*", CauseKind.LEFT),
        (r"explicit `LeaveGroup` request for \((?P<names>[^)]*)\) members.*", CauseKind.LEFT),
        (r"removing member (?P<names>\S+) on heartbeat expiration.*", CauseKind.SESSION),
        (r"removing (?P<names>.*?) on pending sync request expiration.*", CauseKind.NO_SYNC),
        (r"adding new member (?P<names>\S+) with group instance id.*", CauseKind.CAME),
        (r"leader (?P<names>\S+) re-joining group.*", CauseKind.REJOINED),
        (r"updating metadata for (?:member|static member) (?P<names>\S+) .*", CauseKind.REJOINED),
    )
)
"""Why a rebalance begins, in the words of Apache Kafka's coordinators."""


@dataclass(slots=True)
class LogSteps:
    """Tells the history of one group by logged steps."""

    builder: TimelineBuilder
    issued: dict[str, None] = field(default_factory=dict)
    """Ids handed out whose owners no line shows to have joined."""
    departed: list[tuple[int, str, ChangeCause]] = field(default_factory=list)
    """Members that were removed a moment ago: the line of the rebalance may come after theirs."""
    expelled: dict[str, ChangeCause] = field(default_factory=dict)
    """Members that a line says did not join, or sync, in time."""

    def add_step(self, step: str, body: Body, time: int) -> None:
        """Tell one line."""
        handle = HANDLERS.get(step)
        if handle is not None:
            handle(self, body, time)

    def on_prepare(self, body: Body, time: int) -> None:
        """A rebalance begins, for a reason."""
        builder, cause = self.builder, read_reason(str(body.get("reason") or ""))
        builder.generation = number_of(body, "generation")
        builder.begin_rebalance(time, cause)
        assert builder.open is not None
        builder.open.gone += [(name, why) for when, name, why in self.departed if when >= time - NEAR_MS][:MAX_NAMES]
        self.departed.clear()
        if cause.kind is CauseKind.CAME:
            for name in cause.members:
                self.issued.pop(name, None)
                builder.add_member(time, name)
                if name not in builder.open.came:
                    builder.open.came.append(name)

    def on_complete(self, body: Body, time: int) -> None:
        """The join phase ends."""
        builder, count = self.builder, number_of(body, "count")
        if count is not None and count - len(builder.members) == len(self.issued):
            for name in self.issued:
                builder.add_member(time, name)
            self.issued.clear()
        builder.end_join_phase(time, number_of(body, "generation") or 0, self.join_hold(time))
        if builder.open is not None:
            builder.open.members = count

    def join_hold(self, time: int) -> PhaseHold:
        """Who held the join phase up, if lines show it: members that were removed at its end."""
        rebalance = self.builder.open
        waited = time - rebalance.began if rebalance is not None else 0
        begun = rebalance.cause.members if rebalance is not None else ()
        latest = [name for when, name, _ in self.departed if when >= time - NEAR_MS and name not in begun]
        missed = list(self.expelled) or latest
        self.expelled.clear()
        return PhaseHold(HoldKind.GONE if missed else HoldKind.NOT_SHOWN, tuple(missed[:MAX_NAMES]), waited)

    def on_empty(self, body: Body, time: int) -> None:
        """The join phase ends without members, also if the line of the last one's removal comes after this one."""
        rebalance = self.builder.open
        if rebalance is not None:
            cause, rebalance.members = rebalance.cause, 0
            for name in [name for name in self.builder.members if name in cause.members]:
                self.remove(name, ChangeCause(cause.kind, (name,), detail=cause.detail), time)
        self.builder.generation = number_of(body, "generation")
        self.builder.end_rebalance(time, EMPTY)

    def on_publish(self, body: Body, time: int) -> None:
        """The leader has sent the assignment: the group is stable."""
        leader, builder = str(body.get("member")), self.builder
        joined = builder.open.joined if builder.open is not None else None
        hold = PhaseHold(HoldKind.LEADER, (leader,), time - joined) if joined is not None else None
        builder.add_member(time, leader, is_new=False)
        builder.end_rebalance(time, STABLE, hold)
        builder.generation = number_of(body, "generation")

    def on_issue(self, body: Body, time: int) -> None:
        """An id is handed out."""
        self.issued[str(body.get("member"))] = None

    def on_withdraw(self, body: Body, time: int) -> None:
        """An id that was handed out becomes invalid."""
        self.issued.pop(str(body.get("member")), None)

    def on_register(self, body: Body, time: int) -> None:
        """A member is added."""
        name = str(body.get("member"))
        self.issued.pop(name, None)
        self.builder.add_member(time, name)
        self.builder.mark_back(time, name)

    def on_unregister(self, body: Body, time: int) -> None:
        """A member is removed."""
        name, reason = str(body.get("member")), str(body.get("reason") or "")
        if any(name == gone and when >= time - NEAR_MS for when, gone, _ in self.departed):
            return  # told by another line
        kind = CauseKind.SESSION if reason.startswith("failed") else CauseKind.LEFT
        detail = client_reason(CLIENT_REASON.search(reason))
        self.remove(name, ChangeCause(kind, (name,), detail=detail), time)

    def remove(self, name: str, cause: ChangeCause, time: int) -> None:
        """Tell that a member is gone."""
        self.builder.add_member(time, name, is_new=False)
        self.builder.remove_member(time, name, cause)
        self.issued.pop(name, None)
        self.departed = [*self.departed[-MAX_NAMES:], (time, name, cause)]

    def on_expel(self, body: Body, time: int) -> None:
        """Members are removed that did not join in time."""
        self.expel(body, CauseKind.NOT_BACK, time)

    def on_expel_unsynced(self, body: Body, time: int) -> None:
        """Members are removed that did not sync in time."""
        self.expel(body, CauseKind.NO_SYNC, time)
        self.expelled.clear()

    def expel(self, body: Body, kind: CauseKind, time: int) -> None:
        """Members are removed for this reason."""
        for name in split_names(str(body.get("members"))):
            cause = ChangeCause(kind, (name,))
            self.expelled[name] = cause
            self.remove(name, cause, time)

    def on_replace(self, body: Body, time: int) -> None:
        """A static member has another id now, which the line does not show."""
        self.remove(str(body.get("member")), ChangeCause(CauseKind.REPLACED), time)

    def on_forget(self, body: Body, time: int) -> None:
        """The group is removed."""
        self.builder.forget_group(time)

    def awaited_members(self) -> tuple[str, ...]:
        """Nobody: a log does not show who is awaited."""
        return ()


HANDLERS: Mapping[str, Any] = {
    "prepare": LogSteps.on_prepare,
    "complete": LogSteps.on_complete,
    "empty": LogSteps.on_empty,
    "publish": LogSteps.on_publish,
    "issue": LogSteps.on_issue,
    "withdraw": LogSteps.on_withdraw,
    "register": LogSteps.on_register,
    "unregister": LogSteps.on_unregister,
    "expel": LogSteps.on_expel,
    "expel-unsynced": LogSteps.on_expel_unsynced,
    "replace": LogSteps.on_replace,
    "forget": LogSteps.on_forget,
}


def read_reason(reason: str) -> ChangeCause:
    """The reason for a rebalance as a cause."""
    told = CLIENT_REASON.search(reason)
    for pattern, kind in REASONS:
        found = pattern.fullmatch(reason)
        if found is not None:
            return ChangeCause(kind, tuple(split_names(found["names"])), detail=client_reason(told))
    return ChangeCause(CauseKind.OTHER, detail=reason) if reason else ChangeCause(CauseKind.NOT_SHOWN)


def client_reason(found: re.Match[str] | None) -> str:
    """What the client gave as its reason; "" if it gave none."""
    return "" if found is None or found["told"] == "not provided" else found["told"]


def split_names(names: str) -> list[str]:
    """Member ids in a list, as Java or Scala prints it."""
    inner = NAMES.match(names.strip())
    return [name.strip() for name in inner[1].split(",") if name.strip()] if inner is not None else []


def number_of(body: Body, name: str) -> int | None:
    """A field that is an integer, else None."""
    value = body.get(name)
    return value if type(value) is int else None
