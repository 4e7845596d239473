"""The holes of the page: each one repair undone, the property that breaks, and the repaired design beside it.

A search gets a dialect, bounds and the name of a property. No run is written down: every one is found.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any

from fencepost.model.explore.hole_search import HoleMaker, HoleSearch, value_hole
from fencepost.model.explore.rows import describe_faults, value_system
from fencepost.model.explore.transition_system import TransitionSystem
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.controller import GroupBean, OperatorCheckpoint, contribute, names_of_merge
from fencepost.model.region.explore.row import SENTENCES, RegionBounds, RegionFaults
from fencepost.model.region.explore.system import region_system
from fencepost.model.region.settings import (
    MAX_ATTEMPTS,
    REPAIRED,
    Attempts,
    FirstSight,
    RegionDialect,
    accepts_operators,
    accepts_timeouts,
    bean_name,
    begin_attempt,
    look,
    merge_wait_ms,
    position_after_reset,
    reset_succeeds,
    runtime_allows,
    start_position,
    store,
    undo_repairs,
)

MAX_WIDTH = 4
TIMEOUTS_MS = (20_000, 60_000, 180_000)
POLL_INTERVALS_MS = (16_000, 300_000)
RELAUNCHES_MS = (5_000, 20_000, 60_000, 170_000)
GROUP_IDS = tuple("".join(letters) for letters in product("ABab", repeat=2))


# First sight of a partition, a reset into a log that has lost records, and attempts: systems beside the main one.


START_SENTENCES = {
    "G9": "Every operator that has begun a partition has begun it at its control variable.",
    "REGION-46": "A partition that was added is begun at its first record.",
    "REGION-52": "A reset that succeeds is at the offset that was sought.",
    "V2": "No more attempts follow each other than the maximum before the region fails.",
}


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartState:
    """The end of the log, the control variable, what two operators have seen, the first of which was assigned first."""

    end: int = 0
    variable: int | None = None
    operators: tuple[FirstSight, FirstSight] = (FirstSight(), FirstSight())


def start_system(dialect: RegionDialect, knew_partition: bool = True, records: int = 2) -> TransitionSystem:
    """Two operators that are assigned a partition one after the other, with the start position End: the partition
    existed when they subscribed, or it did not."""

    def steps(state: StartState) -> Iterator[tuple[str, StartState]]:
        if state.end < records:
            yield f"record {state.end} is written", evolve(state, end=state.end + 1)
        for place, (name, own) in enumerate(zip("AB", state.operators, strict=True)):
            if own.is_done:
                continue
            if own.sought is None:
                start = start_position(state.end, knew_partition, dialect)
                after, variable = look(own, state.variable, start, dialect)
                label = f"{name} looks for the control variable, and seeks {after.sought}"
            else:
                after, variable = store(own, state.variable)
                label = f"{name} stores {own.sought} unless there is a variable"
            operators = (after, state.operators[1]) if place == 0 else (state.operators[0], after)
            yield label, evolve(state, variable=variable, operators=operators)

    def begins_at_variable(state: StartState) -> bool:
        return all(not one.is_done or one.sought == state.variable for one in state.operators)

    def begins_first(state: StartState) -> bool:
        return knew_partition or all(one.sought in (None, 0) for one in state.operators)

    return value_system("start", StartState(), steps, {"G9": begins_at_variable, "REGION-46": begins_first})


@fast_frozen
@dataclass(frozen=True, slots=True)
class LogState:
    """The log's first offset, and the position of an operator that was reset to offset 1, None before that."""

    first: int = 0
    position: int | None = None
    has_failed: bool = False


def log_system(dialect: RegionDialect, sought: int = 1, end: int = 3) -> TransitionSystem:
    """A log that loses records, and an operator that is reset to one of them."""

    def steps(state: LogState) -> Iterator[tuple[str, LogState]]:
        if state.first < end:
            yield f"retention deletes {state.first}", evolve(state, first=state.first + 1)
        if state.position is None and not state.has_failed:
            position = position_after_reset(sought, state.first, end)
            good = reset_succeeds(sought, position, dialect)
            after = evolve(state, position=position) if good else evolve(state, has_failed=True)
            what = f"goes on at {position}" if good else "reports that it is gone"
            yield f"the operator seeks {sought} and {what}", after

    return value_system("log", LogState(), steps, {"REGION-52": lambda state: state.position in (None, sought)})


def attempt_system(dialect: RegionDialect, relaunch: int = 3, wait: int = 2) -> TransitionSystem:
    """Resets one after the other, with no checkpoint between them: a merge times out if the relaunch takes longer than
    the wait; the operator that comes back then causes a rebalance, and the other one, which has fetched, forces a
    reset. `relaunch` and `wait` are in the same unit."""

    def steps(attempts: Attempts) -> Iterator[tuple[str, Attempts]]:
        if attempts.has_failed or attempts.made > MAX_ATTEMPTS:
            return
        if relaunch > wait:
            yield "a merge is waited for in vain, and the region is reset", begin_attempt(attempts, False, dialect)
        yield "an operator is revoked, and forces a reset", begin_attempt(attempts, True, dialect)

    return value_system("attempts", Attempts(), steps, {"V2": lambda attempts: attempts.made <= MAX_ATTEMPTS})


def small_holes() -> Iterator[HoleSearch]:
    """Start positions, deleted records, attempts."""

    def hole(
        id: str, name: str, repair: str, make: Callable[[RegionDialect], TransitionSystem], words: str
    ) -> HoleSearch:
        return HoleMaker(make, START_SENTENCES, lambda _: words).hole(id, name, repair, undo_repairs(repair), REPAIRED)

    yield hole("REGION-H08", "G9", "creates_first", start_system, "2 operators, 1 partition, 2 records")
    yield hole("REGION-H12", "V2", "counts_forced_resets", attempt_system, "resets without a checkpoint")
    born = partial(start_system, knew_partition=False)
    yield hole("REGION-H14", "REGION-46", "starts_new_partitions_first", born, "2 operators, 2 records")
    yield hole("REGION-H15", "REGION-52", "checks_position", log_system, "3 records, a reset to the second")


# Numbers and names: settings that contradict each other.


def short_waits(dialect: RegionDialect) -> Iterator[str]:
    """Relaunches that the region allows and an operator does not wait for (H16)."""
    for reset, poll, takes in product(TIMEOUTS_MS, POLL_INTERVALS_MS, RELAUNCHES_MS):
        wait = merge_wait_ms(reset, poll, dialect)
        if accepts_timeouts(reset, reset, poll, dialect) and takes <= reset:
            if wait < takes:
                yield f"a relaunch takes {takes} of {reset} ms, the merge is waited for {wait} ms"
            elif wait >= poll:
                yield f"a wait of {wait} ms is longer than max.poll.interval.ms, {poll}"


def shared_names(dialect: RegionDialect) -> Iterator[str]:
    """Groups that have one bean (H17)."""
    for one, other in combinations(GROUP_IDS, 2):
        if bean_name(one, dialect) == bean_name(other, dialect):
            yield f"groups {one} and {other} share a bean"


def refused_regions(dialect: RegionDialect) -> Iterator[str]:
    """Groups that start, and that the runtime does not allow (H17)."""
    for operators, driven in product(range(1, MAX_WIDTH + 1), (False, True)):
        if accepts_operators(operators, driven, dialect) and not runtime_allows(operators, driven):
            yield f"{operators} operators drive a region, which may have one start operator"


def waiting_merges(dialect: RegionDialect) -> Iterator[str]:
    """Jobs with another number of operators than at the checkpoint, whose merge never completes (H17)."""
    for before, now in product(range(1, MAX_WIDTH + 1), repeat=2):
        then, job = frozenset("ABCD"[:before]), frozenset("ABCD"[:now])
        bean = GroupBean(job)
        for name in sorted(then & job):
            part = OperatorCheckpoint(name, then, (None,), (None,))
            bean, _ = contribute(bean, 1, part, names_of_merge(part, job, dialect), dialect)
        if bean.merged is None:
            yield f"{before} operators wrote the checkpoint, {now} are there: the merge waits for ever"


def value_holes() -> Iterator[HoleSearch]:
    """REGION-H16 and REGION-H17: numbers and names."""

    def hole(
        id: str,
        name: str,
        sentence: str,
        repair: str,
        values: Callable[[RegionDialect], Iterator[str]],
        count: int,
        unit: str,
    ) -> HoleSearch:
        dialects = undo_repairs(repair), REPAIRED
        return value_hole(id, name, sentence, repair, values, dialects, count, unit)

    waits = "An operator waits for a merge as long as the region's reset may last, and Kafka waits longer."
    apart = "Groups of different ids have different beans."
    starts = "A group that starts is one that the runtime allows."
    ends = "A merge after a change of the job is complete once every operator that is there has contributed."
    count = len(TIMEOUTS_MS) * len(POLL_INTERVALS_MS) * len(RELAUNCHES_MS)
    pairs = len(GROUP_IDS) * (len(GROUP_IDS) - 1) // 2
    yield hole("REGION-H16", "REGION-38", waits, "waits_for_region", short_waits, count, "settings")
    yield hole("REGION-H17", "REGION-02", apart, "names_group_exactly", shared_names, pairs, "pairs of group ids")
    yield hole("REGION-H17", "V6", ends, "counts_present_operators", waiting_merges, MAX_WIDTH**2, "pairs of widths")
    yield hole("REGION-H17", "REGION-01", starts, "refuses_operator_driven", refused_regions, 2 * MAX_WIDTH, "settings")


# The holes of the main system.


def sizes_of(bounds: RegionBounds) -> str:
    """What is explored, in words."""
    counts = {
        "operator": bounds.operators,
        "partition": bounds.partitions,
        "record": bounds.records,
        "checkpoint": bounds.checkpoints,
    }
    told = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items()]
    return ", ".join([*told, *describe_faults(bounds.faults)])


def region_holes() -> tuple[HoleSearch, ...]:
    """Every hole of the page; some have several parts."""
    maker = HoleMaker(region_system, SENTENCES, sizes_of)

    def main_hole(id: str, name: str, *repairs: str, **bounds: Any) -> HoleSearch:
        broken = RegionBounds(dialect=undo_repairs(*repairs), **bounds)
        return maker.hole(id, name, ", ".join(repairs), broken, RegionBounds(**bounds))

    one: dict[str, Any] = {"records": 1, "checkpoints": 1}
    merge: dict[str, Any] = {"records": 0, "checkpoints": 1}
    crash, failure, expulsion = RegionFaults(crashes=1), RegionFaults(failures=1), RegionFaults(expulsions=1)
    rebalance = RegionFaults(rebalances=1)
    shared: dict[str, Any] = {"partitions": 2, "begins_assigned": True}
    twice, added = RegionFaults(failures=1, crashes=1), RegionFaults(partitions=1)
    holes = [
        main_hole("REGION-H01", "G7", "checkpoints_seek_map", **one, faults=crash),
        main_hole("REGION-H01", "G5", "checkpoints_seek_map", operators=1, records=1, checkpoints=2, faults=crash),
        main_hole("REGION-H02", "G3", "fixes_names", **merge, begins_registered=False, faults=failure),
        main_hole("REGION-H02", "G2", "fixes_names", **one, capacity=1, begins_registered=False, faults=failure),
        main_hole("REGION-H03", "G17", "takes_with_permit", **one, faults=failure),
        main_hole("REGION-H03", "G4", "takes_with_permit", operators=1, records=2, checkpoints=1, faults=failure),
        main_hole("REGION-H03", "G5", "takes_with_permit", operators=1, records=2, checkpoints=1, faults=failure),
        main_hole("REGION-H04", "G7", "vetoes_checkpoint", "checkpoints_seek_map", **one),
        main_hole("REGION-H04", "G5", "vetoes_checkpoint", **one),
        main_hole("REGION-H04", "H04-swap", "vetoes_checkpoint", **shared, **one, faults=rebalance),
        main_hole("REGION-H04", "H04-twice", "vetoes_checkpoint", **one),
        main_hole("REGION-H05", "G6", "checks_membership", **one, faults=expulsion),
        main_hole("REGION-H05", "G5", "checks_membership", **one, faults=expulsion),
        main_hole("REGION-H05", "G6", "vetoes_checkpoint", "checks_membership", "fails_on_commit", **one),
        main_hole("REGION-H06", "V6", "notifies_again", **merge, faults=twice),
        main_hole("REGION-H07", "V1", "queues_requests", records=1, checkpoints=0, faults=crash),
        main_hole("REGION-H09", "G13", "assigns_eagerly", operators=1, **one, faults=added),
        main_hole("REGION-H09", "G5", "assigns_eagerly", "vetoes_checkpoint", operators=1, **one, faults=added),
        main_hole("REGION-H10", "G13", "drops_late_messages", **one),
        main_hole("REGION-H10", "G6", "vetoes_checkpoint", "checks_membership", "drops_late_messages", **one),
        main_hole("REGION-H11", "V6", "contributes_again", **merge, faults=RegionFaults(failures=1, restarts=1)),
        main_hole("REGION-H13", "H13", "outdates_seek_map", **one, faults=expulsion),
        *small_holes(),
        *value_holes(),
    ]
    return tuple(sorted(holes, key=lambda hole: hole.id))
