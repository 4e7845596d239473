"""Scripted members that take part in the group of a client: they join, plan if they lead, leave, and fall silent."""

import asyncio
from typing import Any

from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ScriptedMember
from fencepost.conformance.clients.stage import ClientStage
from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment, decode_subscription
from fencepost.model.assignors.group import ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body
from fencepost.traces.events import Kind

HEARTBEAT_S = 0.3
SESSION_MS = 3_000
"""That of scripted members: a silent one is gone soon."""
REBALANCE_MS = 6_000


def partition_counts(cluster: ScriptedCluster) -> dict[str, int]:
    """The topics of the cluster with their numbers of partitions."""
    counts: dict[str, int] = {}
    for event in cluster.events:
        if event.kind is Kind.INTERNAL and event.api == "topics":
            counts |= event.body["topics"]
    return counts


class GroupParticipant:
    """A scripted member with a life of its own. `stalls` has it join the next time and never sync."""

    def __init__(self, stage: ClientStage, label: str) -> None:
        self.stage = stage
        self.member = ScriptedMember(stage.cluster, label, stage.place.group, [stage.place.topic], offered(stage))
        self.stalls = False
        self.life: asyncio.Task[Any] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it takes part, or waits for something."""
        return self.life is not None and not self.life.done()

    def start(self, *, stalls: bool = False) -> None:
        """Take part from now on, or join and fall silent before SyncGroup."""
        self.stalls = stalls
        if not self.is_alive:
            self.life = self.stage.start_task(self._live())

    def vanish(self) -> None:
        """Fall silent."""
        if self.life is not None:
            self.life.cancel()

    async def leave(self) -> None:
        """Leave the group."""
        self.vanish()
        if self.member.id:
            await self.member.leave()
        self._forget()

    def _forget(self) -> None:
        self.member.id, self.member.generation, self.member.owned = "", -1, ()

    async def _live(self) -> None:
        while True:
            response = await self.member.join(SESSION_MS, REBALANCE_MS)
            if response["error_code"] == Error.UNKNOWN_MEMBER_ID:
                self._forget()
            if response["error_code"] == Error.NONE and self.stalls:
                return
            if response["error_code"] == Error.NONE and await self._sync(response):
                await self._heartbeat()
            await asyncio.sleep(HEARTBEAT_S)

    async def _sync(self, response: Body) -> bool:
        """SyncGroup; whether it brought an assignment."""
        plan = plan_for(response, partition_counts(self.stage.cluster)) if self.member.leads else None
        synced = await self.member.sync(plan)
        if synced["error_code"]:
            if synced["error_code"] != Error.REBALANCE_IN_PROGRESS:
                self._forget()
            return False
        before = self.member.owned
        assigned = decode_assignment(synced["assignment"])
        is_cooperative = ASSIGNORS[str(response["protocol_name"])].is_cooperative
        self.member.owned = assigned if is_cooperative else ()
        return not is_cooperative or set(before) <= set(assigned)  # who gives something up joins again

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            error = await self.member.heartbeat()
            if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                self._forget()
            if error != Error.NONE:
                return


def offered(stage: ClientStage) -> tuple[str, ...]:
    """The protocols of the client that a scripted member can plan for; all of them if there is none."""
    known = tuple(name for name in stage.facts.protocols if name in ASSIGNORS)
    return known or stage.facts.protocols


def plan_for(response: Body, partitions: dict[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """The plan of a leader, by the assignor that its JoinGroup response names; of members that nobody understands, none
    gets anything."""
    members = []
    for row in response["members"]:
        try:
            subscription = decode_subscription(row["metadata"])
        except ConsumerProtocolError:
            continue
        members.append(GroupMember(row["member_id"], subscription, row.get("group_instance_id")))
    assignor = ASSIGNORS.get(str(response["protocol_name"]))
    return {} if assignor is None else dict(assignor.assign(members, ClusterTopics(partitions)))
