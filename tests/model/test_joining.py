"""JoinGroup on the model, over all states: tables A to D of coordinator.md 2.2."""

import pytest

from fencepost.model.classic.core.state import Phase
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.model_driver import PQ, QP, SETTINGS, Desk, P, Q, desk_in

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
ACTIVE = (PREPARING, COMPLETING, STABLE)
UNKNOWN, FENCED, ILLEGAL = Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION
REBALANCE, NONE, INCONSISTENT = Error.REBALANCE_IN_PROGRESS, Error.NONE, Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("phase", [None, *Phase])
@pytest.mark.parametrize("version", [3, 9])
def test_join_of_a_dynamic_newcomer(phase: Phase | None, version: int) -> None:
    """Table A."""
    desk = Desk() if phase is None else desk_in(phase)
    before = 0 if phase is None else desk.group.generation
    number = desk.join(None, PQ, version=version)
    name = f"m{desk.made}"
    if version == 9:
        assert desk.error(number) == Error.MEMBER_ID_REQUIRED and desk.answer(number).member == name
        assert desk.phase is (phase or EMPTY)
    else:
        assert desk.error(number) is None and desk.phase is PREPARING
        assert desk.member(name).is_new and desk.member(name).join == number
    assert desk.group.generation == before


@pytest.mark.parametrize("phase", Phase)
def test_join_with_a_pending_id(phase: Phase) -> None:
    """Table C: the second request counts."""
    desk = desk_in(phase)
    desk.join(None, PQ, session=6_000)
    name = f"m{desk.made}"
    assert desk.error(desk.join(name, PQ, instance="k")) == Error.UNKNOWN_SERVER_ERROR
    number = desk.join(name, QP, session=8_000)
    assert desk.error(number) is None and desk.phase is PREPARING
    slot = desk.member(name)
    assert (slot.session_timeout, [each.name for each in slot.protocols]) == (8_000, ["q", "p"])
    assert slot.deadline == desk.now + SETTINGS.new_member_timeout


@pytest.mark.parametrize("phase", Phase)
def test_join_of_a_new_static_member(phase: Phase) -> None:
    """Table B, instance unknown: no detour."""
    desk = desk_in(phase)
    number = desk.join(None, PQ, instance="new")
    assert desk.error(number) is None and desk.phase is PREPARING
    assert desk.member(f"m{desk.made}").instance == "new"


@pytest.mark.parametrize(
    ("phase", "protocols", "rule", "after"),
    [
        (PREPARING, PQ, "join.replace.preparing", PREPARING),
        (COMPLETING, PQ, "join.replace.completing", PREPARING),
        (STABLE, PQ, "join.replace.stable", STABLE),
        (STABLE, (("p", b"new"), ("q", b"new")), "join.replace.stable", STABLE),
        (STABLE, Q, "join.replace.stable.changed-vote", PREPARING),
    ],
)
def test_join_that_replaces(phase: Phase, protocols: tuple[tuple[str, bytes], ...], rule: str, after: Phase) -> None:
    """Table B, instance known."""
    desk = desk_in(phase)
    number = desk.join(None, protocols, instance="i")
    new = f"m{desk.made}"
    assert desk.rules[-1] == rule and desk.phase is after
    assert "m2" not in desk.members() and desk.member(new).instance == "i"
    assert [each.metadata for each in desk.member(new).protocols] == [metadata for _, metadata in protocols]
    assert desk.error(number) == (NONE if after is STABLE else None)
    assert desk.error(desk.beat("m2", 1)) == UNKNOWN
    assert desk.error(desk.beat("m2", 1, "i")) == FENCED


@pytest.mark.parametrize(
    ("version", "leader", "count", "skips"), [(9, "m2", 1, True), (8, "m1", 0, False), (5, "m1", 0, False)]
)
def test_the_leader_is_replaced_in_place(version: int, leader: str, count: int, skips: bool) -> None:
    desk = Desk()
    desk.stable({"instance": "i"})
    answer = desk.answer(desk.join(None, instance="i", version=version))
    members = [view for view in answer.members if view.id is not None]
    assert (answer.leader, answer.member, len(members), answer.skip_assignment) == (leader, "m2", count, skips)
    assert (answer.generation, answer.protocol, desk.group.leader) == (1, "p", "m2")
    assert desk.answer(desk.sync("m2", 1)).assignment == b"m1"


def test_parked_requests_of_a_replaced_member_are_fenced() -> None:
    desk = desk_in(COMPLETING)
    parked = desk.sync("m2", 1)
    first = desk.join(None, PQ, instance="i")
    assert desk.error(parked) == FENCED and desk.error(first) is None
    desk.join(None, PQ, instance="i")
    assert desk.error(first) == FENCED and desk.answer(first).member == "m3"


@pytest.mark.parametrize(
    ("phase", "member", "protocols", "rule", "answer", "after"),
    [
        (PREPARING, "m1", PQ, "join.preparing", None, PREPARING),
        (PREPARING, "m2", QP, "join.preparing", None, PREPARING),
        (COMPLETING, "m1", PQ, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m2", PQ, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m1", QP, "join.completing.changed-protocols", None, PREPARING),
        (COMPLETING, "m2", P, "join.completing.changed-protocols", None, PREPARING),
        (STABLE, "m1", PQ, "join.stable.leader", None, PREPARING),
        (STABLE, "m2", PQ, "join.stable.same-protocols", NONE, STABLE),
        (STABLE, "m2", QP, "join.stable.changed-protocols", None, PREPARING),
        (STABLE, "m2", (("p", b"1"), ("q", b"x")), "join.stable.changed-protocols", None, PREPARING),
    ],
)
def test_join_of_a_member(
    phase: Phase,
    member: str,
    protocols: tuple[tuple[str, bytes], ...],
    rule: str,
    answer: Error | None,
    after: Phase,
) -> None:
    """Table D. What is answered from the current generation changes nothing, timeouts included (JOIN-35)."""
    desk = desk_in(phase)
    before = desk.world
    number = desk.join(member, protocols, session=7_000)
    assert (desk.rules[-1], desk.error(number), desk.phase) == (rule, answer, after)
    if answer is NONE:
        assert desk.world is before and desk.answer(number).generation == 1
        assert bool([view for view in desk.answer(number).members if view.id]) is (member == "m1")
    else:
        assert desk.member(member).session_timeout == 7_000


@pytest.mark.parametrize("phase", [*ACTIVE, EMPTY])
@pytest.mark.parametrize(
    ("member", "instance", "error"),
    [("nobody", None, UNKNOWN), ("m1", "i", FENCED), ("m1", "j", UNKNOWN), ("nobody", "i", FENCED)],
)
def test_join_of_a_stranger(phase: Phase, member: str, instance: str, error: Error) -> None:
    desk = desk_in(phase)
    before = desk.world.group
    number = desk.join(member, PQ, instance=instance)
    assert desk.error(number) == (UNKNOWN if phase is EMPTY else error)
    assert desk.answer(number).member == member and desk.world.group == before


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(("kind", "protocols"), [("", P), ("other", P), ("consumer", ()), ("consumer", (("r", b""),))])
def test_join_with_protocols_that_do_not_fit(phase: Phase, kind: str, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """23 comes before membership (JOIN-19); an Empty group takes any type with any name."""
    desk = desk_in(phase)
    fits = phase is EMPTY and bool(kind) and bool(protocols)
    number = desk.join("nobody", protocols, kind=kind or None)
    assert desk.error(number) == (UNKNOWN if fits else INCONSISTENT)
    number = desk.join(None, protocols, kind=kind or None)
    assert desk.error(number) == (Error.MEMBER_ID_REQUIRED if fits else INCONSISTENT)


@pytest.mark.parametrize(("session", "error"), [(5_999, 26), (6_000, 79), (1_800_000, 79), (1_800_001, 26)])
def test_join_within_session_bounds(session: int, error: int) -> None:
    desk = Desk()
    number = desk.join(session=session)
    assert desk.error(number) == error
    assert (desk.world.group is None) is (error == 26)


def test_join_without_a_group() -> None:
    desk = Desk()
    assert desk.error(desk.join(group="")) == Error.INVALID_GROUP_ID
    assert desk.error(desk.join("x")) == UNKNOWN
    assert desk.world.group is None


@pytest.mark.parametrize("phase", ACTIVE)
def test_join_of_a_full_group(phase: Phase) -> None:
    desk = desk_in(phase)
    desk.cluster = type(desk.cluster)(Settings(max_group_size=1 if phase is PREPARING else 2), {"t": 1})
    assert desk.error(desk.join(None, PQ)) == Error.GROUP_MAX_SIZE_REACHED
    number = desk.join("m1", PQ)
    refused = phase is PREPARING
    assert desk.error(number) != Error.GROUP_MAX_SIZE_REACHED or refused
    assert ("m1" in desk.members()) is not refused
