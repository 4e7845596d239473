"""Coordinators in corners of the protocol: a few picked inputs, so that a way through generations is short."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.model.classic.explore.coordinator_inputs import Input, JoinOptions


@dataclass(frozen=True, slots=True)
class CornerCase:
    """A universe, as it is made, and the inputs that are tried of it. `setup_inputs` are taken beforehand; with
    `is_table_reversed` the
    member table is then turned round, so that its last slot is taken and its first one free."""

    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    inputs: tuple[Input, ...]
    setup_inputs: tuple[Input, ...] = ()
    is_table_reversed: bool = False


DIRECT = JoinOptions(requires_id=False, can_skip=False, rebalance_timeout=4_000)
SKIPS = JoinOptions(requires_id=False, rebalance_timeout=4_000)
ASKS = JoinOptions(rebalance_timeout=4_000)
LONGER = JoinOptions(requires_id=False, rebalance_timeout=5_000)
SHORT = JoinOptions(requires_id=False, session_timeout=2_000)
LIVELY = JoinOptions(requires_id=False, session_timeout=20_000)
NO_PATIENCE = tuple(
    JoinOptions(requires_id=False, session_timeout=23, rebalance_timeout=timeout) for timeout in (0, 20)
)
AB, BA = (JoinOptions(names, requires_id=False) for names in (("a", "b"), ("b", "a")))
TWICE = JoinOptions(("a", "a"), requires_id=False, rising=1)

NEW, STATIC, WAIT, REST = Input("join"), Input("join", instance=1), Input("wait"), Input("rest")


def joins(*members: int, instance: int = 0) -> Iterator[Input]:
    """Each of the members joins again."""
    return (Input("join", one, instance=instance) for one in members)


def syncs(generation: int, *members: int) -> Iterator[Input]:
    """Each of the members sends SyncGroup; everything is for the first."""
    return (Input("sync", one, generation, 1) for one in members)


def leaves(*members: int) -> Iterator[Input]:
    """Each of the members leaves."""
    return (Input("leave", one) for one in members)


def corner_case(*places: Any, inputs: tuple[Input, ...], **names: Any) -> CornerCase:
    """A corner without strangers."""
    return CornerCase(places, {"strangers": False, **names}, inputs)


FOLLOWER = (NEW, STATIC, Input("join", variant=1, instance=1), WAIT)
UNMISSED, NEW_NO_MORE = {"replaced_sync_is_missed": False}, {"replaced_stays_new": False}
CORNER_CASES: Mapping[str, CornerCase] = {
    "follower restarts": corner_case(3, 2, (DIRECT, SKIPS), instances=1, inputs=(*FOLLOWER, *syncs(1, 1, 2, 3))),
    "follower restarts unmissed": corner_case(
        3, 2, (DIRECT, SKIPS), instances=1, dialect=UNMISSED, inputs=(*FOLLOWER, *syncs(1, 1, 2, 3))
    ),
    "follower restarts twice": corner_case(4, 2, (DIRECT,), instances=1, inputs=(NEW, STATIC, WAIT, *syncs(1, 1))),
    "missed in one round only": corner_case(
        3,
        3,
        (DIRECT,),
        instances=1,
        inputs=(NEW, STATIC, *joins(1), *joins(3, instance=1), *syncs(1, 1), *syncs(2, 1, 3), WAIT),
    ),
    "restart while new": corner_case(2, 1, (SHORT,), instances=1, inputs=(STATIC, WAIT)),
    "restart while new no more": corner_case(2, 1, (SHORT,), instances=1, dialect=NEW_NO_MORE, inputs=(STATIC, WAIT)),
    "restart with other patience": corner_case(
        2, 3, (DIRECT, LONGER), instances=1, inputs=(STATIC, Input("join", variant=1, instance=1), WAIT)
    ),
    "no patience": corner_case(
        2, 2, NO_PATIENCE, instances=1, inputs=(STATIC, Input("join", variant=1), *leaves(2), WAIT)
    ),
    "leader is late": corner_case(
        4, 3, (DIRECT, ASKS), leader=4, inputs=(NEW, Input("join", variant=1), *leaves(2), WAIT)
    ),
    "others are late": corner_case(4, 3, (DIRECT,), leader=4, inputs=(NEW, *leaves(1), WAIT)),
    "leaders leave": corner_case(4, 2, (DIRECT,), leader=3, inputs=(NEW, *leaves(1, 2), WAIT)),
    "favourite without votes": corner_case(3, 1, (AB, BA), protocol="b", inputs=(NEW, Input("join", variant=1), WAIT)),
    "listed twice": corner_case(1, 1, (TWICE,), inputs=(NEW, WAIT)),
    "leader syncs late": corner_case(2, 2, (DIRECT,), inputs=(NEW, *syncs(1, 1, 2), WAIT, REST)),
    "parked long": corner_case(
        2,
        3,
        (JoinOptions(requires_id=False), LIVELY),
        fires=True,
        inputs=(NEW, Input("join", variant=1), *joins(1), *syncs(1, 1), WAIT, Input("fire", 1)),
    ),
    "first comer gone": corner_case(3, 3, (DIRECT,), new_member_timeout=2_000, inputs=(NEW, WAIT, REST)),
    "newcomers and gone": corner_case(4, 3, (DIRECT,), inputs=(NEW, *leaves(1, 2, 3), WAIT)),
    "all leave at once": corner_case(2, 3, (DIRECT,), inputs=(NEW, Input("leave", 1, variant=1), WAIT)),
    "last place taken": CornerCase(
        (2, 1, (DIRECT,)),
        {"strangers": False, "max_group_size": 1},
        (NEW, WAIT),
        setup_inputs=(NEW,),
        is_table_reversed=True,
    ),
}
