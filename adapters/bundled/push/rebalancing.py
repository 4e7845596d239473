"""The rebalances of one group: all stop, then all start, then the owners are recorded (draft, 7)."""

import asyncio
import logging
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from fencepost.adapters.bundled.push.channel import ConsumerChannel
from fencepost.adapters.bundled.push.zookeeper import Partition, Zookeeper
from fencepost.model.push.wire import Body, MalformedFrame

Shares = dict[str, tuple[Partition, ...]]
"""The partitions of each consumer."""
_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class GroupRebalancer:
    """A group at its coordinator. Times are seconds of the event loop."""

    name: str
    zookeeper: Zookeeper
    queue: asyncio.Lock
    election: int
    retries: int = 0
    backoff: float = 0.0
    wait: float = 1.0
    quiet_until: float = 0.0
    offset_interval: float = 0.0
    """How long offsets may be in memory alone."""
    offsets: dict[Partition, int] = field(default_factory=dict)
    """Those that are not written yet."""
    offsets_written_at: float = 0.0
    members: dict[str, ConsumerChannel] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    """What each member was told to fetch last."""
    attempts: int = 0
    rebalances: int = 0
    """How many were completed."""
    task: "asyncio.Task[None] | None" = None
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    completed: dict[str, ConsumerChannel] | None = None
    """The channels that started what `shares` says, until the next Stop."""

    def wants(self, topic: str) -> bool:
        """Whether a member is interested in the topic."""
        return any(channel.interest.matches(topic) for channel in self.members.values())

    def add(self, channel: ConsumerChannel) -> None:
        """Take a consumer in."""
        self.members[channel.consumer] = channel
        channel.on_offsets = lambda body: self.record_offsets({channel.consumer: body})
        self.request()

    def remove(self, channel: ConsumerChannel) -> None:
        """Take a consumer out; nothing is rebalanced for nobody (PUSH-33)."""
        if self.members.get(channel.consumer) is channel:
            del self.members[channel.consumer]
            if self.members:
                self.request()

    def request(self) -> None:
        """Ask for a rebalance: while one is under way, the next one follows it (PUSH-15)."""
        self.requested.set()

    def close(self) -> None:
        """Stop acting, and close the channels."""
        for channel in self.members.values():
            channel.close()
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Rebalance as often as it is asked for."""
        loop = asyncio.get_running_loop()
        while True:
            await self.requested.wait()
            await asyncio.sleep(max(0.0, self.quiet_until - loop.time()))
            async with self.queue:
                done = await self.rebalance_with_retries()
            if not done:
                await asyncio.sleep(self.backoff)
                if self.members:
                    self.request()

    async def rebalance_with_retries(self) -> bool:
        """Whether one of the attempts succeeded (PUSH-20, PUSH-21)."""
        for retry in range(self.retries + 1):
            if retry:
                await asyncio.sleep(self.backoff)
            # Whatever changes from here on is not in the snapshot, and asks again.
            self.requested.clear()
            if await self.attempt():
                return True
        return False

    async def attempt(self) -> bool:
        """One attempt, on a snapshot of members and partitions."""
        channels = dict(sorted(self.members.items()))
        shares = self.assign(channels)
        if self.completed == channels and self.shares == shares:
            return True
        self.attempts += 1
        self.completed = None
        for channel in channels.values():
            channel.is_held = True
        try:
            stopped = await self.ask(channels, "Stop", {name: {} for name in channels})
            if stopped is None:
                return False
            self.shares = shares
            started = await self.ask(channels, "Start", {name: self.start_body(shares[name]) for name in channels})
        except MalformedFrame as error:
            # A share that no message can carry: the group stays stopped until it is smaller.
            _log.error("group %s cannot be started: %s", self.name, textwrap.shorten(str(error), 200))
            return False
        finally:
            for channel in channels.values():
                channel.is_held = False
        if started is None or any(body["error_code"] for body in started.values()):
            return False
        if any(self.members.get(name) is not channel for name, channel in channels.items()):
            return False
        owners = {partition: name for name, share in shares.items() for partition in share}
        if not await self.zookeeper.write_owners(self.name, self.election, owners):
            return False
        self.completed = channels
        self.rebalances += 1
        return True

    def assign(self, channels: dict[str, ConsumerChannel]) -> Shares:
        """The shares of these members."""
        return assign(channels, self.zookeeper.topics)

    async def ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        """The responses of all members to a request; None if one does not come or is of another attempt."""
        futures = {
            who: channel.send(name, {"attempt": self.attempts, **bodies[who]}) for who, channel in channels.items()
        }
        if name == "Stop":
            for who, future in futures.items():
                future.add_done_callback(partial(self.on_stopped, who))
        if futures:
            await asyncio.wait(futures.values(), timeout=self.wait)
        if not all(future.done() and not future.cancelled() for future in futures.values()):
            return None
        responses = {who: future.result() for who, future in futures.items()}
        return responses if all(one["attempt"] == self.attempts for one in responses.values()) else None

    def on_stopped(self, consumer: str, response: "asyncio.Future[Body]") -> None:
        """Record the last offsets of a consumer, whatever becomes of the attempt: it will not tell them again."""
        if not response.cancelled():
            self.record_offsets({consumer: response.result()})

    def record_offsets(self, stopped: dict[str, Body]) -> None:
        """Record offsets, each from the consumer that owns the partition (PUSH-46); batched, they are written later."""
        known = self.newest_offsets()
        for consumer, body in stopped.items():
            for entry in body["partitions"]:
                partition = (entry["topic"], entry["partition"])
                if partition in self.shares.get(consumer, ()):
                    self.offsets[partition] = known[partition] = max(known.get(partition, 0), entry["offset"])
        if not self.offset_interval:
            self.write_offsets()

    def newest_offsets(self) -> dict[Partition, int]:
        """The offsets that are recorded, and those in memory."""
        return {**self.zookeeper.offsets.get(self.name, {}), **self.offsets}

    def write_due_offsets(self, now: float) -> None:
        """Write the offsets in memory if it is time."""
        if self.offsets and now >= self.offsets_written_at + self.offset_interval:
            self.offsets_written_at = now
            self.write_offsets()

    def write_offsets(self) -> None:
        """Write the offsets in memory to ZooKeeper, unless another broker was elected since."""
        if self.zookeeper.write_offsets(self.name, self.election, self.offsets):
            self.offsets = {}

    def start_body(self, share: Iterable[Partition]) -> Body:
        """The partitions of a Start, with the newest offsets."""
        known = self.newest_offsets()
        entries = [{"topic": topic, "partition": name, "offset": known.get((topic, name), 0)} for topic, name in share]
        return {"partitions": entries}


def assign(channels: dict[str, ConsumerChannel], topics: Mapping[str, list[str]]) -> Shares:
    """Deal the partitions of each topic in ranges over the streams of those that want it."""
    dealt: dict[str, list[Partition]] = {name: [] for name in channels}
    for topic in sorted(topics):
        streams = [name for name, one in channels.items() for _ in range(one.interest.threads_for(topic))]
        partitions, count = topics[topic], len(streams)
        for place, partition in enumerate(partitions):
            if count:
                # The first rest streams have one partition more.
                size, rest = divmod(len(partitions), count)
                large = rest * (size + 1)
                stream = place // (size + 1) if place < large else rest + (place - large) // size
                dealt[streams[stream]].append((topic, partition))
    return {name: tuple(share) for name, share in dealt.items()}
