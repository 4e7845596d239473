"""Groups as administrators see them, the clean-up pass, and loading from the log."""

from collections.abc import Callable
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, Offset, Partition, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import CONSUMER
from fencepost.adapters.classic.offsets import OffsetStore, Transactions
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import (
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetRecord,
    OffsetTombstone,
    ProducerRecord,
    Record,
    TransactionEnd,
)
from fencepost.adapters.serve.coordination import Node, Request
from fencepost.model.errors import Error

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


# --- The clean-up pass: removes expired offsets, and Empty groups without offsets.

_TIMER = "clean-up"


class Cleanup:
    """Looks through the groups at every check interval, counted from the coordinator's start.

    A pass that could not change anything is not even timed: a coordinator at rest has no timer armed.
    """

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._start = runtime.now
        self._armed = False

    def schedule(self) -> None:
        """Arm the timer of the next pass if any group may need it."""
        if not self._armed and self._runtime.groups:
            self._arm()

    def _arm(self) -> None:
        interval = self._runtime.settings.retention_check_interval
        passes = (self._runtime.now - self._start) // interval
        self._armed = True
        self._runtime.timers.arm(_TIMER, self._start + (passes + 1) * interval, self.on_timer)

    def on_timer(self) -> None:
        """Run a pass, and schedule another while one may find something."""
        self._armed = False
        self.run_pass()
        if any(self.may_change(group) for group in self._runtime.groups.values()):
            self._arm()

    def may_change(self, group: Group) -> bool:
        """Whether a pass may change the group as it is, once enough time has passed."""
        can_expire = any(not group.has_uncommitted(partition) for partition in group.offsets)
        return self.is_deletable(group) or (can_expire and self.has_base_time(group))

    def run_pass(self) -> None:
        """Clean up every group; one whose records cannot be written is left for the next pass."""
        for group in list(self._runtime.groups.values()):
            expired = self.expired_partitions(group)
            gone = len(expired) == len(group.offsets) and self.is_removable(group)
            batch: list[Record] = [OffsetTombstone(group.group_id, *partition) for partition in expired]
            try:
                self._runtime.write(*batch, *([GroupTombstone(group.group_id)] if gone else []))
            except LogWriteError:
                continue
            for partition in expired:
                self._ledger.remove_offset(OffsetTombstone(group.group_id, *partition))
            if gone:
                self._ledger.remove_group(GroupTombstone(group.group_id))

    def is_deletable(self, group: Group) -> bool:
        """Whether the group is Empty and has no offsets left."""
        return not group.offsets and self.is_removable(group)

    def is_removable(self, group: Group) -> bool:
        """Whether nothing but offsets could keep the group: no members, no open transaction."""
        return group.state is State.EMPTY and not group.uncommitted

    def expired_partitions(self, group: Group) -> list[Partition]:
        """The partitions whose offsets have expired; open transactions and subscriptions protect them."""
        return [
            partition
            for partition, offset in group.offsets.items()
            if self.is_expired(group, offset)
            and not group.is_subscribed(partition[0])
            and not group.has_uncommitted(partition)
        ]

    def is_expired(self, group: Group, offset: Offset) -> bool:
        """Whether the offset's expiry has passed: that of its commit, else the retention after the base time."""
        if not self.has_base_time(group):
            return False
        if offset.expires_at is not None:
            return self._runtime.now >= offset.expires_at
        return self._runtime.now - self.base_time(group, offset) >= self._runtime.settings.offsets_retention

    def has_base_time(self, group: Group) -> bool:
        """Offsets expire in Empty groups, and in Stable consumer groups whose subscriptions are known."""
        if group.state is State.EMPTY:
            return True
        known = group.protocol_type == CONSUMER and group.subscribed is not None
        return known and group.state is State.STABLE

    def base_time(self, group: Group, offset: Offset) -> int:
        """The start of the retention: the commit, or for a group that had members the end of the last one."""
        if group.protocol_type is not None and group.state is State.EMPTY:
            return group.since
        return offset.committed_at


# --- Loading: the coordinator's state, rebuilt from the log.


class Loading:
    """Reads the log once, before the first request."""

    def __init__(
        self, runtime: CoordinatorState, rounds: Rebalancer, ledger: OffsetStore, transactions: Transactions
    ) -> None:
        self._runtime = runtime
        self._rounds = rounds
        self._ledger = ledger
        self._transactions = transactions

    def load(self) -> None:
        """Replay all records, then start the groups. Raises `CorruptLogError`."""
        for record in self._runtime.log.read():
            self.replay(record)
        for group in list(self._runtime.groups.values()):
            self.start_group(group)

    def replay(self, record: Record) -> None:
        """Apply one record to the state."""
        match record:
            case GroupRecord():
                self.restore_group(record)
            case GroupTombstone():
                self._ledger.remove_group(record)
            case OffsetRecord():
                self._ledger.add_offset(record)
            case OffsetTombstone():
                self._ledger.remove_offset(record)
            case TransactionEnd():
                self._ledger.end_transaction(record)
            case ProducerRecord():
                self._transactions.add_producer(record)

    def restore_group(self, record: GroupRecord) -> None:
        """Restore the record's group with its offsets: Stable with members, else Empty."""
        group = self._ledger.group_for_offsets(record.group)
        group.since = record.since
        group.state = State.STABLE if record.members else State.EMPTY
        group.generation = record.generation
        group.protocol_type = record.protocol_type
        group.protocol = record.protocol
        group.leader = record.leader
        group.members = {member.member_id: self.restore_member(member, record.protocol) for member in record.members}
        group.instances = {
            member.instance_id: member.member_id for member in record.members if member.instance_id is not None
        }

    def restore_member(self, record: MemberRecord, protocol: str | None) -> Member:
        """Restore a member that offers only the selected protocol (FAILOVER-13)."""
        return Member(
            record.member_id,
            record.instance_id,
            record.client_id,
            record.client_host,
            record.session_timeout,
            record.rebalance_timeout,
            ((protocol or "", record.metadata),),
            record.assignment,
        )

    def start_group(self, group: Group) -> None:
        """Give every member a full session; a group above the size limit sheds members in a rebalance."""
        group.subscribed = group.find_subscriptions()
        for member in group.members.values():
            self._rounds.touch_session(group, member)
        if len(group.members) > self._runtime.settings.max_group_size:
            self._rounds.prepare_rebalance(group)
