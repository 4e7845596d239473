"""Statements proved on symbolic values hold natively, step by step, in random runs of the same functions."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    SyncRequest,
)
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberState, PartitionCommit
from fencepost.model.classic.proofs.induction import STATEMENTS
from fencepost.model.classic.theorems.ghost_state import JoinResponseSent, SyncResponseSent
from fencepost.model.classic.theorems.non_theorems import COOPERATIVE, DYNAMIC, STATIC
from fencepost.model.classic.theorems.scripted_run import SLOT_COUNT, ScriptedRun
from fencepost.model.sorts import InstanceId, ProtocolName

PARTITIONS = 2
RANGE, STICKY = ProtocolName("range"), ProtocolName("cooperative-sticky")
SETTINGS = (
    COOPERATIVE,
    replace(COOPERATIVE, instance=InstanceId("j"), rebalance_timeout=0),
    replace(DYNAMIC, names=(RANGE, STICKY)),
    replace(STATIC, names=(STICKY, RANGE), can_skip=False),
    replace(COOPERATIVE, requires_id=False),
)
NEWEST = 24


def act(run: ScriptedRun, random: Random, name: int) -> None:
    """Something a member does by itself."""
    handlers: list[Callable[[], object]] = [
        lambda: run.step_member(name, members.join, run.next_number()),
        lambda: run.step_member(name, members.join, run.next_number()),
        lambda: run.step_member(name, members.heartbeat, run.next_number()),
        lambda: run.step_member(name, members.commit, run.next_number(), (True,) * PARTITIONS),
        lambda: run.step_member(name, members.ask_rejoin),
        lambda: run.step_member(name, members.disconnect),
    ]
    random.choice(handlers)()
    if random.random() < 0.02:
        run.step_member(name, random.choice((members.restart, lambda member: members.leave(member, run.next_number()))))


def arrive(run: ScriptedRun, random: Random) -> None:
    """An old or new request arrives; an answer to a heartbeat or a commit is heard at once, or never."""
    requests = [one for one in run.facts[-NEWEST:] if not isinstance(one, JoinResponseSent | SyncResponseSent)]
    sent = [one for one in requests if isinstance(one, JoinRequest | SyncRequest | HeartbeatRequest | PartitionCommit)]
    if not sent:
        return
    waiting = {process.member.waiting for process in run.processes.values()}
    awaited = [one for one in sent if isinstance(one, JoinRequest | SyncRequest) and one.handle in waiting]
    request = random.choice(awaited if awaited and random.random() < 0.8 else sent)
    run.deliver_request(request)
    handle = request.request.handle if isinstance(request, PartitionCommit) else request.handle
    for output in run.outputs:
        if isinstance(output.response, HeartbeatResponse | CommitResponse) and random.random() < 0.7:
            hear = members.on_heartbeat_response
            name = run.ghost.sender_of(handle)
            if isinstance(request, PartitionCommit) and isinstance(output.response, CommitResponse):
                run.step_member(name, members.on_commit_response, request.request, output.response)
            else:
                run.step_member(name, hear, request, output.response)


def hear(run: ScriptedRun, random: Random) -> None:
    """An old or new answer arrives at a member."""
    responses = [one for one in run.facts[-NEWEST:] if isinstance(one, JoinResponseSent | SyncResponseSent)]
    if responses:
        waiting = {process.member.waiting for process in run.processes.values()}
        awaited = [one for one in responses if one.handle in waiting]
        given = random.choice(awaited if awaited and random.random() < 0.9 else responses)
        ids = [process.member.id for process in run.processes.values()]
        plan = tuple(random.choice(ids) for _ in range(PARTITIONS))
        run.deliver_response(run.ghost.sender_of(given.handle), given, plan)


def rebalance(run: ScriptedRun, random: Random) -> None:
    """Everybody polls, and what is awaited arrives in some order."""
    for name in random.sample(sorted(run.processes), len(run.processes)):
        if random.random() < 0.8:
            for request in run.step_member(name, members.join, run.next_number()):
                run.deliver_request(request)
    for milliseconds in (4_000, random.choice((4_000, 400_000))):
        run.fire_after(expire_join, milliseconds=milliseconds)
    for _ in range(2 * len(run.processes)):
        for name in run.processes:
            waiting = run.processes[name].member.waiting
            kinds = JoinResponseSent | SyncResponseSent
            given = [one for one in run.facts[-NEWEST:] if isinstance(one, kinds) and one.handle == waiting]
            if given and random.random() < 0.9:
                ids = [process.member.id for process in run.processes.values()]
                for request in run.deliver_response(
                    name, given[-1], tuple(random.choice(ids) for _ in range(PARTITIONS))
                ):
                    run.deliver_request(request)


def fire(run: ScriptedRun, random: Random) -> None:
    """A timer fires."""
    if random.random() < 0.6:
        run.fire_after(expire_join, milliseconds=4_000)
    elif random.random() < 0.2:
        run.fire_after(expire_member, random.randrange(SLOT_COUNT), milliseconds=random.choice((1_000, 50_000)))
    else:
        run.fire_after(expire_sync, milliseconds=1_000)


def run(seed: int, steps: int) -> tuple[ScriptedRun, set[MemberState]]:
    """A random run in which every statement is looked at after every fifth step."""
    random, story = Random(seed), ScriptedRun(PARTITIONS)
    seen: set[MemberState] = set()
    for name, settings in enumerate(SETTINGS, 1):
        story.start_process(name, settings)
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
            assert [one.id for one in STATEMENTS if story.violations_of(one, NEWEST)] == [], (seed, step)
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
