"""A push coordinator that is reached over the network."""

import asyncio
from collections.abc import Mapping

from fencepost.adapters.address import Address, format_address
from fencepost.adapters.push.channel import PushChannel, Streams
from fencepost.adapters.push.probe import UnusableTarget, probe_topic
from fencepost.adapters.remote_base import RemoteTargetBase
from fencepost.adapters.target import Description, TargetError, TraceBuilder
from fencepost.model.settings import Settings
from fencepost.traces.events import Order

VERSIONS = {"ClusterMetadata": (0, 0), "RegisterConsumer": (0, 0)}
CONNECT_TIMEOUT_S = 5.0


async def connect(address: Address) -> Streams:
    """Open a TCP connection. Raises `OSError`."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await asyncio.open_connection(*address)
    except TimeoutError:
        raise OSError(f"{format_address(*address)}: no connection within {CONNECT_TIMEOUT_S:g} s") from None


class PushTarget(RemoteTargetBase):
    """Brokers at some addresses. `limits` are what a profile says; `topic` is an existing topic."""

    def __init__(self, addresses: tuple[Address, ...], topic: str, limits: Mapping[str, int]) -> None:
        self.addresses = addresses
        self.name = f"push://{','.join(format_address(*each) for each in addresses)}"
        self.topic = topic
        self.limits = dict(limits)
        self.known: dict[str, list[str]] = {}
        """The partitions of the topic, once it is open."""

    async def open(self) -> Description:
        """Reach a broker, and see that a consumer of the topic gets partitions. Raises `TargetError`."""
        recorder = TraceBuilder(lambda: 0)
        channel = PushChannel(recorder, connect, self.addresses)
        try:
            self.known[self.topic] = await probe_topic(channel, self.topic, self.limits)
        except UnusableTarget as error:
            raise TargetError(f"{self.name}: {error}") from None
        finally:
            await channel.close()
        if not self.known[self.topic]:
            raise TargetError(f"{self.name}: topic {self.topic!r} has no partitions; name another in [target] topic")
        return Description(
            self.name, Order.INTERVALS, "wall", VERSIONS, Settings(), self.topic, protocol="push", limits=self.limits
        )

    def channel(self, recorder: TraceBuilder) -> PushChannel:
        """A channel to the brokers."""
        return PushChannel(recorder, connect, self.addresses, known=self.known)

    async def is_alive(self) -> bool:
        """Whether a broker accepts a connection."""
        for address in self.addresses:
            try:
                _, writer = await connect(address)
            except OSError:
                continue
            writer.close()
            return True
        return False
