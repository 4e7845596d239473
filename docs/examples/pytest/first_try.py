"""A coordinator of consumer groups in 150 lines: members join, get their share, keep alive and leave."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import count

NONE, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP, UNKNOWN_MEMBER = 0, 22, 23, 24, 25
INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS = 26, 27


class Coordinator:
    def __init__(self, settings, topics, storage):
        self.groups, self.ids = defaultdict(lambda: Group(settings)), count()

    async def handle(self, api, version, body, client_id):
        group = self.groups[body["group_id"]]
        if api == "JoinGroup":
            return await group.join(body["member_id"] or f"{client_id}-{next(self.ids)}", body)
        member = group.members.get(body["member_id"])
        if not member:
            return {"error_code": UNKNOWN_MEMBER if body["group_id"] else INVALID_GROUP}
        if api == "LeaveGroup":
            group.members.pop(member.id).timer.cancel()
            return {"error_code": NONE}
        if body["generation_id"] < group.generation:
            return {"error_code": ILLEGAL_GENERATION}
        return await group.sync(member, body) if api == "SyncGroup" else group.heartbeat(member)


@dataclass(eq=False)
class Member:
    id: str
    protocols: dict[str, bytes] = field(default_factory=dict)
    session_timeout: int = 0
    rebalance_timeout: int = 0
    joining: asyncio.Future | None = None
    has_synced: bool = False
    timer: asyncio.TimerHandle | None = None


class Group:
    """A group is Empty, Preparing (its members join), Completing (its leader is to assign), or Stable."""

    def __init__(self, settings):
        self.state, self.generation, self.leader, self.type, self.protocol = "Empty", 0, "", "", ""
        self.members, self.settings, self.timer, self.shares = {}, settings, None, None

    async def join(self, id, body):
        offered = {row["name"]: row["metadata"] for row in body["protocols"]}
        if error := self.find_error(body, offered):
            return {"error_code": error, "member_id": body["member_id"]}
        member = self.members.setdefault(id, Member(id))
        is_same = offered == member.protocols
        if is_same and (self.state == "Completing" or (self.state == "Stable" and id != self.leader)):
            self.begin_session(member, member.session_timeout)
            return self.describe_generation(member)
        member.session_timeout, member.rebalance_timeout = body["session_timeout_ms"], body["rebalance_timeout_ms"]
        self.leader, self.type, member.protocols = self.leader or id, body["protocol_type"], offered
        if member.timer:
            member.timer.cancel()  # who waits for the others is alive
        else:
            self.begin_session(member, self.settings.new_member_timeout)
        joining = member.joining = asyncio.get_running_loop().create_future()
        self.rebalance()
        return await joining

    def find_error(self, body, offered):
        if not body["group_id"]:
            return INVALID_GROUP
        if not self.settings.min_session_timeout <= body["session_timeout_ms"] <= self.settings.max_session_timeout:
            return INVALID_SESSION_TIMEOUT
        is_common = any(all(name in member.protocols for member in self.members.values()) for name in offered)
        if not is_common or not body["protocol_type"] or (self.members and body["protocol_type"] != self.type):
            return INCONSISTENT_PROTOCOL
        return UNKNOWN_MEMBER if body["member_id"] and body["member_id"] not in self.members else NONE

    def rebalance(self):
        """Have all members join, and begin a generation once they have."""
        if self.state == "Completing":
            self.shares.set_result(None)
        if self.state != "Preparing":
            self.enter("Preparing")
        if all(member.joining for member in self.members.values()):
            self.begin_generation()

    def begin_generation(self):
        self.generation += 1
        self.enter("Completing" if self.members else "Empty")
        self.protocol, self.shares = self.choose_protocol(), asyncio.get_running_loop().create_future()
        for member in self.members.values():
            member.joining.set_result(self.describe_generation(member))
            member.joining, member.has_synced = None, False
            self.begin_session(member, member.session_timeout)

    def choose_protocol(self):
        """The one with most votes: each member has one, for the first of its protocols that all members have."""
        offers = [member.protocols for member in self.members.values()]
        votes = Counter(next(name for name in offer if all(name in each for each in offers)) for offer in offers)
        return max(votes, key=votes.get, default="")

    def describe_generation(self, member):
        roster = [{"member_id": id, "metadata": each.protocols[self.protocol]} for id, each in self.members.items()]
        told = {"generation_id": self.generation, "protocol_name": self.protocol, "leader": self.leader}
        return told | {"member_id": member.id, "members": roster if member.id == self.leader else []}

    async def sync(self, member, body):
        if self.state == "Preparing":
            return {"error_code": REBALANCE_IN_PROGRESS}
        member.has_synced = True
        member.timer.cancel()  # who waits for the leader is alive
        if self.state == "Completing" and member.id == self.leader:
            self.state = "Stable"
            self.shares.set_result({row["member_id"]: row["assignment"] for row in body["assignments"]})
        shares = await self.shares
        if member.id not in self.members:
            return {"error_code": UNKNOWN_MEMBER}
        self.begin_session(member, member.session_timeout)
        return {"error_code": REBALANCE_IN_PROGRESS} if shares is None else {"assignment": shares[member.id]}

    def heartbeat(self, member):
        if not member.joining:
            self.begin_session(member, member.session_timeout)
        return {"error_code": REBALANCE_IN_PROGRESS if self.state == "Preparing" else NONE}

    def expel(self, member):
        del self.members[member.id]
        member.timer.cancel()
        if member.joining:
            member.joining.set_result({"error_code": UNKNOWN_MEMBER})
        self.leader = self.leader if self.leader in self.members else next(iter(self.members), "")
        self.rebalance()

    def begin_session(self, member, timeout):
        if member.timer:
            member.timer.cancel()
        member.timer = asyncio.get_running_loop().call_later(timeout / 1000, self.expel, member)

    def enter(self, state):
        """Enter a state, in which members have as long as the longest of their rebalance timeouts."""
        self.state = state
        if self.timer:
            self.timer.cancel()
        longest = min((member.rebalance_timeout for member in self.members.values()), default=0)
        self.timer = asyncio.get_running_loop().call_later(longest / 1000, self.expel_late)

    def expel_late(self):
        is_in_time = "joining" if self.state == "Preparing" else "has_synced"
        for member in [each for each in self.members.values() if not getattr(each, is_in_time)]:
            self.expel(member)
