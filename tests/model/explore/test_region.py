"""The holes of the consistent region are found by search, and closed by their repairs within the bounds."""

from dataclasses import replace
from itertools import count

import pytest

from fencepost.model.explore.engine import Engine, explore_system, has_numpy
from fencepost.model.explore.hole_search import HoleSearch
from fencepost.model.explore.transition_system import Gate
from fencepost.model.region.dialect import DOCUMENTED, RegionDialect
from fencepost.model.region.explore.holes import region_holes
from fencepost.model.region.explore.properties import SENTENCES, kernel_view
from fencepost.model.region.explore.row import RegionBounds, RegionFaults
from fencepost.model.region.explore.system import region_system
from fencepost.model.region.kernel import invariants
from fencepost.model.region.specification import REGION_HOLES, REGION_RULES

HOLES = region_holes()
ENGINES = (Engine.PLAIN, Engine.NUMPY) if has_numpy() else (Engine.PLAIN,)
SMALL = RegionBounds(records=1, checkpoints=1)
ASKED_RULES = {
    "job.opened",
    "request.unfit",
    "operator.control-port",
    "operator.start-position",
    "bean.refused",
    "bean.retired",
    "poll.empty",
    "merge.late",
    "poll.position-lost",
    "poll.paused",
    "process.waits",
}
"""Rules about requests of a kit that change nothing in the systems that are explored."""


def mark(hole: HoleSearch) -> object:
    has_faults = any(name in hole.bounds for name in RegionFaults.__dataclass_fields__)
    slow = [pytest.mark.acceptance] if has_faults and hole.bounds.startswith("2 operators") else []
    return pytest.param(hole, marks=slow, id=f"{hole.id}-{hole.property}-{hole.repair}".replace(" ", "-"))


@pytest.mark.parametrize("hole", [mark(hole) for hole in HOLES])
def test_a_hole_of_the_region_is_found_and_closed(hole: HoleSearch) -> None:
    drafted = hole.drafted(500_000)
    assert drafted.is_broken
    repaired = hole.repaired(500_000)
    assert not repaired.is_broken and repaired.is_complete


def test_every_hole_of_the_region_has_a_search() -> None:
    assert {hole.id for hole in HOLES} == REGION_HOLES.keys()


def test_every_repair_of_the_region_closes_a_hole() -> None:
    repairs = {name for hole in HOLES for name in hole.repair.split(", ")}
    assert set(RegionDialect.__dataclass_fields__) == repairs


def test_a_repaired_region_without_faults() -> None:
    found, _ = explore_system(region_system(SMALL))
    assert found.finished and found.states == 6103
    assert {one.name for one in found.violations} == {"no-deadlock"}
    assert "checkpointed" in {one.name for one in found.discoveries}


@pytest.mark.parametrize("engine", ENGINES)
def test_gates_spare_a_search_only_what_has_no_moves(engine: Engine) -> None:
    def search(gate: Gate | None, *names: str) -> tuple[int, int, int, set[str]]:
        """The search with another gate at the actions of these names."""
        actions = (replace(one, gate=gate) if one.name in names else one for one in system.actions)
        found, _ = explore_system(replace(system, actions=tuple(actions)), engine)
        assert found.finished
        return found.states, found.transitions, found.deadlocks, {one.name for one in found.discoveries}

    faults = RegionFaults(crashes=1, expulsions=1)
    system = region_system(RegionBounds(operators=1, records=1, checkpoints=1, faults=faults))
    gated = [one.name for one in system.actions if one.gate is not None]
    assert len(gated) == 10
    assert search(None, *gated) == search(None)
    assert search(Gate(0, lambda faults: False), "A drains") != search(None)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "bounds",
    ids=count(),
    argvalues=[
        RegionBounds(records=1),
        RegionBounds(),
        RegionBounds(checkpoints=1, faults=RegionFaults(failures=1)),
        RegionBounds(records=1, checkpoints=1, faults=RegionFaults(rebalances=1)),
        RegionBounds(records=1, checkpoints=1, faults=RegionFaults(crashes=1)),
        RegionBounds(records=1, checkpoints=1, faults=RegionFaults(expulsions=1)),
    ],
)
def test_a_repaired_region_keeps_every_property(bounds: RegionBounds) -> None:
    found, _ = explore_system(region_system(bounds))
    assert found.finished and {one.name for one in found.violations} <= {"no-deadlock"}


def test_the_region_as_documented_breaks_without_faults() -> None:
    bounds = RegionBounds(records=1, checkpoints=1, dialect=DOCUMENTED)
    found, _ = explore_system(region_system(bounds), limit=20_000)
    assert {"G5", "G6", "G7", "G13"} <= {one.name for one in found.violations}


@pytest.mark.parametrize(
    "bounds",
    ids=count(),
    argvalues=[
        SMALL,
        RegionBounds(operators=1, records=1, checkpoints=2, faults=RegionFaults(crashes=1)),
        RegionBounds(operators=1, records=2, checkpoints=1, faults=RegionFaults(failures=1)),
        RegionBounds(operators=1, records=1, checkpoints=1, faults=RegionFaults(expulsions=1)),
    ],
)
def test_the_kernels_invariants_hold_in_every_state(bounds: RegionBounds) -> None:
    found, _ = explore_system(region_system(bounds))
    broken = {
        name
        for state in found.reached_states()
        for name, holds in invariants(kernel_view(bounds, found.tables.values(state))).items()
        if not holds
    }
    assert found.finished and broken == set()


def test_the_kernels_invariants_can_fail() -> None:
    bounds = RegionBounds(records=1, checkpoints=1, dialect=DOCUMENTED)
    found, _ = explore_system(region_system(bounds), limit=5_000)
    broken = {
        name
        for state in found.reached_states()
        for name, holds in invariants(kernel_view(bounds, found.tables.values(state))).items()
        if not holds
    }
    assert {"values", "wrong", "region.one-holder"} <= broken


def test_every_rule_of_the_region_is_in_the_table_and_applies_somewhere() -> None:
    one = RegionBounds(operators=1, records=1, checkpoints=1)
    faults = (RegionFaults(crashes=1, expulsions=1), RegionFaults(partitions=1), RegionFaults(failures=1, restarts=1))
    systems = [
        RegionBounds(operators=1, records=1, checkpoints=1, faults=some, dialect=dialect)
        for some in faults
        for dialect in (DOCUMENTED, one.dialect, RegionDialect(fails_on_commit=False, checks_membership=False))
    ]
    seen: set[str] = set()
    for bounds in (*systems, SMALL, RegionBounds(records=1, checkpoints=1, dialect=DOCUMENTED)):
        seen |= explore_system(region_system(bounds), limit=30_000)[0].rule_counts().keys()
    assert seen - REGION_RULES.keys() == set()
    # It takes two rebalances, or polls of an operator that has stopped polling; tests of handlers show them.
    assert REGION_RULES.keys() - seen - ASKED_RULES == {"assign.no-rule", "revoke.pending", "poll.dropped"}


def test_every_property_of_a_hole_has_a_sentence() -> None:
    assert all(hole.sentence for hole in HOLES)
    assert {"G2", "G3", "G4", "G5", "G6", "G7"} <= SENTENCES.keys()
