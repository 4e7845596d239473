"""The member core against the coordinator core."""

from dataclasses import dataclass, field

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitAnswer,
    Context,
    CoreAnswer,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    Step,
    SyncAnswer,
    SyncRequest,
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
    started,
)
from fencepost.model.errors import Error

EAGER = MemberSettings(names=("range",))
COOPERATIVE = MemberSettings(names=("cooperative-sticky",), cooperative=True)


@dataclass
class Room:
    """A coordinator with its members; every message arrives at once and in order."""

    group: Group = field(default_factory=lambda: Group(slots=(FREE,) * 4))
    members: dict[str, Member] = field(default_factory=dict)
    plan: tuple[object, ...] = ()
    handles: int = 0
    asked: dict[int, tuple[str, object]] = field(default_factory=dict)
    answers: list[CoreAnswer] = field(default_factory=list)
    now: int = 0

    def handle(self) -> int:
        self.handles += 1
        return self.handles

    def take(self, name: str, step: MemberStep) -> None:
        """Carry out a member's step: what it sends reaches the coordinator."""
        self.members[name] = step.member
        for sent in step.sent:
            if sent.when:
                self.send(name, sent.request)

    def send(self, name: str, request: object) -> None:
        context = Context(self.now, Choices(member_id=f"{name}-{self.handles}"))
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
        self.asked[handle] = (name, request)
        self.deliver(step)

    def deliver(self, step: Step) -> None:
        self.group = step.group
        for output in step.outputs:
            if output.when:
                self.answers.append(output.answer)
                self.answer(output.handle, output.answer)

    def answer(self, handle: int, answer: CoreAnswer) -> None:
        name, request = self.asked[handle]
        member = self.members[name]
        match answer:
            case JoinAnswer():
                self.take(name, core.on_join_answer(member, handle, answer, self.handle(), self.plan))
            case SyncAnswer():
                self.take(name, core.on_sync_answer(member, handle, answer, self.handle()))
            case HeartbeatAnswer():
                assert isinstance(request, HeartbeatRequest)
                self.take(name, core.on_heartbeat_answer(member, request, answer))
            case CommitAnswer():
                assert isinstance(request, PartitionCommit)
                self.take(name, core.on_commit_answer(member, request.request, answer))

    def poll(self, *names: str) -> None:
        for name in names:
            self.take(name, core.join(self.members[name], self.handle()))

    def beat(self, name: str) -> None:
        self.take(name, core.heartbeat(self.members[name], self.handle()))

    def elapse(self) -> None:
        """The initial delay ends."""
        self.now += 10_000
        self.deliver(expire_join(self.group, Context(self.now)))


def room_of_one(settings: MemberSettings) -> Room:
    """`a` owns both partitions."""
    room = Room(members={"a": started(settings, 2)})
    room.poll("a", "a")
    room.plan = (room.members["a"].id,) * 2
    room.elapse()
    return room


def test_joins_and_owns_what_it_is_given() -> None:
    member = room_of_one(EAGER).members["a"]
    assert (member.state, member.generation, member.owned, member.owned_in) == (MemberState.STABLE, 1, (True, True), 1)
    assert not member.rejoins and member.waiting == 0


def with_newcomer(settings: MemberSettings) -> Room:
    """`b` has joined, and `a` has heard of it."""
    room = room_of_one(settings)
    room.members["b"] = started(settings, 2)
    room.poll("b", "b")
    room.beat("a")
    assert room.members["a"].rejoins
    room.plan = (room.members["a"].id, room.members["b"].id)
    return room


def test_eager_gives_up_before_it_joins() -> None:
    room = with_newcomer(EAGER)
    room.plan = (room.members["a"].id, room.group.slots[1].id)
    room.poll("a")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, True)]
    assert not any(isinstance(answer, CommitAnswer) for answer in room.answers)


def test_cooperative_takes_two_rounds_and_commits_what_it_gives_up() -> None:
    room = with_newcomer(COOPERATIVE)
    room.plan = (room.members["a"].id, room.group.slots[1].id)
    room.poll("a")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, False)]
    assert room.members["a"].rejoins and not room.members["b"].rejoins
    assert CommitAnswer(Error.NONE) in room.answers
    room.poll("a")
    room.beat("b")
    room.poll("b")
    assert [room.members[name].owned for name in "ab"] == [(True, False), (False, True)]
    assert {room.members[name].generation for name in "ab"} == {3}


def test_lost_generation_loses_partitions_only_when_it_joins() -> None:
    member = room_of_one(COOPERATIVE).members["a"]
    request = HeartbeatRequest(99, member.id, None, member.generation)
    lost = core.on_heartbeat_answer(member, request, HeartbeatAnswer(Error.ILLEGAL_GENERATION)).member
    assert (lost.id, lost.generation, lost.owned) == (member.id, -1, member.owned)
    assert core.join(lost, 100).member.owned == (False, False)
    gone = core.on_heartbeat_answer(member, request, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)).member
    assert gone.id is None
    late = HeartbeatRequest(99, member.id, None, member.generation - 1)
    assert core.on_heartbeat_answer(member, late, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)).member == member


def test_late_answers_change_nothing() -> None:
    member = started(EAGER, 1)
    joining = core.join(member, 1).member
    assert core.join(joining, 2).sent == ()
    other = JoinAnswer(Error.NONE, 1, "consumer", "range", "x", "x")
    assert core.on_join_answer(joining, 2, other, 3, (None,)).member == joining
    left = core.leave(core.on_join_answer(joining, 1, other, 3, (None,)).member, 4)
    assert left.sent[0].request == LeaveRequest(4, (("x", None),))
    assert core.on_sync_answer(left.member, 3, SyncAnswer(Error.NONE, assignment=(True,))).member.owned == (False,)


def test_static_member_leaves_in_silence() -> None:
    room = Room(members={"a": started(MemberSettings(names=("range",), instance="i"), 1)})
    room.poll("a")
    room.plan = ("a-1",)
    room.elapse()
    assert room.members["a"].state is MemberState.STABLE
    assert not core.leave(room.members["a"], 9).sent[0].when
    assert core.restart(room.members["a"]).member == started(room.members["a"].settings, 1)


def test_commits_only_while_stable_and_what_it_owns() -> None:
    room = room_of_one(EAGER)
    room.take("a", core.commit(room.members["a"], room.handle(), (False, True)))
    assert room.answers[-1] == CommitAnswer(Error.NONE)
    joining = core.join(core.ask_rejoin(room.members["a"]).member, room.handle()).member
    assert core.commit(joining, room.handle(), (True, True)).sent == ()
    waiting_no_more = core.disconnect(joining).member
    assert core.commit(waiting_no_more, room.handle(), (True, True)).sent == ()
    assert core.join(waiting_no_more, room.handle()).sent
