"""The brokers and coordinators of a cluster, and the routing of requests to them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.adapters.address import Address
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, LossCause
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Body

GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator."""

CoordinatorKey = tuple[int, str]

RETRY_DELAY_S = 0.05
"""Seconds between two attempts."""


def _group_id(body: Body) -> Any:
    return body.get("group_id")


def _fetched_group_id(body: Body) -> Any:
    groups = body.get("groups")
    return groups[0].get("group_id") if groups else body.get("group_id")


def _first_of(field: str) -> Callable[[Body], Any]:
    return lambda body: next(iter(body.get(field) or ()), None)


_GROUP_OF: Mapping[str, Callable[[Body], Any]] = {
    "JoinGroup": _group_id,
    "SyncGroup": _group_id,
    "Heartbeat": _group_id,
    "LeaveGroup": _group_id,
    "OffsetCommit": _group_id,
    "OffsetFetch": _fetched_group_id,
    "OffsetDelete": _group_id,
    "TxnOffsetCommit": _group_id,
    "DescribeGroups": _first_of("groups"),
    "DeleteGroups": _first_of("groups_names"),
}
_TRANSACTIONAL = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"})


def coordinator_key_of(api: str, body: Body) -> CoordinatorKey | None:
    """The key of the coordinator that a request goes to; None if any broker will do."""
    if api in _TRANSACTIONAL:
        kind, name = TRANSACTION_KEY, body.get("transactional_id")
    elif api in _GROUP_OF:
        kind, name = GROUP_KEY, _GROUP_OF[api](body)
    else:
        return None
    return (kind, name) if isinstance(name, str) else None


class Cluster:
    """The brokers of a target by node id, and the coordinators found so far. `ready_timeout` is how many seconds a
    coordinator may take to appear."""

    def __init__(self, client: AdminClient, ready_timeout: float) -> None:
        self.brokers: dict[int, Address] = {}
        self._client = client
        self._ready_timeout = ready_timeout
        self._coordinators: dict[CoordinatorKey, int] = {}
        self.groups: set[str] = set()
        """The groups that channels sent requests about."""
        self.reserved_ids: dict[str, set[str]] = {}
        """The member ids that groups gave with MEMBER_ID_REQUIRED. A rebalance waits for them, and DescribeGroups names
        none of them."""

    def reserve_id(self, key: CoordinatorKey | None, member_id: str | None) -> None:
        """Note a member id that a group gave with MEMBER_ID_REQUIRED, if the response has one."""
        if key is not None and member_id:
            self.reserved_ids.setdefault(key[1], set()).add(member_id)

    def known_address(self, key: CoordinatorKey | None, broker: int | None) -> Address | None:
        """The address that a request goes to; None if its coordinator has to be looked up."""
        if broker is not None:
            return self.brokers.get(broker)
        # A lone broker coordinates every group. Transactions have to be asked for: that makes Kafka create their topic.
        if key is None or (key[0] == GROUP_KEY and len(self.brokers) == 1):
            return next(iter(self.brokers.values()))
        node = self._coordinators.get(key)
        return None if node is None else self.brokers[node]

    async def locate(self, key: CoordinatorKey | None, broker: int | None) -> Address:
        """Find the address that a request goes to. Raises `ConnectionLossError` if its broker is gone."""
        address = self.known_address(key, broker)
        if address is not None:
            return address
        if key is None or broker is not None:
            raise ConnectionLossError(ConnectionLoss(LossCause.UNREACHABLE, f"there is no broker {broker} any more"))
        return await self._locate_coordinator(key)

    async def _locate_coordinator(self, key: CoordinatorKey) -> Address:
        """Look up a coordinator; without one return any broker, which will then respond with the error."""
        loop = asyncio.get_running_loop()
        # Implementations may name no coordinator for the empty group id, however long they are asked.
        deadline = loop.time() + (self._ready_timeout if key[1] else 0)
        while True:
            for address in tuple(self.brokers.values()):
                try:
                    error, node = await self.find_coordinator(address, key)
                except ConnectionLossError:
                    continue
                if error == 0:
                    self._coordinators[key] = node
                    return self.brokers[node]
                if error not in COORDINATOR_NOT_READY:
                    return address
                break
            if loop.time() >= deadline:
                return next(iter(self.brokers.values()))
            await asyncio.sleep(RETRY_DELAY_S)

    async def find_coordinators(self, key: CoordinatorKey) -> set[int]:
        """The nodes that the brokers name as a coordinator; -1 stands for an error, and for a broker that is gone."""
        found = set()
        for address in tuple(self.brokers.values()):
            try:
                error, node = await self.find_coordinator(address, key)
            except ConnectionLossError:
                error, node = -1, -1
            found.add(-1 if error else node)
        return found

    def forget_coordinator(self, key: CoordinatorKey | None) -> None:
        """Forget the node of a coordinator, so that it is looked up again."""
        if key is not None:
            self._coordinators.pop(key, None)

    def replace_brokers(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers, and forget every coordinator."""
        self.brokers = dict(brokers)
        self._coordinators.clear()

    async def find_coordinator(self, address: Address, key: CoordinatorKey) -> tuple[int, int]:
        """Send FindCoordinator; returns the error and the node. Raises `ConnectionLossError`."""
        version = self._client.nearest_version("FindCoordinator", 3)
        kind, name = key
        body: dict[str, Any] = {"key": name} if version < 4 else {"coordinator_keys": [name]}
        if version > 0:
            body["key_type"] = kind
        response = (await self._client.request(address, "FindCoordinator", version, body)).body
        found = response if version < 4 else next(iter(response.get("coordinators") or ()), {})
        error, node, host = found.get("error_code", -1), found.get("node_id", -1), found.get("host")
        if error == 0 and host:
            self.brokers[node] = (host, found.get("port", 0))
        elif error == 0:
            error = -1  # an answer that was cut short
        return error, node
