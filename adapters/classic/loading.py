"""Loading: the coordinator's state, rebuilt from the log."""

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.offset_store import OffsetStore
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
from fencepost.adapters.classic.transactions import Transactions


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
