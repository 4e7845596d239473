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
NEW_TERM_ERRORS = frozenset({14, 15, 16})
"""The coordinator is loading, gone or another one: the next one to answer is in another tenure."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The person behind a member id, and how long it surely stays a member without a word."""

    identity: str
    timeout: int


@dataclass(slots=True)
class Incarnation:
    """One life of a group: its number, and until when each person surely is a member."""

    number: int = 0
    certain_members: dict[str, int] = field(default_factory=dict)
    members: dict[str, Membership] = field(default_factory=dict)
    leave_times: dict[str, int] = field(default_factory=dict)
    """When persons were last asked to leave."""

    def begin_next(self) -> None:
        """What comes now may be another life."""
        self.number += 1
        self.certain_members.clear()

    def has_certain_member(self, time: int) -> bool:
        """Somebody surely is a member."""
        return any(until >= time for until in self.certain_members.values())

    def confirm_member(self, member: Membership, since: int) -> None:
        """Somebody was a member then."""
        if since > self.leave_times.get(member.identity, -1):
            self.certain_members[member.identity] = max(
                self.certain_members.get(member.identity, 0), since + member.timeout
            )

    def forget_idle_ids(self) -> None:
        """Forget ids that are long out of use."""
        if len(self.members) > MAX_IDLE_IDS + 2 * len(self.certain_members):
            self.members = {id: each for id, each in self.members.items() if each.identity in self.certain_members}
            self.leave_times.clear()


MAX_IDLE_IDS = 1_000
"""How many member ids of a group are remembered besides those in use."""


class Incarnations:
    """The lives of all groups of one trace, followed event by event."""

    def __init__(self, header: Header) -> None:
        # Seen at clients, an answer was given some time before; no longer than the grace is what is believed.
        self.delay = header.grace if header.order is Order.INTERVALS else 0
        self.groups: dict[str, Incarnation] = {}

    def on_restart(self) -> None:
        """The target was killed and started again."""
        for life in self.groups.values():
            life.begin_next()

    def on_request(self, api: str, body: Body, group: str, time: int) -> None:
        """A request was seen: somebody may leave."""
        life = self.groups.get(group)
        if life is None or api != "LeaveGroup":
            return
        rows = body.get("members")
        for row in rows if isinstance(rows, list) else [body]:
            if isinstance(row, dict):
                known = life.members.get(str(row.get("member_id")))
                for who in (identity_of(None, row.get("group_instance_id")), known.identity if known else ""):
                    life.certain_members.pop(who, None)
                    life.leave_times[who] = time

    def on_response(self, api: str, request: Body, response: Body, group: str, sent: int, time: int) -> int:
        """An answer was seen; returns the number of the life that it belongs to."""
        life = self.groups.setdefault(group, Incarnation())
        error = response.get("error_code")
        if error in NEW_TERM_ERRORS or not life.has_certain_member(time):
            life.begin_next()
        if api == "JoinGroup":
            if error == 0:
                self.on_join(life, request, response, sent, time)
        elif (api in MEMBER_ONLY_APIS and error == 0) or (
            api == "OffsetCommit" and is_member_commit(request) and has_accepted_offset(response)
        ):
            known = life.members.get(str(request.get("member_id")))
            if known is not None:
                life.confirm_member(known, sent)
        return life.number

    def on_join(self, incarnation: Incarnation, request: Body, response: Body, sent: int, time: int) -> None:
        """Somebody is a member of a new generation."""
        member, session = response.get("member_id"), request.get("session_timeout_ms")
        rebalance = request.get("rebalance_timeout_ms", session)
        if not isinstance(member, str) or type(session) is not int or type(rebalance) is not int:
            return
        incarnation.forget_idle_ids()
        known = Membership(identity_of(member, request.get("group_instance_id")), min(session, rebalance))
        incarnation.members[member] = known
        if sent > incarnation.leave_times.get(known.identity, -1):
            incarnation.confirm_member(known, max(sent, time - self.delay))


MEMBER_ONLY_APIS = frozenset({"Heartbeat", "SyncGroup"})
"""What is answered without an error to members alone."""


def is_member_commit(request: Body) -> bool:
    """The commit claims a membership."""
    generation = request.get("generation_id_or_member_epoch", -1)
    return type(generation) is int and generation >= 0


STATIC_PREFIX, DYNAMIC_PREFIX = "i ", "m "


def identity_of(member: object, instance: object) -> str:
    """Who stands behind a member id: a static member stays the same under its next one."""
    return f"{STATIC_PREFIX}{instance}" if instance is not None else f"{DYNAMIC_PREFIX}{member}"


def has_accepted_offset(response: Body) -> bool:
    """Some offset of a commit was accepted."""
    topics = response.get("topics")
    return isinstance(topics, list) and any(
        row.get("error_code") == 0
        for topic in topics
        if isinstance(topic, dict)
        for row in topic.get("partitions") or ()
        if isinstance(row, dict)
    )
