"""The plain wordings of the theorems, which are false, each with the story of a group that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberSettings, PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    JoinResponseSent,
    SyncResponseSent,
    are_disjoint,
    has_member,
)
from fencepost.model.classic.theorems.scripted_run import ScriptedRun
from fencepost.model.classic.theorems.statements import one_assignee, one_leader
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Truth, and_, not_
from fencepost.model.sorts import InstanceId, OtherProtocolType, ProtocolName
from fencepost.model.statement import Statement, implies, statement

CLAIMS, RANGE = OtherProtocolType("claims"), ProtocolName("range")
DYNAMIC = MemberSettings(names=(RANGE,), protocol_type=CLAIMS)
COOPERATIVE = MemberSettings(names=(ProtocolName("cooperative-sticky"),), protocol_type=CLAIMS, cooperative=True)
STATIC = MemberSettings(names=(RANGE,), protocol_type=CLAIMS, instance=InstanceId("i"))
OTHER_STATIC = replace(STATIC, instance=InstanceId("j"))


@dataclass(frozen=True, slots=True)
class FalseTheorem:
    """A statement that is not always true, the reason in a sentence, and a run that shows it."""

    statement: Statement
    reason: str
    script: Callable[[], ScriptedRun]


@statement("T1-ids", "Any two answers of a generation name the same leader id.")
def one_leader_id(a: JoinResponseSent, b: JoinResponseSent) -> Truth:
    """False: the leader may get another id in the middle of a generation."""
    told = and_(a.response.error == Error.NONE, b.response.error == Error.NONE)
    same = a.response.generation == b.response.generation
    return implies(and_(told, same), a.response.leader == b.response.leader)


@statement("T2-any", "Every accepted commit carries the current generation, and its sender is a member.")
def no_commit_without_generation(acceptance: CommitAccepted) -> Truth:
    """False: a commit without a generation is stored while the group is empty."""
    request = acceptance.commit.request
    return and_(request.generation == acceptance.group.generation, has_member(acceptance.group, request.member))


@statement("T4-ids", "The assignments of one generation that two ids receive share no partition.")
def one_assigned_id(ghost: GhostState, a: SyncResponseSent, b: SyncResponseSent) -> Truth:
    """False: the heir of a static member gets what the member had."""
    granted = and_(a.response.error == Error.NONE, b.response.error == Error.NONE)
    same = ghost.generation_in(a.handle) == ghost.generation_in(b.handle)
    apart = ghost.member_id_in(a.handle) != ghost.member_id_in(b.handle)
    return implies(and_(granted, same, apart), are_disjoint(a.response.assignment, b.response.assignment))


@statement("T5", "Accepted commits of one partition in one generation come from one member.")
def one_writer(ghost: GhostState, a: CommitAccepted, b: CommitAccepted) -> Truth:
    """False for cooperative members: two that give up the same partition commit it both."""
    first, second = a.commit.request, b.commit.request
    same = and_(first.generation == second.generation, first.generation >= 0)
    shared = not_(are_disjoint(a.commit.partitions, b.commit.partitions))
    return implies(and_(same, shared), ghost.identity_of(first.member) == ghost.identity_of(second.member))


def introduce_member(run: ScriptedRun, name: int) -> None:
    """The process asks for an id, gets it, and its JoinGroup with the id is on its way."""
    (asked,) = run.step_member(name, members.join, run.next_number())
    (refused,) = run.deliver_request(asked)
    run.deliver_response(name, refused)


def send_join(run: ScriptedRun, name: int) -> None:
    """The member sends JoinGroup, and it arrives."""
    (request,) = run.step_member(name, members.join, run.next_number())
    run.deliver_request(request)


def send_rejoin(run: ScriptedRun, name: int) -> None:
    """The application asks for a rebalance, and the JoinGroup arrives."""
    run.step_member(name, members.ask_rejoin)
    send_join(run, name)


def join_response_to(run: ScriptedRun, name: int) -> JoinResponseSent:
    """The last answer to the JoinGroup that the member waits for."""
    waiting = run.processes[name].member.waiting
    return next(one for one in reversed(run.facts) if isinstance(one, JoinResponseSent) and one.handle == waiting)


def sync_response_to(run: ScriptedRun, name: int) -> SyncResponseSent:
    """The last answer to the SyncGroup that the member waits for."""
    waiting = run.processes[name].member.waiting
    return next(one for one in reversed(run.facts) if isinstance(one, SyncResponseSent) and one.handle == waiting)


def sync_members(run: ScriptedRun, owner: int | None, *names: int) -> list[MemberRequest]:
    """The answered members sync; the leader gives the partition to the owner; what they send at the end."""
    wish = (None if owner is None else join_response_to(run, owner).response.member,)
    for name in names:
        (request,) = run.deliver_response(name, join_response_to(run, name), wish)
        run.deliver_request(request)
    return [request for name in names for request in run.deliver_response(name, sync_response_to(run, name))]


def double_commit() -> ScriptedRun:
    """X owns the partition, an old JoinGroup of it is handled, Y gets it: both claim it, both give it up."""
    story = ScriptedRun()
    x, y = 1, 2
    story.start_process(y, COOPERATIVE)
    introduce_member(story, y)
    send_join(story, y)
    story.fire_after()
    sync_members(story, None, y)
    story.start_process(x, COOPERATIVE)
    introduce_member(story, x)
    (old,) = story.step_member(x, members.join, story.next_number())
    story.deliver_request(old)
    send_rejoin(story, y)
    sync_members(story, x, x, y)
    send_rejoin(story, y)
    story.deliver_request(old)
    sync_members(story, y, y)
    send_rejoin(story, x)
    send_rejoin(story, y)
    for commit in sync_members(story, None, x, y):
        story.deliver_request(commit)
    return story


def leader_id_change() -> ScriptedRun:
    """A static leader restarts while the group is stable: the fast path of JoinGroup v9 names its next id."""
    story = ScriptedRun()
    story.start_process(1, STATIC)
    send_join(story, 1)
    story.fire_after()
    sync_members(story, 1, 1)
    story.start_process(1, STATIC)
    send_join(story, 1)
    (request,) = story.deliver_response(1, join_response_to(story, 1))
    story.deliver_request(request)
    story.deliver_response(1, sync_response_to(story, 1))
    return story


def lead_generation(run: ScriptedRun, name: int, settings: MemberSettings) -> None:
    """A process joins a group without members and leads its next generation."""
    run.start_process(name, settings)
    send_join(run, name)
    run.fire_after()


def coordinator_failover(dialect: Dialect | None = None) -> ScriptedRun:
    """A generation that never became stable is not in the log: the next coordinator gives its number again."""
    run = ScriptedRun(dialect=dialect)
    lead_generation(run, 1, STATIC)
    run.fail_over()
    lead_generation(run, 2, OTHER_STATIC)
    return run


def group_deletion() -> ScriptedRun:
    """A deleted group comes back, and its generations start again at 1."""
    story = ScriptedRun()
    for name in (1, 2):
        story.start_process(name, DYNAMIC)
        introduce_member(story, name)
        send_join(story, name)
        story.fire_after()
        sync_members(story, name, name)
        (leaving,) = story.step_member(name, members.leave, story.next_number())
        story.deliver_request(leaving)
        story.delete_group()
    return story


def simple_commit() -> ScriptedRun:
    """Somebody who is no member commits for an empty group, without a generation."""
    story = ScriptedRun()
    story.deliver_request(PartitionCommit(CommitRequest(story.next_number(), None, None, -1), (True,)))
    return story


FALSE_THEOREMS = (
    FalseTheorem(one_leader_id, "a static leader that restarts leads under its next id", leader_id_change),
    FalseTheorem(one_leader, "numbers of generations are given again after a fail-over", coordinator_failover),
    FalseTheorem(one_leader, "numbers of generations are given again after a deletion", group_deletion),
    FalseTheorem(no_commit_without_generation, "commits below generation 0 claim no membership", simple_commit),
    FalseTheorem(one_assigned_id, "a static member that restarts keeps its assignment", leader_id_change),
    FalseTheorem(one_assignee, "numbers of generations are given again after a deletion", group_deletion),
    FalseTheorem(one_writer, "members that claim the same partition both give it up", double_commit),
)
