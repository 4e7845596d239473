"""DescribeGroups, ListGroups, DeleteGroups, FindCoordinator."""

from collections.abc import Callable
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.records import GroupTombstone, OffsetTombstone, Record
from fencepost.adapters.serve.coordination import Node, Request

_TYPE = "classic"
_KEYS_SINCE = 4
_KEY_TYPES = (0, 1)  # group, transaction


NO_NODE = Node(-1, "", -1)


class Admin:
    """Handles the requests of admin clients: describe, list and delete groups, and find a coordinator."""

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore, coordinator_of: Callable[[str], Node]) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._coordinator_of = coordinator_of

    def handle_describe(self, request: Request) -> None:
        """Return one entry for each requested group (ADMIN-07)."""
        groups = [self.describe(group_id, request.version) for group_id in request.body.get("groups", ())]
        self._runtime.respond(request, {"groups": groups})

    def describe(self, group_id: str, version: int) -> dict[str, Any]:
        """Return the DescribeGroups entry of one group."""
        group = self._runtime.groups.get(group_id)
        return responses.describe_missing_group(group_id, version) if group is None else responses.describe_group(group)

    def handle_list(self, request: Request) -> None:
        """Return every group that passes the filters; an empty filter passes all (ADMIN-11 to ADMIN-14)."""
        states = {state.lower() for state in request.body.get("states_filter", ())}
        types = {kind.lower() for kind in request.body.get("types_filter", ())}
        groups = [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type or "",
                "group_state": str(group.state),
                "group_type": _TYPE,
            }
            for group in self._runtime.groups.values()
            if self.passes(group.state.lower(), states) and self.passes(_TYPE, types)
        ]
        self._runtime.respond(request, {"error_code": Error.NONE, "groups": groups})

    def passes(self, value: str, allowed: set[str]) -> bool:
        """Whether the filter is empty or holds the value."""
        return not allowed or value in allowed

    def handle_delete(self, request: Request) -> None:
        """Return one result for each distinct group (ADMIN-19)."""
        names = dict.fromkeys(request.body.get("groups_names", ()))
        results = [{"group_id": name, "error_code": self.delete(self._runtime.groups.get(name))} for name in names]
        self._runtime.respond(request, {"results": results})

    def delete(self, group: Group | None) -> Error:
        """Remove an Empty group with its offsets and pending ids (ADMIN-16 to ADMIN-18)."""
        if group is None:
            return Error.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY:
            return Error.NON_EMPTY_GROUP
        try:
            self._runtime.write(*self.tombstones(group))
        except LogWriteError:
            return Error.COORDINATOR_NOT_AVAILABLE
        self._ledger.remove_group(GroupTombstone(group.group_id))
        return Error.NONE

    def tombstones(self, group: Group) -> list[Record]:
        """The records that remove the group and its offsets from the log."""
        offsets = [OffsetTombstone(group.group_id, *partition) for partition in group.offsets]
        return [*offsets, GroupTombstone(group.group_id)]

    def handle_find(self, request: Request) -> None:
        """Return the coordinator of each key; the group need not exist, and none is created (FIND-02)."""
        key_type = request.body.get("key_type", 0)
        if request.version < _KEYS_SINCE:
            self._runtime.respond(request, self.find(request.body.get("key", ""), key_type))
            return
        keys = request.body.get("coordinator_keys", ())
        self._runtime.respond(request, {"coordinators": [{"key": key} | self.find(key, key_type) for key in keys]})

    def find(self, key: str, key_type: int) -> dict[str, Any]:
        """The node for one key; share groups and unknown types have none (FIND-07)."""
        known = key_type in _KEY_TYPES
        node = self._coordinator_of(key) if known else NO_NODE
        return {
            "error_code": Error.NONE if known else Error.INVALID_REQUEST,
            "error_message": None if known else f"There is no coordinator for keys of type {key_type}.",
            "node_id": node.node_id,
            "host": node.host,
            "port": node.port,
        }
