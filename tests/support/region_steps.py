"""Operators at a Kafka over the network, taken step by step: the schedules by which the page's holes show themselves.

Who owns what is the test's decision: the group's assignor goes by a plan.
"""

import asyncio
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.adapters.address import format_address
from fencepost.adapters.region.kafka import CommitFailed, Downstream, Listener, Offsets, Partition, PositionLost
from fencepost.adapters.region.kafka_consumer import KafkaGroup, NetworkConsumer
from fencepost.adapters.region.operator import (
    ControlPlane,
    JobControl,
    OperatorPart,
    OperatorState,
    Polling,
    RegionOperator,
)
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from tests.support.region_job import Load, add_partition, delete_records, fill_topic

RELAUNCH_S = 3.0
"""Longer than half the time that a reset may last, and not as long as that."""
RECORDS = 8
"""What is in the two partitions of a topic."""
ROUNDS = 1_500
"""Polls after which what was waited for will not come; each takes at least 20 ms."""


@dataclass(slots=True)
class SteppedRegion:
    """A region without a controller. `plan` says which operator owns each partition from the next assignment on."""

    group: KafkaGroup
    names: Sequence[str] = ("A", "B")
    plan: dict[int, str] = field(default_factory=dict)
    operators: dict[str, RegionOperator] = field(default_factory=dict)
    downstream: Downstream = field(default_factory=Downstream)
    asked: set[str] = field(default_factory=set)
    """Operators that requested a reset."""
    number: int = 0
    parts: dict[str, OperatorPart] = field(default_factory=dict)
    snapshot: Downstream = field(default_factory=Downstream)
    start: int = 0
    """Where a partition begins that nobody has read."""
    subscribed: Collection[Partition] | None = None
    """The partitions that operators find at their subscription, if they look."""
    control: JobControl = field(init=False)

    def __post_init__(self) -> None:
        self.control = JobControl(frozenset(self.names))

    @property
    def bootstrap(self) -> str:
        """The address of the cluster."""
        return format_address(*self.group.bootstrap)

    # -- operators ------------------------------------------------------------------------------------------------

    def launch(self, name: str, polling: Polling = Polling.FULL) -> RegionOperator:
        """An operator's PE comes up."""
        operator = RegionOperator(
            name,
            self.control,
            self._make_consumer,
            lambda: self.asked.add(name),
            max_poll_records=1,
            polling=polling,
            start_of=lambda partition: self.start,
            subscribed=self.subscribed,
        )
        self.operators[name] = operator
        return operator

    def _make_consumer(self, listener: Listener) -> NetworkConsumer:
        consumer = self.group.make_consumer(listener)
        consumer.assignors["range"] = consumer.assignors["cooperative-sticky"] = self._assign
        return consumer

    def _assign(self, members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        owners = {str(consumer_of(one).client.member.id): name for name, one in self.operators.items()}
        topic = self.group.topic
        return {
            member.id: tuple((topic, one) for one, name in self.plan.items() if owners.get(member.id) == name)
            for member in members
        }

    def crash(self, name: str) -> None:
        """An operator's PE dies; its member lives on until its session is over."""
        self.control.disconnect(name)
        self.operators.pop(name).consumer.abandon()

    def close(self) -> None:
        """All operators die."""
        for name in tuple(self.operators):
            self.crash(name)

    # -- polls ----------------------------------------------------------------------------------------------------

    async def poll(self, name: str) -> None:
        """A poll of an operator."""
        operator = self.operators[name]
        operator.receive(await operator.consumer.take_records(operator.limit if operator.has_room() else 0))

    async def poll_until(self, holds: Callable[[], bool], names: Iterable[str]) -> None:
        """Poll these operators in turn until something holds. Raises AssertionError if it never does."""
        for _ in range(ROUNDS):
            if holds():
                return
            for name in names:
                await self.poll(name)
        raise AssertionError("what was polled for has not come")

    async def give(self, plan: dict[int, str], names: Iterable[str] | None = None) -> None:
        """Have the group assign by a plan; these operators, which are up, poll until they have their share."""
        self.plan.clear()
        self.plan.update(plan)
        polling = tuple(self.operators if names is None else names)
        consumer_of(self.operators[polling[0]]).enforce_rebalance()
        await self.poll_until(lambda: all(self.has_share(name) for name in polling), polling)

    def has_share(self, name: str) -> bool:
        """Whether an operator has been assigned what the plan says."""
        wanted = frozenset((self.group.topic, one) for one, owner in self.plan.items() if owner == name)
        return self.operators[name]._assigned == wanted

    async def fetch(self, name: str, count: int = 1) -> None:
        """Poll until so many messages are in the queue."""
        await self.poll_until(lambda: len(self.operators[name].queue) >= count, (name,))

    async def begin(self, plan: dict[int, str]) -> None:
        """Launch two operators, and have the group assign by a plan."""
        self.launch("A")
        self.launch("B")
        await self.give(plan)

    async def read(self, name: str) -> None:
        """Fetch a message and pass it on."""
        await self.fetch(name)
        self.pass_on(name)

    async def move_to_b(self) -> None:
        """Partition 0 goes to B in a rebalance."""
        self.plan[0] = "B"
        consumer_of(self.operators["B"]).enforce_rebalance()
        await self.poll_until(lambda: self.has_share("B"), ("A", "B"))

    async def expel_a(self) -> None:
        """Kafka ends the membership of A, which lives, on the request of B, and partition 0 goes to B."""
        self.plan[0] = "B"
        member = {"member_id": consumer_of(self.operators["A"]).client.member.id, "group_instance_id": None}
        sender = consumer_of(self.operators["B"])
        sender.send("LeaveGroup", {"group_id": self.group.group, "members": [member]}, 0, sender.coordinator)
        await self.poll_until(lambda: self.has_share("B"), ("B",))

    def pass_on(self, name: str, count: int = 1) -> None:
        """Take and submit messages."""
        for _ in range(count):
            self.operators[name].take()
            self.submit(name)

    def submit(self, name: str) -> None:
        """Submit what an operator has in hand."""
        message = self.operators[name].submit()
        if message is not None:
            self.downstream.take(message, self.control.variables[message.partition])

    # -- the region -----------------------------------------------------------------------------------------------

    async def drain(self, *names: str) -> None:
        """Drain. Raises CommitFailed."""
        for name in names:
            await self.operators[name].drain()

    async def write(self) -> bool:
        """Have all write a checkpoint; whether it is complete."""
        found = {name: await one.checkpoint() for name, one in self.operators.items()}
        parts = {name: part for name, part in found.items() if part is not None}
        if parts.keys() != set(self.names):
            return False
        self.control.retire(self.number)
        self.number, self.parts, self.snapshot = self.number + 1, parts, self.downstream.copy()
        for one in self.operators.values():
            one.resume()
        return True

    async def checkpoint(self) -> bool:
        """Drain all and have all write; whether the checkpoint is complete."""
        try:
            await self.drain(*self.operators)
        except CommitFailed:
            return False
        return await self.write()

    async def reset(self, *names: str) -> bool:
        """Reset these operators, or all, to the last checkpoint; whether the reset of each is over."""
        chosen = names or tuple(self.operators)
        if not names or not self.number:
            self.restore()
        for name in chosen:
            await self.contribute(name)
        over = [self.finish(name) for name in chosen]
        return all(over)

    def restore(self) -> None:
        """Downstream goes back to the last checkpoint."""
        self.downstream = self.snapshot.copy()
        self.asked.clear()

    async def contribute(self, name: str) -> None:
        """Begin an operator's reset."""
        if self.number:
            self.operators[name].contribute(self.number, self.parts[name])

    def finish(self, name: str) -> bool:
        """End an operator's reset, if the merge is complete."""
        merged: Offsets | None = self.control.merge_if_complete(self.number) if self.number else {}
        if merged is not None:
            self.operators[name].reset_to(merged)
        return merged is not None

    def faults(self) -> str:
        """What downstream has seen twice or not at all; empty if nothing."""
        found = self.downstream
        told = [f"{found.duplicates} came twice"] * bool(found.duplicates) + [f"{found.gaps} gap"] * bool(found.gaps)
        return ", ".join(told)


def consumer_of(operator: RegionOperator) -> NetworkConsumer:
    """The consumer of an operator."""
    assert isinstance(operator.consumer, NetworkConsumer)
    return operator.consumer


Schedule = Callable[[SteppedRegion], Coroutine[Any, Any, str]]
WAITING = "waits for ever"


async def without_owner(region: SteppedRegion) -> str:
    """H01: nobody has a partition when a checkpoint is made, and the region is reset to it."""
    await region.begin({0: "A"})
    await region.read("A")
    assert await region.checkpoint()
    region.crash("A")
    region.launch("A", Polling.OFF)
    assert await region.reset()
    assert await region.checkpoint()
    assert await region.reset()
    await region.give({0: "A"})
    await region.read("A")
    return region.faults()


async def one_part(region: SteppedRegion) -> str:
    """H02: an operator is reset to its own part alone, and gets a partition of another one."""
    await region.begin({0: "A", 1: "B"})
    for name in region.names:
        await region.read(name)
    assert await region.checkpoint()
    region.restore()
    await region.contribute("A")
    if not region.finish("A"):
        await region.contribute("B")
        region.finish("A")
    await region.contribute("B")
    assert region.finish("B")
    await region.give({0: "B", 1: "A"})
    await region.read("A")
    return region.faults()


async def in_hand(region: SteppedRegion) -> str:
    """H03: a message that was taken before a reset is submitted after it. Nothing in the operator is undone here: the
    region lets the reset come before the submission, as the page has it."""
    await region.begin({0: "A"})
    await region.fetch("A", 2)
    region.pass_on("A")
    region.operators["A"].take()
    await region.reset()
    region.submit("A")
    await region.read("A")
    return region.faults()


async def before_reset(region: SteppedRegion) -> str:
    """H04: a checkpoint is made while an operator waits for a reset and its partition is on the way to another one."""
    await region.begin({0: "A"})
    await region.read("A")
    region.plan[0] = "B"
    consumer_of(region.operators["B"]).enforce_rebalance()
    await region.poll_until(lambda: region.has_share("A"), ("A", "B"))
    if not await region.checkpoint():
        await region.reset()
    else:
        assert await region.reset()
    await region.poll_until(lambda: region.has_share("B"), ("A", "B"))
    await region.read("B")
    return region.faults()


async def expel_before_checkpoint(region: SteppedRegion) -> str:
    """H05: an operator is expelled between its commit and its checkpoint, and another one gets its partition."""
    await region.begin({0: "A"})
    await region.read("A")
    await region.drain("A")
    await region.expel_a()
    await region.read("B")
    await region.drain("B")
    if not await region.write():
        await region.reset()
    return region.faults()


async def first_sight(region: SteppedRegion) -> str:
    """H08: the start position is the end of the log, which grows between the assignments of two operators."""
    region.launch("A")
    region.launch("B")
    region.start = 1
    await region.give({0: "A"})
    region.start = 3
    await region.give({0: "B"})
    await region.read("B")
    return region.faults()


async def checkpoint_two(region: SteppedRegion) -> None:
    """Launch two operators, give each a partition, and write a checkpoint of both."""
    await region.begin({0: "A", 1: "B"})
    assert await region.checkpoint()


async def same_again(region: SteppedRegion) -> str:
    """H06: an operator that was relaunched is reset to a checkpoint whose merge was complete before."""
    await checkpoint_two(region)
    assert await region.reset()
    region.crash("A")
    region.launch("A", Polling.OFF)
    return "" if await region.reset() else WAITING


async def late_submission(region: SteppedRegion) -> str:
    """H10: a message is submitted after its partition was given to another operator, which reads it too."""
    await region.begin({0: "A"})
    await region.fetch("A")
    region.operators["A"].take()
    await region.move_to_b()
    region.submit("A")
    await region.read("B")
    return region.faults()


async def lost_merge(region: SteppedRegion) -> str:
    """H11: the control plane restarts between two contributions."""
    await checkpoint_two(region)
    region.restore()
    await region.contribute("A")
    await region.control.restart()
    await region.contribute("B")
    return "" if region.finish("A") and region.finish("B") else WAITING


async def old_map(region: SteppedRegion) -> str:
    """H13: an operator that has fetched nothing since a reset gets a partition that others have read further."""
    await region.begin({0: "A"})
    assert await region.checkpoint()
    assert await region.reset()
    await region.read("A")
    assert await region.checkpoint()
    await region.expel_a()
    if region.operators["B"].state is OperatorState.RESET_PENDING:
        await region.reset()
    await region.read("B")
    return region.faults()


async def new_partitions_alone(region: SteppedRegion) -> str:
    """H09: an operator that has fetched gets a partition more, and later another one gets its first."""
    await region.begin({0: "A"})
    await region.read("A")
    added = (region.group.topic, 1)
    region.plan[1] = "A"
    consumer_of(region.operators["A"]).enforce_rebalance()
    await region.poll_until(lambda: added in (region.operators["A"]._assigned or ()), ("A", "B"))
    await region.checkpoint()
    assert await region.reset()
    await region.move_to_b()
    await region.read("B")
    return region.faults()


async def born_with_records(region: SteppedRegion) -> str:
    """H14: a partition has records before an operator sees it, and the start position is the end."""
    topic = region.group.topic
    region.subscribed = frozenset({(topic, 0), (topic, 1)})
    region.launch("A")
    await asyncio.to_thread(add_partition, region.bootstrap, topic, 3, 3)
    region.start = 3
    await region.give({2: "A"})
    begun = region.control.variables[topic, 2]
    return f"{begun} never read" if begun else ""


async def deleted_records(region: SteppedRegion) -> str:
    """H15: the log no longer has the offset of a checkpoint when an operator is relaunched."""
    await region.begin({0: "A"})
    await region.read("A")
    assert await region.checkpoint()
    region.crash("A")
    await asyncio.to_thread(delete_records, region.bootstrap, region.group.topic, 0, 3)
    region.launch("A", Polling.OFF)
    assert await region.reset()
    try:
        await region.poll_until(lambda: bool(region.operators["A"].queue), ("A", "B"))
    except PositionLost:
        return ""
    region.pass_on("A")
    return region.faults()


async def slow_relaunch(region: SteppedRegion) -> str:
    """H16: the relaunch of an operator takes longer than another one waits, and not as long as a reset may."""
    await checkpoint_two(region)
    region.crash("B")
    region.restore()
    waiting = asyncio.create_task(region.operators["A"].reset(region.number, region.parts["A"]))
    await asyncio.sleep(RELAUNCH_S)
    await region.launch("B", Polling.OFF).reset(region.number, region.parts["B"])
    try:
        await waiting
    except TimeoutError:
        return "a reset fails"
    return ""


async def alike_groups(region: SteppedRegion) -> str:
    """H17: two groups of one job have ids with the same hash."""
    plane, topic = ControlPlane(), region.group.topic
    region.group = replace(region.group, group=f"AaAa-{topic}")
    region.control = plane.bean(region.group.group, frozenset(region.names))
    plane.bean(f"BBBB-{topic}", frozenset({"C", "D"}))
    return await reset_of_two(region)


async def reset_of_two(region: SteppedRegion) -> str:
    """A checkpoint of both operators, and a reset to it."""
    await checkpoint_two(region)
    return "" if await region.reset() else WAITING


async def narrower_job(region: SteppedRegion) -> str:
    """H17: a job is submitted again with one operator less than wrote the checkpoint."""
    region.names = ("A", "B", "C")
    region.control = JobControl(frozenset(region.names))
    region.launch("C")
    assert await reset_of_two(region) == ""
    for name in region.names:
        region.crash(name)
    region.names = ("A", "B")
    region.control = JobControl(frozenset(region.names))
    for name in region.names:
        region.launch(name, Polling.OFF)
    return "" if await region.reset() else WAITING


SCHEDULES: Mapping[str, tuple[Schedule, str]] = {
    "leave_out_seek_map": (without_owner, "1 came twice"),
    "merge_first_part": (one_part, "1 came twice"),
    "write_while_pending": (before_reset, "1 came twice"),
    "trust_membership": (expel_before_checkpoint, "1 came twice"),
    "notify_once": (same_again, WAITING),
    "ignore_variables": (first_sight, "1 gap"),
    "submit_late": (late_submission, "1 came twice"),
    "contribute_once": (lost_merge, WAITING),
    "trust_old_map": (old_map, "1 came twice"),
    "assign_cooperatively": (new_partitions_alone, "1 came twice"),
    "begin_at_end": (born_with_records, "3 never read"),
    "skip_lost_records": (deleted_records, "1 gap"),
    "wait_briefly": (slow_relaunch, "a reset fails"),
    "name_by_hash": (alike_groups, WAITING),
    "wait_for_absent": (narrower_job, WAITING),
}
"""By the fault of `faulty_regions` that undoes the repair: the schedule, and what the model predicts for it."""
IN_HAND = (in_hand, "1 came twice, 1 gap")
"""H03, which needs no fault: record 0 is missing when 1 comes, and behind it then."""


async def play_schedule(bootstrap: str, schedule: Schedule, session_ms: int = 1_500) -> str:
    """Play a schedule with a topic of its own; what went wrong, empty if nothing."""
    host, _, port = bootstrap.rpartition(":")
    topic = f"region-{uuid.uuid4().hex[:8]}"
    fill_topic(bootstrap, topic, Load(RECORDS, partitions=2))
    region = SteppedRegion(KafkaGroup((host, int(port)), topic, topic, session_ms, heartbeat_interval=50))
    try:
        return await schedule(region)
    finally:
        region.close()
