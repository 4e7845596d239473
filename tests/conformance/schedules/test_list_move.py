"""Moves about groups other than the actor's, which are for targets where one node answers for all."""

from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from fencepost.conformance.classic.schedules.moves import groups_of, list_groups
from fencepost.conformance.run.schedule import Move
from fencepost.traces.events import Order


def cast_on(nodes: int, order: Order = Order.INTERVALS) -> Any:
    """The cast of a schedule on a target of so many nodes; in total order it is in this process."""
    cast = MagicMock(track_request=AsyncMock())
    cast.context.description.brokers = tuple(range(nodes))
    cast.context.description.order = order
    return cast


@pytest.mark.parametrize(
    ("nodes", "order", "requests"),
    [(0, Order.INTERVALS, 1), (1, Order.INTERVALS, 1), (3, Order.INTERVALS, 0), (2, Order.TOTAL, 1)],
)
async def test_groups_are_listed_where_one_node_has_all(nodes: int, order: Order, requests: int) -> None:
    cast = cast_on(nodes, order)
    await list_groups(cast, Move("list", 0))
    assert cast.context.list_groups.call_count == cast.track_request.await_count == requests


@pytest.mark.parametrize(
    ("nodes", "order", "others"),
    [(1, Order.INTERVALS, True), (3, Order.INTERVALS, False), (2, Order.TOTAL, True)],
)
def test_a_move_is_about_other_groups_where_one_node_has_all(nodes: int, order: Order, others: bool) -> None:
    cast = cast_on(nodes, order)
    cast.context.group_id = cast.actor_at.return_value.context.group_id = "g"
    cast.contexts = {0: cast.context, 1: MagicMock(group_id="g-1")}
    found = [groups_of(cast, Move("delete", 0, (("groups", which),))) for which in ("absent", "all")]
    assert found == ([("g", "g-nothing"), ("g", "g-1")] if others else [("g",), ("g",)])
