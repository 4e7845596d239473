"""Coordinators in corners of the protocol: a few picked inputs, so that a way through generations is short."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.model.explore.classic.coordinator_inputs import Input, Joining


@dataclass(frozen=True, slots=True)
class Corner:
    """A universe, as it is made, and the inputs that are tried of it. `begun` are taken beforehand; with `turned` the
    member table is then turned round, so that its last slot is taken and its first one free."""

    places: tuple[Any, ...]
    names: Mapping[str, Any]
    inputs: tuple[Input, ...]
    begun: tuple[Input, ...] = ()
    turned: bool = False


DIRECT = Joining(requires_id=False, can_skip=False, rebalance_timeout=4_000)
SKIPS = Joining(requires_id=False, rebalance_timeout=4_000)
ASKS = Joining(rebalance_timeout=4_000)
LONGER = Joining(requires_id=False, rebalance_timeout=5_000)
SHORT = Joining(requires_id=False, session_timeout=2_000)
LIVELY = Joining(requires_id=False, session_timeout=20_000)
NO_PATIENCE = tuple(Joining(requires_id=False, session_timeout=23, rebalance_timeout=timeout) for timeout in (0, 20))
AB, BA = (Joining(names, requires_id=False) for names in (("a", "b"), ("b", "a")))
TWICE = Joining(("a", "a"), requires_id=False, rising=1)

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


def corner(*places: Any, inputs: tuple[Input, ...], **names: Any) -> Corner:
    """A corner without strangers."""
    return Corner(places, {"strangers": False, **names}, inputs)


FOLLOWER = (NEW, STATIC, Input("join", variant=1, instance=1), WAIT)
UNMISSED, NEW_NO_MORE = {"replaced_sync_is_missed": False}, {"replaced_stays_new": False}
CORNERS: Mapping[str, Corner] = {
    "follower restarts": corner(3, 2, (DIRECT, SKIPS), instances=1, inputs=(*FOLLOWER, *syncs(1, 1, 2, 3))),
    "follower restarts unmissed": corner(
        3, 2, (DIRECT, SKIPS), instances=1, dialect=UNMISSED, inputs=(*FOLLOWER, *syncs(1, 1, 2, 3))
    ),
    "follower restarts twice": corner(4, 2, (DIRECT,), instances=1, inputs=(NEW, STATIC, WAIT, *syncs(1, 1))),
    "missed in one round only": corner(
        3,
        3,
        (DIRECT,),
        instances=1,
        inputs=(NEW, STATIC, *joins(1), *joins(3, instance=1), *syncs(1, 1), *syncs(2, 1, 3), WAIT),
    ),
    "restart while new": corner(2, 1, (SHORT,), instances=1, inputs=(STATIC, WAIT)),
    "restart while new no more": corner(2, 1, (SHORT,), instances=1, dialect=NEW_NO_MORE, inputs=(STATIC, WAIT)),
    "restart with other patience": corner(
        2, 3, (DIRECT, LONGER), instances=1, inputs=(STATIC, Input("join", variant=1, instance=1), WAIT)
    ),
    "no patience": corner(2, 2, NO_PATIENCE, instances=1, inputs=(STATIC, Input("join", variant=1), *leaves(2), WAIT)),
    "leader is late": corner(4, 3, (DIRECT, ASKS), leader=4, inputs=(NEW, Input("join", variant=1), *leaves(2), WAIT)),
    "others are late": corner(4, 3, (DIRECT,), leader=4, inputs=(NEW, *leaves(1), WAIT)),
    "leaders leave": corner(4, 2, (DIRECT,), leader=3, inputs=(NEW, *leaves(1, 2), WAIT)),
    "favourite without votes": corner(3, 1, (AB, BA), protocol="b", inputs=(NEW, Input("join", variant=1), WAIT)),
    "listed twice": corner(1, 1, (TWICE,), inputs=(NEW, WAIT)),
    "leader syncs late": corner(2, 2, (DIRECT,), inputs=(NEW, *syncs(1, 1, 2), WAIT, REST)),
    "parked long": corner(
        2,
        3,
        (Joining(requires_id=False), LIVELY),
        fires=True,
        inputs=(NEW, Input("join", variant=1), *joins(1), *syncs(1, 1), WAIT, Input("fire", 1)),
    ),
    "first comer gone": corner(3, 3, (DIRECT,), new_member_timeout=2_000, inputs=(NEW, WAIT, REST)),
    "newcomers and gone": corner(4, 3, (DIRECT,), inputs=(NEW, *leaves(1, 2, 3), WAIT)),
    "all leave at once": corner(2, 3, (DIRECT,), inputs=(NEW, Input("leave", 1, variant=1), WAIT)),
    "last place taken": Corner(
        (2, 1, (DIRECT,)), {"strangers": False, "max_group_size": 1}, (NEW, WAIT), begun=(NEW,), turned=True
    ),
}
