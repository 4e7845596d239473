"""A second member of the client's group, driven by a script; its requests are recorded, and not judged."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.model.assignors.consumer_protocol import encode_assignment, encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body
from fencepost.traces.events import Kind

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 5, 3, 3, 3


class ScriptedMember:
    """A member with a label, which offers the protocols of these names.

    `owned` are the partitions that its next JoinGroup declares.
    """

    def __init__(
        self, cluster: ScriptedCluster, label: str, group: str, topics: Sequence[str], protocols: Sequence[str]
    ) -> None:
        self.label = label
        self.id = ""
        self.generation = -1
        self.leads = False
        self.members: tuple[str, ...] = ()
        self.owned: tuple[TopicPartition, ...] = ()
        self._cluster = cluster
        self._group = group
        self._topics = tuple(topics)
        self._protocols = tuple(protocols)

    async def join(self, session_ms: int = 30_000, rebalance_ms: int = 30_000) -> Body:
        """Join until the response is no request to use another id; the last response."""
        while True:
            subscription = encode_subscription(Subscription(self._topics, owned=self.owned), 1)
            body = {
                "group_id": self._group,
                "session_timeout_ms": session_ms,
                "rebalance_timeout_ms": rebalance_ms,
                "member_id": self.id,
                "group_instance_id": None,
                "protocol_type": "consumer",
                "protocols": [{"name": name, "metadata": subscription} for name in self._protocols],
            }
            response = await self._ask("JoinGroup", JOIN_VERSION, body)
            self.id = response["member_id"] or self.id
            if response["error_code"] != Error.MEMBER_ID_REQUIRED:
                break
        self.generation = response["generation_id"]
        self.leads = bool(self.id) and response["leader"] == self.id
        self.members = tuple(row["member_id"] for row in response["members"])
        return response

    async def sync(self, plan: Mapping[str, Sequence[TopicPartition]] | None = None) -> Body:
        """SyncGroup, with a plan if it leads."""
        assignments = [
            {"member_id": member, "assignment": encode_assignment(partitions)}
            for member, partitions in (plan or {}).items()
        ]
        body = {**self._identity(), "assignments": assignments}
        return await self._ask("SyncGroup", SYNC_VERSION, body)

    async def heartbeat(self) -> Error:
        """Heartbeat, and the error of its response."""
        return Error((await self._ask("Heartbeat", HEARTBEAT_VERSION, self._identity()))["error_code"])

    async def leave(self) -> None:
        """Leave the group."""
        row = {"member_id": self.id, "group_instance_id": None}
        await self._ask("LeaveGroup", LEAVE_VERSION, {"group_id": self._group, "members": [row]})

    async def take_part(self) -> None:
        """Join, sync and heartbeat until it is cancelled; it joins again whenever it is asked to, and never plans."""
        while True:
            await self.join()
            if (await self.sync())["error_code"] == Error.NONE:
                while await self.heartbeat() == Error.NONE:
                    await asyncio.sleep(0.2)

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self._group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": None,
        }

    async def _ask(self, api: str, version: int, body: Body) -> Body:
        """Have the cluster handle a request, and record it."""
        trace = self._cluster.trace
        request = trace.record_event(Kind.REQUEST, api, version, body, 0, self.label)
        response = await self._cluster.brokers.ask(api, version, body)
        trace.record_event(Kind.RESPONSE, api, version, response, 0, self.label, request.sequence)
        return response
