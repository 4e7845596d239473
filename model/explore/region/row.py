"""The columns of the system: faults left, the region and its checkpoints, downstream, bean, group, operators."""

from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.core.state import Group
from fencepost.model.explore.transition_system import Transition
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.bean import GroupBean, OperatorCheckpoint
from fencepost.model.region.controller import CheckpointStore, Region, start_reset
from fencepost.model.region.dialect import REPAIRED, RegionDialect
from fencepost.model.region.downstream import Downstream
from fencepost.model.region.group import assignment_of, empty_group, join_group
from fencepost.model.region.offsets import no_offsets
from fencepost.model.region.operator import new_operator, on_assigned

FAULTS, REGION, STORE, DOWNSTREAM, BEAN, KAFKA, VARIABLES, OPERATORS = range(8)
"""Columns of the row; the operators are the last ones."""
Transitions = tuple[Transition, ...]
NOTHING: Transitions = ()
Write = tuple[int, Any]


@fast_frozen
@dataclass(frozen=True, slots=True)
class RegionFaults:
    """How often each fault may still happen."""

    failures: int = 0
    """A PE downstream fails."""
    crashes: int = 0
    """An operator's PE dies, and comes back."""
    expulsions: int = 0
    """Kafka ends the membership of a live operator."""
    rebalances: int = 0
    """The group's leader joins again."""
    partitions: int = 0
    """A partition is added, and the group's leader joins again."""
    restarts: int = 0
    """The job control plane restarts."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Kafka:
    """The group, the number of partitions, and whether the leader has yet to see a change."""

    group: Group
    partitions: int
    has_news: bool = False


@dataclass(frozen=True, slots=True)
class RegionBounds:
    """What is explored: operators, partitions, records of each partition, checkpoints, the messages that a queue holds,
    whether all have registered at the beginning, the faults, the dialect."""

    operators: int = 2
    partitions: int = 1
    records: int = 2
    checkpoints: int = 2
    capacity: int = 2
    begins_registered: bool = True
    begins_assigned: bool = False
    """Each operator begins as a member of a stable group, and has sought the partition of its own number."""
    faults: RegionFaults = RegionFaults()
    dialect: RegionDialect = REPAIRED
    names: tuple[str, ...] = field(init=False)
    job: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple("ABCDEFGH"[: self.operators])
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "job", frozenset(names))

    @property
    def width(self) -> int:
        """The entries of a map of offsets: partitions that are there, and those that may be added."""
        return self.partitions + self.faults.partitions

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of all operators."""
        return tuple(range(OPERATORS, OPERATORS + self.operators))

    def column(self, name: str) -> int:
        """The column of an operator."""
        return OPERATORS + self.names.index(name)

    def initial(self) -> tuple[object, ...]:
        """Every operator has subscribed, nothing is assigned."""
        nothing = no_offsets(self.width)
        start = Downstream((0,) * self.width)
        operators = [new_operator(self.width)] * self.operators
        first = tuple(OperatorCheckpoint(name, self.job, nothing, nothing) for name in self.names)
        bean = GroupBean(self.job if self.begins_registered else frozenset())
        group = empty_group(2 * self.operators + 1)
        variables = nothing
        if self.begins_assigned:
            group = share_out(group, self.names, self.partitions)
            for place in range(self.operators):
                step = on_assigned(operators[place], (place,), variables, self.dialect)
                operators[place], variables = step.operator, step.variables or variables
        kafka = Kafka(group, self.partitions)
        return (self.faults, Region(), CheckpointStore(first, start), start, bean, kafka, variables, *operators)


def share_out(group: Group, names: tuple[str, ...], partitions: int) -> Group:
    """The stable group of these members, each with the partition of its own number."""
    groups = [group]
    for name in (*names, *names):  # whoever comes has those before join again
        groups = [after for one in groups for after in join_group(one, name, partitions)]
        for one in groups:
            if all(assignment_of(one, name) == (place,) for place, name in enumerate(names)):
                return one
    raise ValueError(f"{partitions} partitions are not one for each of {len(names)} operators")


def spend(faults: RegionFaults, name: str) -> Write:
    """The write of one fault fewer."""
    return FAULTS, evolve(faults, **{name: getattr(faults, name) - 1})


def restore_checkpoint(store: CheckpointStore) -> tuple[Write, ...]:
    """The writes of a reset beside the region's: downstream is as it was, a checkpoint under way is void."""
    return (DOWNSTREAM, store.snapshot), (STORE, evolve(store, partial=()))


def reset_region(bounds: RegionBounds, region: Region, store: CheckpointStore) -> tuple[Write, ...]:
    """The writes with which a reset begins."""
    return (REGION, start_reset(region, bounds.job)), *restore_checkpoint(store)
