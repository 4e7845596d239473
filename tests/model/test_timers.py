"""The timers of coordinator.md 3.2 on the model: never early, and what they do when they fire."""

import pytest

from fencepost.model.classic.core.state import Context, Dialect, Group, Holder, Phase, Slot
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.errors import Error
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS, Settings
from tests.support.model_driver import DELAY, PQ, REBALANCE, SESSION, Desk, P, desk_in

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE


def keep_alive(desk: Desk, milliseconds: int, *members: str) -> None:
    """Let time pass while these members heartbeat."""
    for _ in range(milliseconds // 1_000):
        for member in members:
            desk.beat(member, desk.group.generation)
        desk.wait(1_000)


@pytest.mark.parametrize("phase", [COMPLETING, STABLE])
def test_a_silent_member_goes_at_its_session_timeout(phase: Phase) -> None:
    desk = desk_in(phase)
    begun = desk.member("m2").deadline - SESSION
    desk.now = begun
    desk.wait(SESSION - 1)
    desk.beat("m1", 1)
    assert desk.members() == {"m1", "m2"}
    desk.wait(1)
    assert desk.members() == {"m1"} and desk.phase is PREPARING and desk.rules[-1] == "timer.session"


def test_the_last_member_to_go_leaves_the_group_empty() -> None:
    desk = desk_in(STABLE)
    desk.wait(2 * SESSION)
    assert (desk.phase, desk.group.generation, desk.members()) == (EMPTY, 2, set())


@pytest.mark.parametrize("api", ["beat", "commit"])
def test_what_extends_a_session(api: str) -> None:
    desk = desk_in(STABLE)
    for _ in range(5):
        desk.wait(SESSION - 1)
        getattr(desk, api)("m1", 1)
        desk.beat("m2", 1)
    assert desk.members() == {"m1", "m2"}
    for _ in range(2):
        desk.wait(SESSION // 2)
        getattr(desk, api)("m1", 9)
        desk.beat("m2", 1)
    assert desk.members() == {"m2"}


def test_who_waits_does_not_expire() -> None:
    desk = desk_in(COMPLETING)
    parked = desk.sync("m2", 1)
    keep_alive(desk, SESSION + 1_000, "m1")
    assert "timer.parked" in desk.rules and desk.error(parked) is None and not desk.member("m2").armed
    desk.sync("m1", 1)
    assert desk.error(parked) == Error.NONE and desk.member("m2").deadline == desk.now + SESSION


def test_a_pending_id_holds_the_round_until_it_expires() -> None:
    desk = desk_in(PREPARING)
    desk.join(None, PQ, session=6_000)
    first, second = desk.join("m1", PQ), desk.join("m2", PQ)
    desk.wait(5_999)
    assert desk.error(first) is None
    desk.wait(1)
    assert desk.error(first) == desk.error(second) == Error.NONE
    assert desk.rules[-1] == "timer.pending-id" and desk.error(desk.join("m4", PQ)) == Error.UNKNOWN_MEMBER_ID


def test_a_new_member_is_given_up_after_a_fixed_time() -> None:
    desk = Desk()
    desk.stable({"rebalance": 10 * NEW_MEMBER_TIMEOUT_MS, "protocols": PQ})
    _, parked = desk.newcomer()
    keep_alive(desk, NEW_MEMBER_TIMEOUT_MS - 1_000, "m1")
    desk.beat("m1", 1)
    desk.wait(999)
    assert desk.error(parked) is None
    desk.wait(1)
    assert desk.error(parked) == Error.UNKNOWN_MEMBER_ID and desk.answer(parked).member is None
    assert desk.rules[-1] == "timer.new-member"


# --- the join phase


def test_the_rebalance_timeout_is_the_longest_of_those_there_at_its_start() -> None:
    desk = Desk()
    desk.stable({"rebalance": 12_000}, {"rebalance": 15_000})
    rejoined = desk.join("m1", rebalance=12_000)
    desk.newcomer(rebalance=60_000)
    keep_alive(desk, 14_000, "m2")
    desk.wait(999)
    assert desk.error(rejoined) is None
    desk.wait(1)
    assert desk.error(rejoined) == Error.NONE and desk.members() == {"m1", "m3"}
    assert desk.rules[-1] == "timer.rebalance"


def test_static_members_that_did_not_rejoin_stay() -> None:
    desk = desk_in(PREPARING)
    keep_alive(desk, REBALANCE, "m2")
    assert desk.members() == {"m2", "m3"} and desk.phase is COMPLETING
    assert desk.group.leader == "m3" and desk.member("m2").unsynced


def test_with_nobody_back_there_is_no_generation() -> None:
    desk = Desk()
    desk.stable({"instance": "i", "session": 60_000}, {"session": 60_000})
    desk.leave(("m2", None))
    desk.wait(REBALANCE)
    assert (desk.phase, desk.group.generation) == (PREPARING, 1)
    assert desk.group.join_deadline == desk.now + REBALANCE
    assert desk.answer(desk.join("m1", instance="i")).generation == 2


def test_without_a_rebalance_timeout_some_time_passes_all_the_same() -> None:
    absent = Slot(holder=Holder.MEMBER, id="m", instance="i", session_timeout=SESSION)
    group = Group(phase=PREPARING, slots=(absent,), join_armed=True, join_deadline=10)
    step = expire_join(group, Context(10))
    assert step.group.join_armed and step.group.join_deadline == 11


def test_the_initial_delay_grows_with_newcomers_up_to_the_first_ones_patience() -> None:
    desk = Desk()
    _, first = desk.newcomer(rebalance=5_000)
    desk.wait(DELAY - 1)
    desk.newcomer()
    desk.wait(1)
    assert desk.error(first) is None and desk.rules[-1] == "timer.initial-delay-grows"
    desk.newcomer()
    desk.wait(1_999)
    assert desk.error(first) is None
    desk.wait(1)
    assert desk.error(first) == Error.NONE and desk.now == 5_000


def test_the_initial_delay_of_one_member() -> None:
    desk = Desk()
    _, alone = desk.newcomer()
    desk.join(None)
    desk.wait(DELAY - 1)
    assert desk.error(alone) is None
    desk.wait(1)
    assert desk.error(alone) == Error.NONE and desk.rules[-1] == "timer.initial-delay"


def test_without_an_initial_delay() -> None:
    desk = Desk(Settings(initial_rebalance_delay=0))
    _, alone = desk.newcomer()
    desk.wait(0)
    assert desk.error(alone) == Error.NONE


@pytest.mark.parametrize("newer", [True, False])
def test_the_initial_delay_of_a_group_that_emptied_grows(newer: bool) -> None:
    """DIV-04."""
    desk = desk_in(EMPTY, dialect=Dialect(initial_delay_grows_always=newer))
    _, first = desk.newcomer()
    desk.newcomer()
    desk.wait(DELAY)
    assert (desk.error(first) is None) is newer


@pytest.mark.parametrize("newer", [True, False])
def test_an_expiry_during_the_initial_delay(newer: bool) -> None:
    """DIV-09."""
    desk = Desk(dialect=Dialect(expiry_cuts_initial_delay=newer), settings=Settings(initial_rebalance_delay=8_000))
    desk.join(session=6_000)
    _, parked = desk.newcomer()
    desk.wait(6_000)
    assert (desk.error(parked) == Error.NONE) is newer
    desk.wait(10_000)
    assert desk.error(parked) == Error.NONE


# --- the sync phase


def test_who_does_not_sync_goes_though_it_heartbeats() -> None:
    desk = desk_in(COMPLETING)
    desk.sync("m1", 1)
    assert desk.phase is STABLE
    keep_alive(desk, REBALANCE - DELAY, "m1", "m2")
    assert desk.members() == {"m1", "m2"}
    keep_alive(desk, DELAY, "m1", "m2")
    assert desk.members() == {"m1"} and desk.phase is PREPARING and "timer.sync" in desk.rules


def test_a_leader_that_does_not_sync_has_the_others_told() -> None:
    desk = desk_in(COMPLETING)
    parked = desk.sync("m2", 1)
    keep_alive(desk, REBALANCE, "m1")
    assert desk.error(parked) == Error.REBALANCE_IN_PROGRESS and desk.members() == {"m2"}


def test_nothing_happens_if_all_synced() -> None:
    desk = desk_in(STABLE)
    assert not desk.group.sync_armed
    keep_alive(desk, 2 * REBALANCE, "m1", "m2")
    assert desk.phase is STABLE and desk.group.generation == 1


# --- guards


@pytest.mark.parametrize("now", [0, 9])
def test_no_timer_fires_early(now: int) -> None:
    context = Context(now)
    slot = Slot(id="m", armed=True, deadline=10)
    group = Group(slots=(slot,), join_armed=True, join_deadline=10, sync_armed=True, sync_deadline=10)
    for step in (expire_member(group, 0, context), expire_join(group, context), expire_sync(group, context)):
        assert (step.group, step.outputs, step.rule) == (group, (), "timer.not-due")


def test_a_sync_timer_that_nobody_is_waited_for_ends() -> None:
    group = Group(phase=STABLE, sync_armed=True, sync_deadline=10)
    step = expire_sync(group, Context(10))
    assert step.rule == "timer.sync-idle" and not step.group.sync_armed


def test_a_late_timer_takes_its_moment_from_the_clock() -> None:
    desk = Desk()
    desk.newcomer(protocols=P)
    (due, *_) = desk.due()
    desk.now = due.deadline + 500
    step = expire_join(desk.group, desk.context())
    assert step.group.sync_deadline == desk.now + REBALANCE


@pytest.mark.parametrize(("stays_new", "ended"), [(True, Error.UNKNOWN_MEMBER_ID), (False, None)])
def test_a_member_replaced_in_its_first_join_phase_may_be_new_no_more(stays_new: bool, ended: Error | None) -> None:
    """DIV-20: what the timer makes of it while it waits."""
    desk = Desk(dialect=Dialect(replaced_stays_new=stays_new))
    desk.stable({"session": 60_000})
    first = desk.join(instance="i", session=7_000)
    heir = desk.join(instance="i", session=7_000)
    assert (desk.phase, desk.error(first), desk.error(heir)) == (PREPARING, Error.FENCED_INSTANCE_ID, None)
    desk.wait(7_000)
    assert desk.error(heir) is ended
    assert desk.rules[-1] == ("timer.new-member" if stays_new else "timer.parked")
