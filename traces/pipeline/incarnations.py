"""Which answers surely belong to one life of a group, as far as a trace alone can tell.

Numbers of generations are given again in another tenure of the coordinator and in another life of the group, and the
invariants hold within one of each. A group ends no earlier than it is empty; so a life goes on as long as there is
somebody who surely is a member. Where nobody surely is, the next answer begins a new count, rightly or not: what is
said about one life is then true, and now and then less is said than could be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.traces.events import Header, Order

Body = Mapping[str, Any]
MOVED = frozenset({14, 15, 16})
"""The coordinator is loading, gone or another one: the next one to answer is in another tenure."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The person behind a member id, and how long it surely stays a member without a word."""

    person: str
    timeout: int


@dataclass(slots=True)
class Life:
    """One life of a group: its number, and until when each person surely is a member."""

    number: int = 0
    sure: dict[str, int] = field(default_factory=dict)
    members: dict[str, Membership] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    """When persons were last asked to leave."""

    def end(self) -> None:
        """What comes now may be another life."""
        self.number += 1
        self.sure.clear()

    def is_sure(self, time: int) -> bool:
        """Somebody surely is a member."""
        return any(until >= time for until in self.sure.values())

    def confirm(self, member: Membership, since: int) -> None:
        """Somebody was a member then."""
        if since > self.left.get(member.person, -1):
            self.sure[member.person] = max(self.sure.get(member.person, 0), since + member.timeout)

    def tidy(self) -> None:
        """Forget ids that are long out of use."""
        if len(self.members) > KEPT + 2 * len(self.sure):
            self.members = {id: each for id, each in self.members.items() if each.person in self.sure}
            self.left.clear()


KEPT = 1_000
"""How many member ids of a group are remembered besides those in use."""


class Lives:
    """The lives of all groups of one trace, followed event by event."""

    def __init__(self, header: Header) -> None:
        # Seen at clients, an answer was given some time before; no longer than the grace is what is believed.
        self.delay = header.grace if header.order is Order.INTERVALS else 0
        self.groups: dict[str, Life] = {}

    def restarted(self) -> None:
        """The target was killed and started again."""
        for life in self.groups.values():
            life.end()

    def requested(self, api: str, body: Body, group: str, time: int) -> None:
        """A request was seen: somebody may leave."""
        life = self.groups.get(group)
        if life is None or api != "LeaveGroup":
            return
        rows = body.get("members")
        for row in rows if isinstance(rows, list) else [body]:
            if isinstance(row, dict):
                known = life.members.get(str(row.get("member_id")))
                for who in (person(None, row.get("group_instance_id")), known.person if known else ""):
                    life.sure.pop(who, None)
                    life.left[who] = time

    def answered(self, api: str, request: Body, answer: Body, group: str, sent: int, time: int) -> int:
        """An answer was seen; returns the number of the life that it belongs to."""
        life = self.groups.setdefault(group, Life())
        error = answer.get("error_code")
        if error in MOVED or not life.is_sure(time):
            life.end()
        if api == "JoinGroup":
            if error == 0:
                self.joined(life, request, answer, sent, time)
        elif (api in CONFIRMING and error == 0) or (api == "OffsetCommit" and is_members(request) and accepted(answer)):
            known = life.members.get(str(request.get("member_id")))
            if known is not None:
                life.confirm(known, sent)
        return life.number

    def joined(self, life: Life, request: Body, answer: Body, sent: int, time: int) -> None:
        """Somebody is a member of a new generation."""
        member, session = answer.get("member_id"), request.get("session_timeout_ms")
        rebalance = request.get("rebalance_timeout_ms", session)
        if not isinstance(member, str) or type(session) is not int or type(rebalance) is not int:
            return
        life.tidy()
        known = Membership(person(member, request.get("group_instance_id")), min(session, rebalance))
        life.members[member] = known
        if sent > life.left.get(known.person, -1):
            life.confirm(known, max(sent, time - self.delay))


CONFIRMING = frozenset({"Heartbeat", "SyncGroup"})
"""What is answered without an error to members alone."""


def is_members(request: Body) -> bool:
    """The commit claims a membership."""
    generation = request.get("generation_id_or_member_epoch", -1)
    return type(generation) is int and generation >= 0


STATIC, DYNAMIC = "i ", "m "


def person(member: object, instance: object) -> str:
    """Who stands behind a member id: a static member stays the same under its next one."""
    return f"{STATIC}{instance}" if instance is not None else f"{DYNAMIC}{member}"


def accepted(answer: Body) -> bool:
    """Some offset of a commit was accepted."""
    topics = answer.get("topics")
    return isinstance(topics, list) and any(
        row.get("error_code") == 0
        for topic in topics
        if isinstance(topic, dict)
        for row in topic.get("partitions") or ()
        if isinstance(row, dict)
    )
