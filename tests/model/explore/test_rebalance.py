"""The quiet runs of the shipped core are rebalances of the kernel, of which it is proved that they settle."""

from dataclasses import replace
from typing import Any

from fencepost.model.classic.core.state import FREE
from fencepost.model.classic.explore.liveness import QuietModel, UnboundedModel
from fencepost.model.classic.explore.state_layout import ModelConfig, untimed_member
from fencepost.model.classic.kernel.rebalance import Rebalance
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph
from fencepost.model.explore.search import Row
from tests.support.rebalance_view import find_actions, members_of, rebalance_of

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
