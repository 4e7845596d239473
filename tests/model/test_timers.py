"""The timers of coordinator.md 3.2 on the model: their deadlines, never early, and their effects."""

import pytest

from fencepost.model.classic.core.state import Context, Group, Holder, Phase, Slot
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.dialect import Dialect
from fencepost.model.errors import Error
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS, Settings
from tests.support.model_driver import (
    INITIAL_DELAY_MS,
    ONLY_P,
    P_THEN_Q,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    ModelCoordinatorDriver,
    driver_in_phase,
)
from tests.support.plain_values import build

# --- The state of a model coordinator after a restart (coordinator.md 5).

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


def keep_alive(driver: ModelCoordinatorDriver, milliseconds: int, *members: str) -> None:
    """Let time pass while these members heartbeat."""
    for _ in range(milliseconds // 1_000):
        for member in members:
            driver.heartbeat(member, driver.group.generation)
        driver.wait(1_000)


@pytest.mark.parametrize("phase", [COMPLETING, STABLE])
def test_a_silent_member_goes_at_its_session_timeout(phase: Phase) -> None:
    desk = driver_in_phase(phase)
    begun = desk.member("m2").deadline - SESSION_TIMEOUT_MS
    desk.now = begun
    desk.wait(SESSION_TIMEOUT_MS - 1)
    desk.heartbeat("m1", 1)
    assert desk.members() == {"m1", "m2"}
    desk.wait(1)
    assert desk.members() == {"m1"} and desk.phase is PREPARING and desk.rules[-1] == "timer.session"


def test_the_last_member_to_go_leaves_the_group_empty() -> None:
    desk = driver_in_phase(STABLE)
    desk.wait(2 * SESSION_TIMEOUT_MS)
    assert (desk.phase, desk.group.generation, desk.members()) == (EMPTY, 2, set())


@pytest.mark.parametrize("api", ["heartbeat", "commit"])
def test_what_extends_a_session(api: str) -> None:
    desk = driver_in_phase(STABLE)
    for _ in range(5):
        desk.wait(SESSION_TIMEOUT_MS - 1)
        getattr(desk, api)("m1", 1)
        desk.heartbeat("m2", 1)
    assert desk.members() == {"m1", "m2"}
    for _ in range(2):
        desk.wait(SESSION_TIMEOUT_MS // 2)
        getattr(desk, api)("m1", 9)
        desk.heartbeat("m2", 1)
    assert desk.members() == {"m2"}


def test_who_waits_does_not_expire() -> None:
    desk = driver_in_phase(COMPLETING)
    parked = desk.sync("m2", 1)
    keep_alive(desk, SESSION_TIMEOUT_MS + 1_000, "m1")
    assert "timer.parked" in desk.rules and desk.error_of(parked) is None and not desk.member("m2").armed
    desk.sync("m1", 1)
    assert desk.error_of(parked) == Error.NONE and desk.member("m2").deadline == desk.now + SESSION_TIMEOUT_MS


def test_a_pending_id_holds_the_round_until_it_expires() -> None:
    desk = driver_in_phase(PREPARING)
    desk.join(None, P_THEN_Q, session=6_000)
    first, second = desk.join("m1", P_THEN_Q), desk.join("m2", P_THEN_Q)
    desk.wait(5_999)
    assert desk.error_of(first) is None
    desk.wait(1)
    assert desk.error_of(first) == desk.error_of(second) == Error.NONE
    assert desk.rules[-1] == "timer.pending-id" and desk.error_of(desk.join("m4", P_THEN_Q)) == Error.UNKNOWN_MEMBER_ID


def test_a_new_member_is_given_up_after_a_fixed_time() -> None:
    desk = ModelCoordinatorDriver()
    desk.form_stable_group({"rebalance": 10 * NEW_MEMBER_TIMEOUT_MS, "protocols": P_THEN_Q})
    _, parked = desk.join_new()
    keep_alive(desk, NEW_MEMBER_TIMEOUT_MS - 1_000, "m1")
    desk.heartbeat("m1", 1)
    desk.wait(999)
    assert desk.error_of(parked) is None
    desk.wait(1)
    assert desk.error_of(parked) == Error.UNKNOWN_MEMBER_ID and desk.response_to(parked).member is None
    assert desk.rules[-1] == "timer.new-member"


# --- the join phase


def test_the_rebalance_timeout_is_the_longest_of_those_there_at_its_start() -> None:
    desk = ModelCoordinatorDriver()
    desk.form_stable_group({"rebalance": 12_000}, {"rebalance": 15_000})
    rejoined = desk.join("m1", rebalance=12_000)
    desk.join_new(rebalance=60_000)
    keep_alive(desk, 14_000, "m2")
    desk.wait(999)
    assert desk.error_of(rejoined) is None
    desk.wait(1)
    assert desk.error_of(rejoined) == Error.NONE and desk.members() == {"m1", "m3"}
    assert desk.rules[-1] == "timer.rebalance"


def test_static_members_that_did_not_rejoin_stay() -> None:
    desk = driver_in_phase(PREPARING)
    keep_alive(desk, REBALANCE_TIMEOUT_MS, "m2")
    assert desk.members() == {"m2", "m3"} and desk.phase is COMPLETING
    assert desk.group.leader == "m3" and desk.member("m2").unsynced


def test_with_nobody_back_there_is_no_generation() -> None:
    desk = ModelCoordinatorDriver()
    desk.form_stable_group({"instance": "i", "session": 60_000}, {"session": 60_000})
    desk.leave(("m2", None))
    desk.wait(REBALANCE_TIMEOUT_MS)
    assert (desk.phase, desk.group.generation) == (PREPARING, 1)
    assert desk.group.join_deadline == desk.now + REBALANCE_TIMEOUT_MS
    assert desk.response_to(desk.join("m1", instance="i")).generation == 2


def test_without_a_rebalance_timeout_some_time_passes_all_the_same() -> None:
    absent = build(Slot, holder=Holder.MEMBER, id="m", instance="i", session_timeout=SESSION_TIMEOUT_MS)
    group = Group(phase=PREPARING, slots=(absent,), join_armed=True, join_deadline=10)
    step = expire_join(group, Context(10))
    assert step.group.join_armed and step.group.join_deadline == 11


def test_the_initial_delay_grows_with_newcomers_up_to_the_first_ones_patience() -> None:
    desk = ModelCoordinatorDriver()
    _, first = desk.join_new(rebalance=5_000)
    desk.wait(INITIAL_DELAY_MS - 1)
    desk.join_new()
    desk.wait(1)
    assert desk.error_of(first) is None and desk.rules[-1] == "timer.initial-delay-grows"
    desk.join_new()
    desk.wait(1_999)
    assert desk.error_of(first) is None
    desk.wait(1)
    assert desk.error_of(first) == Error.NONE and desk.now == 5_000


def test_the_initial_delay_of_one_member() -> None:
    desk = ModelCoordinatorDriver()
    _, alone = desk.join_new()
    desk.join(None)
    desk.wait(INITIAL_DELAY_MS - 1)
    assert desk.error_of(alone) is None
    desk.wait(1)
    assert desk.error_of(alone) == Error.NONE and desk.rules[-1] == "timer.initial-delay"


def test_without_an_initial_delay() -> None:
    desk = ModelCoordinatorDriver(Settings(initial_rebalance_delay=0))
    _, alone = desk.join_new()
    desk.wait(0)
    assert desk.error_of(alone) == Error.NONE


@pytest.mark.parametrize("newer", [True, False])
def test_the_initial_delay_of_a_group_that_emptied_grows(newer: bool) -> None:
    """DIV-04."""
    desk = driver_in_phase(EMPTY, dialect=Dialect(initial_delay_grows_always=newer))
    _, first = desk.join_new()
    desk.join_new()
    desk.wait(INITIAL_DELAY_MS)
    assert (desk.error_of(first) is None) is newer


@pytest.mark.parametrize("newer", [True, False])
def test_an_expiry_during_the_initial_delay(newer: bool) -> None:
    """DIV-09."""
    desk = ModelCoordinatorDriver(
        dialect=Dialect(expiry_cuts_initial_delay=newer), settings=Settings(initial_rebalance_delay=8_000)
    )
    desk.join(session=6_000)
    _, parked = desk.join_new()
    desk.wait(6_000)
    assert (desk.error_of(parked) == Error.NONE) is newer
    desk.wait(10_000)
    assert desk.error_of(parked) == Error.NONE


# --- the sync phase


def test_who_does_not_sync_goes_though_it_heartbeats() -> None:
    desk = driver_in_phase(COMPLETING)
    desk.sync("m1", 1)
    assert desk.phase is STABLE
    keep_alive(desk, REBALANCE_TIMEOUT_MS - INITIAL_DELAY_MS, "m1", "m2")
    assert desk.members() == {"m1", "m2"}
    keep_alive(desk, INITIAL_DELAY_MS, "m1", "m2")
    assert desk.members() == {"m1"} and desk.phase is PREPARING and "timer.sync" in desk.rules


def test_a_leader_that_does_not_sync_has_the_others_told() -> None:
    desk = driver_in_phase(COMPLETING)
    parked = desk.sync("m2", 1)
    keep_alive(desk, REBALANCE_TIMEOUT_MS, "m1")
    assert desk.error_of(parked) == Error.REBALANCE_IN_PROGRESS and desk.members() == {"m2"}


def test_nothing_happens_if_all_synced() -> None:
    desk = driver_in_phase(STABLE)
    assert not desk.group.sync_armed
    keep_alive(desk, 2 * REBALANCE_TIMEOUT_MS, "m1", "m2")
    assert desk.phase is STABLE and desk.group.generation == 1


# --- guards


@pytest.mark.parametrize("now", [0, 9])
def test_no_timer_fires_early(now: int) -> None:
    context = Context(now)
    slot = build(Slot, id="m", armed=True, deadline=10)
    group = Group(slots=(slot,), join_armed=True, join_deadline=10, sync_armed=True, sync_deadline=10)
    for step in (expire_member(group, 0, context), expire_join(group, context), expire_sync(group, context)):
        assert (step.group, step.outputs, step.rule) == (group, (), "timer.not-due")


def test_a_sync_timer_that_nobody_is_waited_for_ends() -> None:
    group = Group(phase=STABLE, sync_armed=True, sync_deadline=10)
    step = expire_sync(group, Context(10))
    assert step.rule == "timer.sync-idle" and not step.group.sync_armed


def test_a_late_timer_takes_its_moment_from_the_clock() -> None:
    desk = ModelCoordinatorDriver()
    desk.join_new(protocols=ONLY_P)
    (due, *_) = desk.armed_timers()
    desk.now = due.deadline + 500
    step = expire_join(desk.group, desk.context())
    assert step.group.sync_deadline == desk.now + REBALANCE_TIMEOUT_MS


@pytest.mark.parametrize(("stays_new", "ended"), [(True, Error.UNKNOWN_MEMBER_ID), (False, None)])
def test_a_member_replaced_in_its_first_join_phase_may_be_new_no_more(stays_new: bool, ended: Error | None) -> None:
    """DIV-20: what the timer makes of it while it waits."""
    desk = ModelCoordinatorDriver(dialect=Dialect(replaced_stays_new=stays_new))
    desk.form_stable_group({"session": 60_000})
    first = desk.join(instance="i", session=7_000)
    heir = desk.join(instance="i", session=7_000)
    assert (desk.phase, desk.error_of(first), desk.error_of(heir)) == (PREPARING, Error.FENCED_INSTANCE_ID, None)
    desk.wait(7_000)
    assert desk.error_of(heir) is ended
    assert desk.rules[-1] == ("timer.new-member" if stays_new else "timer.parked")
