"""The plain wordings of the theorems, which are false, each with the story of a group that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.model.classic.core.state import CommitRequest
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberSettings, PartitionCommit
from fencepost.model.classic.theorems.ghost_state import Accepted, JoinAnswered, Ledger, SyncAnswered, disjoint, joined
from fencepost.model.classic.theorems.scripted_run import Story
from fencepost.model.classic.theorems.statements import Statement, imply, one_assignee, one_leader, statement
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, and_, not_

DYNAMIC = MemberSettings(names=("range",), protocol_type="claims")
COOPERATIVE = MemberSettings(names=("cooperative-sticky",), protocol_type="claims", cooperative=True)
STATIC = MemberSettings(names=("range",), protocol_type="claims", instance=7)


@dataclass(frozen=True, slots=True)
class FalseTheorem:
    """A statement that is not always true, the reason in a sentence, and a run that shows it."""

    statement: Statement
    reason: str
    story: Callable[[], Story]


@statement("T1-ids", "Any two answers of a generation name the same leader id.")
def one_leader_id(a: JoinAnswered, b: JoinAnswered) -> Truth:
    """False: the leader may get another id in the middle of a generation."""
    told = and_(a.answer.error == Error.NONE, b.answer.error == Error.NONE)
    same = a.answer.generation == b.answer.generation
    return imply(and_(told, same), a.answer.leader == b.answer.leader)


@statement("T2-any", "Every accepted commit carries the current generation, and its sender is a member.")
def no_commit_without_generation(moment: Accepted) -> Truth:
    """False: a commit without a generation is stored while the group is empty."""
    request = moment.commit.request
    return and_(request.generation == moment.group.generation, joined(moment.group, request.member))


@statement("T4-ids", "The assignments of one generation that two ids receive share no partition.")
def one_assigned_id(ledger: Ledger, a: SyncAnswered, b: SyncAnswered) -> Truth:
    """False: the heir of a static member gets what the member had."""
    granted = and_(a.answer.error == Error.NONE, b.answer.error == Error.NONE)
    same = ledger.asked_in(a.handle) == ledger.asked_in(b.handle)
    apart = ledger.asked_as(a.handle) != ledger.asked_as(b.handle)
    return imply(and_(granted, same, apart), disjoint(a.answer.assignment, b.answer.assignment))


@statement("T5", "Accepted commits of one partition in one generation come from one member.")
def one_writer(ledger: Ledger, a: Accepted, b: Accepted) -> Truth:
    """False for cooperative members: two that give up the same partition commit it both."""
    first, second = a.commit.request, b.commit.request
    same = and_(first.generation == second.generation, first.generation >= 0)
    shared = not_(disjoint(a.commit.partitions, b.commit.partitions))
    return imply(and_(same, shared), ledger.person(first.member) == ledger.person(second.member))


def introduced(story: Story, name: int) -> None:
    """The process asks for an id, gets it, and its JoinGroup with the id is on its way."""
    (asked,) = story.act(name, members.join, story.number())
    (refused,) = story.arrive(asked)
    story.hear(name, refused)


def joins(story: Story, name: int) -> None:
    """The member sends JoinGroup, and it arrives."""
    (request,) = story.act(name, members.join, story.number())
    story.arrive(request)


def rejoins(story: Story, name: int) -> None:
    """The application asks for a rebalance, and the JoinGroup arrives."""
    story.act(name, members.ask_rejoin)
    joins(story, name)


def told(story: Story, name: int) -> JoinAnswered:
    """The last answer to the JoinGroup that the member waits for."""
    waiting = story.processes[name].member.waiting
    return next(one for one in reversed(story.facts) if isinstance(one, JoinAnswered) and one.handle == waiting)


def given(story: Story, name: int) -> SyncAnswered:
    """The last answer to the SyncGroup that the member waits for."""
    waiting = story.processes[name].member.waiting
    return next(one for one in reversed(story.facts) if isinstance(one, SyncAnswered) and one.handle == waiting)


def settle(story: Story, owner: int | None, *names: int) -> list[MemberRequest]:
    """The answered members sync; the leader gives the partition to the owner; what they send at the end."""
    wish = (None if owner is None else told(story, owner).answer.member,)
    for name in names:
        (request,) = story.hear(name, told(story, name), wish)
        story.arrive(request)
    return [request for name in names for request in story.hear(name, given(story, name))]


def written_twice() -> Story:
    """X owns the partition, an old JoinGroup of it is handled, Y gets it: both claim it, both give it up."""
    story = Story()
    x, y = 1, 2
    story.start(y, COOPERATIVE)
    introduced(story, y)
    joins(story, y)
    story.wait()
    settle(story, None, y)
    story.start(x, COOPERATIVE)
    introduced(story, x)
    (old,) = story.act(x, members.join, story.number())
    story.arrive(old)
    rejoins(story, y)
    settle(story, x, x, y)
    rejoins(story, y)
    story.arrive(old)
    settle(story, y, y)
    rejoins(story, x)
    rejoins(story, y)
    for commit in settle(story, None, x, y):
        story.arrive(commit)
    return story


def leader_renamed() -> Story:
    """A static leader restarts while the group is stable: the fast path of JoinGroup v9 names its next id."""
    story = Story()
    story.start(1, STATIC)
    joins(story, 1)
    story.wait()
    settle(story, 1, 1)
    story.start(1, STATIC)
    joins(story, 1)
    (request,) = story.hear(1, told(story, 1))
    story.arrive(request)
    story.hear(1, given(story, 1))
    return story


def failed_over() -> Story:
    """A generation that never became stable is not in the log: the next coordinator gives its number again."""
    story = Story()
    for name in (1, 2):
        story.start(name, DYNAMIC)
        introduced(story, name)
        joins(story, name)
        story.wait()
        story.hear(name, told(story, name))
        story.fail_over()
    return story


def deleted() -> Story:
    """A deleted group comes back, and its generations start again at 1."""
    story = Story()
    for name in (1, 2):
        story.start(name, DYNAMIC)
        introduced(story, name)
        joins(story, name)
        story.wait()
        settle(story, name, name)
        (leaving,) = story.act(name, members.leave, story.number())
        story.arrive(leaving)
        story.delete()
    return story


def simple_commit() -> Story:
    """Somebody who is no member commits for an empty group, without a generation."""
    story = Story()
    story.arrive(PartitionCommit(CommitRequest(story.number(), None, None, -1), (True,)))
    return story


FALSE_THEOREMS = (
    FalseTheorem(one_leader_id, "a static leader that restarts leads under its next id", leader_renamed),
    FalseTheorem(one_leader, "numbers of generations are given again after a fail-over", failed_over),
    FalseTheorem(one_leader, "numbers of generations are given again after a deletion", deleted),
    FalseTheorem(no_commit_without_generation, "commits below generation 0 claim no membership", simple_commit),
    FalseTheorem(one_assigned_id, "a static member that restarts keeps its assignment", leader_renamed),
    FalseTheorem(one_assignee, "numbers of generations are given again after a deletion", deleted),
    FalseTheorem(one_writer, "members that claim the same partition both give it up", written_twice),
)
