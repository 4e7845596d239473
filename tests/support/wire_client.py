"""The reference client with a fault: `Tamper` replaces what it sends, `Tell` what its driver says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.assignor import AssignorError
from fencepost.adapters.classic.client.driver import ReferenceDriver
from fencepost.adapters.classic.client.links import AwaitedResponse
from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ClientPlace
from fencepost.model.assignors.consumer_protocol import decode_subscription, encode_assignment
from fencepost.model.assignors.group import ClusterTopics, GroupMember
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import ClientInput, ClientStep, ResponseArrived
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body

Tamper = Callable[["WireClient", str, dict[str, Any]], "dict[str, Any] | None"]
"""Returns the request that is sent in the place of one, None to send none."""


Tell = Callable[["WireClient", dict[str, Any]], list[dict[str, Any]]]
"""Returns the messages that a driver writes in the place of one."""


def tell_as_it_is(client: "WireClient", message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message, unchanged."""
    return [message]


def send_as_it_is(client: "WireClient", api: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request, unchanged."""
    return body


class WireClient(ReferenceDriver):
    """The reference client, tampered with."""

    def __init__(self, cluster: ScriptedCluster, settings: ClientSettings, tamper: Tamper, tell: Tell | None) -> None:
        super().__init__(cluster, settings, tell is not None)
        self.cluster = cluster
        self.tamper = tamper
        self.tell = tell
        self.topic = ""
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.late: list[Any] = []
        self.is_silent = self.is_held = self.is_told = False
        self.joined_at = self.rebalances = 0
        self.last_numbers: list[int] = []
        self.buffered_ends: dict[Partition, int] = {}
        """The offsets behind what was fetched."""
        self.leading: Sequence[Body] = ()
        """The members that the last response to JoinGroup told of."""

    def run(self, topic: str) -> None:
        self.topic = topic
        super().run(topic)

    def take_step(self, given: ClientInput) -> ClientStep:
        try:
            return super().take_step(given)
        except AssignorError:  # the application is told, and polls again
            body = next(body for api, body in reversed(self.sent) if api == "JoinGroup")
            assert isinstance(given, ResponseArrived)
            self.transmit("JoinGroup", body, given.handle, self.coordinator)
            return ClientStep(self.client)

    def take_response(self, sent: AwaitedResponse, body: Body) -> None:
        if sent.api == "JoinGroup":
            self.leading = body["members"]
        self.rebalances += sent.api == "Heartbeat" and body["error_code"] == Error.REBALANCE_IN_PROGRESS
        super().take_response(sent, body)
        self.buffered_ends |= {each.partition: each.following for each in self.fetcher.queue}

    def send(self, api: str, body: Body, handle: int, node: int) -> None:
        if api == "SyncGroup" and self.group_topics - self.topics and body["assignments"]:
            body = self.plan_alone(body)
        changed = self.tamper(self, api, dict(body))
        if changed is not None and api == "JoinGroup" and self.tamper is send_as_it_is:
            self.leave_silent_coordinator()
        if changed is not None:
            self.transmit(api, changed, handle, node)

    def plan_alone(self, body: Body) -> Body:
        """SyncGroup of an invented group: what the assignor says, of which the model holds more back."""
        members = [
            GroupMember(row["member_id"], decode_subscription(row["metadata"]), row.get("group_instance_id"))
            for row in self.leading
        ]
        plan = self.assignors[body["protocol_name"]](members, ClusterTopics(self.known))
        rows = [{"member_id": id, "assignment": encode_assignment(own)} for id, own in plan.items()]
        return {**body, "assignments": rows}

    def transmit(self, api: str, body: Body, handle: int, node: int) -> None:
        self.sent.append((api, dict(body)))
        self.joined_at = self.cluster.now() if api == "JoinGroup" else self.joined_at
        super().transmit(api, body, handle, node)

    def say(self, message: dict[str, Any]) -> None:
        if self.tell is not None:
            for each in self.tell(self, message):
                super().say(each)

    def count(self, api: str) -> int:
        """How many requests to an API were sent."""
        return sum(each == api for each, _ in self.sent)


@dataclass(frozen=True)
class WireSubject:
    """Starts a client in this process, with a fault."""

    settings: ClientSettings
    tamper: Tamper = send_as_it_is
    tell: Tell | None = None

    async def start_cluster(self, settings: Settings) -> ScriptedCluster:
        return ScriptedCluster(settings)

    async def start(self, place: ClientPlace, cluster: ScriptedCluster) -> WireClient:
        client = WireClient(cluster, evolve(self.settings, group=place.group), self.tamper, self.tell)
        client.run(place.topic)
        return client
