"""Faults in the operators of the bundled region, put in from outside: each replaces one method."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from fencepost.adapters.region import line_program
from fencepost.adapters.region.line_program import HANDLERS, Body, LineJob
from fencepost.adapters.region.operator import (
    JobControl,
    Message,
    Offsets,
    OperatorPart,
    OperatorState,
    Partition,
    Polling,
    RegionOperator,
    merge_parts,
)
from fencepost.conformance.zoo.fault import INVENTED, Fault, FaultFamily, Patch, Shipped, Side, instead_of

FOUND: FaultFamily[None] = FaultFamily(Side.REGION, None)
"""Faults that scenarios and random schedules find, by one of their requirements."""
HELD_OUT: FaultFamily[None] = FaultFamily(Side.REGION, None)
"""More of them, written after scenarios, schedules and judge; nothing was changed for them."""


@FOUND.add("", INVENTED, "REGION-31")
@instead_of(RegionOperator.checkpoint)
def leave_out_seek_map(shipped: Shipped[OperatorPart | None], self: RegionOperator) -> OperatorPart | None:
    """H01: the seek map is not in the checkpoint."""
    part = shipped(self)
    return part and replace(part, base={})


@FOUND.add("", INVENTED, "REGION-33")
@instead_of(JobControl.merge_if_complete)
def merge_first_part(shipped: Shipped[Offsets | None], self: JobControl, checkpoint: int) -> Offsets | None:
    """H02: a merge is complete with its first contribution."""
    parts = self._parts.get(checkpoint, {})
    return merge_parts(parts.values()) if parts else None


@FOUND.add("", INVENTED, "REGION-30")
@instead_of(RegionOperator.checkpoint)
def write_while_pending(shipped: Shipped[OperatorPart | None], self: RegionOperator) -> OperatorPart | None:
    """H04: an operator that waits for a reset writes a checkpoint."""
    if self._assigned is not None and not self.consumer.is_member():
        return None
    return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))


@FOUND.add("", INVENTED, "REGION-32")
@instead_of(RegionOperator.checkpoint)
def trust_membership(shipped: Shipped[OperatorPart | None], self: RegionOperator) -> OperatorPart | None:
    """H05: an operator that was expelled writes a checkpoint."""
    is_settled = self.offsets.keys() == (self._assigned or frozenset())
    if self.state is OperatorState.RESET_PENDING or not is_settled:
        return None
    return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))


@FOUND.add("", INVENTED, "REGION-37")
def notify_once(patch: Patch) -> None:
    """H06: the bean tells each operator once that a merge is complete."""
    whole = JobControl.merge_if_complete
    told: dict[tuple[JobControl, int], int] = {}

    def merge_if_complete(self: JobControl, checkpoint: int) -> Offsets | None:
        found = whole(self, checkpoint)
        if found is not None:
            told[self, checkpoint] = told.get((self, checkpoint), 0) + 1
        return found if told.get((self, checkpoint), 0) <= len(self.names) else None

    patch.replace(JobControl, "merge_if_complete", merge_if_complete)


@FOUND.add("", INVENTED, "REGION-42")
@instead_of(RegionOperator.submit)
def submit_late(shipped: Shipped[Message | None], self: RegionOperator) -> Message | None:
    """H10: a message is submitted whatever has become of its partition."""
    message, self.hand = self.hand, None
    if message is not None:
        self.offsets[message.partition] = message.offset + 1
    return message


@FOUND.add("", INVENTED, "REGION-49")
@instead_of(JobControl.restart)
def contribute_once(shipped: Shipped[None], self: JobControl) -> None:
    """H11: after a restart of the control plane nobody contributes again."""
    self._parts = {}


@FOUND.add("", INVENTED, "REGION-45")
@instead_of(RegionOperator.resume)
def trust_old_map(shipped: Shipped[None], self: RegionOperator) -> None:
    """H13: an operator seeks by a map that is older than the last checkpoint."""
    shipped(self)
    self._is_map_old = False


@FOUND.add("", INVENTED, "REGION-13", "REGION-42")
def ignore_revocation(patch: Patch) -> None:
    """A revocation requests no reset."""
    patch.replace(RegionOperator, "on_revoked", lambda self: self._clear())


@FOUND.add("", INVENTED, "REGION-41", "REGION-13")
def keep_queue(patch: Patch) -> None:
    """A reset leaves queue and buffer."""
    patch.replace(RegionOperator, "_clear", lambda self: None)


@FOUND.add("", INVENTED, "REGION-18", "REGION-35")
@instead_of(RegionOperator._first_of)
def ignore_seek_map(shipped: Shipped[int], self: RegionOperator, partition: Partition) -> int:
    """An assignment seeks the control variable, whatever the seek map has."""
    return self._control.first_offset(partition, self._start_of(partition))


@FOUND.add("", INVENTED, "REGION-18", "REGION-21")
@instead_of(RegionOperator._first_of)
def ignore_variables(shipped: Shipped[int], self: RegionOperator, partition: Partition) -> int:
    """H08: an operator seeks the start position although a control variable is there."""
    start = self._start_of(partition)
    self._control.first_offset(partition, start)
    return self.seek_map.get(partition, start)


@FOUND.add("", INVENTED, "REGION-44")
@instead_of(RegionOperator.reset_to)
def poll_fully_after_reset(shipped: Shipped[None], self: RegionOperator, merged: Offsets) -> None:
    """Polling is not throttled after a reset."""
    shipped(self, merged)
    self.polling = Polling.FULL


@FOUND.add("", INVENTED, "REGION-24")
@instead_of(RegionOperator.resume)
def lose_drain_buffer(shipped: Shipped[None], self: RegionOperator) -> None:
    """What a drain has put aside does not come back."""
    self.drained.clear()
    shipped(self)


@FOUND.add("", INVENTED, "REGION-25")
@instead_of(RegionOperator.drain)
def commit_positions_before(shipped: Shipped[Offsets], self: RegionOperator) -> Offsets:
    """A drain commits the offset of the last tuple and not the one after it."""
    return {partition: max(offset - 1, 0) for partition, offset in (shipped(self)).items()}


@FOUND.add("", INVENTED, "REGION-14", "REGION-13")
@instead_of(RegionOperator.receive)
def queue_while_pending(shipped: Shipped[None], self: RegionOperator, messages: list[Message]) -> None:
    """Records are queued although a reset is waited for."""
    self.queue.extend(messages)
    if messages and self.state is not OperatorState.RESET_PENDING:
        self.state = OperatorState.RECORDS_FETCHED


@FOUND.add("", INVENTED, "REGION-27")
@instead_of(RegionOperator.drain)
def report_longest_alone(shipped: Shipped[Offsets], self: RegionOperator) -> Offsets:
    """The time of the last drain is that of the longest one."""
    found = shipped(self)
    self.drains = replace(self.drains, last=self.drains.longest)
    return found


@FOUND.add("", INVENTED, "REGION-39")
def go_on_alone(patch: Patch) -> None:
    """A merge that is late is made of what there is."""
    whole = LineJob.finish

    def finish(self: LineJob, operator: RegionOperator, request: Body) -> Body:
        if request.get("late"):
            parts = self.control._parts.get(request["number"], {})
            operator.reset_to(merge_parts(parts.values()))
            return {"done": True}
        return whole(self, operator, request)

    patch.replace(line_program, "HANDLERS", {**HANDLERS, "finish": finish})


@FOUND.add("", INVENTED, "REGION-50", "REGION-19")
@instead_of(RegionOperator.on_assigned)
def ask_with_each_callback(shipped: Shipped[None], self: RegionOperator, partitions: frozenset[Partition]) -> None:
    """An operator that waits for a reset asks for another one with its assignment."""
    shipped(self, partitions)
    if self.state is OperatorState.RESET_PENDING:
        self._request_reset()


@FOUND.add("", INVENTED, "REGION-52")
def skip_lost_records(patch: Patch) -> None:
    """H15: an operator goes on wherever Kafka's client has gone, and that goes on where the log begins."""
    patch.replace(RegionOperator, "_confirm", lambda self, messages: None)


@HELD_OUT.add("", INVENTED, "REGION-17", "REGION-30")
@instead_of(RegionOperator.on_assigned)
def keep_old_offsets(shipped: Shipped[None], self: RegionOperator, partitions: frozenset[Partition]) -> None:
    """An assignment leaves the offsets of partitions that are gone."""
    before = dict(self.offsets)
    shipped(self, partitions)
    self.offsets = before | self.offsets


@HELD_OUT.add("", INVENTED, "REGION-34", "REGION-35")
@instead_of(JobControl.merge_if_complete)
def merge_lowest(shipped: Shipped[Offsets | None], self: JobControl, checkpoint: int) -> Offsets | None:
    """A merge takes the map below over what was assigned."""
    parts = self._parts.get(checkpoint, {})
    if parts.keys() != self.names:
        return None
    return {**merge_parts(parts.values()), **next(iter(parts.values())).base}


@HELD_OUT.add("", INVENTED, "REGION-44", "REGION-41")
@instead_of(RegionOperator.reset_to)
def stay_fetched(shipped: Shipped[None], self: RegionOperator, merged: Offsets) -> None:
    """A reset leaves the state."""
    state = self.state
    shipped(self, merged)
    self.state = state


@HELD_OUT.add("", INVENTED, "REGION-10")
@instead_of(RegionOperator.take)
def forget_hand(shipped: Shipped[bool], self: RegionOperator) -> bool:
    """A message is taken twice."""
    if not self.queue:
        return False
    self.hand = self.queue[0]
    if len(self.queue) > 1:
        self.queue.popleft()
    return True


@HELD_OUT.add("", INVENTED, "REGION-40", "REGION-37")
@instead_of(JobControl.retire)
def retire_all(shipped: Shipped[None], self: JobControl, checkpoint: int) -> None:
    """Retiring a checkpoint forgets all merges."""
    self._parts = {}


FAULTS: Mapping[str, Fault[None]] = MappingProxyType({fault.id: fault for fault in (*FOUND.faults, *HELD_OUT.faults)})


def mark_name(name: str, quick: Collection[str]) -> object:
    """The name as a parameter of a test; in CI only those that are `quick` run."""
    return pytest.param(name, marks=[] if name in quick else [pytest.mark.acceptance])
