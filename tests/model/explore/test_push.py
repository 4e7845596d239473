"""The holes of the push coordinator's draft are found by search, and closed by their repairs within the bounds."""

from collections import defaultdict, deque

import pytest

from fencepost.model.explore.engine import explore_system
from fencepost.model.explore.hole_search import HoleSearch, find_break
from fencepost.model.explore.rendering import edges_from
from fencepost.model.push.dialect import DRAFT, REPAIRED, Command, PushDialect, undo_repairs
from fencepost.model.push.explore.holes import push_holes
from fencepost.model.push.explore.row import Faults, PushBounds, is_settled
from fencepost.model.push.explore.system import push_system
from fencepost.model.push.specification import PUSH_HOLES, PUSH_RULES

HOLES = push_holes()
STEPS = {
    ("PUSH-H01", "S2"): 24,
    ("PUSH-H01", "S3"): 24,
    ("PUSH-H02", "L2"): 18,
    ("PUSH-H02", "L1"): 20,
    ("PUSH-H03", "L1"): 40,
    ("PUSH-H03", "S4"): 25,
    ("PUSH-H04", "L1"): 33,
    ("PUSH-H05", "L3"): 13,
    ("PUSH-H05", "L7"): 17,
    ("PUSH-H06", "S8"): 9,
    ("PUSH-H07", "S10"): 15,
    ("PUSH-H07", "S4"): 19,
    ("PUSH-H08", "S2"): 25,
    ("PUSH-H09", "S2"): 24,
    ("PUSH-H09", "S12"): 13,
    ("PUSH-H10", "S2"): 26,
    ("PUSH-H11", "S1"): 4,
    ("PUSH-H11", "S2"): 26,
    ("PUSH-H11", "S5"): 9,
    ("PUSH-H11", "S7"): 15,
    ("PUSH-H12", "S6"): 4,
    ("PUSH-H12", "L1"): 13,
    ("PUSH-H12", "L3-bit"): 13,
    ("PUSH-H13", "S2"): 29,
    ("PUSH-H13", "S4"): 26,
    ("PUSH-H14", "S4"): 15,
    ("PUSH-H17", "L6"): 2,
    ("PUSH-H18", "S6"): 20,
    ("PUSH-H19", "L4"): 8,
}
"""The length of the shortest run of each hole of the main system."""
RESTARTED = {("PUSH-H03", "L1"): 32}
"""The same where it is a consumer that dies, not the broker."""
LARGE = {"PUSH-H03", "PUSH-H04", "PUSH-H05", "PUSH-H07", "PUSH-H09", "PUSH-H10", "PUSH-H11", "PUSH-H13"}
"""Those whose searches take longer than some seconds."""


def mark(hole: HoleSearch) -> object:
    slow = [pytest.mark.acceptance] if hole.id in LARGE or hole.id in ("PUSH-H15", "PUSH-H16") else []
    return pytest.param(hole, marks=slow, id=f"{hole.id}-{hole.property}-{hole.repair}".replace(" ", "-"))


@pytest.mark.parametrize("hole", [mark(hole) for hole in HOLES])
def test_a_hole_is_found_and_closed(hole: HoleSearch) -> None:
    drafted = hole.drafted(200_000)
    assert drafted.is_broken
    known = STEPS | (RESTARTED if "consumer crashes" in hole.bounds else {})
    known = {} if "orders of steps" in hole.bounds else known
    assert len(drafted.run) == known.get((hole.id, hole.property), len(drafted.run))
    repaired = hole.repaired(200_000)
    assert not repaired.is_broken and repaired.is_complete


@pytest.mark.parametrize(
    ("name", "repair", "faults", "brokers", "states"),
    [
        ("S3", "removal_waits_for_lease", Faults(suspicions=1), 1, 6_621),
        pytest.param(
            "L2",
            "prepares_before_election",
            Faults(broker_crashes=1, partitions=1),
            2,
            43_602,
            marks=pytest.mark.acceptance,
        ),
    ],
)
def test_what_the_specification_lists_and_is_no_hole(
    name: str, repair: str, faults: Faults, brokers: int, states: int
) -> None:
    bounds = PushBounds(brokers=brokers, capacity=2, faults=faults, dialect=undo_repairs(repair))
    found = find_break(lambda: push_system(bounds), name)(200_000)
    assert not found.is_broken and found.is_complete
    assert found.states == states


def test_every_hole_of_the_catalogue_has_a_search() -> None:
    assert {hole.id for hole in HOLES} == PUSH_HOLES.keys()


def test_every_repair_of_the_dialect_closes_a_hole() -> None:
    repairs = {name for hole in HOLES for name in hole.repair.split(", ")}
    # The response to Stop makes Start's offset the newest there is; without it the offset is old, not wrong.
    assert set(PushDialect.__dataclass_fields__) - repairs == {"stop_carries_offsets"}


@pytest.mark.parametrize(
    ("dialect", "states", "broken"),
    [(REPAIRED, 227, set()), (DRAFT, 285, {"L2", "S2", "S3"}), (undo_repairs("command"), 254, {"S2", "S3"})],
)
def test_two_consumers_without_faults(dialect: PushDialect, states: int, broken: set[str]) -> None:
    found, _ = explore_system(push_system(PushBounds(dialect=dialect)))
    assert found.finished and found.cut == 0
    assert found.states == states
    assert {one.name for one in found.violations} - {"no-deadlock"} == broken
    assert "settled" in {one.name for one in found.discoveries}


def test_two_groups_share_a_queue() -> None:
    (hole,) = (one for one in HOLES if one.property == "L7")
    drafted = hole.drafted(100_000)
    # The thread that fails belongs to the group of c0; c1, whose group starves, is never told anything.
    assert len(drafted.run) == 17 and not [step for step in drafted.run if "c1 handles" in step]
    assert count_settling(PushBounds(2, 1, groups=2)) == (170, 1, 0)


def test_three_consumers_settle_without_faults() -> None:
    found, _ = explore_system(push_system(PushBounds(3, 3)))
    assert found.finished
    assert {one.name for one in found.violations} == {"no-deadlock"}
    assert "settled" in {one.name for one in found.discoveries}


def test_every_rule_of_the_search_is_in_the_table_and_applies_somewhere() -> None:
    faults = (Faults(expiries=1), Faults(half_starts=1), Faults(pings=1, partitions=1), Faults(timeouts=2))
    systems = [PushBounds(1, dialect=dialect, faults=one) for dialect in (DRAFT, REPAIRED) for one in faults]
    systems += [PushBounds(1, brokers=2, faults=Faults(broker_crashes=1, consumer_crashes=1)), PushBounds()]
    systems += [PushBounds(1, dialect=PushDialect(command=Command.RESTART, start_stops_first=False))]
    seen: set[str] = set()
    for bounds in systems:
        seen |= explore_system(push_system(bounds))[0].rule_counts().keys()
    assert seen <= PUSH_RULES.keys()
    # A transition has one rule: that of a registration stands for the trigger that follows on it.
    unseen = {"register.no-topics", "register.timeout-too-small", "trigger.new-group"}
    assert PUSH_RULES.keys() - seen == unseen


def count_settling(bounds: PushBounds) -> tuple[int, int, int]:
    """How many states there are, how many are settled, and from how many no run leads to one of those."""
    exploration, _ = explore_system(push_system(bounds))
    assert exploration.finished
    states = list(exploration.reached_states())
    before: defaultdict[int, list[int]] = defaultdict(list)
    for state in states:
        for edge in edges_from(exploration, state):
            before[edge.after].append(state)
    settled = [state for state in states if is_settled(bounds, exploration.tables.values(state))]
    able, waiting = set(settled), deque(settled)
    while waiting:
        new = set(before[waiting.popleft()]) - able
        able |= new
        waiting.extend(new)
    return len(states), len(settled), len(states) - len(able)


NIGHTLY = (
    PushBounds(capacity=2, faults=Faults(consumer_crashes=1)),
    PushBounds(capacity=2, faults=Faults(suspicions=1)),
    PushBounds(brokers=2, capacity=2, faults=Faults(broker_crashes=1)),
    PushBounds(brokers=2, capacity=2, faults=Faults(expiries=1)),
    PushBounds(retries=2, faults=Faults(timeouts=2)),
)


@pytest.mark.parametrize(
    "bounds",
    [
        *(PushBounds(faults=Faults(**each)) for each in ({}, {"partitions": 1}, {"half_starts": 1}, {"expiries": 1})),
        *(pytest.param(bounds, marks=pytest.mark.acceptance) for bounds in NIGHTLY),
    ],
    ids=str,
)
def test_a_repaired_group_can_settle_from_every_state(bounds: PushBounds) -> None:
    _, settled, stranded = count_settling(bounds)
    assert settled > 0 and stranded == 0


def test_a_drafted_group_can_be_stranded() -> None:
    dialect = undo_repairs("releases_on_failure")
    assert count_settling(PushBounds(1, dialect=dialect, faults=Faults(consumer_crashes=1)))[2] > 0
