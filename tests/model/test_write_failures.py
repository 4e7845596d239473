"""Requests whose write fails: what is answered, what is undone, what may have reached the log (coordinator.md 5.4)."""

from typing import Any

import pytest

from fencepost.model.classic.coordinator.internal_actions import unloaded
from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.coordinator.write_failures import Failure, fail, failure_error
from fencepost.model.classic.core.state import (
    CommitRequest,
    Dialect,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    Phase,
    SyncRequest,
)
from fencepost.model.classic.messages.requests import (
    Commit,
    Delete,
    DeleteOffsets,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    Offset,
    Request,
    Sync,
    TransactionalCommit,
)
from fencepost.model.errors import Error
from tests.support.model_driver import SESSION, Desk, desk_in

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
DOWN, LATE = Failure.UNAVAILABLE, Failure.TIMED_OUT
WHERE = ("t", 0)


class Failing:
    """A desk whose log does not take the next record."""

    def __init__(self, desk: Desk, failure: Failure = DOWN, *, taken: bool = False) -> None:
        self.desk = desk
        self.failure = failure
        self.taken = taken

    def ask(self, request: Request) -> bool:
        """Handle a request; false if there is nothing to write."""
        desk = self.desk
        desk.made += isinstance(request, Join) and request.core.member is None
        context = desk.context(f"m{desk.made}")
        outcome = fail(desk.world, request, self.failure, context, desk.cluster, taken=self.taken)
        if outcome is None:
            return False
        desk.world = outcome.world
        desk.rules.append(outcome.rule)
        desk.answers |= {reply.handle: reply.answer for reply in outcome.replies}
        return True


def sync(desk: Desk, member: str, generation: int = 1, instance: str | None = None) -> Sync:
    given = tuple((name, b"new") for name in ("m1", "m2"))
    return Sync("g", SyncRequest(desk.handle(), member, instance, generation, "consumer", "p", given), True)


def commit(desk: Desk, member: str | None = None, generation: int = -1, *more: tuple[tuple[str, int], str]) -> Commit:
    offsets = ((WHERE, Offset(9)), *((where, Offset(9, metadata=note)) for where, note in more))
    return Commit("g", CommitRequest(desk.handle(), member, None, generation), 9, offsets)


def join(desk: Desk, member: str | None, instance: str | None = None) -> Join:
    offered = desk_in(STABLE).group.slots[0].protocols
    core = JoinRequest(desk.handle(), member, instance, "consumer", offered, SESSION, SESSION, True, True)
    return Join("g", core)


@pytest.mark.parametrize(
    ("failure", "request_", "newer", "older"),
    [
        (Failure.UNAVAILABLE, commit(Desk()), 15, 15),
        (Failure.UNAVAILABLE, sync(Desk(), "m"), 15, 15),
        (Failure.UNAVAILABLE, Fetch("g", 1, 8, None, True), 16, 16),
        (Failure.DISPLACED, commit(Desk()), 16, 16),
        (Failure.DISPLACED, Fetch("g", 1, 8, None, True), 16, 16),
        (Failure.TOO_LARGE, commit(Desk()), -1, 28),
        (Failure.TOO_LARGE, sync(Desk(), "m"), -1, -1),
        (Failure.TIMED_OUT, sync(Desk(), "m"), 15, 27),
        (Failure.TIMED_OUT, join(Desk(), None, "i"), 15, 27),
        (Failure.TIMED_OUT, commit(Desk()), 15, 7),
        (Failure.TIMED_OUT, Fetch("g", 1, 8, None, True), 16, 16),
    ],
)
def test_errors(failure: Failure, request_: Request, newer: int, older: int) -> None:
    assert failure_error(failure, request_, Dialect()) == newer
    other = Dialect(oversized_is_unexpected=False, late_replication_is_unavailable=False)
    assert failure_error(failure, request_, other) == older


@pytest.mark.parametrize("taken", [False, True])
def test_an_assignment_that_is_not_stored_ends_the_round(taken: bool) -> None:
    desk = desk_in(COMPLETING)
    follower = desk.sync("m2", 1, instance="i")
    desk.wait(1_000)
    before = desk.world
    assert Failing(desk, taken=taken).ask(sync(desk, "m1"))
    assert desk.rules[-1] == "failure.assignment"
    assert [desk.error(each) for each in (follower, desk.handles)] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert desk.phase is PREPARING and desk.group.generation == 1
    assert not any(slot.assignment or slot.sync for slot in desk.group.slots)
    assert desk.member("m2").deadline == desk.now + SESSION
    assert desk.group.join_armed and not desk.group.sync_armed
    assert (desk.world.stored == before.stored) is not taken
    desk.restart()
    if taken:
        assert desk.answer(desk.sync("m2", 1, instance="i")).assignment == b"new"
    else:
        assert desk.error(desk.beat("m2", 1, "i")) == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("member", "generation"), [("m2", 1), ("m1", 2), ("nobody", 1)])
def test_only_the_leaders_assignment_is_written(member: str, generation: int) -> None:
    desk = desk_in(COMPLETING)
    before = desk.world
    assert not Failing(desk).ask(sync(desk, member, generation))
    assert desk.world == before


@pytest.mark.parametrize("taken", [False, True])
def test_a_replacement_that_is_not_stored_is_undone(taken: bool) -> None:
    desk = desk_in(STABLE)
    desk.wait(1_000)
    asked = join(desk, None, "i")
    assert Failing(desk, taken=taken).ask(asked)
    answer = desk.answer(desk.handles)
    assert answer == JoinAnswer(Error.COORDINATOR_NOT_AVAILABLE, 1, "consumer", "p", "m1")
    assert desk.phase is STABLE and desk.members() == {"m1", "m2"}
    assert desk.member("m2").deadline == desk.now + SESSION and not desk.member("m2").join
    assert desk.member("m2").protocols == desk.member("m1").protocols and desk.member("m2").assignment == b"m2"
    assert desk.error(desk.beat("m2", 1, "i")) == Error.NONE
    desk.restart()
    assert desk.members() == {"m1", "m3" if taken else "m2"}


def test_a_replacement_that_starts_a_round_is_not_written() -> None:
    desk = desk_in(COMPLETING)
    assert not Failing(desk).ask(join(desk, None, "i"))


@pytest.mark.parametrize("taken", [False, True])
def test_a_group_that_is_not_stored_is_not_created(taken: bool) -> None:
    desk = Desk()
    assert Failing(desk, taken=taken).ask(join(desk, None))
    assert desk.answer(desk.handles) == JoinAnswer(Error.COORDINATOR_NOT_AVAILABLE)
    assert desk.world.group is None
    desk.restart()
    assert (desk.world.group is not None) is taken


def test_the_older_coordinator_writes_no_new_group() -> None:
    desk = Desk(dialect=Dialect(new_group_is_stored=False))
    assert not Failing(desk).ask(join(desk, None))


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_offsets_that_are_not_stored(transactional: bool, taken: bool) -> None:
    desk = desk_in(STABLE)
    desk.wait(1_000)
    request: Commit | TransactionalCommit = commit(desk, "m1", 1, (("t", 1), "n" * 9_999), (("ghost", 0), ""))
    if transactional:
        request = TransactionalCommit("g", request.core, 5, request.offsets)
    assert Failing(desk, taken=taken).ask(request)
    assert desk.rules[-1] == "failure.commit"
    assert desk.answer(desk.handles).errors == {
        WHERE: Error.COORDINATOR_NOT_AVAILABLE,
        ("t", 1): Error.COORDINATOR_NOT_AVAILABLE,
        ("ghost", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    stored = desk.world.pending.get(5, {}) if transactional else desk.world.offsets
    assert set(stored) == ({WHERE} if taken else set())
    assert desk.member("m1").deadline == SESSION + (desk.now if not transactional else 2 * 3_000)


@pytest.mark.parametrize(("taken", "there"), [(False, False), (True, True)])
def test_a_simple_group_is_created_with_its_offsets_only(taken: bool, there: bool) -> None:
    desk = Desk()
    assert Failing(desk, taken=taken).ask(commit(desk))
    assert (desk.world.group is not None) is there


@pytest.mark.parametrize(("member", "generation"), [("nobody", 1), ("m1", 9), (None, -1)])
def test_a_refused_commit_writes_nothing(member: str | None, generation: int) -> None:
    desk = desk_in(STABLE)
    assert not Failing(desk).ask(commit(desk, member, generation))


@pytest.mark.parametrize("taken", [False, True])
def test_deletions(taken: bool) -> None:
    desk = desk_in(EMPTY)
    desk.ask(commit(desk))
    stored = dict(desk.world.offsets)
    assert set(stored) == {WHERE}
    assert not Failing(desk).ask(DeleteOffsets("g", desk.handle(), (("t", 1),)))
    assert Failing(desk, taken=taken).ask(DeleteOffsets("g", desk.handle(), (WHERE,)))
    assert desk.answer(desk.handles).error == Error.COORDINATOR_NOT_AVAILABLE
    assert desk.world.offsets == ({} if taken else stored)
    assert Failing(desk, taken=taken).ask(Delete("g", desk.handle()))
    assert desk.answer(desk.handles).error == Error.COORDINATOR_NOT_AVAILABLE
    assert (desk.world.group is None) is taken
    assert not Failing(desk_in(STABLE)).ask(Delete("g", 1))


def test_only_stable_fetches_wait_for_writes() -> None:
    desk = desk_in(STABLE)
    assert Failing(desk, LATE).ask(Fetch("g", desk.handle(), 8, None, True))
    assert desk.answer(desk.handles).error == Error.NOT_COORDINATOR
    assert not Failing(desk, LATE).ask(Fetch("g", desk.handle(), 8, None, False))


def test_what_changes_nothing_on_the_log_cannot_fail() -> None:
    desk = desk_in(STABLE)
    others: tuple[Request, ...] = (
        Heartbeat("g", HeartbeatRequest(desk.handle(), "m1", None, 1)),
        Leave("g", LeaveRequest(desk.handle(), (("m1", None),))),
        join(desk, "m1"),
        join(desk, None),
    )
    assert not any(Failing(desk).ask(request) for request in others)


# --- unloading


@pytest.mark.parametrize("phase", Phase)
def test_unloading_sends_those_who_wait_elsewhere(phase: Phase) -> None:
    desk = desk_in(phase)
    parked: dict[int, Any] = {}
    if phase is PREPARING:
        joins = {slot.id: slot.join for slot in desk.group.slots if slot.join}
        parked = {handle: JoinAnswer(Error.NOT_COORDINATOR, member=member) for member, handle in joins.items()}
        assert set(joins) == {"m3"}
    elif phase is COMPLETING:
        parked = {desk.sync("m2", 1, instance="i"): Error.NOT_COORDINATOR}
    outcome = unloaded(desk.world)
    assert outcome.world == World() and outcome.rule == "unload"
    told = {reply.handle: reply.answer for reply in outcome.replies}
    assert {handle: getattr(answer, "error", None) for handle, answer in told.items()} == dict.fromkeys(
        parked, Error.NOT_COORDINATOR
    )
    assert all(told[handle] == answer for handle, answer in parked.items() if isinstance(answer, JoinAnswer))


def test_unloading_what_is_not_there() -> None:
    assert unloaded(World()).replies == ()
