"""Faults in the operators of the bundled region, put in from outside: each replaces one method."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from fencepost.adapters.address import format_address
from fencepost.adapters.client.reference.links import TcpNetwork
from fencepost.adapters.region import kafka_consumer, line_program
from fencepost.adapters.region import operator as operator_module
from fencepost.adapters.region.controller import RegionMode, RegionProgram
from fencepost.adapters.region.kafka import Message, Offsets, Partition
from fencepost.adapters.region.kafka_consumer import NetworkConsumer
from fencepost.adapters.region.line_program import HANDLERS, Body, LineJob
from fencepost.adapters.region.operator import (
    JobControl,
    OperatorPart,
    OperatorState,
    Polling,
    RegionOperator,
    merge_parts,
)
from fencepost.conformance.zoo.fault import INVENTED, Fault, FaultFamily, Patch, Side
from fencepost.model.classic.member.client import Callback, CallbackKind
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY
from fencepost.model.classic.member.step import ListenerReturned
from fencepost.model.region import settings
from fencepost.model.region.dialect import DOCUMENTED
from fencepost.model.region.settings import merge_wait_ms
from tests.support.region_job import log_start

RESET_TIMEOUT_MS, POLL_INTERVAL_MS = 4_000, 300_000
"""How long the region of a test lets a reset last, and the operator's max.poll.interval.ms."""
FOUND: FaultFamily[None] = FaultFamily(Side.REGION, None)
"""Faults that scenarios and random schedules find, by one of their requirements."""
HELD_OUT: FaultFamily[None] = FaultFamily(Side.REGION, None)
"""More of them, written after scenarios, schedules and judge; nothing was changed for them."""
BESIDE: FaultFamily[None] = FaultFamily(Side.REGION, None)
"""Repairs undone that the line protocol does not show: Kafka, its log, time and the region's controller are the kit's
there."""


@FOUND.add("", INVENTED, "REGION-31")
def leave_out_seek_map(patch: Patch) -> None:
    """H01: the seek map is not in the checkpoint."""
    whole = RegionOperator.checkpoint

    async def write(self: RegionOperator) -> OperatorPart | None:
        part = await whole(self)
        return part and replace(part, base={})

    patch.replace(RegionOperator, "checkpoint", write)


@FOUND.add("", INVENTED, "REGION-33")
def merge_first_part(patch: Patch) -> None:
    """H02: a merge is complete with its first contribution."""

    def merge_if_complete(self: JobControl, checkpoint: int) -> Offsets | None:
        parts = self._parts.get(checkpoint, {})
        return merge_parts(parts.values()) if parts else None

    patch.replace(JobControl, "merge_if_complete", merge_if_complete)


@FOUND.add("", INVENTED, "REGION-30")
def write_while_pending(patch: Patch) -> None:
    """H04: an operator that waits for a reset writes a checkpoint."""

    async def write(self: RegionOperator) -> OperatorPart | None:
        if self._assigned is not None and not await self.consumer.is_member():
            return None
        return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))

    patch.replace(RegionOperator, "checkpoint", write)


@FOUND.add("", INVENTED, "REGION-32")
def trust_membership(patch: Patch) -> None:
    """H05: an operator that was expelled writes a checkpoint."""

    async def write(self: RegionOperator) -> OperatorPart | None:
        is_settled = self.offsets.keys() == (self._assigned or frozenset())
        if self.state is OperatorState.RESET_PENDING or not is_settled:
            return None
        return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))

    patch.replace(RegionOperator, "checkpoint", write)


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
def submit_late(patch: Patch) -> None:
    """H10: a message is submitted whatever has become of its partition."""

    def submit(self: RegionOperator) -> Message | None:
        message, self.hand = self.hand, None
        if message is not None:
            self.offsets[message.partition] = message.offset + 1
        return message

    patch.replace(RegionOperator, "submit", submit)


@FOUND.add("", INVENTED, "REGION-49")
def contribute_once(patch: Patch) -> None:
    """H11: after a restart of the control plane nobody contributes again."""

    async def restart(self: JobControl) -> None:
        self._parts = {}

    patch.replace(JobControl, "restart", restart)


@FOUND.add("", INVENTED, "REGION-45")
def trust_old_map(patch: Patch) -> None:
    """H13: an operator seeks by a map that is older than the last checkpoint."""
    whole = RegionOperator.resume

    def resume(self: RegionOperator) -> None:
        whole(self)
        self._is_map_old = False

    patch.replace(RegionOperator, "resume", resume)


@FOUND.add("", INVENTED, "REGION-13", "REGION-42")
def ignore_revocation(patch: Patch) -> None:
    """A revocation requests no reset."""
    patch.replace(RegionOperator, "on_revoked", lambda self: self._clear())


@FOUND.add("", INVENTED, "REGION-41", "REGION-13")
def keep_queue(patch: Patch) -> None:
    """A reset leaves queue and buffer."""
    patch.replace(RegionOperator, "_clear", lambda self: None)


@FOUND.add("", INVENTED, "REGION-18", "REGION-35")
def ignore_seek_map(patch: Patch) -> None:
    """An assignment seeks the control variable, whatever the seek map has."""

    def first_of(self: RegionOperator, partition: Partition) -> int:
        return self._control.first_offset(partition, self._start_of(partition))

    patch.replace(RegionOperator, "_first_of", first_of)


@FOUND.add("", INVENTED, "REGION-18", "REGION-21")
def ignore_variables(patch: Patch) -> None:
    """H08: an operator seeks the start position although a control variable is there."""

    def first_of(self: RegionOperator, partition: Partition) -> int:
        start = self._start_of(partition)
        self._control.first_offset(partition, start)
        return self.seek_map.get(partition, start)

    patch.replace(RegionOperator, "_first_of", first_of)


@FOUND.add("", INVENTED, "REGION-44")
def poll_fully_after_reset(patch: Patch) -> None:
    """Polling is not throttled after a reset."""
    whole = RegionOperator.reset_to

    def reset_to(self: RegionOperator, merged: Offsets) -> None:
        whole(self, merged)
        self.polling = Polling.FULL

    patch.replace(RegionOperator, "reset_to", reset_to)


@FOUND.add("", INVENTED, "REGION-24")
def lose_drain_buffer(patch: Patch) -> None:
    """What a drain has put aside does not come back."""
    whole = RegionOperator.resume

    def resume(self: RegionOperator) -> None:
        self.drained.clear()
        whole(self)

    patch.replace(RegionOperator, "resume", resume)


@FOUND.add("", INVENTED, "REGION-25")
def commit_positions_before(patch: Patch) -> None:
    """A drain commits the offset of the last tuple and not the one after it."""
    whole = RegionOperator.drain

    async def drain(self: RegionOperator) -> Offsets:
        return {partition: max(offset - 1, 0) for partition, offset in (await whole(self)).items()}

    patch.replace(RegionOperator, "drain", drain)


@FOUND.add("", INVENTED, "REGION-14", "REGION-13")
def queue_while_pending(patch: Patch) -> None:
    """Records are queued although a reset is waited for."""

    def receive(self: RegionOperator, messages: list[Message]) -> None:
        self.queue.extend(messages)
        if messages and self.state is not OperatorState.RESET_PENDING:
            self.state = OperatorState.RECORDS_FETCHED

    patch.replace(RegionOperator, "receive", receive)


@FOUND.add("", INVENTED, "REGION-27")
def report_longest_alone(patch: Patch) -> None:
    """The time of the last drain is that of the longest one."""
    whole = RegionOperator.drain

    async def drain(self: RegionOperator) -> Offsets:
        found = await whole(self)
        self.drains = replace(self.drains, last=self.drains.longest)
        return found

    patch.replace(RegionOperator, "drain", drain)


@FOUND.add("", INVENTED, "REGION-39")
def go_on_alone(patch: Patch) -> None:
    """A merge that is late is made of what there is."""
    whole = LineJob.finish

    async def finish(self: LineJob, operator: RegionOperator, request: Body) -> Body:
        if request.get("late"):
            parts = self.control._parts.get(request["number"], {})
            operator.reset_to(merge_parts(parts.values()))
            return {"done": True}
        return await whole(self, operator, request)

    patch.replace(line_program, "HANDLERS", {**HANDLERS, "finish": finish})


@FOUND.add("", INVENTED, "REGION-50", "REGION-19")
def ask_with_each_callback(patch: Patch) -> None:
    """An operator that waits for a reset asks for another one with its assignment."""
    whole = RegionOperator.on_assigned

    def on_assigned(self: RegionOperator, partitions: frozenset[Partition]) -> None:
        whole(self, partitions)
        if self.state is OperatorState.RESET_PENDING:
            self._request_reset()

    patch.replace(RegionOperator, "on_assigned", on_assigned)


@FOUND.add("", INVENTED, "REGION-52")
def skip_lost_records(patch: Patch) -> None:
    """H15: an operator goes on wherever Kafka's client has gone, and that goes on where the log begins."""
    patch.replace(RegionOperator, "_confirm", lambda self, messages: None)

    def on_lost(self: NetworkConsumer, partition: Partition) -> None:
        assert isinstance(self._network, TcpNetwork)
        self.seek({partition: log_start(format_address(*self._network.bootstrap), partition)})

    patch.replace(NetworkConsumer, "on_lost", on_lost)


@HELD_OUT.add("", INVENTED, "REGION-17", "REGION-30")
def keep_old_offsets(patch: Patch) -> None:
    """An assignment leaves the offsets of partitions that are gone."""
    whole = RegionOperator.on_assigned

    def on_assigned(self: RegionOperator, partitions: frozenset[Partition]) -> None:
        before = dict(self.offsets)
        whole(self, partitions)
        self.offsets = before | self.offsets

    patch.replace(RegionOperator, "on_assigned", on_assigned)


@HELD_OUT.add("", INVENTED, "REGION-34", "REGION-35")
def merge_lowest(patch: Patch) -> None:
    """A merge takes the map below over what was assigned."""

    def merge_if_complete(self: JobControl, checkpoint: int) -> Offsets | None:
        parts = self._parts.get(checkpoint, {})
        if parts.keys() != self.names:
            return None
        return {**merge_parts(parts.values()), **next(iter(parts.values())).base}

    patch.replace(JobControl, "merge_if_complete", merge_if_complete)


@HELD_OUT.add("", INVENTED, "REGION-44", "REGION-41")
def stay_fetched(patch: Patch) -> None:
    """A reset leaves the state."""
    whole = RegionOperator.reset_to

    def reset_to(self: RegionOperator, merged: Offsets) -> None:
        state = self.state
        whole(self, merged)
        self.state = state

    patch.replace(RegionOperator, "reset_to", reset_to)


@HELD_OUT.add("", INVENTED, "REGION-10")
def forget_hand(patch: Patch) -> None:
    """A message is taken twice."""

    def take(self: RegionOperator) -> bool:
        if not self.queue:
            return False
        self.hand = self.queue[0]
        if len(self.queue) > 1:
            self.queue.popleft()
        return True

    patch.replace(RegionOperator, "take", take)


@HELD_OUT.add("", INVENTED, "REGION-40", "REGION-37")
def retire_all(patch: Patch) -> None:
    """Retiring a checkpoint forgets all merges."""

    def retire(self: JobControl, checkpoint: int) -> None:
        self._parts = {}

    patch.replace(JobControl, "retire", retire)


@BESIDE.add()
def assign_cooperatively(patch: Patch) -> None:
    """H09: the assignor is cooperative, and an operator takes new partitions for all it has. No veto is in the way."""
    patch.replace(kafka_consumer, "RANGE", COOPERATIVE_STICKY)
    whole = NetworkConsumer._call_back

    def call_back(self: NetworkConsumer, callback: Callback) -> None:
        if callback.kind is CallbackKind.ASSIGNED:
            self._listener.on_assigned(frozenset(callback.partitions))
            self.give(ListenerReturned())
        else:
            whole(self, callback)

    def on_assigned(self: RegionOperator, partitions: frozenset[Partition]) -> None:
        self._assigned = partitions
        self.offsets = {one: offset for one, offset in self.offsets.items() if one in partitions}
        if self.state in (OperatorState.SUBSCRIBED, OperatorState.RESET_COMPLETE):
            self._seek(partitions)

    async def write(self: RegionOperator) -> OperatorPart | None:
        return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))

    patch.replace(NetworkConsumer, "_call_back", call_back)
    patch.replace(RegionOperator, "on_assigned", on_assigned)
    patch.replace(RegionOperator, "checkpoint", write)


@BESIDE.add()
def begin_at_end(patch: Patch) -> None:
    """H14: a partition that is born with records is begun at its end."""
    patch.replace(RegionOperator, "_start", lambda self, partition: self._start_of(partition))


@BESIDE.add()
def wait_briefly(patch: Patch) -> None:
    """H16: an operator waits for a merge half as long as a reset may last."""
    whole = RegionOperator.reset

    async def reset(self: RegionOperator, checkpoint: int, part: OperatorPart | None) -> None:
        async with asyncio.timeout(merge_wait_ms(RESET_TIMEOUT_MS, POLL_INTERVAL_MS, DOCUMENTED) / 1_000):
            await whole(self, checkpoint, part)

    patch.replace(RegionOperator, "reset", reset)


@BESIDE.add()
def name_by_hash(patch: Patch) -> None:
    """H17: the name of a group's bean is a hash of its id."""
    patch.replace(operator_module, "bean_name", lambda group: settings.bean_name(group, DOCUMENTED))


@BESIDE.add()
def wait_for_absent(patch: Patch) -> None:
    """H17: a merge waits for all operators that there were at the checkpoint."""

    def merge_if_complete(self: JobControl, checkpoint: int) -> Offsets | None:
        parts = self._parts.get(checkpoint, {})
        names = {name for part in parts.values() for name in part.names}
        return merge_parts(parts.values()) if parts and parts.keys() == names else None

    patch.replace(JobControl, "merge_if_complete", merge_if_complete)


@BESIDE.add()
def take_before_permit(patch: Patch) -> None:
    """H03: the process thread takes a message and then waits for its permit."""
    whole = RegionProgram.submit

    async def submit(self: RegionProgram, operator: RegionOperator) -> None:
        if operator.take():
            with Patch() as taken:
                taken.replace(operator, "take", lambda: True)
                await whole(self, operator)

    patch.replace(RegionProgram, "submit", submit)


@BESIDE.add()
def forget_request(patch: Patch) -> None:
    """H07: a request for a reset is forgotten while the region is reset."""
    whole = RegionProgram.request_reset

    def request_reset(self: RegionProgram) -> None:
        if self.mode is not RegionMode.RESET:
            whole(self)

    patch.replace(RegionProgram, "request_reset", request_reset)


@BESIDE.add()
def forget_attempts(patch: Patch) -> None:
    """H12: a reset that an operator forces sets the count of attempts back."""
    whole = RegionProgram._launch

    def launch(self: RegionProgram, name: str, polling: Polling) -> None:
        whole(self, name, polling)
        operator = self.operators[name].operator

        def force_reset() -> None:
            self.attempts = 0
            self.request_reset()

        operator._request_reset = force_reset

    patch.replace(RegionProgram, "_launch", launch)


FAULTS: Mapping[str, Fault[None]] = MappingProxyType({fault.id: fault for fault in (*FOUND.faults, *HELD_OUT.faults)})
ALL_FAULTS: Mapping[str, Fault[None]] = MappingProxyType({**FAULTS, **{fault.id: fault for fault in BESIDE.faults}})


def mark_name(name: str, quick: Collection[str]) -> object:
    """The name as a parameter of a test; in CI only those that are `quick` run."""
    return pytest.param(name, marks=[] if name in quick else [pytest.mark.acceptance])
