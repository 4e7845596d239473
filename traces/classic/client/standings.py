"""What a client may know of its membership: the standings that it may have, as the proved member tells them.

News is a response that has left the cluster. It may be on its way for as long as the grace of the trace: until then,
the client may act by it or by what it knew before: there is a standing after each piece of news. A request is allowed
if it is sent in one of them, and shows that the news up to that one has arrived. For all requests but JoinGroup, which
a client sends because of some news, it takes a sign besides that the client was not held up meanwhile.

A standing is a value of the proved member (`model/classic/member`). What a response makes of that, and by which rule,
is what the proved functions say, and so is what is sent in it.
"""

from dataclasses import dataclass, replace
from typing import Self

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    SyncResponse,
)
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.member import Member, MemberSettings, MemberState, MemberStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import HandleNumber, MemberId
from fencepost.traces.classic.client.messages import NO_GENERATION, error_in, generation_in
from fencepost.traces.events import Event, Operation

NOBODY = core.new_member(MemberSettings(()), 0)
FIRST_HANDLE = HandleNumber(1)
KNOWN_ERRORS = frozenset(int(each) for each in Error)
LOST = frozenset(
    {
        *("member.join.id-required", "member.join.unknown-member", "member.illegal-generation"),
        *("member.unknown-member", "member.sync.illegal-generation", "member.sync.unknown-member"),
    }
)
"""The rules by which a member has no generation any more, or none yet."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A membership as a client knows it after some news.

    `requirement` says what the next JoinGroup carries, "" if none does. `sequence` and `time` are those of the news,
    and `news` tells it in words.
    """

    member: Member = NOBODY
    is_certain: bool = True
    """Whether the client has the id of that: else its next JoinGroup may carry any."""
    assignment: frozenset[TopicPartition] = frozenset()
    requirement: str = ""
    news: str = "it has just started"
    sequence: int = 0
    time: int = 0

    @property
    def member_id(self) -> str | None:
        """The member id that the next JoinGroup carries, None for any."""
        return (self.member.id or "") if self.is_certain else None

    @property
    def generation(self) -> int:
        """The generation that it was told last."""
        return self.member.generation

    @property
    def is_stable(self) -> bool:
        """Whether it was told an assignment."""
        return self.member.state == MemberState.STABLE

    def as_sent(self, operation: Operation) -> Self:
        """The standing of a member that has the id in a request that it has sent."""
        named = evolve(self.member, id=MemberId(operation.body["member_id"]) or None)
        return replace(self, member=named, is_certain=True)

    def unsure(self) -> Self:
        """The standing of a client that may have lost its id."""
        return replace(self, is_certain=False)

    def sends(self, member_id: str, generation: int) -> bool:
        """Whether a Heartbeat of this membership is sent in this standing."""
        if not self.is_certain:
            return self.generation == generation != NO_GENERATION
        sent = (each.request for each in core.heartbeat(self.member, FIRST_HANDLE).sent_requests)
        requests = (each for each in sent if isinstance(each, HeartbeatRequest))
        return any((each.member or "", each.generation) == (member_id, generation) for each in requests)

    def reads(self, operation: Operation, event: Event) -> MemberStep:
        """What the proved member makes of a response to a request that it has sent, and by which rule."""
        body, handle, number = event.body, HandleNumber(operation.handle), error_in(event)
        error = Error(number) if number in KNOWN_ERRORS else Error.UNKNOWN_SERVER_ERROR
        sender = MemberId(operation.body["member_id"]) or None
        match operation.api:
            case "JoinGroup":
                member = evolve(self.member, id=sender, state=MemberState.PREPARING_REBALANCE, waiting=handle)
                told = JoinResponse(error, body.get("generation_id", NO_GENERATION), leader=body.get("leader"))
                told = evolve(told, member=body.get("member_id") or None)
                return core.on_join_response(member, handle, told, HandleNumber(handle + 1), ())
            case "SyncGroup":
                member = evolve(self.member, id=sender, state=MemberState.COMPLETING_REBALANCE, waiting=handle)
                return core.on_sync_response(member, handle, SyncResponse(error))
            case "Heartbeat":
                sent = HeartbeatRequest(handle, sender, None, generation_in(operation))
                return core.on_heartbeat_response(self.member, sent, HeartbeatResponse(error))
        commit = CommitRequest(handle, sender, None, generation_in(operation))
        return core.on_commit_response(self.member, commit, CommitResponse(error))

    def is_current(self, operation: Operation) -> bool:
        """Whether the membership in a Heartbeat or OffsetCommit is the one that the client has (MEMBER-15)."""
        sender = MemberId(operation.body.get("member_id") or "") or None
        return self.is_certain and bool(core.is_current(self.member, sender, generation_in(operation)))


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The standings of a client in the order of the news, as far as they still matter. `grace` in milliseconds."""

    grace: int
    standings: tuple[Standing, ...] = (Standing(requirement="MEMBER-02"),)
    former: tuple[Standing, ...] = ()
    """Standings that the client has certainly left behind, with a generation."""

    @property
    def latest(self) -> Standing:
        """The standing after the latest news."""
        return self.standings[-1]

    def learn(self, standing: Standing) -> Self:
        """What it knows when there is news."""
        return replace(self, standings=(*self.standings, standing))

    def settle(self, time: int) -> Self:
        """What it knows when everything has arrived that is older than the grace."""
        return self._leave_behind(sum(standing.time + self.grace <= time for standing in self.standings[1:]))

    def show(self, sequence: int) -> Self:
        """What it knows when a request shows that the news with this number, and all before it, has arrived."""
        return self._leave_behind(sum(standing.sequence <= sequence for standing in self.standings[1:]))

    def shown_by(self, operation: Operation) -> Self:
        """What it knows when it sends a Heartbeat or OffsetCommit of a membership that it may have."""
        sent = operation.body["member_id"], generation_in(operation)
        first = next((one for one in self.standings if one.sends(*sent)), None)
        return self if first is None else self.show(first.sequence)

    def find(self, member_id: str, generation: int) -> Standing | None:
        """The latest standing with this membership that the client may have, None if there is none."""
        fitting = (each for each in reversed(self.standings) if each.sends(member_id, generation))
        return next(fitting, None)

    def had(self, member_id: str, generation: int) -> Standing | None:
        """The former standing with this membership, None if the client was never told of it."""
        return next((each for each in reversed(self.former) if each.sends(member_id, generation)), None)

    def allowed_partitions(self) -> frozenset[TopicPartition]:
        """All partitions that the client may hold to be its own."""
        return frozenset[TopicPartition]().union(*(standing.assignment for standing in self.standings))

    def _leave_behind(self, count: int) -> Self:
        if not count:
            return self
        behind = tuple(each for each in self.standings[:count] if each.generation != NO_GENERATION)
        return replace(self, standings=self.standings[count:], former=(*self.former, *behind))
