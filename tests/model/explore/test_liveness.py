"""Once nothing changes any more, every fair run settles; and the check knows groups that do not."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.core.state import FREE, Context, Group, Holder, JoinResponse, Phase, Slot, Step
from fencepost.model.classic.explore import coordinator_steps
from fencepost.model.classic.explore import poll_loops as loops
from fencepost.model.classic.explore.liveness import QuietModel, UnboundedModel, check_liveness
from fencepost.model.classic.explore.poll_loops import (
    EVICTED,
    LOST,
    REPEATED,
    REPEATED_ELSEWHERE,
    Application,
    PollLoopSetting,
    explore_poll_loops,
    largest_safe_limit,
    slow_rebalance,
    worst_heartbeat_gap,
)
from fencepost.model.classic.explore.state_layout import (
    COORDINATOR,
    PROCESS,
    RESPONSE,
    Bounds,
    ModelConfig,
    column_of,
    untimed_member,
)
from fencepost.model.classic.kernel.actions import finite_relation
from fencepost.model.classic.kernel.rebalance import REBALANCE_ACTIONS, Rebalance
from fencepost.model.classic.member.member import MemberState
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph
from fencepost.model.explore.search import Row

ONE = ModelConfig((untimed_member(),))
TWO = ModelConfig((untimed_member(), untimed_member()), heartbeats=False)
STATIC = ModelConfig((untimed_member(), untimed_member(instance="one")), heartbeats=False)
ONE_ROUND = Bounds(1, 1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "bounds", "starts", "states", "cycles"),
    [
        (ONE, Bounds(1, 1, 3, 1), 172, 494, 0),
        (replace(ONE, members=(untimed_member(instance="one"),)), Bounds(2, 1, 3, 2), 361, 394, 0),
        (TWO, ONE_ROUND, 58, 6078, 0),
    ],
    ids=["one", "one static", "two"],
)
def test_every_fair_run_settles(config: ModelConfig, bounds: Bounds, starts: int, states: int, cycles: int) -> None:
    found = check_liveness(config, bounds)
    assert found.stalls == () and found.cut == 0 and found.finals > 0
    assert (found.starts, found.states, found.cycles) == (starts, states, cycles)


@pytest.mark.slow
def test_leaders_that_cannot_make_up_their_mind_keep_a_cooperative_group_busy() -> None:
    """A partition that changes hands in every round is given up in every round, and whoever gives up joins again."""
    fickle = check_liveness(TWO, ONE_ROUND, steady=False, only=(0, 1))
    assert fickle.stalls
    stall = fickle.stalls[0]
    assert stall.alive == ("A", "B") and len(stall.cycle) > 1


def test_a_sync_timer_that_does_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that dies before it syncs is waited for in vain (KAFKA-12890)."""

    def idle(group: Group, context: Context) -> Step:
        return Step(group, (), "timer.not-due")

    monkeypatch.setattr(coordinator_steps, "expire_sync", idle)
    monkeypatch.setattr(coordinator_steps, "expire_member", lambda group, index, context: idle(group, context))
    found = check_liveness(ONE, Bounds(1, 1, 2, 1))
    assert any(stall.alive == () for stall in found.stalls)


# --- The opening of KIP-41, as runs of the reference client against the model's coordinator: each has a shortest one,
# and the bound on `max.poll.records` removes them all.

BATCH_OF_FOUR = PollLoopSetting()
"""Two processes; a batch of four records takes four ticks, and a session three."""
PATIENT = PollLoopSetting(session_ticks=10)
TICK, GETS = "a tick goes by", "A polls and gets records 0 to 3"


def test_a_process_is_evicted_while_it_works_and_its_records_are_processed_twice() -> None:
    found = explore_poll_loops(BATCH_OF_FOUR)
    assert found.is_finished
    assert found.runs[EVICTED] == ("A starts", GETS, TICK, TICK, TICK)
    again = ("A starts", GETS, TICK, TICK, TICK, "B starts", "B polls and gets records 0 to 3", TICK)
    assert found.runs[REPEATED] == found.runs[REPEATED_ELSEWHERE] == again
    assert LOST not in found.runs


def test_a_group_never_gets_on() -> None:
    stall = explore_poll_loops(replace(BATCH_OF_FOUR, consumers=1)).stall
    assert stall is not None
    assert stall.path == ("A starts", GETS, TICK, TICK, TICK, TICK, "A commits", GETS, TICK)
    assert stall.cycle == (TICK, TICK, TICK, "A commits", GETS, TICK)


@pytest.mark.parametrize(("limit", "wait"), [(1, 1), (2, 2), (3, 3), (4, 4)])
def test_a_rebalance_takes_as_long_as_a_batch(limit: int, wait: int) -> None:
    setting = replace(PATIENT, max_poll_records=limit)
    found = explore_poll_loops(setting)
    assert (found.longest_wait, found.runs, found.stall) == (wait, {}, None)
    run = slow_rebalance(setting, wait)
    assert run is not None and run.count(TICK) >= wait and "B polls" in run
    assert slow_rebalance(setting, wait + 1) is None


def test_a_smaller_batch_removes_them_all() -> None:
    for limit in (1, 2):
        found = explore_poll_loops(replace(BATCH_OF_FOUR, max_poll_records=limit))
        assert (found.is_finished, found.runs, found.stall) == (True, {}, None)
    assert EVICTED in explore_poll_loops(replace(BATCH_OF_FOUR, max_poll_records=3)).runs


COSTS = [(3, 1, 1), (3, 2, 2), (4, 2, 1), (4, 1, 2), (5, 1, 1), (5, 2, 2), (6, 4, 1)]
"""Ticks of a session, between heartbeats, and of work on a record."""


@pytest.mark.slow
@pytest.mark.parametrize(("session", "heartbeat", "cost"), COSTS)
def test_the_bound_is_that_a_heartbeat_comes_in_every_session(session: int, heartbeat: int, cost: int) -> None:
    setting = PollLoopSetting(session_ticks=session, heartbeat_ticks=heartbeat, ticks_per_record=cost)
    safe = [
        limit
        for limit in range(1, 5)
        if worst_heartbeat_gap(replace(setting, max_poll_records=limit)) < setting.session_ticks
    ]
    assert largest_safe_limit(setting, 4) == max(safe)


def test_the_heartbeat_that_was_rejected_loses_records() -> None:
    asking = replace(PATIENT, application=Application.HEARTBEATS)
    found = explore_poll_loops(asking)
    assert found.runs == {LOST: ("A starts", GETS, "B starts", "B polls", TICK, "A commits")}
    # The proposal's own remedy: the original loop with one record in each poll.
    safe = explore_poll_loops(replace(PATIENT, max_poll_records=1))
    assert LOST not in safe.runs and EVICTED not in safe.runs


def test_heartbeats_in_the_background_leave_the_poll_interval_as_the_limit() -> None:
    background = replace(BATCH_OF_FOUR, heartbeats_in_poll=False)
    assert explore_poll_loops(background).runs == {}
    short = explore_poll_loops(replace(background, max_poll_ticks=3))
    assert short.runs[EVICTED] == ("A starts", GETS, TICK, TICK, TICK)
    assert short.stall is not None


def test_how_generations_are_written_changes_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = explore_poll_loops(BATCH_OF_FOUR)
    monkeypatch.setattr(loops, "MAX_GENERATION", 4)
    wide = explore_poll_loops(BATCH_OF_FOUR)
    assert wide.runs == narrow.runs and wide.longest_wait == narrow.longest_wait
    assert wide.states > narrow.states


# --- Quiet runs of the shipped core, seen as the rebalance of the kernel: who is awaited, and which actions a step
# is.

MOST_ACTIONS = 3
"""A step is so many actions at most: a member joins, the join phase completes."""


def members_of(names: Iterable[Any]) -> Any:
    """A set of members."""
    return finite_relation(*((name,) for name in names))


def rebalance_of(quiet: QuietModel, row: Row) -> Rebalance:
    """The row as the kernel sees it; a slot that no process knows of is a dead member's."""
    group = row[COORDINATOR].group
    processes = [row[column_of(index, PROCESS)].member for index in range(quiet.model.count)]
    slots = {holder_of(quiet, row, slot): slot for slot in group.slots if slot.holder == Holder.MEMBER}
    stable, completing = group.phase == Phase.STABLE, group.phase == Phase.COMPLETING
    leaders = [name for name, slot in slots.items() if slot.id == group.leader]
    owing = [
        index
        for index in quiet.alive
        if stable and index in slots and processes[index].rejoins and processes[index].state == MemberState.STABLE
    ]
    return Rebalance(
        preparing=group.phase == Phase.PREPARING,
        completing=completing,
        leader=leaders[0] if completing and leaders else None,
        members=members_of(slots),
        living=members_of(quiet.alive),
        joined=members_of(name for name, slot in slots.items() if slot.join),
        synced=members_of(name for name, slot in slots.items() if slot.sync),
        told=members_of(name for name, slot in slots.items() if stable and not slot.unsynced),
        may_revoke=members_of(quiet.alive),
        owes_join=members_of(owing),
    )


def holder_of(quiet: QuietModel, row: Row, slot: Slot) -> Any:
    """The process behind a slot, or the slot's id if there is none."""
    for handle in (slot.join, slot.sync):
        if handle:
            return quiet.model.sender_of(handle)[0]
    for index in range(quiet.model.count):
        incoming = row[column_of(index, RESPONSE)]
        hears = incoming is not None and isinstance(incoming.response, JoinResponse)
        if row[column_of(index, PROCESS)].member.id == slot.id or (hears and incoming.response.member == slot.id):
            return index
    return f"slot of {slot.id}"


def find_actions(before: Rebalance, after: Rebalance) -> tuple[str, ...] | None:
    """The names of the fewest actions that lead from one to the other, each possible; None if there are none."""
    level: dict[Rebalance, tuple[str, ...]] = {before: ()}
    for _ in range(MOST_ACTIONS + 1):
        for state, names in level.items():
            if replace(state, leader=after.leader) == after:
                return names
        found: dict[Rebalance, tuple[str, ...]] = {}
        for state, names in level.items():
            for name, following in possible_actions(state):
                found.setdefault(following, (*names, name))
        level = found
    return None


def possible_actions(state: Rebalance) -> Iterator[tuple[str, Rebalance]]:
    """Every action that is possible, but for `revoke`, with the rebalance after it; everyone may revoke."""
    members: Any = state.members
    living: Any = state.living
    everyone = list(dict.fromkeys(name for (name,) in (*members, *living)))
    absent = members_of(name for (name,) in members if not living.has(name))
    choices: dict[str, list[tuple[Any, ...]]] = {
        "publish": [()],
        "complete": [(name, dropped) for name in everyone for dropped in (members_of(()), absent)],
    }
    for action, take in REBALANCE_ACTIONS.items():
        for arguments in choices.get(action, [(name,) for name in everyone]) if action != "revoke" else ():
            step = take(state, *arguments)
            if step.guard:
                yield action, replace(step.after, may_revoke=state.may_revoke)


# --- The quiet runs of the shipped core are rebalances of the kernel, of which it is proved that they settle.

CONFIG = ModelConfig((replace(untimed_member(), requires_id=False), untimed_member()))
SLOTS = 6
LIVING = (frozenset({0}), frozenset({0, 1}), frozenset({1}), frozenset({0, 1}))
"""Who lives: from each moment of a run on, the next set does. Members come, die at any moment, and come back."""
Steps = set[tuple[Row, str, Row]]


def quiet_steps(quiet: QuietModel, rows: list[Row]) -> Steps:
    """Every step of the runs from these rows; what a dead process sent before is left out."""
    runs = RunGraph(quiet.system(), RowNumbers(lambda row: row))
    runs.explore(rows)
    dead = tuple(f"{name} " for index, name in enumerate(quiet.model.names) if index not in quiet.alive)
    edges: Any = runs.graph.edges(data="label")
    return {(runs.row(a), label, runs.row(b)) for a, b, label in edges if not label.startswith(dead or ("-",))}


def steps_of_all() -> list[tuple[QuietModel, Steps]]:
    """The steps while each of the sets lives."""
    rows: list[Row] = []
    found: list[tuple[QuietModel, Steps]] = []
    for alive in LIVING:
        quiet = QuietModel(UnboundedModel(CONFIG, SLOTS), alive)
        if not rows:
            (coordinator, *others) = quiet.system().initial
            group = replace(coordinator.group, slots=(FREE,) * SLOTS)
            rows = [(replace(coordinator, group=group), *others)]
        steps = quiet_steps(quiet, rows)
        found.append((quiet, steps))
        rows = list(dict.fromkeys(row for before, _, after in steps for row in (before, after)))
    return found


def find_unexplained(found: list[tuple[QuietModel, Steps]]) -> tuple[set[str], set[str]]:
    """The labels of the steps that are no actions of the kernel, and the names of all actions that were taken."""
    labels: set[str] = set()
    seen: set[str] = set()
    known: dict[object, tuple[str, ...] | None] = {}
    for quiet, steps in found:
        for before, label, after in steps:
            pair = (rebalance_of(quiet, before), rebalance_of(quiet, after))
            if pair not in known:
                known[pair] = find_actions(*pair)
            actions = known[pair]
            if actions is None:
                labels.add(label)
            else:
                seen.update(actions)
    return labels, seen


def test_each_step_is_some_actions_of_the_kernel() -> None:
    found = steps_of_all()
    assert sum(len(steps) for _, steps in found) > 2_000
    assert find_unexplained(found) == (set(), {"arrive", "remove", "join", "complete", "sync", "publish", "tell"})


def test_a_rebalance_without_a_reason_is_no_action() -> None:
    living = members_of((0, 1))
    settled = Rebalance(members=living, living=living, told=living, may_revoke=living)
    begun = replace(settled, preparing=True, told=members_of(()))
    assert find_actions(settled, begun) is None
    assert find_actions(replace(settled, owes_join=members_of((0,))), replace(begun, joined=members_of((0,)))) == (
        "rejoin",
    )
    assert find_actions(begun, settled) is None
