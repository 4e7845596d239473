"""What is proved on symbolic values holds natively, step by step, in random runs of the same functions."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from fencepost.model.classic.core.state import CommitAnswer, HeartbeatAnswer, HeartbeatRequest, JoinRequest, SyncRequest
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberState, PartitionCommit
from fencepost.model.classic.theorems.ghost_state import JoinAnswered, SyncAnswered
from fencepost.model.classic.theorems.non_theorems import COOPERATIVE, DYNAMIC, STATIC
from fencepost.model.classic.theorems.scripted_run import SLOTS, Story
from fencepost.model.proofs.classic.induction import STATEMENTS

PARTITIONS = 2
SETTINGS = (
    COOPERATIVE,
    replace(COOPERATIVE, instance=8, rebalance_timeout=0),
    replace(DYNAMIC, names=("range", "cooperative-sticky")),
    replace(STATIC, names=("cooperative-sticky", "range"), can_skip=False),
    replace(COOPERATIVE, requires_id=False),
)
NEWEST = 24


def act(story: Story, random: Random, name: int) -> None:
    """Something a member does by itself."""
    handlers: list[Callable[[], object]] = [
        lambda: story.act(name, members.join, story.number()),
        lambda: story.act(name, members.join, story.number()),
        lambda: story.act(name, members.heartbeat, story.number()),
        lambda: story.act(name, members.commit, story.number(), (True,) * PARTITIONS),
        lambda: story.act(name, members.ask_rejoin),
        lambda: story.act(name, members.disconnect),
    ]
    random.choice(handlers)()
    if random.random() < 0.02:
        story.act(name, random.choice((members.restart, lambda member: members.leave(member, story.number()))))


def arrive(story: Story, random: Random) -> None:
    """An old or new request arrives; an answer to a heartbeat or a commit is heard at once, or never."""
    requests = [one for one in story.facts[-NEWEST:] if not isinstance(one, JoinAnswered | SyncAnswered)]
    sent = [one for one in requests if isinstance(one, JoinRequest | SyncRequest | HeartbeatRequest | PartitionCommit)]
    if not sent:
        return
    waiting = {process.member.waiting for process in story.processes.values()}
    awaited = [one for one in sent if isinstance(one, JoinRequest | SyncRequest) and one.handle in waiting]
    request = random.choice(awaited if awaited and random.random() < 0.8 else sent)
    story.arrive(request)
    handle = request.request.handle if isinstance(request, PartitionCommit) else request.handle
    for output in story.outputs:
        if isinstance(output.answer, HeartbeatAnswer | CommitAnswer) and random.random() < 0.7:
            hear = members.on_heartbeat_answer
            name = story.ledger.sender(handle)
            if isinstance(request, PartitionCommit) and isinstance(output.answer, CommitAnswer):
                story.act(name, members.on_commit_answer, request.request, output.answer)
            else:
                story.act(name, hear, request, output.answer)


def hear(story: Story, random: Random) -> None:
    """An old or new answer arrives at a member."""
    answers = [one for one in story.facts[-NEWEST:] if isinstance(one, JoinAnswered | SyncAnswered)]
    if answers:
        waiting = {process.member.waiting for process in story.processes.values()}
        awaited = [one for one in answers if one.handle in waiting]
        given = random.choice(awaited if awaited and random.random() < 0.9 else answers)
        ids = [process.member.id for process in story.processes.values()]
        plan = tuple(random.choice(ids) for _ in range(PARTITIONS))
        story.hear(story.ledger.sender(given.handle), given, plan)


def rebalance(story: Story, random: Random) -> None:
    """Everybody polls, and what is awaited arrives in some order."""
    for name in random.sample(sorted(story.processes), len(story.processes)):
        if random.random() < 0.8:
            for request in story.act(name, members.join, story.number()):
                story.arrive(request)
    for milliseconds in (4_000, random.choice((4_000, 400_000))):
        story.wait(expire_join, milliseconds=milliseconds)
    for _ in range(2 * len(story.processes)):
        for name in story.processes:
            waiting = story.processes[name].member.waiting
            kinds = JoinAnswered | SyncAnswered
            given = [one for one in story.facts[-NEWEST:] if isinstance(one, kinds) and one.handle == waiting]
            if given and random.random() < 0.9:
                ids = [process.member.id for process in story.processes.values()]
                for request in story.hear(name, given[-1], tuple(random.choice(ids) for _ in range(PARTITIONS))):
                    story.arrive(request)


def fire(story: Story, random: Random) -> None:
    """A timer fires."""
    if random.random() < 0.6:
        story.wait(expire_join, milliseconds=4_000)
    elif random.random() < 0.2:
        story.wait(expire_member, random.randrange(SLOTS), milliseconds=random.choice((1_000, 50_000)))
    else:
        story.wait(expire_sync, milliseconds=1_000)


def run(seed: int, steps: int) -> tuple[Story, set[MemberState]]:
    """A random run in which every statement is looked at after every fifth step."""
    random, story = Random(seed), Story(PARTITIONS)
    seen: set[MemberState] = set()
    for name, settings in enumerate(SETTINGS, 1):
        story.start(name, settings)
    for step in range(steps):
        chance = random.random()
        if chance < 0.05:
            rebalance(story, random)
        elif chance < 0.3:
            act(story, random, random.randint(1, len(SETTINGS)))
        elif chance < 0.6:
            arrive(story, random)
        elif chance < 0.9:
            hear(story, random)
        else:
            fire(story, random)
        seen |= {process.member.state for process in story.processes.values()}
        if step % 5 == 0:
            assert [one.id for one in STATEMENTS if story.breaches(one, NEWEST)] == [], (seed, step)
    return story, seen


@pytest.mark.parametrize("seed", range(4))
def test_every_statement_holds_in_random_runs(seed: int) -> None:
    story, seen = run(seed, 400)
    assert seen == set(MemberState)
    assert story.group.generation > 2


def test_members_own_something_in_them() -> None:
    owners: list[Member] = []
    for seed in range(4):
        story, _ = run(seed, 200)
        owners += [one.member for one in story.processes.values() if any(one.member.owned)]
    assert owners
