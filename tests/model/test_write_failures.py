"""Requests whose write fails: their errors, the changes undone, and the writes possibly kept (coordinator.md 5.4)."""

from typing import Any

import pytest

from fencepost.model.classic.coordinator.availability import WriteFailure, handle_write_failure, write_failure_error
from fencepost.model.classic.coordinator.internal_actions import unload_group
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Phase,
    SyncRequest,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    CommitRequest,
    DeleteGroup,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TxnOffsetCommit,
)
from tests.support.model_driver import SESSION_TIMEOUT_MS, ModelCoordinatorDriver, driver_in_phase
from tests.support.plain_values import build

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
DOWN, LATE = WriteFailure.UNAVAILABLE, WriteFailure.TIMED_OUT
WHERE = ("t", 0)


class FailingLogDriver:
    """A desk whose log does not take the next record."""

    def __init__(self, driver: ModelCoordinatorDriver, failure: WriteFailure = DOWN, *, taken: bool = False) -> None:
        self.desk = driver
        self.failure = failure
        self.taken = taken

    def ask(self, request: Request) -> bool:
        """Handle a request; false if there is nothing to write."""
        desk = self.desk
        desk.id_count += isinstance(request, JoinGroup) and request.core.member is None
        context = desk.context(f"m{desk.id_count}")
        outcome = handle_write_failure(desk.state, request, self.failure, context, desk.cluster, reached_log=self.taken)
        if outcome is None:
            return False
        desk.state = outcome.state
        desk.rules.append(outcome.rule)
        desk.responses |= {reply.handle: reply.response for reply in outcome.replies}
        return True


def sync(driver: ModelCoordinatorDriver, member: str, generation: int = 1, instance: str | None = None) -> SyncGroup:
    given = tuple((name, b"new") for name in ("m1", "m2"))
    core = build(SyncRequest, driver.next_handle(), member, instance, generation, "consumer", "p", given)
    return SyncGroup("g", core, True)


def commit(
    driver: ModelCoordinatorDriver, member: str | None = None, generation: int = -1, *more: tuple[tuple[str, int], str]
) -> OffsetCommit:
    offsets = ((WHERE, Offset(9)), *((where, Offset(9, metadata=note)) for where, note in more))
    return OffsetCommit("g", build(CommitRequest, driver.next_handle(), member, None, generation), 9, offsets)


def join(driver: ModelCoordinatorDriver, member: str | None, instance: str | None = None) -> JoinGroup:
    offered = driver_in_phase(STABLE).group.slots[0].protocols
    core = build(
        JoinRequest,
        driver.next_handle(),
        member,
        instance,
        "consumer",
        offered,
        SESSION_TIMEOUT_MS,
        SESSION_TIMEOUT_MS,
        True,
        True,
    )
    return JoinGroup("g", core)


@pytest.mark.parametrize(
    ("failure", "request_", "newer", "older"),
    [
        (
            WriteFailure.UNAVAILABLE,
            commit(ModelCoordinatorDriver()),
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.COORDINATOR_NOT_AVAILABLE,
        ),
        (
            WriteFailure.UNAVAILABLE,
            sync(ModelCoordinatorDriver(), "m"),
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.COORDINATOR_NOT_AVAILABLE,
        ),
        (WriteFailure.UNAVAILABLE, OffsetFetch("g", 1, 8, None, True), Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (WriteFailure.DISPLACED, commit(ModelCoordinatorDriver()), Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (WriteFailure.DISPLACED, OffsetFetch("g", 1, 8, None, True), Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (
            WriteFailure.TOO_LARGE,
            commit(ModelCoordinatorDriver()),
            Error.UNKNOWN_SERVER_ERROR,
            Error.INVALID_COMMIT_OFFSET_SIZE,
        ),
        (
            WriteFailure.TOO_LARGE,
            sync(ModelCoordinatorDriver(), "m"),
            Error.UNKNOWN_SERVER_ERROR,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        (
            WriteFailure.TIMED_OUT,
            sync(ModelCoordinatorDriver(), "m"),
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.REBALANCE_IN_PROGRESS,
        ),
        (
            WriteFailure.TIMED_OUT,
            join(ModelCoordinatorDriver(), None, "i"),
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.REBALANCE_IN_PROGRESS,
        ),
        (
            WriteFailure.TIMED_OUT,
            commit(ModelCoordinatorDriver()),
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.REQUEST_TIMED_OUT,
        ),
        (WriteFailure.TIMED_OUT, OffsetFetch("g", 1, 8, None, True), Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
    ],
)
def test_errors(failure: WriteFailure, request_: Request, newer: Error, older: Error) -> None:
    assert write_failure_error(failure, request_, Dialect()) == newer
    other = Dialect(oversized_is_unexpected=False, late_replication_is_unavailable=False)
    assert write_failure_error(failure, request_, other) == older


@pytest.mark.parametrize("taken", [False, True])
def test_an_assignment_that_is_not_stored_ends_the_round(taken: bool) -> None:
    desk = driver_in_phase(COMPLETING)
    follower = desk.sync("m2", 1, instance="i")
    desk.wait(1_000)
    before = desk.state
    assert FailingLogDriver(desk, taken=taken).ask(sync(desk, "m1"))
    assert desk.rules[-1] == "failure.assignment"
    assert [desk.error_of(each) for each in (follower, desk.handles)] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert desk.phase is PREPARING and desk.group.generation == 1
    assert not any(slot.assignment or slot.sync for slot in desk.group.slots)
    assert desk.member("m2").deadline == desk.now + SESSION_TIMEOUT_MS
    assert desk.group.join_armed and not desk.group.sync_armed
    assert (desk.state.stored == before.stored) is not taken
    desk.restart()
    if taken:
        assert desk.response_to(desk.sync("m2", 1, instance="i")).assignment == b"new"
    else:
        assert desk.error_of(desk.heartbeat("m2", 1, "i")) == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("member", "generation"), [("m2", 1), ("m1", 2), ("nobody", 1)])
def test_only_the_leaders_assignment_is_written(member: str, generation: int) -> None:
    desk = driver_in_phase(COMPLETING)
    before = desk.state
    assert not FailingLogDriver(desk).ask(sync(desk, member, generation))
    assert desk.state == before


@pytest.mark.parametrize("taken", [False, True])
def test_a_replacement_that_is_not_stored_is_undone(taken: bool) -> None:
    desk = driver_in_phase(STABLE)
    desk.wait(1_000)
    asked = join(desk, None, "i")
    assert FailingLogDriver(desk, taken=taken).ask(asked)
    response = desk.response_to(desk.handles)
    assert response == build(JoinResponse, Error.COORDINATOR_NOT_AVAILABLE, 1, "consumer", "p", "m1")
    assert desk.rules[-1] == "failure.replacement"
    assert desk.phase is STABLE and desk.members() == {"m1", "m2"}
    assert desk.member("m2").deadline == desk.now + SESSION_TIMEOUT_MS and not desk.member("m2").join
    assert desk.member("m2").protocols == desk.member("m1").protocols and desk.member("m2").assignment == b"m2"
    assert desk.error_of(desk.heartbeat("m2", 1, "i")) == Error.NONE
    desk.restart()
    assert desk.members() == {"m1", "m3" if taken else "m2"}


def test_a_replacement_that_starts_a_round_is_not_written() -> None:
    desk = driver_in_phase(COMPLETING)
    assert not FailingLogDriver(desk).ask(join(desk, None, "i"))


@pytest.mark.parametrize("taken", [False, True])
def test_a_group_that_is_not_stored_is_not_created(taken: bool) -> None:
    desk = ModelCoordinatorDriver()
    assert FailingLogDriver(desk, taken=taken).ask(join(desk, None))
    assert desk.response_to(desk.handles) == JoinResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert desk.state.group is None and desk.rules[-1] == "failure.creation"
    desk.restart()
    assert (desk.state.group is not None) is taken


def test_the_older_coordinator_writes_no_new_group() -> None:
    desk = ModelCoordinatorDriver(dialect=Dialect(new_group_is_stored=False))
    assert not FailingLogDriver(desk).ask(join(desk, None))


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_offsets_that_are_not_stored(transactional: bool, taken: bool) -> None:
    desk = driver_in_phase(STABLE)
    desk.wait(1_000)
    request: OffsetCommit | TxnOffsetCommit = commit(desk, "m1", 1, (("t", 1), "n" * 9_999), (("ghost", 0), ""))
    if transactional:
        request = TxnOffsetCommit("g", request.core, 5, request.offsets)
    assert FailingLogDriver(desk, taken=taken).ask(request)
    assert desk.rules[-1] == "failure.commit"
    assert desk.response_to(desk.handles).errors == {
        WHERE: Error.COORDINATOR_NOT_AVAILABLE,
        ("t", 1): Error.COORDINATOR_NOT_AVAILABLE,
        ("ghost", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    stored = desk.state.pending.get(5, {}) if transactional else desk.state.offsets
    assert set(stored) == ({WHERE} if taken else set())
    assert desk.member("m1").deadline == SESSION_TIMEOUT_MS + (desk.now if not transactional else 2 * 3_000)


@pytest.mark.parametrize(("taken", "there"), [(False, False), (True, True)])
def test_a_simple_group_is_created_with_its_offsets_only(taken: bool, there: bool) -> None:
    desk = ModelCoordinatorDriver()
    assert FailingLogDriver(desk, taken=taken).ask(commit(desk))
    assert (desk.state.group is not None) is there


@pytest.mark.parametrize(("member", "generation"), [("nobody", 1), ("m1", 9), (None, -1)])
def test_a_refused_commit_writes_nothing(member: str | None, generation: int) -> None:
    desk = driver_in_phase(STABLE)
    assert not FailingLogDriver(desk).ask(commit(desk, member, generation))


@pytest.mark.parametrize("taken", [False, True])
def test_deletions(taken: bool) -> None:
    desk = driver_in_phase(EMPTY)
    desk.send(commit(desk))
    stored = dict(desk.state.offsets)
    assert set(stored) == {WHERE}
    assert not FailingLogDriver(desk).ask(OffsetDelete("g", desk.next_handle(), (("t", 1),)))
    assert FailingLogDriver(desk, taken=taken).ask(OffsetDelete("g", desk.next_handle(), (WHERE,)))
    assert desk.response_to(desk.handles).error == Error.COORDINATOR_NOT_AVAILABLE
    assert desk.state.offsets == ({} if taken else stored) and desk.rules[-1] == "failure.offset-deletion"
    assert FailingLogDriver(desk, taken=taken).ask(DeleteGroup("g", desk.next_handle()))
    assert desk.response_to(desk.handles).error == Error.COORDINATOR_NOT_AVAILABLE
    assert (desk.state.group is None) is taken and desk.rules[-1] == "failure.deletion"
    assert not FailingLogDriver(driver_in_phase(STABLE)).ask(DeleteGroup("g", 1))


def test_only_stable_fetches_wait_for_writes() -> None:
    desk = driver_in_phase(STABLE)
    assert FailingLogDriver(desk, LATE).ask(OffsetFetch("g", desk.next_handle(), 8, None, True))
    assert desk.response_to(desk.handles).error == Error.NOT_COORDINATOR
    assert desk.rules[-1] == "failure.stable-fetch"
    assert not FailingLogDriver(desk, LATE).ask(OffsetFetch("g", desk.next_handle(), 8, None, False))


def test_what_changes_nothing_on_the_log_cannot_fail() -> None:
    desk = driver_in_phase(STABLE)
    others: tuple[Request, ...] = (
        Heartbeat("g", build(HeartbeatRequest, desk.next_handle(), "m1", None, 1)),
        LeaveGroup("g", build(LeaveRequest, desk.next_handle(), (("m1", None),))),
        join(desk, "m1"),
        join(desk, None),
    )
    assert not any(FailingLogDriver(desk).ask(request) for request in others)


# --- unloading


@pytest.mark.parametrize("phase", Phase)
def test_unloading_sends_those_who_wait_elsewhere(phase: Phase) -> None:
    desk = driver_in_phase(phase)
    parked: dict[int, Any] = {}
    if phase is PREPARING:
        joins = {slot.id: slot.join for slot in desk.group.slots if slot.join}
        parked = {handle: JoinResponse(Error.NOT_COORDINATOR, member=member) for member, handle in joins.items()}
        assert set(joins) == {"m3"}
    elif phase is COMPLETING:
        parked = {desk.sync("m2", 1, instance="i"): Error.NOT_COORDINATOR}
    outcome = unload_group(desk.state)
    assert outcome.state == GroupState() and outcome.rule == "unload"
    told = {reply.handle: reply.response for reply in outcome.replies}
    assert {handle: getattr(response, "error", None) for handle, response in told.items()} == dict.fromkeys(
        parked, Error.NOT_COORDINATOR
    )
    assert all(told[handle] == response for handle, response in parked.items() if isinstance(response, JoinResponse))


def test_unloading_what_is_not_there() -> None:
    assert unload_group(GroupState()).replies == ()
