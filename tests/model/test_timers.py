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

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE


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
