"""Which broker a request belongs to: brokers, coordinators, and how they are found."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.adapters.wire.admin_client import RETRIABLE, Client
from fencepost.adapters.wire.connection import Cause, Loss, LossError
from fencepost.adapters.wire.pool import Address
from fencepost.traces.events import Body

GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""

Key = tuple[int, str]

PAUSE = 0.05
"""Seconds between two tries."""


def _named(body: Body) -> Any:
    return body.get("group_id")


def _fetched(body: Body) -> Any:
    groups = body.get("groups")
    return groups[0].get("group_id") if groups else body.get("group_id")


def _first(field: str) -> Callable[[Body], Any]:
    return lambda body: next(iter(body.get(field) or ()), None)


_GROUP_OF: Mapping[str, Callable[[Body], Any]] = {
    "JoinGroup": _named,
    "SyncGroup": _named,
    "Heartbeat": _named,
    "LeaveGroup": _named,
    "OffsetCommit": _named,
    "OffsetFetch": _fetched,
    "OffsetDelete": _named,
    "TxnOffsetCommit": _named,
    "DescribeGroups": _first("groups"),
    "DeleteGroups": _first("groups_names"),
}
_TRANSACTIONAL = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"})


def key_of(api: str, body: Body) -> Key | None:
    """Whose coordinator a request goes to; None if any broker will do."""
    if api in _TRANSACTIONAL:
        kind, name = TRANSACTION, body.get("transactional_id")
    elif api in _GROUP_OF:
        kind, name = GROUP, _GROUP_OF[api](body)
    else:
        return None
    return (kind, name) if isinstance(name, str) else None


class Cluster:
    """The brokers of a target by node id, and the coordinators found so far. `patience` is how many seconds a
    coordinator may take to appear."""

    def __init__(self, client: Client, patience: float) -> None:
        self.brokers: dict[int, Address] = {}
        self._client = client
        self._patience = patience
        self._coordinators: dict[Key, int] = {}

    def known(self, key: Key | None, broker: int | None) -> Address | None:
        """Where a request goes, if that is known without asking."""
        if broker is not None:
            return self.brokers.get(broker)
        # A lone broker coordinates every group. Transactions have to be asked for: that makes Kafka create their topic.
        if key is None or (key[0] == GROUP and len(self.brokers) == 1):
            return next(iter(self.brokers.values()))
        node = self._coordinators.get(key)
        return None if node is None else self.brokers[node]

    async def locate(self, key: Key | None, broker: int | None) -> Address:
        """Where a request goes. Raises `LossError` if the broker it is for is gone."""
        address = self.known(key, broker)
        if address is not None:
            return address
        if key is None or broker is not None:
            raise LossError(Loss(Cause.UNREACHABLE, f"there is no broker {broker} any more"))
        return await self._find(key)

    async def _find(self, key: Key) -> Address:
        """Ask for a coordinator; some broker if there is none, which will then say so itself."""
        loop = asyncio.get_running_loop()
        # Implementations may name no coordinator for the empty group id, however long they are asked.
        deadline = loop.time() + (self._patience if key[1] else 0)
        while True:
            for address in tuple(self.brokers.values()):
                try:
                    error, node = await self.ask(address, key)
                except LossError:
                    continue
                if error == 0:
                    self._coordinators[key] = node
                    return self.brokers[node]
                if error not in RETRIABLE:
                    return address
                break
            if loop.time() >= deadline:
                return next(iter(self.brokers.values()))
            await asyncio.sleep(PAUSE)

    def forget(self, key: Key | None) -> None:
        """The coordinator is no longer believed to be where it was."""
        if key is not None:
            self._coordinators.pop(key, None)

    def reset(self, brokers: Mapping[int, Address]) -> None:
        """Forget all; these are the brokers now."""
        self.brokers = dict(brokers)
        self._coordinators.clear()

    async def ask(self, address: Address, key: Key) -> tuple[int, int]:
        """FindCoordinator: error and node. Raises `LossError`."""
        version = self._client.version("FindCoordinator", 3)
        kind, name = key
        body: dict[str, Any] = {"key": name} if version < 4 else {"coordinator_keys": [name]}
        if version > 0:
            body["key_type"] = kind
        answer = (await self._client.ask(address, "FindCoordinator", version, body)).body
        found = answer if version < 4 else next(iter(answer.get("coordinators") or ()), {})
        error, node, host = found.get("error_code", -1), found.get("node_id", -1), found.get("host")
        if error == 0 and host:
            self.brokers[node] = (host, found.get("port", 0))
        elif error == 0:
            error = -1  # an answer that was cut short
        return error, node
