"""The tables of coordinator.md 2.3 to 2.6 on the model, over all states."""

import pytest

from fencepost.model.classic.core.state import NoResponse, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.errors import Error
from tests.support.model_driver import INITIAL_DELAY_MS, P_THEN_Q, Q_THEN_P, ModelCoordinatorDriver, driver_in_phase

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
ACTIVE = (PREPARING, COMPLETING, STABLE)
UNKNOWN, FENCED, ILLEGAL = Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION
REBALANCE, NONE, INCONSISTENT = Error.REBALANCE_IN_PROGRESS, Error.NONE, Error.INCONSISTENT_GROUP_PROTOCOL
MEMBERSHIP = [
    ("m1", 1, None, None),
    ("m2", 1, None, None),
    ("m2", 1, "i", None),
    ("m1", 2, None, ILLEGAL),
    ("m1", 0, None, ILLEGAL),
    ("m1", -1, None, ILLEGAL),
    ("nobody", 1, None, UNKNOWN),
    ("nobody", 9, None, UNKNOWN),
    (None, 1, None, UNKNOWN),
    ("m1", 1, "i", FENCED),
    ("m1", 9, "i", FENCED),
    (None, 1, "i", FENCED),
    ("m2", 9, "j", UNKNOWN),
]
"""Member id, generation, instance id, and the error that CHECK-MEMBER or the generation gives (None: neither)."""


# --- 2.4 Heartbeat


@pytest.mark.parametrize("phase", ACTIVE)
@pytest.mark.parametrize(("member", "generation", "instance", "error"), MEMBERSHIP)
def test_heartbeat(phase: Phase, member: str, generation: int, instance: str, error: Error | None) -> None:
    desk = driver_in_phase(phase)
    good = REBALANCE if phase is PREPARING else NONE
    before = desk.state
    assert desk.error_of(desk.heartbeat(member, generation, instance)) == (good if error is None else error)
    assert (desk.state is before) is (error is not None)


@pytest.mark.parametrize("group", ["", "g"])
def test_heartbeat_without_a_group(group: str) -> None:
    assert ModelCoordinatorDriver().error_of(ModelCoordinatorDriver().heartbeat("x", 1, group=group)) is None
    desk = ModelCoordinatorDriver()
    assert desk.error_of(desk.heartbeat("x", 1, group=group)) == (UNKNOWN if group else Error.INVALID_GROUP_ID)


def test_heartbeat_in_empty_and_of_a_pending_id() -> None:
    desk = driver_in_phase(EMPTY)
    assert desk.error_of(desk.heartbeat("m1", 2)) == UNKNOWN
    desk = driver_in_phase(STABLE)
    desk.join(None, P_THEN_Q)
    assert desk.error_of(desk.heartbeat("m3", 1)) == UNKNOWN


# --- 2.3 SyncGroup


@pytest.mark.parametrize("phase", ACTIVE)
@pytest.mark.parametrize(("member", "generation", "instance", "error"), MEMBERSHIP)
def test_sync(phase: Phase, member: str, generation: int, instance: str, error: Error | None) -> None:
    desk = driver_in_phase(phase)
    follower = member == "m2"
    good = {PREPARING: REBALANCE, COMPLETING: None if follower else NONE, STABLE: NONE}[phase]
    assert desk.error_of(desk.sync(member, generation, instance=instance)) == (good if error is None else error)


@pytest.mark.parametrize("phase", ACTIVE)
@pytest.mark.parametrize(("kind", "protocol"), [("other", "p"), ("consumer", "q"), ("other", "q")])
def test_sync_with_another_protocol(phase: Phase, kind: str, protocol: str) -> None:
    desk = driver_in_phase(phase)
    before = desk.state
    number = desk.sync("m1", 1, kind=kind, protocol=protocol)
    assert desk.error_of(number) == INCONSISTENT and desk.response_to(number).protocol is None
    assert desk.error_of(desk.sync("m1", 2, kind=kind, protocol=protocol)) == ILLEGAL
    assert desk.state is before


@pytest.mark.parametrize("newer", [True, False])
def test_sync_with_a_protocol_before_one_is_selected(newer: bool) -> None:
    """DIV-21; the protocol type is known from the first member on."""
    desk = ModelCoordinatorDriver(dialect=Dialect(unselected_protocol_fits_any=newer))
    desk.join_new()
    assert desk.error_of(desk.sync("m1", 0, protocol="q")) == (REBALANCE if newer else INCONSISTENT)
    assert desk.error_of(desk.sync("m1", 0, kind="other", protocol="q")) == INCONSISTENT
    assert desk.error_of(desk.sync("m1", 0, protocol=None)) == REBALANCE


def test_sync_below_version_5_needs_no_protocol() -> None:
    desk = driver_in_phase(COMPLETING)
    assert desk.error_of(desk.sync("m1", 1, kind=None, protocol=None)) == NONE


@pytest.mark.parametrize("phase", [None, *Phase])
def test_sync_that_is_incomplete(phase: Phase | None) -> None:
    desk = ModelCoordinatorDriver() if phase is None else driver_in_phase(phase)
    assert desk.error_of(desk.sync("m1", 1, complete=False)) == INCONSISTENT
    assert desk.error_of(desk.sync("m1", 1, complete=False, group="")) == INCONSISTENT
    assert desk.error_of(desk.sync("m1", 1, group="")) == Error.INVALID_GROUP_ID


def test_sync_without_members() -> None:
    desk = ModelCoordinatorDriver()
    assert desk.error_of(desk.sync("m1", 1)) == UNKNOWN
    desk = driver_in_phase(EMPTY)
    assert desk.error_of(desk.sync("m1", 2)) == UNKNOWN


def test_the_leaders_sync_releases_those_parked() -> None:
    desk = driver_in_phase(COMPLETING)
    follower = desk.sync("m2", 1, (("m1", b"mine"),))
    leader = desk.sync("m1", 1, (("m2", b"first"), ("ghost", b"no"), ("m2", b"last")))
    assert desk.phase is STABLE
    assert (desk.response_to(follower).assignment, desk.response_to(leader).assignment) == (b"last", None)
    again = desk.sync("m1", 1, (("m1", b"other"),))
    assert desk.response_to(again).assignment is None and desk.phase is STABLE


def test_a_second_sync_takes_the_place_of_the_first() -> None:
    desk = driver_in_phase(COMPLETING)
    first, second = desk.sync("m2", 1), desk.sync("m2", 1)
    desk.sync("m1", 1, (("m2", b"x"),))
    assert desk.response_to(second).assignment == b"x"
    assert type(desk.response_to(first)).__name__ == "NoResponse"


def test_an_assignment_of_a_broken_round_is_forgotten() -> None:
    desk = driver_in_phase(STABLE)
    desk.join("m1", P_THEN_Q)
    desk.join("m2", P_THEN_Q, instance="i")
    parked = desk.sync("m2", 2)
    desk.join_new(protocols=P_THEN_Q)
    assert desk.error_of(parked) == REBALANCE
    assert all(slot.assignment is None for slot in desk.group.slots)


# --- 2.5 LeaveGroup


@pytest.mark.parametrize("phase", ACTIVE)
@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (("m1", None), NONE),
        (("m2", None), NONE),
        (("m2", "i"), NONE),
        ((None, "i"), NONE),
        ((None, "j"), UNKNOWN),
        ((None, None), UNKNOWN),
        (("nobody", None), UNKNOWN),
        (("m1", "i"), FENCED),
        (("m2", "j"), UNKNOWN),
    ],
)
def test_leave(phase: Phase, entry: tuple[str | None, str | None], error: Error) -> None:
    desk = driver_in_phase(phase)
    before = desk.state
    number = desk.leave(entry)
    assert (desk.response_to(number).error, desk.response_to(number).entries) == (NONE, (error,))
    assert desk.rules[-1] == ("leave.member" if error is NONE else "leave.nobody")
    if error is NONE:
        assert desk.phase is PREPARING and len(desk.members()) == (2 if phase is PREPARING else 1)
    else:
        assert desk.state is before


def test_leave_without_a_group() -> None:
    desk = ModelCoordinatorDriver()
    assert desk.error_of(desk.leave(("m1", None), group="")) == Error.INVALID_GROUP_ID
    assert desk.response_to(desk.leave(("m1", None), (None, None))).entries == (UNKNOWN, UNKNOWN)
    assert desk.response_to(desk.leave()).entries == ()


def test_leave_of_all_ends_empty() -> None:
    desk = driver_in_phase(STABLE)
    assert desk.response_to(desk.leave(("m1", None), ("x", None), ("m1", None), ("m2", "i"))).entries == (
        NONE,
        UNKNOWN,
        UNKNOWN,
        NONE,
    )
    assert (desk.phase, desk.group.generation, desk.group.protocol) == (EMPTY, 2, None)


def test_leave_with_requests_parked() -> None:
    desk = driver_in_phase(STABLE)
    parked = desk.join("m1", P_THEN_Q)
    desk.leave(("m1", None))
    assert desk.error_of(parked) == UNKNOWN and desk.response_to(parked).member is None
    desk = driver_in_phase(COMPLETING)
    parked = desk.sync("m2", 1)
    desk.leave(("m2", None))
    assert type(desk.response_to(parked)).__name__ == "NoResponse"


@pytest.mark.parametrize("newer", [True, False])
def test_leave_of_a_pending_id(newer: bool) -> None:
    """DIV-07."""
    desk = driver_in_phase(STABLE, dialect=Dialect(pending_leave_rebalances=newer))
    desk.join(None, P_THEN_Q)
    assert desk.response_to(desk.leave(("m3", None))).entries == (NONE,)
    assert desk.phase is (PREPARING if newer else STABLE)
    assert desk.error_of(desk.join("m3", P_THEN_Q)) == UNKNOWN


@pytest.mark.parametrize(("silent", "error"), [(True, None), (False, Error.NOT_COORDINATOR)])
def test_next_request_of_a_member_supersedes_its_parked_one(silent: bool, error: Error | None) -> None:
    """DIV-23; a parked SyncGroup whose member leaves gets no response either way."""
    desk = driver_in_phase(COMPLETING, dialect=Dialect(superseded_stays_silent=silent))
    synced, again = desk.sync("m2", 1), desk.sync("m2", 1)
    assert getattr(desk.response_to(synced), "error", None) == error
    joined = desk.join("m1", Q_THEN_P)
    desk.join("m1", Q_THEN_P)
    assert getattr(desk.response_to(joined), "error", None) == error
    assert desk.error_of(again) == REBALANCE

    desk = driver_in_phase(COMPLETING, dialect=Dialect(superseded_stays_silent=silent))
    synced = desk.sync("m2", 1)
    desk.leave(("m2", None))
    assert isinstance(desk.response_to(synced), NoResponse)


@pytest.mark.parametrize(("once", "generation"), [(True, 2), (False, 2)])
def test_leave_of_a_batch_settles(once: bool, generation: int) -> None:
    """DIV-06: one rebalance or several, the group ends Empty."""
    desk = driver_in_phase(STABLE, dialect=Dialect(batch_leave_settles_once=once))
    desk.leave(("m1", None), ("m2", None))
    assert (desk.phase, desk.group.generation) == (EMPTY, generation)


def test_leave_does_not_cut_the_initial_delay() -> None:
    desk = ModelCoordinatorDriver()
    desk.join_new()
    _, other = desk.join_new()
    desk.leave(("m1", None))
    desk.wait(INITIAL_DELAY_MS - 1)
    assert desk.error_of(other) is None


# --- 2.6 OffsetCommit


@pytest.mark.parametrize(
    ("generation", "member", "instance", "errors"),
    [
        (-1, None, None, (NONE, UNKNOWN, UNKNOWN, UNKNOWN)),
        (-1, "m1", None, (NONE, ILLEGAL, ILLEGAL, ILLEGAL)),
        (-1, "nobody", None, (NONE, UNKNOWN, UNKNOWN, UNKNOWN)),
        (-1, None, "i", (NONE, FENCED, FENCED, FENCED)),
        (1, "m1", None, (UNKNOWN, NONE, REBALANCE, NONE)),
        (1, "m2", "i", (UNKNOWN, NONE, REBALANCE, NONE)),
        (5, "m1", None, (UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL)),
        (0, "m1", None, (UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL)),
        (1, None, None, (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)),
        (1, "nobody", None, (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)),
        (1, "m1", "i", (UNKNOWN, FENCED, FENCED, FENCED)),
        (1, "m2", "j", (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)),
    ],
)
def test_commit(generation: int, member: str, instance: str, errors: tuple[Error, ...]) -> None:
    for phase, error in zip(Phase, errors, strict=True):
        desk = driver_in_phase(phase)
        assert (phase, desk.commit_error(desk.commit(member, generation, instance))) == (phase, error)
        assert bool(desk.state.offsets) is (error is NONE)


@pytest.mark.parametrize(
    ("version", "generation", "newer", "error"),
    [
        (9, -1, True, NONE),
        (9, 5, True, Error.GROUP_ID_NOT_FOUND),
        (9, 5, False, ILLEGAL),
        (8, 5, True, ILLEGAL),
    ],
)
def test_commit_to_an_unknown_group(version: int, generation: int, newer: bool, error: Error) -> None:
    """DIV-05."""
    desk = ModelCoordinatorDriver(dialect=Dialect(unknown_group_named=newer))
    assert desk.commit_error(desk.commit(None, generation, version=version)) == error
    assert (desk.state.group is not None) is (error is NONE)


def test_commit_of_a_partition_that_is_not_there() -> None:
    desk = driver_in_phase(STABLE)
    before = desk.state
    assert desk.commit_error(desk.commit("m1", 9, topic="ghost")) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.state is before
