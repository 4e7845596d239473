"""The rebalances of one group: all stop, then all start, then the owners are recorded (draft, 7)."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.adapters.bundled.push.channel import ConsumerChannel
from fencepost.adapters.bundled.push.zookeeper import MemoryZookeeper, Partition
from fencepost.model.push.wire import Body

Shares = dict[str, tuple[Partition, ...]]
"""The partitions of each consumer."""


@dataclass(eq=False, slots=True)
class GroupRebalancer:
    """A group at its coordinator. Times are seconds of the event loop."""

    name: str
    zookeeper: MemoryZookeeper
    queue: asyncio.Lock
    election: int
    retries: int = 0
    backoff: float = 0.0
    wait: float = 1.0
    quiet_until: float = 0.0
    members: dict[str, ConsumerChannel] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    """What each member was told to fetch last."""
    attempts: int = 0
    rebalances: int = 0
    """How many were completed."""
    task: "asyncio.Task[None] | None" = None
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _completed: dict[str, ConsumerChannel] | None = None
    """The channels that started what `shares` says, until the next Stop."""

    def wants(self, topic: str) -> bool:
        """Whether a member is interested in the topic."""
        return any(channel.interest.matches(topic) for channel in self.members.values())

    def add(self, channel: ConsumerChannel) -> None:
        """Take a consumer in."""
        self.members[channel.consumer] = channel
        channel.on_offsets = lambda body: self._record_offsets({channel.consumer: body})
        self.request()

    def remove(self, channel: ConsumerChannel) -> None:
        """Take a consumer out; nothing is rebalanced for nobody (PUSH-33)."""
        if self.members.get(channel.consumer) is channel:
            del self.members[channel.consumer]
            if self.members:
                self.request()

    def request(self) -> None:
        """Ask for a rebalance: while one is under way, the next one follows it (PUSH-15)."""
        self._requested.set()

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
            await self._requested.wait()
            await asyncio.sleep(max(0.0, self.quiet_until - loop.time()))
            async with self.queue:
                done = await self._rebalance_with_retries()
            if not done:
                await asyncio.sleep(self.backoff)
                if self.members:
                    self.request()

    async def _rebalance_with_retries(self) -> bool:
        """Whether one of the attempts succeeded (PUSH-20, PUSH-21)."""
        for retry in range(self.retries + 1):
            if retry:
                await asyncio.sleep(self.backoff)
            # Whatever changes from here on is not in the snapshot, and asks again.
            self._requested.clear()
            if await self._attempt():
                return True
        return False

    async def _attempt(self) -> bool:
        """One attempt, on a snapshot of members and partitions."""
        channels = dict(sorted(self.members.items()))
        shares = assign(channels, self.zookeeper.topics)
        if self._completed == channels and self.shares == shares:
            return True
        self.attempts += 1
        self._completed = None
        for channel in channels.values():
            channel.is_held = True
        try:
            stopped = await self._ask(channels, "Stop", {name: {} for name in channels})
            if stopped is None:
                return False
            self._record_offsets(stopped)
            self.shares = shares
            started = await self._ask(channels, "Start", {name: self._start(shares[name]) for name in channels})
        finally:
            for channel in channels.values():
                channel.is_held = False
        if started is None or any(body["error_code"] for body in started.values()):
            return False
        if any(self.members.get(name) is not channel for name, channel in channels.items()):
            return False
        owners = {partition: name for name, share in shares.items() for partition in share}
        if not self.zookeeper.write_owners(self.name, self.election, owners):
            return False
        self._completed = channels
        self.rebalances += 1
        return True

    async def _ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        """The responses of all members to a request; None if one does not come or is of another attempt."""
        futures = {
            who: channel.send(name, {"attempt": self.attempts, **bodies[who]}) for who, channel in channels.items()
        }
        if futures:
            await asyncio.wait(futures.values(), timeout=self.wait)
        if not all(future.done() and not future.cancelled() for future in futures.values()):
            return None
        responses = {who: future.result() for who, future in futures.items()}
        return responses if all(one["attempt"] == self.attempts for one in responses.values()) else None

    def _record_offsets(self, stopped: dict[str, Body]) -> None:
        """Record the last offsets, each from the consumer that owned the partition (PUSH-46)."""
        known = self.zookeeper.offsets.setdefault(self.name, {})
        for consumer, body in stopped.items():
            for entry in body["partitions"]:
                partition = (entry["topic"], entry["partition"])
                if partition in self.shares.get(consumer, ()):
                    known[partition] = max(known.get(partition, 0), entry["offset"])

    def _start(self, share: Iterable[Partition]) -> Body:
        """The partitions of a Start, with the offsets that are recorded."""
        known = self.zookeeper.offsets.get(self.name, {})
        entries = [{"topic": topic, "partition": name, "offset": known.get((topic, name), 0)} for topic, name in share]
        return {"partitions": entries}


def assign(channels: dict[str, ConsumerChannel], topics: dict[str, list[str]]) -> Shares:
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
