"""The topic of a swarm: it is made, written to, and removed with the group, over connections of its own."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fencepost.adapters.address import TargetError
from fencepost.adapters.classic.client.links import Link, Network
from fencepost.model.errors import Error, error_name
from fencepost.model.wire.codec import Body, decode_response, encode_request
from fencepost.model.wire.records import Record, encode_batch, make_batch

VERSIONS: Mapping[str, int] = MappingProxyType(
    {"CreateTopics": 4, "Metadata": 9, "Produce": 7, "DeleteTopics": 4, "DeleteGroups": 1, "FindCoordinator": 3}
)
TIMEOUT_S = 30.0
WAITS = 100
"""How often the kit looks whether a new topic has leaders."""
ANY_NODE = 0
CLIENT_ID = "fencepost"


@dataclass(slots=True)
class SwarmAdmin:
    """The kit's own requests on behalf of a swarm."""

    network: Network
    topic: str
    group: str
    leaders: dict[int, int] = field(default_factory=dict)
    _links: dict[int, Link] = field(default_factory=dict)
    _count: int = 0

    async def ask(self, api: str, body: Body, node: int = ANY_NODE) -> Body:
        """Send a request to a node, and return its response. Raises `TargetError`."""
        link = self._links.get(node)
        if link is None or link.is_over:
            link = self._links[node] = self.network.connect(node)
        self._count += 1
        link.send(encode_request(api, VERSIONS[api], self._count, CLIENT_ID, body))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                frame = await link.receive()
        except (ConnectionError, TimeoutError) as error:
            raise TargetError(f"no response to {api}: {error or 'it takes too long'}; is the broker running?") from None
        return decode_response(api, VERSIONS[api], frame).body

    async def create_topic(self, partitions: int) -> None:
        """Create the topic, and wait until each partition has a leader. Raises `TargetError`."""
        row = {"name": self.topic, "num_partitions": partitions, "replication_factor": -1}
        body = await self.ask("CreateTopics", {"topics": [row], "timeout_ms": 10_000})
        for result in body["topics"]:
            if result["error_code"]:
                raise TargetError(f"cannot create topic {self.topic!r}: {error_name(result['error_code'])}")
        for _ in range(WAITS):
            await self.learn_leaders()
            if len(self.leaders) == partitions:
                return
            await asyncio.sleep(0.1)
        raise TargetError(f"topic {self.topic!r} has {len(self.leaders)} of {partitions} leaders; is the broker well?")

    async def learn_leaders(self) -> None:
        """Ask who leads each partition."""
        body = await self.ask("Metadata", {"topics": [{"name": self.topic}], "allow_auto_topic_creation": False})
        for broker in body["brokers"]:
            self.network.learn(broker["node_id"], broker["host"], broker["port"])
        rows = [row for topic in body["topics"] for row in topic["partitions"] if row["leader_id"] >= 0]
        self.leaders = {row["partition_index"]: row["leader_id"] for row in rows if not row["error_code"]}

    async def produce(self, count: int) -> None:
        """Write so many records to each partition. Raises `TargetError`."""
        now = int(time.time() * 1000)  # brokers delete records that are old by their timestamps
        data = encode_batch(make_batch([Record(b"%d" % number, None, now) for number in range(count)]))
        for node in sorted(set(self.leaders.values())):
            rows = [{"index": index, "records": data} for index, leader in self.leaders.items() if leader == node]
            topic = {"name": self.topic, "partition_data": rows}
            body = await self.ask("Produce", {"acks": -1, "timeout_ms": 10_000, "topic_data": [topic]}, node)
            for response in body["responses"]:
                for row in response["partition_responses"]:
                    if row["error_code"]:
                        raise TargetError(f"cannot write to {self.topic!r}: {error_name(row['error_code'])}")

    async def clean_up(self) -> list[str]:
        """Remove the topic and the group; what could not be removed."""
        stays = []
        try:
            deleted = await self.ask("DeleteTopics", {"topic_names": [self.topic], "timeout_ms": 10_000})
            stays += [f"topic {self.topic}" for row in deleted["responses"] if row["error_code"]]
            found = await self.ask("FindCoordinator", {"key": self.group, "key_type": 0})
            groups = await self.ask("DeleteGroups", {"groups_names": [self.group]}, found["node_id"])
            forgotten = (Error.NONE, Error.GROUP_ID_NOT_FOUND)
            stays += [f"group {self.group}" for row in groups["results"] if row["error_code"] not in forgotten]
        except TargetError as error:
            stays.append(f"topic {self.topic} and group {self.group}: {error}")
        for link in self._links.values():
            link.hang_up()
        return stays
