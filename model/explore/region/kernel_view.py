"""What the kernel sees of a row: the sets of operators and the offsets of one partition."""

from typing import Any

from fencepost.model.explore.region.row import (
    DOWNSTREAM,
    KAFKA,
    REGION,
    STORE,
    VARIABLES,
    Kafka,
    RegionBounds,
)
from fencepost.model.kernel_logic import FiniteLogic
from fencepost.model.region.bean import merge_offsets
from fencepost.model.region.controller import CheckpointStore, Region, RegionMode
from fencepost.model.region.downstream import Downstream
from fencepost.model.region.group import has_member, member_slot
from fencepost.model.region.kernel import OFFSETS, SETS, RegionKernel
from fencepost.model.region.offsets import UNSOUGHT, Offsets
from fencepost.model.region.operator import ClientState, Membership, Operator


def kernel_view(bounds: RegionBounds, row: tuple[Any, ...], partition: int = 0) -> RegionKernel:
    """The kernel of a row of the repaired design, for one partition."""
    region: Region = row[REGION]
    store: CheckpointStore = row[STORE]
    downstream: Downstream = row[DOWNSTREAM]
    kafka: Kafka = row[KAFKA]
    variables: Offsets = row[VARIABLES]
    initial = variables[partition] or 0
    written = {one.name: one.offsets[partition] for one in store.partial}
    sets: dict[str, set[str]] = {name: set() for name in SETS}
    offsets: dict[str, dict[str, int]] = {name: dict.fromkeys(bounds.names, 0) for name in OFFSETS}
    for name in bounds.names:
        own: Operator = row[bounds.column(name)]
        for which in sets_of(name, own, region, kafka, written, partition):
            sets[which].add(name)
        seek = own.seek_map[partition]
        offsets["off"][name] = own.offsets[partition] or 0
        offsets["seek"][name] = initial if seek is None else seek
        offsets["hand_off"][name] = 0 if own.hand is None else own.hand[1]
        offsets["wrote_off"][name] = written.get(name) or 0
    merged = merge_offsets(store.complete)[partition]
    made: dict[str, Any] = {name: values.__contains__ for name, values in sets.items()}
    made |= {name: values.__getitem__ for name, values in offsets.items()}
    return RegionKernel(
        FiniteLogic(bounds.names, ()),
        **made,
        down=downstream.next[partition],
        snap=store.snapshot.next[partition],
        merged=initial if merged is None else merged,
        is_running=region.mode in (RegionMode.RUN, RegionMode.DRAIN),
        is_checkpointing=region.mode is RegionMode.CHECKPOINT,
        is_resetting=region.mode is RegionMode.RESET,
        is_wrong=downstream.has_duplicate or downstream.has_gap,
    )


def sets_of(
    name: str, own: Operator, region: Region, kafka: Kafka, written: dict[str, int | None], partition: int
) -> list[str]:
    """The sets that an operator is in."""
    slot = member_slot(kafka.group, name)
    share: Any = () if slot is None or slot.assignment is None else slot.assignment
    is_pending = own.state is ClientState.RESET_PENDING
    conditions = {
        "keeps": own.offsets[partition] is not None,
        "sought": own.offsets[partition] not in (None, UNSOUGHT),
        "client": own.positions[partition] is not None,
        "member": own.membership is Membership.MEMBER,
        "in_group": has_member(kafka.group, name),
        "owns": partition in share,
        "fetched": is_pending or own.state is ClientState.RECORDS_FETCHED,
        "pending": is_pending,
        "hand": own.hand is not None and own.hand[0] == partition,
        "drained": own.is_drained,
        "written": name in written,
        "wrote": written.get(name) is not None,
        "done": region.mode is RegionMode.RESET and name not in region.todo,
    }
    return [which for which, holds in conditions.items() if holds]
