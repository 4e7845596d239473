"""The columns of the system, and what is checked of them: faults left, region, downstream, bean, group, operators."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from typing import Any

from fencepost.model.explore.rows import ActionMaker, Place, RowView
from fencepost.model.explore.transition_system import Check, Permutation, PropertyKind, Symmetry
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.controller import (
    UNSOUGHT,
    CheckpointStore,
    Downstream,
    GroupBean,
    Offsets,
    OperatorCheckpoint,
    Region,
    RegionMode,
    keys_of,
    no_offsets,
    start_reset,
)
from fencepost.model.region.group import KafkaGroup, assignment_of, empty_group, join_group, normalize
from fencepost.model.region.operator import ClientState, Membership, Operator, new_operator, on_assigned
from fencepost.model.region.settings import REPAIRED, RegionDialect

FAULTS, REGION, STORE, DOWNSTREAM, BEAN, KAFKA, VARIABLES, OPERATORS = range(8)
"""Columns of the row; the operators are the last ones."""


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

    group: KafkaGroup
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


def share_out(group: KafkaGroup, names: tuple[str, ...], partitions: int) -> KafkaGroup:
    """The stable group of these members, each with the partition of its own number."""
    groups = [group]
    for name in (*names, *names):  # whoever comes has those before join again
        groups = [after for one in groups for after in join_group(one, name, partitions)]
        for one in groups:
            if all(assignment_of(one, name) == (place,) for place, name in enumerate(names)):
                return one
    raise ValueError(f"{partitions} partitions are not one for each of {len(names)} operators")


class RegionView(RowView):
    """The columns of the row by name. `own` is that of the operator that an action is about, if it is about one."""

    bounds: RegionBounds
    name: str
    faults: RegionFaults
    region: Region
    store: CheckpointStore
    downstream: Downstream
    bean: GroupBean
    kafka: Kafka
    variables: Offsets
    own: Operator
    operators: tuple[Operator, ...]

    def reset(self) -> dict[str, Any]:
        """The values with which a reset begins."""
        return {"region": start_reset(self.region, self.bounds.job), **self.restore()}

    def restore(self) -> dict[str, Any]:
        """The values of a reset beside the region's: downstream is as it was, a checkpoint under way is void."""
        return {"downstream": self.store.snapshot, "store": evolve(self.store, partial=())}


def actions_about(bounds: RegionBounds, name: str = "") -> ActionMaker[RegionView]:
    """The maker of actions about one operator, about a dead process of one, or about nobody."""
    places: dict[str, Place] = {
        "faults": FAULTS,
        "region": REGION,
        "store": STORE,
        "downstream": DOWNSTREAM,
        "bean": BEAN,
        "kafka": KAFKA,
        "variables": VARIABLES,
        "operators": bounds.columns,
    }
    if name in bounds.names:
        places["own"] = bounds.column(name)
    return ActionMaker(RegionView, places, {"bounds": bounds, "name": name})


# Operators are alike: a row with two of them exchanged is the same row.


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


# --- What is checked of a row.


SENTENCES = {
    "G2": "All operators that have been reset to a checkpoint hold the same seek map.",
    "G3": "A merge is complete only with N contributions of N names, the same names in all of them.",
    "G4": "A complete checkpoint resumes no partition after what downstream has seen of it: nothing is lost.",
    "G5": "A complete checkpoint resumes no partition before what downstream has seen of it: nothing comes twice.",
    "G6": "Contributions to one merge have no partition in common.",
    "G7": "A complete checkpoint covers every partition that has a control variable.",
    "G10": "Queue and drain buffer hold no more than the queue's capacity.",
    "G13": "Outside callbacks a member keeps offsets of exactly the partitions that its client has.",
    "G17": "A message taken before a reset is never submitted after it.",
    "H13": "No assignment seeks an offset before that of the last complete checkpoint.",
    "H04-swap": "No checkpoint completes while all operators wait for a reset with partitions that they never sought.",
    "H04-twice": "What downstream has seen twice is in no complete checkpoint.",
    "V1": "An operator waits for a reset only while one of it is to come.",
    "V6": "In a reset, a merge that an operator waits for is still to be completed or told.",
}
"""The properties by their names in the specification."""


def region_checks(bounds: RegionBounds) -> tuple[Check, ...]:
    """The checks of states."""
    columns = bounds.columns
    settled = Check("checkpointed", (REGION,), lambda region: region.last == bounds.checkpoints, PropertyKind.SOMETIMES)
    return (
        Check("G2", (REGION, *columns), lambda region, *operators: same_maps(bounds, region, operators)),
        Check("G3", (BEAN,), is_whole_merge),
        *(Check("G13", (column,), keeps_assigned) for column in columns),
        *(Check("G10", (column,), lambda own: fits(bounds, own)) for column in columns),
        *(
            Check("G17", (REGION, column), holds_nothing(name))
            for name, column in zip(bounds.names, columns, strict=True)
        ),
        *(
            Check("V1", (REGION, column), will_be_reset(name))
            for name, column in zip(bounds.names, columns, strict=True)
        ),
        Check("H04-swap", (REGION, *columns), lambda region, *operators: not has_swapped(region, operators)),
        Check("V6", (REGION, BEAN, *columns), lambda region, bean, *rest: merge_goes_on(bounds, region, bean, rest)),
        settled,
    )


def same_maps(bounds: RegionBounds, region: Region, operators: tuple[Operator, ...]) -> bool:
    """G2: no two operators whose last reset was to this checkpoint seek different offsets of a partition."""
    if region.mode not in (RegionMode.RESET, RegionMode.RUN) or not region.last:
        return True
    maps = [
        one.seek_map
        for name, one in zip(bounds.names, operators, strict=True)
        if name not in region.todo and not one.is_map_old and one.state is not ClientState.SUBSCRIBED
    ]
    return all(len(set(offsets) - {None}) <= 1 for offsets in zip(*maps, strict=True))


def is_whole_merge(bean: GroupBean) -> bool:
    """G3."""
    if bean.merged is None:
        return True
    names = {one.name for one in bean.contributions}
    return all(one.names == names for one in bean.contributions)


def fits(bounds: RegionBounds, own: Operator) -> bool:
    """G10."""
    return len(own.queue) + len(own.drained) <= bounds.capacity


def keeps_assigned(own: Operator) -> bool:
    """G13, of a member outside callbacks."""
    return own.membership is not Membership.MEMBER or keys_of(own.offsets) == keys_of(own.positions)


def holds_nothing(name: str) -> Callable[[Region, Operator], bool]:
    """G17: an operator that has been reset has nothing in hand that it took before."""

    def holds(region: Region, own: Operator) -> bool:
        was_reset = region.mode is RegionMode.RESET and name not in region.todo
        fresh = own.state is ClientState.RESET_COMPLETE
        return not (was_reset and fresh and own.hand is not None)

    return holds


def has_swapped(region: Region, operators: tuple[Operator, ...]) -> bool:
    """H04: a checkpoint has just been completed by operators that got others' partitions and wait for a reset."""
    return (
        region.mode is RegionMode.RUN
        and region.last > 0
        and all(
            own.is_drained and own.state is ClientState.RESET_PENDING and UNSOUGHT in own.offsets for own in operators
        )
    )


def will_be_reset(name: str) -> Callable[[Region, Operator], bool]:
    """V1."""

    def holds(region: Region, own: Operator) -> bool:
        if own.state is not ClientState.RESET_PENDING:
            return True
        return region.is_requested or (region.mode is RegionMode.RESET and name in region.todo)

    return holds


def merge_goes_on(bounds: RegionBounds, region: Region, bean: GroupBean, operators: tuple[Operator, ...]) -> bool:
    """V6."""
    if region.mode is not RegionMode.RESET or not region.last:
        return True
    if not region.todo <= region.contributed or not bounds.job <= bean.registered or bean.unheard & region.todo:
        return True
    waiting = [own for name, own in zip(bounds.names, operators, strict=True) if name in region.todo]
    return any(not own.is_up or (own.notice is not None and own.notice[0] == region.last) for own in waiting)
