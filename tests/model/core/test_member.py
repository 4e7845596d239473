"""The member core against the coordinator core."""

from dataclasses import dataclass, field

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitResponse,
    Context,
    CoreResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.member import (
    Member,
    MemberSettings,
    MemberState,
    MemberStep,
    PartitionCommit,
    new_member,
)
from fencepost.model.errors import Error
from fencepost.model.sorts import Handle, HandleNumber, MemberId
from tests.support.plain_values import build

EAGER = build(MemberSettings, names=("range",))
COOPERATIVE = build(MemberSettings, names=("cooperative-sticky",), cooperative=True)


@dataclass
class MemberCluster:
    """A coordinator with its members; every message arrives at once and in order."""

    group: Group = field(default_factory=lambda: Group(slots=(FREE,) * 4))
    members: dict[str, Member] = field(default_factory=dict)
    plan: tuple[MemberId | None, ...] = ()
    handles: int = 0
    requests: dict[int, tuple[str, object]] = field(default_factory=dict)
    responses: list[CoreResponse] = field(default_factory=list)
    now: int = 0

    def next_handle(self) -> HandleNumber:
        self.handles += 1
        return HandleNumber(self.handles)

    def take(self, name: str, step: MemberStep) -> None:
        """Carry out a member's step: what it sends reaches the coordinator."""
        self.members[name] = step.member
        for sent in step.sent_requests:
            if sent.when:
                self.send(name, sent.request)

    def send(self, name: str, request: object) -> None:
        context = Context(self.now, build(Choices, member_id=f"{name}-{self.handles}"))
        match request:
            case JoinRequest():
                step = join(self.group, request, context)
            case SyncRequest():
                step = sync(self.group, request, context)
            case HeartbeatRequest():
                step = heartbeat(self.group, request, context)
            case LeaveRequest():
                step = leave(self.group, request, context)
            case PartitionCommit():
                step = commit(self.group, request.request, context)
            case _:
                raise AssertionError(request)
        handle = request.request.handle if isinstance(request, PartitionCommit) else request.handle
        self.requests[handle] = (name, request)
        self.deliver(step)

    def deliver(self, step: Step) -> None:
        self.group = step.group
        for output in step.outputs:
            if output.when:
                self.responses.append(output.response)
                self.response(output.handle, output.response)

    def response(self, handle: Handle, response: CoreResponse) -> None:
        name, request = self.requests[handle]
        member = self.members[name]
        match response:
            case JoinResponse():
                self.take(name, core.on_join_response(member, handle, response, self.next_handle(), self.plan))
            case SyncResponse():
                self.take(name, core.on_sync_response(member, handle, response, self.next_handle()))
            case HeartbeatResponse():
                assert isinstance(request, HeartbeatRequest)
                self.take(name, core.on_heartbeat_response(member, request, response))
            case CommitResponse():
                assert isinstance(request, PartitionCommit)
                self.take(name, core.on_commit_response(member, request.request, response))

    def poll(self, *names: str) -> None:
        for name in names:
            self.take(name, core.join(self.members[name], self.next_handle()))

    def heartbeat(self, name: str) -> None:
        self.take(name, core.heartbeat(self.members[name], self.next_handle()))

    def end_initial_delay(self) -> None:
        """The initial delay ends."""
        self.now += 10_000
        self.deliver(expire_join(self.group, Context(self.now)))


def cluster_of_one(settings: MemberSettings) -> MemberCluster:
    """`a` owns both partitions."""
    room = MemberCluster(members={"a": new_member(settings, 2)})
    room.poll("a", "a")
    room.plan = (room.members["a"].id,) * 2
    room.end_initial_delay()
    return room


def test_joins_and_owns_what_it_is_given() -> None:
    member = cluster_of_one(EAGER).members["a"]
    assert (member.state, member.generation, member.owned, member.owned_in) == (MemberState.STABLE, 1, (True, True), 1)
    assert not member.rejoins and member.waiting == 0


def add_newcomer(settings: MemberSettings) -> MemberCluster:
    """`b` has joined, and `a` has heard of it."""
    room = cluster_of_one(settings)
    room.members["b"] = new_member(settings, 2)
    room.poll("b", "b")
    room.heartbeat("a")
    assert room.members["a"].rejoins
    room.plan = (room.members["a"].id, room.members["b"].id)
    return room


def test_eager_gives_up_before_it_joins() -> None:
    room = add_newcomer(EAGER)
    room.plan = (room.members["a"].id, room.group.slots[1].id)
    room.poll("a")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, True)]
    assert not any(isinstance(response, CommitResponse) for response in room.responses)


def test_cooperative_takes_two_rounds_and_commits_what_it_gives_up() -> None:
    room = add_newcomer(COOPERATIVE)
    room.plan = (room.members["a"].id, room.group.slots[1].id)
    room.poll("a")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, False)]
    assert room.members["a"].rejoins and not room.members["b"].rejoins
    assert CommitResponse(Error.NONE) in room.responses
    room.poll("a")
    room.heartbeat("b")
    room.poll("b")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, True)]
    assert {room.members[name].generation for name in "ab"} == {3}


def test_lost_generation_loses_partitions_only_when_it_joins() -> None:
    member = cluster_of_one(COOPERATIVE).members["a"]
    request = build(HeartbeatRequest, 99, member.id, None, member.generation)
    lost = core.on_heartbeat_response(member, request, HeartbeatResponse(Error.ILLEGAL_GENERATION)).member
    assert (lost.id, lost.generation, lost.owned) == (member.id, -1, member.owned)
    assert core.join(lost, HandleNumber(100)).member.owned == (False, False)
    gone = core.on_heartbeat_response(member, request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)).member
    assert gone.id is None
    late = build(HeartbeatRequest, 99, member.id, None, member.generation - 1)
    assert core.on_heartbeat_response(member, late, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)).member == member


def test_late_answers_change_nothing() -> None:
    member = new_member(EAGER, 1)
    joining = core.join(member, HandleNumber(1)).member
    assert core.join(joining, HandleNumber(2)).sent_requests == ()
    other = build(JoinResponse, Error.NONE, 1, "consumer", "range", "x", "x")
    assert core.on_join_response(joining, HandleNumber(2), other, HandleNumber(3), (None,)).member == joining
    left = core.leave(
        core.on_join_response(joining, HandleNumber(1), other, HandleNumber(3), (None,)).member, HandleNumber(4)
    )
    assert left.sent_requests[0].request == build(LeaveRequest, 4, (("x", None),))
    assert core.on_sync_response(
        left.member, HandleNumber(3), SyncResponse(Error.NONE, assignment=(True,))
    ).member.owned == (False,)


def test_static_member_leaves_in_silence() -> None:
    room = MemberCluster(members={"a": new_member(build(MemberSettings, names=("range",), instance="i"), 1)})
    room.poll("a")
    room.plan = (MemberId("a-1"),)
    room.end_initial_delay()
    assert room.members["a"].state is MemberState.STABLE
    assert not core.leave(room.members["a"], HandleNumber(9)).sent_requests[0].when
    assert core.restart(room.members["a"]).member == new_member(room.members["a"].settings, 1)


def test_commits_only_while_stable_and_what_it_owns() -> None:
    room = cluster_of_one(EAGER)
    room.take("a", core.commit(room.members["a"], room.next_handle(), (False, True)))
    assert room.responses[-1] == CommitResponse(Error.NONE)
    joining = core.join(core.ask_rejoin(room.members["a"]).member, room.next_handle()).member
    assert core.commit(joining, room.next_handle(), (True, True)).sent_requests == ()
    waiting_no_more = core.disconnect(joining).member
    assert core.commit(waiting_no_more, room.next_handle(), (True, True)).sent_requests == ()
    assert core.join(waiting_no_more, room.next_handle()).sent_requests
