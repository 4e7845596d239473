"""JoinGroup on the model, over all states: tables A to D of coordinator.md 2.2."""

import pytest

from fencepost.model.classic.core.state import Phase
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.model_driver import (
    ONLY_P,
    ONLY_Q,
    P_THEN_Q,
    Q_THEN_P,
    SETTINGS,
    ModelCoordinatorDriver,
    driver_in_phase,
)

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
ACTIVE = (PREPARING, COMPLETING, STABLE)
UNKNOWN, FENCED, ILLEGAL = Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION
REBALANCE, NONE, INCONSISTENT = Error.REBALANCE_IN_PROGRESS, Error.NONE, Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("phase", [None, *Phase])
@pytest.mark.parametrize("version", [3, 9])
def test_join_of_a_dynamic_newcomer(phase: Phase | None, version: int) -> None:
    """Table A."""
    desk = ModelCoordinatorDriver() if phase is None else driver_in_phase(phase)
    before = 0 if phase is None else desk.group.generation
    number = desk.join(None, P_THEN_Q, version=version)
    name = f"m{desk.id_count}"
    if version == 9:
        assert desk.error_of(number) == Error.MEMBER_ID_REQUIRED and desk.response_to(number).member == name
        assert desk.phase is (phase or EMPTY)
    else:
        assert desk.error_of(number) is None and desk.phase is PREPARING
        assert desk.member(name).is_new and desk.member(name).join == number
    assert desk.group.generation == before


@pytest.mark.parametrize("phase", Phase)
def test_join_with_a_pending_id(phase: Phase) -> None:
    """Table C: the second request counts."""
    desk = driver_in_phase(phase)
    desk.join(None, P_THEN_Q, session=6_000)
    name = f"m{desk.id_count}"
    assert desk.error_of(desk.join(name, P_THEN_Q, instance="k")) == Error.UNKNOWN_SERVER_ERROR
    number = desk.join(name, Q_THEN_P, session=8_000)
    assert desk.error_of(number) is None and desk.phase is PREPARING
    slot = desk.member(name)
    assert (slot.session_timeout, [each.name for each in slot.protocols]) == (8_000, ["q", "p"])
    assert slot.deadline == desk.now + SETTINGS.new_member_timeout


@pytest.mark.parametrize("phase", Phase)
def test_join_of_a_new_static_member(phase: Phase) -> None:
    """Table B, instance unknown: no detour."""
    desk = driver_in_phase(phase)
    number = desk.join(None, P_THEN_Q, instance="new")
    assert desk.error_of(number) is None and desk.phase is PREPARING
    assert desk.member(f"m{desk.id_count}").instance == "new"


@pytest.mark.parametrize(
    ("phase", "protocols", "rule", "after"),
    [
        (PREPARING, P_THEN_Q, "join.replace.preparing", PREPARING),
        (COMPLETING, P_THEN_Q, "join.replace.completing", PREPARING),
        (STABLE, P_THEN_Q, "join.replace.stable", STABLE),
        (STABLE, (("p", b"new"), ("q", b"new")), "join.replace.stable", STABLE),
        (STABLE, ONLY_Q, "join.replace.stable.changed-vote", PREPARING),
    ],
)
def test_join_that_replaces(phase: Phase, protocols: tuple[tuple[str, bytes], ...], rule: str, after: Phase) -> None:
    """Table B, instance known."""
    desk = driver_in_phase(phase)
    number = desk.join(None, protocols, instance="i")
    new = f"m{desk.id_count}"
    assert desk.rules[-1] == rule and desk.phase is after
    assert "m2" not in desk.members() and desk.member(new).instance == "i"
    assert [each.metadata for each in desk.member(new).protocols] == [metadata for _, metadata in protocols]
    assert desk.error_of(number) == (NONE if after is STABLE else None)
    assert desk.error_of(desk.heartbeat("m2", 1)) == UNKNOWN
    assert desk.error_of(desk.heartbeat("m2", 1, "i")) == FENCED


@pytest.mark.parametrize(
    ("version", "leader", "count", "skips"), [(9, "m2", 1, True), (8, "m1", 0, False), (5, "m1", 0, False)]
)
def test_the_leader_is_replaced_in_place(version: int, leader: str, count: int, skips: bool) -> None:
    desk = ModelCoordinatorDriver()
    desk.form_stable_group({"instance": "i"})
    response = desk.response_to(desk.join(None, instance="i", version=version))
    members = [view for view in response.members if view.id is not None]
    assert (response.leader, response.member, len(members), response.skip_assignment) == (leader, "m2", count, skips)
    assert (response.generation, response.protocol, desk.group.leader) == (1, "p", "m2")
    assert desk.response_to(desk.sync("m2", 1)).assignment == b"m1"


def test_parked_requests_of_a_replaced_member_are_fenced() -> None:
    desk = driver_in_phase(COMPLETING)
    parked = desk.sync("m2", 1)
    first = desk.join(None, P_THEN_Q, instance="i")
    assert desk.error_of(parked) == FENCED and desk.error_of(first) is None
    desk.join(None, P_THEN_Q, instance="i")
    assert desk.error_of(first) == FENCED and desk.response_to(first).member == "m3"


@pytest.mark.parametrize(
    ("phase", "member", "protocols", "rule", "response", "after"),
    [
        (PREPARING, "m1", P_THEN_Q, "join.preparing", None, PREPARING),
        (PREPARING, "m2", Q_THEN_P, "join.preparing", None, PREPARING),
        (COMPLETING, "m1", P_THEN_Q, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m2", P_THEN_Q, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m1", Q_THEN_P, "join.completing.changed-protocols", None, PREPARING),
        (COMPLETING, "m2", ONLY_P, "join.completing.changed-protocols", None, PREPARING),
        (STABLE, "m1", P_THEN_Q, "join.stable.leader", None, PREPARING),
        (STABLE, "m2", P_THEN_Q, "join.stable.same-protocols", NONE, STABLE),
        (STABLE, "m2", Q_THEN_P, "join.stable.changed-protocols", None, PREPARING),
        (STABLE, "m2", (("p", b"1"), ("q", b"x")), "join.stable.changed-protocols", None, PREPARING),
    ],
)
def test_join_of_a_member(
    phase: Phase,
    member: str,
    protocols: tuple[tuple[str, bytes], ...],
    rule: str,
    response: Error | None,
    after: Phase,
) -> None:
    """Table D. What is answered from the current generation changes nothing, timeouts included (JOIN-35)."""
    desk = driver_in_phase(phase)
    before = desk.state
    number = desk.join(member, protocols, session=7_000)
    assert (desk.rules[-1], desk.error_of(number), desk.phase) == (rule, response, after)
    if response is NONE:
        assert desk.state is before and desk.response_to(number).generation == 1
        assert bool([view for view in desk.response_to(number).members if view.id]) is (member == "m1")
    else:
        assert desk.member(member).session_timeout == 7_000


@pytest.mark.parametrize("phase", [*ACTIVE, EMPTY])
@pytest.mark.parametrize(
    ("member", "instance", "error"),
    [("nobody", None, UNKNOWN), ("m1", "i", FENCED), ("m1", "j", UNKNOWN), ("nobody", "i", FENCED)],
)
def test_join_of_a_stranger(phase: Phase, member: str, instance: str, error: Error) -> None:
    desk = driver_in_phase(phase)
    before = desk.state.group
    number = desk.join(member, P_THEN_Q, instance=instance)
    assert desk.error_of(number) == (UNKNOWN if phase is EMPTY else error)
    assert desk.response_to(number).member == member and desk.state.group == before


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    ("kind", "protocols"), [("", ONLY_P), ("other", ONLY_P), ("consumer", ()), ("consumer", (("r", b""),))]
)
def test_join_with_protocols_that_do_not_fit(phase: Phase, kind: str, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """23 comes before membership (JOIN-19); an Empty group takes any type with any name."""
    desk = driver_in_phase(phase)
    fits = phase is EMPTY and bool(kind) and bool(protocols)
    number = desk.join("nobody", protocols, kind=kind or None)
    assert desk.error_of(number) == (UNKNOWN if fits else INCONSISTENT)
    number = desk.join(None, protocols, kind=kind or None)
    assert desk.error_of(number) == (Error.MEMBER_ID_REQUIRED if fits else INCONSISTENT)


@pytest.mark.parametrize(("session", "error"), [(5_999, 26), (6_000, 79), (1_800_000, 79), (1_800_001, 26)])
def test_join_within_session_bounds(session: int, error: int) -> None:
    desk = ModelCoordinatorDriver()
    number = desk.join(session=session)
    assert desk.error_of(number) == error
    assert (desk.state.group is None) is (error == Error.INVALID_SESSION_TIMEOUT)


def test_join_without_a_group() -> None:
    desk = ModelCoordinatorDriver()
    assert desk.error_of(desk.join(group="")) == Error.INVALID_GROUP_ID
    assert desk.error_of(desk.join("x")) == UNKNOWN
    assert desk.state.group is None


@pytest.mark.parametrize("phase", ACTIVE)
def test_join_of_a_full_group(phase: Phase) -> None:
    desk = driver_in_phase(phase)
    desk.cluster = type(desk.cluster)(Settings(max_group_size=1 if phase is PREPARING else 2), {"t": 1})
    assert desk.error_of(desk.join(None, P_THEN_Q)) == Error.GROUP_MAX_SIZE_REACHED
    number = desk.join("m1", P_THEN_Q)
    refused = phase is PREPARING
    assert desk.error_of(number) != Error.GROUP_MAX_SIZE_REACHED or refused
    assert ("m1" in desk.members()) is not refused
