"""Once nothing changes any more, every fair run settles; and the check knows groups that do not."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.core.state import FREE, Context, Group, Holder, JoinResponse, Phase, Slot, Step
from fencepost.model.classic.explore import coordinator_steps
from fencepost.model.classic.explore.liveness import QuietModel, UnboundedModel, check_liveness
from fencepost.model.classic.explore.state_layout import (
    COORDINATOR,
    PROCESS,
    RESPONSE,
    Bounds,
    ModelConfig,
    column_of,
    untimed_member,
)
from fencepost.model.classic.kernel.rebalance import REBALANCE_ACTIONS, Rebalance
from fencepost.model.classic.member.member import MemberState
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph
from fencepost.model.explore.search import Row
from fencepost.model.relations import finite_relation

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
