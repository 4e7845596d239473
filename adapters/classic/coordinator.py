"""The coordinator: requests and the time in, responses out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.adapters.classic.administration import Admin, Cleanup, Loading
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.log import Log, open_log
from fencepost.adapters.classic.membership import Heartbeats, Joining, Leaving, StaticMembership, Syncing
from fencepost.adapters.classic.offsets import Commits, Offsets, OffsetStore, Transactions
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.responses import refuse_elsewhere
from fencepost.adapters.classic.timers import Action
from fencepost.adapters.serve.coordination import LOCAL, Node, Request, Response, ServedDialect, Topics
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_request

VERSIONS: Mapping[str, tuple[int, int]] = {
    "OffsetCommit": (0, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
    "OffsetDelete": (0, 0),
    "TxnOffsetCommit": (0, 5),
    "InitProducerId": (0, 5),
    "AddOffsetsToTxn": (0, 4),
    "EndTxn": (0, 4),
}
"""Lowest and highest version of every API that `Coordinator` handles."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a coordinator that another dialect may have otherwise."""

    rebalancer: type[Rebalancer] = Rebalancer
    joining: type[Joining] = Joining
    heartbeats: type[Heartbeats] = Heartbeats
    syncing: type[Syncing] = Syncing
    loading: type[Loading] = Loading


class Coordinator:
    """A group coordinator for all groups, restored from its log when it is made.

    `new_id` makes a member id from a prefix (client id or instance id) and must never make one twice, not even
    after a restart on the same log. `coordinator_of` names the node for a key in FindCoordinator. All times are in
    milliseconds on a clock that never goes back and, if the log outlives the process, goes on where it was. Raises
    `CorruptLogError`.
    """

    parts: ClassVar[Parts] = Parts()

    def __init__(
        self,
        settings: Settings,
        log: Log,
        new_id: Callable[[str], str],
        topics: Topics,
        *,
        now: int = 0,
        coordinator_of: Callable[[str], Node] = lambda key: LOCAL,
    ) -> None:
        self._runtime = CoordinatorState(settings, log, new_id, topics, now)
        ledger = OffsetStore(self._runtime)
        rounds = self.parts.rebalancer(self._runtime)
        self._transactions = Transactions(self._runtime, ledger)
        self._cleanup = Cleanup(self._runtime, ledger)
        commits = Commits(self._runtime, rounds, ledger, self._transactions)
        offsets = Offsets(self._runtime, ledger)
        admin = Admin(self._runtime, ledger, coordinator_of)
        self._handlers: Mapping[str, Callable[[Request], None]] = {
            "OffsetCommit": commits.handle,
            "OffsetFetch": offsets.handle_fetch,
            "FindCoordinator": admin.handle_find,
            "JoinGroup": self.parts.joining(self._runtime, rounds, StaticMembership(self._runtime, rounds)).handle,
            "Heartbeat": self.parts.heartbeats(self._runtime, rounds).handle,
            "LeaveGroup": Leaving(self._runtime, rounds).handle,
            "SyncGroup": self.parts.syncing(self._runtime, rounds).handle,
            "DescribeGroups": admin.handle_describe,
            "ListGroups": admin.handle_list,
            "DeleteGroups": admin.handle_delete,
            "OffsetDelete": offsets.handle_delete,
            "TxnOffsetCommit": commits.handle,
            "InitProducerId": self._transactions.handle_init,
            "AddOffsetsToTxn": self._transactions.handle_add_offsets,
            "EndTxn": self._transactions.handle_end,
        }
        self.parts.loading(self._runtime, rounds, ledger, self._transactions).load()
        self._cleanup.schedule()

    def handle(self, request: Request, now: int) -> list[Response]:
        """Handle a request; returns its response, unless it is parked, and those of parked requests that it releases.

        Timers do not fire: call `advance(now)` first for those that are due. Raises `ValueError` for an API or
        version outside `VERSIONS`.
        """
        lowest, highest = VERSIONS.get(request.api, (0, -1))
        if not lowest <= request.version <= highest:
            raise ValueError(f"{request.api} version {request.version} is not handled here")
        self._runtime.now = max(self._runtime.now, now)
        self._handlers[request.api](request)
        self._cleanup.schedule()
        return self._collect()

    def advance(self, now: int) -> list[Response]:
        """Fire all timers due until `now`, in the order of their deadlines, each at its own time."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            self._runtime.now = max(self._runtime.now, deadline)
            self._fire(self._runtime.timers.take())
        self._runtime.now = max(self._runtime.now, now)
        return self._collect()

    def next_deadline(self) -> int | None:
        """The time of the earliest armed timer; None without one."""
        return self._runtime.timers.next_deadline()

    def end_transaction(self, producer_id: int, committed: bool) -> Error:
        """End a producer's transaction as EndTxn does, without a request."""
        return self._transactions.end_transaction(producer_id, committed)

    def _fire(self, action: Action) -> None:
        action()
        if action != self._cleanup.on_timer:  # which knows itself whether there is to be another pass
            self._cleanup.schedule()

    def _collect(self) -> list[Response]:
        collected, self._runtime.responses = self._runtime.responses, []
        return collected


KAFKA = ServedDialect(VERSIONS, open_log, Coordinator, decode_request, refuse_elsewhere)
"""What a server needs to have this coordinator."""
