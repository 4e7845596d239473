"""A coordinator of consumer groups in 300 lines: members join, get their share, keep alive and leave."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

NONE, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP, UNKNOWN_MEMBER = 0, 22, 23, 24, 25
INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, GROUP_FULL = 26, 27, 79, 81
NO_JOIN = {"generation_id": -1, "protocol_name": "", "leader": "", "member_id": "", "members": []}


@dataclass(eq=False)
class Member:
    id: str
    session: float
    timeout: float = 0.0
    protocols: dict = field(default_factory=dict)
    assignment: bytes = b""
    joining: asyncio.Future | None = None
    syncing: asyncio.Future | None = None
    has_synced: bool = False
    timer: asyncio.TimerHandle | None = None


@dataclass(eq=False)
class Group:
    state: str = "Empty"
    generation: int = 0
    leader: str = ""
    type: str = ""
    protocol: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    pending: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None
    is_new: bool = False
    has_newcomers: bool = False


class Coordinator:
    def __init__(self, settings, topics, storage):
        self.settings, self.groups, self.ids, self.loop = settings, {}, count(), asyncio.get_running_loop()

    async def handle(self, api, version, body, client_id):
        handlers = {
            "JoinGroup": self.join,
            "SyncGroup": self.sync,
            "Heartbeat": self.heartbeat,
            "LeaveGroup": self.leave,
        }
        answer = handlers[api](version, body, client_id)
        return await answer if isinstance(answer, asyncio.Future) else answer

    # JoinGroup

    def join(self, version, body, client_id):
        id, group = body["member_id"], self.groups.get(body["group_id"])
        offered = {row["name"]: row["metadata"] for row in body["protocols"]}
        session = body["session_timeout_ms"]

        def refuse(error, id=id):
            return NO_JOIN | {"error_code": error, "member_id": id}

        if not body["group_id"]:
            return refuse(INVALID_GROUP)
        if not self.settings.min_session_timeout <= session <= self.settings.max_session_timeout:
            return refuse(INVALID_SESSION_TIMEOUT)
        if group is None:
            if id:
                return refuse(UNKNOWN_MEMBER)
            group = self.groups[body["group_id"]] = Group()
        if not self.fits(group, body["protocol_type"], offered):
            return refuse(INCONSISTENT_PROTOCOL)
        if id and id not in group.members and id not in group.pending:
            return refuse(UNKNOWN_MEMBER)
        if id not in group.members:
            if self.is_full(group):
                return refuse(GROUP_FULL)
            if not id:
                id = f"{client_id}-{next(self.ids)}"
                if version >= 4:
                    group.pending[id] = self.loop.call_later(session / 1000, self.forget_id, group, id)
                    return refuse(MEMBER_ID_REQUIRED, id)
            else:
                group.pending.pop(id).cancel()
            return self.add(group, id, body, offered)
        member = group.members[id]
        if group.state == "Preparing" and not member.joining and self.is_full(group):
            self.expel(group, member)
            return refuse(GROUP_FULL)
        is_same = list(offered.items()) == list(member.protocols.items())
        if group.state in ("Completing", "Stable") and is_same and not (group.state == "Stable" and id == group.leader):
            self.touch(member)
            return self.joined(group, member)
        self.update(member, body, offered)
        return self.rebalance(group, member)

    def is_full(self, group):
        """Whether nobody else gets in; during a join phase, the places are for those who have joined."""
        members = [each for each in group.members.values() if each.joining or group.state != "Preparing"]
        return len(members) + len(group.pending) >= self.settings.max_group_size

    def fits(self, group, type, offered):
        if not type or not offered:
            return False
        members = group.members.values()
        return not members or (
            type == group.type and any(all(name in m.protocols for m in members) for name in offered)
        )

    def update(self, member, body, offered):
        member.protocols, member.session = offered, body["session_timeout_ms"] / 1000
        member.timeout = body.get("rebalance_timeout_ms", body["session_timeout_ms"]) / 1000
        self.touch(member)

    def add(self, group, id, body, offered):
        member = group.members[id] = Member(id, 0.0)
        member.group = group
        group.type = body["protocol_type"]
        group.has_newcomers = group.state == "Preparing"
        group.leader = group.leader or id
        self.update(member, body, offered)
        waiting = self.rebalance(group, member)
        timeout = self.settings.new_member_timeout / 1000
        member.timer = self.loop.call_later(timeout, self.expel, group, member)
        return waiting

    def rebalance(self, group, member=None):
        """Begin a join phase, or go on with it; `member` has joined and waits."""
        if member is not None:
            if member.joining and not member.joining.done():
                member.joining.set_result(NO_JOIN | {"error_code": UNKNOWN_MEMBER, "member_id": member.id})
            waiting = member.joining = self.loop.create_future()
            if member.timer:
                member.timer.cancel()  # who waits for the others is alive
        if group.state != "Preparing":
            for each in group.members.values():
                self.answer_sync(each, REBALANCE_IN_PROGRESS)
            delay = self.settings.initial_rebalance_delay / 1000
            group.is_new = group.state == "Empty" and delay > 0
            group.state = "Preparing"
            if group.is_new:
                left = max(self.longest(group) - delay, 0)
                self.set_timer(group, delay, self.end_delay, group, delay, left)
            else:
                self.set_timer(group, self.longest(group), self.complete_join, group)
        self.complete_if_all_joined(group)
        return waiting if member is not None else None

    def longest(self, group):
        return max(each.timeout for each in group.members.values())

    def set_timer(self, group, seconds, action, *arguments):
        if group.timer:
            group.timer.cancel()
        group.timer = self.loop.call_later(seconds, action, *arguments)

    def end_delay(self, group, delay, left):
        """End the initial delay, or begin another one if members have come meanwhile."""
        if group.has_newcomers and left > 0:
            group.has_newcomers = False
            self.set_timer(group, min(delay, left), self.end_delay, group, delay, max(left - delay, 0))
        else:
            self.complete_join(group)

    def complete_if_all_joined(self, group):
        is_open = group.state == "Preparing" and not group.is_new
        if is_open and not group.pending and all(m.joining for m in group.members.values()):
            self.complete_join(group)

    def complete_join(self, group):
        group.timer.cancel()
        group.is_new = False
        for member in [each for each in group.members.values() if not each.joining]:
            self.remove(group, member)
        group.generation += 1
        if not group.members:
            group.state, group.leader, group.protocol = "Empty", "", ""
            return
        if group.leader not in group.members:
            group.leader = next(iter(group.members))
        group.state, group.protocol = "Completing", self.choose_protocol(group)
        for member in group.members.values():
            waiting, member.joining, member.assignment, member.has_synced = member.joining, None, b"", False
            waiting.set_result(self.joined(group, member))
            self.touch(member)
        self.set_timer(group, self.longest(group), self.expire_sync, group)

    def choose_protocol(self, group):
        common = set.intersection(*(set(member.protocols) for member in group.members.values()))
        votes = Counter(next(name for name in m.protocols if name in common) for m in group.members.values())
        return max(votes, key=votes.get)

    def joined(self, group, member):
        members = [{"member_id": m.id, "metadata": m.protocols[group.protocol]} for m in group.members.values()]
        return {
            "error_code": NONE,
            "generation_id": group.generation,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "member_id": member.id,
            "members": members if member.id == group.leader else [],
        }

    # SyncGroup, Heartbeat, LeaveGroup

    def find(self, body):
        """The group, the member, and the error of a request of a member."""
        group = self.groups.get(body["group_id"])
        member = group.members.get(body["member_id"]) if group else None
        if not body["group_id"]:
            return group, member, INVALID_GROUP
        if member is None:
            return group, member, UNKNOWN_MEMBER
        return group, member, ILLEGAL_GENERATION if body.get("generation_id") < group.generation else NONE

    def sync(self, version, body, client_id):
        group, member, error = self.find(body)
        if error or group.state == "Preparing":
            return {"error_code": error or REBALANCE_IN_PROGRESS, "assignment": b""}
        member.has_synced = True
        if group.state == "Stable":
            self.touch(member)
            return {"error_code": NONE, "assignment": member.assignment}
        self.answer_sync(member, REBALANCE_IN_PROGRESS)
        waiting = member.syncing = self.loop.create_future()
        if member.id == group.leader:
            group.state = "Stable"
            shares = {row["member_id"]: row["assignment"] for row in body["assignments"]}
            for each in group.members.values():
                each.assignment = shares.get(each.id, b"")
                self.answer_sync(each, NONE)
        return waiting

    def answer_sync(self, member, error):
        if member.syncing and not member.syncing.done():
            member.syncing.set_result({"error_code": error, "assignment": b"" if error else member.assignment})
            self.touch(member)
        member.syncing = None

    def heartbeat(self, version, body, client_id):
        group, member, error = self.find(body)
        if not error:
            if not member.joining:
                self.touch(member)
            error = REBALANCE_IN_PROGRESS if group.state == "Preparing" else NONE
        return {"error_code": error}

    def leave(self, version, body, client_id):
        group = self.groups.get(body["group_id"])
        if not body["group_id"]:
            return {"error_code": INVALID_GROUP}
        if group and body["member_id"] in group.pending:
            group.pending.pop(body["member_id"]).cancel()
            self.forget_id(group, body["member_id"])
            return {"error_code": NONE}
        if not group or body["member_id"] not in group.members:
            return {"error_code": UNKNOWN_MEMBER}
        self.remove(group, group.members[body["member_id"]])
        return {"error_code": NONE}

    # Timers

    def touch(self, member):
        """Begin the session of a member anew."""
        if member.timer:
            member.timer.cancel()
        member.timer = self.loop.call_later(member.session, self.expel, member.group, member)

    def expire_sync(self, group):
        if group.state == "Completing":
            for member in [each for each in group.members.values() if not each.has_synced]:
                self.expel(group, member)

    def forget_id(self, group, id):
        del group.pending[id]
        self.complete_if_all_joined(group)

    def expel(self, group, member):
        self.remove(group, member)
        if group.state in ("Completing", "Stable"):
            if group.members:
                self.rebalance(group)
            else:
                self.complete_join(group)
        else:
            self.complete_if_all_joined(group)

    def remove(self, group, member):
        del group.members[member.id]
        member.timer.cancel()
        if member.joining and not member.joining.done():
            member.joining.set_result(NO_JOIN | {"error_code": UNKNOWN_MEMBER, "member_id": member.id})
        self.answer_sync(member, UNKNOWN_MEMBER)
        member.timer.cancel()
        if group.leader == member.id:
            group.leader = next(iter(group.members), "")
