"""The state of a model coordinator after a restart (coordinator.md 5)."""

import pytest

from fencepost.model.classic.core.state import Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.model_driver import (
    P_THEN_Q,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    ModelCoordinatorDriver,
    driver_in_phase,
)

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE


@pytest.mark.parametrize("phase", [STABLE, PREPARING])
def test_the_last_synced_generation_comes_back(phase: Phase) -> None:
    desk = driver_in_phase(phase)
    desk.wait(1_000)
    desk.restart()
    group = desk.group
    assert (group.phase, group.generation, group.leader, group.protocol) == (STABLE, 1, "m1", "p")
    assert desk.members() == {"m1", "m2"} and desk.rules[-1] == "load.group"
    assert all(slot.deadline == desk.now + SESSION_TIMEOUT_MS for slot in group.slots if slot.armed)
    assert desk.error_of(desk.heartbeat("m2", 1, "i")) == Error.NONE
    assert desk.response_to(desk.sync("m2", 1, instance="i")).assignment == b"m2"


def test_a_round_that_was_not_synced_is_lost() -> None:
    desk = driver_in_phase(COMPLETING)
    desk.restart()
    assert desk.error_of(desk.sync("m1", 1)) == Error.UNKNOWN_MEMBER_ID
    desk = driver_in_phase(STABLE)
    desk.join("m1", P_THEN_Q)
    desk.join("m2", P_THEN_Q, instance="i")
    assert desk.group.generation == 2
    desk.restart()
    assert desk.group.generation == 1
    assert desk.error_of(desk.sync("m1", 2)) == Error.ILLEGAL_GENERATION


def test_pending_ids_are_lost() -> None:
    desk = driver_in_phase(STABLE)
    desk.join(None, P_THEN_Q)
    desk.restart()
    assert desk.error_of(desk.join("m3", P_THEN_Q)) == Error.UNKNOWN_MEMBER_ID


def test_only_the_selected_protocol_is_remembered() -> None:
    desk = driver_in_phase(STABLE)
    desk.restart()
    assert desk.error_of(desk.join("m2", P_THEN_Q, instance="i")) is None
    desk = driver_in_phase(STABLE)
    desk.restart()
    assert desk.response_to(desk.join("m2", P_THEN_Q[:1], instance="i")).generation == 1


def test_a_replacement_in_place_is_remembered() -> None:
    desk = driver_in_phase(STABLE)
    desk.join(None, P_THEN_Q, instance="i")
    desk.restart()
    assert desk.response_to(desk.sync("m3", 1)).assignment == b"m2"
    assert desk.error_of(desk.heartbeat("m2", 1)) == Error.UNKNOWN_MEMBER_ID


def test_an_emptied_group_goes_on_counting() -> None:
    desk = driver_in_phase(EMPTY)
    desk.restart()
    assert (desk.phase, desk.group.generation) == (EMPTY, 2)
    _, joined = desk.join_new()
    desk.wait(3_000)
    assert desk.response_to(joined).generation == 3


@pytest.mark.parametrize("newer", [True, False])
def test_a_group_that_was_only_made(newer: bool) -> None:
    """DIV-15; an Empty group without offsets means nothing anyway."""
    desk = ModelCoordinatorDriver(dialect=Dialect(new_group_is_stored=newer))
    desk.join()
    desk.restart()
    assert (desk.state.group is not None) is newer


def test_offsets_are_remembered() -> None:
    desk = ModelCoordinatorDriver()
    desk.commit(None, -1)
    desk.restart()
    assert desk.phase is EMPTY and desk.state.offsets[("t", 0)].offset == 7


def test_restart_without_records_loads_no_group() -> None:
    desk = ModelCoordinatorDriver()
    desk.restart()
    assert desk.state.group is None and desk.rules == ["load.nothing"]


def test_a_group_that_has_become_too_large_rebalances() -> None:
    desk = driver_in_phase(STABLE)
    desk.restart(Settings(max_group_size=1))
    assert desk.rules[-1] == "load.oversized" and desk.phase is PREPARING
    kept = desk.join("m2", P_THEN_Q[:1], instance="i")
    assert desk.error_of(desk.join("m1", P_THEN_Q[:1])) == Error.GROUP_MAX_SIZE_REACHED
    assert desk.error_of(kept) is None and desk.members() == {"m2"}


# --- the design that stores a generation before JoinGroup is answered (client-side assignment, "Handling Coordinator
# Failures"): its four points of failure


def early_driver(phase: Phase) -> ModelCoordinatorDriver:
    return driver_in_phase(phase, dialect=Dialect(generation_waits_for_assignment=False))


def test_before_the_generation_is_stored_the_join_phase_is_lost() -> None:
    desk = ModelCoordinatorDriver(dialect=Dialect(generation_waits_for_assignment=False))
    member, _ = desk.join_new()
    desk.restart()
    assert desk.error_of(desk.join(member)) == Error.UNKNOWN_MEMBER_ID


def test_once_it_is_stored_a_join_group_that_was_not_answered_gets_it_again() -> None:
    desk = early_driver(COMPLETING)
    before = desk.group
    desk.restart()
    assert (desk.phase, desk.group.generation, desk.group.leader) == (COMPLETING, before.generation, before.leader)
    assert desk.rules[-1] == "load.group"
    assert desk.response_to(desk.join("m1", P_THEN_Q[:1])).generation == before.generation


def test_a_sync_that_is_pending_is_taken_up_again() -> None:
    desk = early_driver(COMPLETING)
    desk.restart()
    waiting = desk.sync("m2", 1, instance="i")
    assert desk.error_of(waiting) is None
    desk.sync("m1", 1, (("m1", b"1"), ("m2", b"2")))
    assert desk.response_to(waiting).assignment == b"2"


def test_who_does_not_sync_after_a_failover_is_removed_in_time() -> None:
    desk = early_driver(COMPLETING)
    desk.restart()
    assert desk.group.sync_deadline == desk.now + REBALANCE_TIMEOUT_MS
    assert all(slot.unsynced for slot in desk.group.slots if slot.id)


def test_an_assignment_that_is_stored_is_given_at_once() -> None:
    desk = early_driver(STABLE)
    desk.restart()
    assert desk.response_to(desk.sync("m2", 1, instance="i")).assignment == b"m2"
