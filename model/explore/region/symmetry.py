"""Operators are alike: a row with two of them exchanged is the same row."""

from functools import cache
from itertools import permutations
from typing import Any

from fencepost.model.explore.region.row import Kafka, RegionBounds
from fencepost.model.explore.transition_system import Permutation, Symmetry
from fencepost.model.frozen import evolve
from fencepost.model.region.bean import GroupBean, OperatorCheckpoint
from fencepost.model.region.controller import CheckpointStore, Region
from fencepost.model.region.group import normalize


def operator_symmetry(bounds: RegionBounds) -> Symmetry:
    """Every exchange of operators, with their names in everything else."""
    names = bounds.names

    @cache
    def rename(value: Any, permutation: Permutation) -> Any:
        new = {name: names[permutation[place]] for place, name in enumerate(names)}
        return rename_value(value, new)

    blocks = tuple((column,) for column in bounds.columns)
    return Symmetry(blocks, tuple(permutations(range(len(names)))), rename)


def rename_value(value: Any, new: dict[str, str]) -> Any:
    """The value of a column with every name changed."""

    def every(names: frozenset[str]) -> frozenset[str]:
        return frozenset(new[name] for name in names)

    def parts(written: tuple[OperatorCheckpoint, ...]) -> tuple[OperatorCheckpoint, ...]:
        found = (evolve(one, name=new[one.name], names=every(one.names)) for one in written)
        return tuple(sorted(found, key=lambda one: one.name))

    if isinstance(value, Region):
        return evolve(value, todo=every(value.todo), contributed=every(value.contributed))
    if isinstance(value, CheckpointStore):
        return evolve(value, complete=parts(value.complete), partial=parts(value.partial))
    if isinstance(value, GroupBean):
        return evolve(
            value,
            registered=every(value.registered),
            contributions=parts(value.contributions),
            unheard=every(value.unheard),
        )
    if isinstance(value, Kafka):
        return evolve(value, group=rename_group(value.group, new))
    return value


def rename_group(group: Any, new: dict[str, str]) -> Any:
    """The group with its members' names changed, those of dead processes with the operator's."""

    def rename(name: Any) -> Any:
        if name is None:
            return None
        operator, dash, rest = name.partition("-")
        return new[operator] + dash + rest

    slots = tuple(evolve(one, id=rename(one.id)) for one in group.slots)
    return normalize(evolve(group, slots=slots, leader=rename(group.leader)))
