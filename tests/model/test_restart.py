"""What a model coordinator knows after a restart (coordinator.md 5)."""

import pytest

from fencepost.model.classic.core.state import Dialect, Phase
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.model_driver import PQ, SESSION, Desk, desk_in

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE


@pytest.mark.parametrize("phase", [STABLE, PREPARING])
def test_the_last_synced_generation_comes_back(phase: Phase) -> None:
    desk = desk_in(phase)
    desk.wait(1_000)
    desk.restart()
    group = desk.group
    assert (group.phase, group.generation, group.leader, group.protocol) == (STABLE, 1, "m1", "p")
    assert desk.members() == {"m1", "m2"} and desk.rules[-1] == "load.group"
    assert all(slot.deadline == desk.now + SESSION for slot in group.slots if slot.armed)
    assert desk.error(desk.beat("m2", 1, "i")) == Error.NONE
    assert desk.answer(desk.sync("m2", 1, instance="i")).assignment == b"m2"


def test_a_round_that_was_not_synced_is_lost() -> None:
    desk = desk_in(COMPLETING)
    desk.restart()
    assert desk.error(desk.sync("m1", 1)) == Error.UNKNOWN_MEMBER_ID
    desk = desk_in(STABLE)
    desk.join("m1", PQ)
    desk.join("m2", PQ, instance="i")
    assert desk.group.generation == 2
    desk.restart()
    assert desk.group.generation == 1
    assert desk.error(desk.sync("m1", 2)) == Error.ILLEGAL_GENERATION


def test_pending_ids_are_lost() -> None:
    desk = desk_in(STABLE)
    desk.join(None, PQ)
    desk.restart()
    assert desk.error(desk.join("m3", PQ)) == Error.UNKNOWN_MEMBER_ID


def test_only_the_selected_protocol_is_remembered() -> None:
    desk = desk_in(STABLE)
    desk.restart()
    assert desk.error(desk.join("m2", PQ, instance="i")) is None
    desk = desk_in(STABLE)
    desk.restart()
    assert desk.answer(desk.join("m2", PQ[:1], instance="i")).generation == 1


def test_a_replacement_in_place_is_remembered() -> None:
    desk = desk_in(STABLE)
    desk.join(None, PQ, instance="i")
    desk.restart()
    assert desk.answer(desk.sync("m3", 1)).assignment == b"m2"
    assert desk.error(desk.beat("m2", 1)) == Error.UNKNOWN_MEMBER_ID


def test_an_emptied_group_goes_on_counting() -> None:
    desk = desk_in(EMPTY)
    desk.restart()
    assert (desk.phase, desk.group.generation) == (EMPTY, 2)
    _, joined = desk.newcomer()
    desk.wait(3_000)
    assert desk.answer(joined).generation == 3


@pytest.mark.parametrize("newer", [True, False])
def test_a_group_that_was_only_made(newer: bool) -> None:
    """DIV-15; an Empty group without offsets means nothing anyway."""
    desk = Desk(dialect=Dialect(new_group_is_stored=newer))
    desk.join()
    desk.restart()
    assert (desk.world.group is not None) is newer


def test_offsets_are_remembered() -> None:
    desk = Desk()
    desk.commit(None, -1)
    desk.restart()
    assert desk.phase is EMPTY and desk.world.offsets[("t", 0)].offset == 7


def test_nothing_comes_of_nothing() -> None:
    desk = Desk()
    desk.restart()
    assert desk.world.group is None and desk.rules == ["load.nothing"]


def test_a_group_that_has_become_too_large_rebalances() -> None:
    desk = desk_in(STABLE)
    desk.restart(Settings(max_group_size=1))
    assert desk.rules[-1] == "load.oversized" and desk.phase is PREPARING
    kept = desk.join("m2", PQ[:1], instance="i")
    assert desk.error(desk.join("m1", PQ[:1])) == Error.GROUP_MAX_SIZE_REACHED
    assert desk.error(kept) is None and desk.members() == {"m2"}
