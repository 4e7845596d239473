"""The holes of the consistent region are found by search, and closed by their repairs within the bounds."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from fencepost.model.explore.engine import Engine, explore_system, has_numpy
from fencepost.model.explore.hole_search import HoleSearch
from fencepost.model.explore.transition_system import Gate
from fencepost.model.region.controller import (
    UNSOUGHT,
    CheckpointStore,
    Downstream,
    Offsets,
    Region,
    RegionMode,
    merge_offsets,
)
from fencepost.model.region.explore.holes import region_holes
from fencepost.model.region.explore.row import (
    DOWNSTREAM,
    KAFKA,
    REGION,
    SENTENCES,
    STORE,
    VARIABLES,
    Kafka,
    RegionBounds,
    RegionFaults,
)
from fencepost.model.region.explore.system import region_system
from fencepost.model.region.group import has_member, member_slot
from fencepost.model.region.kernel import OFFSETS, SETS, RegionKernel, invariants
from fencepost.model.region.operator import ClientState, Membership, Operator
from fencepost.model.region.settings import DOCUMENTED, RegionDialect
from fencepost.model.region.specification import REGION_HOLES, REGION_RULES
from fencepost.model.relations import finite_relation

# What the kernel sees of a row: the sets of operators and the offsets of one partition.


def kernel_view(bounds: RegionBounds, row: tuple[Any, ...], partition: int = 0) -> RegionKernel:
    """The kernel of a row of the repaired design, for one partition."""
    region: Region = row[REGION]
    store: CheckpointStore = row[STORE]
    downstream: Downstream = row[DOWNSTREAM]
    kafka: Kafka = row[KAFKA]
    variables: Offsets = row[VARIABLES]
    initial = variables[partition] or 0
    written = {one.name: one.offsets[partition] for one in store.partial}
    sets: dict[str, set[str]] = {name: set() for name in SETS}
    offsets: dict[str, dict[str, int]] = {name: dict.fromkeys(bounds.names, 0) for name in OFFSETS}
    for name in bounds.names:
        own: Operator = row[bounds.column(name)]
        for which in sets_of(name, own, region, kafka, written, partition):
            sets[which].add(name)
        seek = own.seek_map[partition]
        offsets["off"][name] = own.offsets[partition] or 0
        offsets["seek"][name] = initial if seek is None else seek
        offsets["hand_off"][name] = 0 if own.hand is None else own.hand[1]
        offsets["wrote_off"][name] = written.get(name) or 0
    merged = merge_offsets(store.complete)[partition]
    made: dict[str, Any] = {name: finite_relation(*((one,) for one in values)) for name, values in sets.items()}
    made |= {name: values.__getitem__ for name, values in offsets.items()}
    return RegionKernel(
        finite_relation(*((name,) for name in bounds.names)),
        **made,
        down=downstream.next[partition],
        snap=store.snapshot.next[partition],
        merged=initial if merged is None else merged,
        is_running=region.mode in (RegionMode.RUN, RegionMode.DRAIN),
        is_checkpointing=region.mode is RegionMode.CHECKPOINT,
        is_resetting=region.mode is RegionMode.RESET,
        is_wrong=downstream.has_duplicate or downstream.has_gap,
    )


def sets_of(
    name: str, own: Operator, region: Region, kafka: Kafka, written: dict[str, int | None], partition: int
) -> list[str]:
    """The sets that an operator is in."""
    slot = member_slot(kafka.group, name)
    share: Any = () if slot is None or slot.assignment is None else slot.assignment
    is_pending = own.state is ClientState.RESET_PENDING
    conditions = {
        "keeps": own.offsets[partition] is not None,
        "sought": own.offsets[partition] not in (None, UNSOUGHT),
        "client": own.positions[partition] is not None,
        "member": own.membership is Membership.MEMBER,
        "in_group": has_member(kafka.group, name),
        "owns": partition in share,
        "fetched": is_pending or own.state is ClientState.RECORDS_FETCHED,
        "pending": is_pending,
        "hand": own.hand is not None and own.hand[0] == partition,
        "drained": own.is_drained,
        "written": name in written,
        "wrote": written.get(name) is not None,
        "done": region.mode is RegionMode.RESET and name not in region.todo,
    }
    return [which for which, holds in conditions.items() if holds]


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
