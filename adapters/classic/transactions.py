"""Producers and their transactions, for offsets that are committed in transactions.

Epochs are checked; transaction timeouts and partitions of topics are not kept.
"""

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.records import ProducerRecord, TransactionEnd
from fencepost.adapters.serve.coordination import Request


class Transactions:
    """Handles InitProducerId, AddOffsetsToTxn and EndTxn."""

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._producers: dict[str, ProducerRecord] = {}
        self._last_producer = 0

    def add_producer(self, record: ProducerRecord) -> None:
        """Add a producer that the log has."""
        self._last_producer = max(self._last_producer, record.producer)
        if record.transactional_id is not None:
            self._producers[record.transactional_id] = record

    def handle_init(self, request: Request) -> None:
        """A producer id; a transactional id keeps its own under a new epoch, its open transaction is aborted."""
        record = self.next_producer(request.body.get("transactional_id"))
        try:
            self._runtime.write(record, TransactionEnd(record.producer, committed=False))
        except LogWriteError:
            body = {"error_code": Error.COORDINATOR_NOT_AVAILABLE, "producer_id": -1, "producer_epoch": 0}
        else:
            self.add_producer(record)
            self._ledger.end_transaction(TransactionEnd(record.producer, committed=False))
            body = {"error_code": Error.NONE, "producer_id": record.producer, "producer_epoch": record.epoch}
        self._runtime.respond(request, body)

    def next_producer(self, transactional_id: str | None) -> ProducerRecord:
        """A new producer, or the next epoch of a known one."""
        present = self._producers.get(transactional_id) if transactional_id is not None else None
        if present is None:
            return ProducerRecord(transactional_id, self._last_producer + 1, 0)
        return ProducerRecord(transactional_id, present.producer, present.epoch + 1)

    def handle_add_offsets(self, request: Request) -> None:
        """Return whether the producer may add a group's offsets to its transaction; the state is unchanged."""
        self._runtime.respond(request, {"error_code": self.check_producer(request)})

    def handle_end(self, request: Request) -> None:
        """End the producer's transaction."""
        committed = request.body.get("committed", False)
        error = self.check_producer(request) or self.end_transaction(request.body.get("producer_id", 0), committed)
        self._runtime.respond(request, {"error_code": error})

    def check_producer(self, request: Request) -> Error:
        """Whether id and epoch are those of the transactional id."""
        present = self._producers.get(request.body.get("transactional_id", ""))
        if present is None or present.producer != request.body.get("producer_id", 0):
            return Error.INVALID_PRODUCER_ID_MAPPING
        current = present.epoch == request.body.get("producer_epoch", 0)
        return Error.NONE if current else Error.INVALID_PRODUCER_EPOCH

    def is_fenced(self, request: Request) -> bool:
        """Whether the epoch of a transactional commit is older than that of its transactional id (COMMIT-31)."""
        present = self._producers.get(request.body.get("transactional_id", ""))
        if present is None or present.producer != request.body.get("producer_id", 0):
            return False
        return bool(request.body.get("producer_epoch", 0) < present.epoch)

    def end_transaction(self, producer: int, committed: bool) -> Error:
        """Write the end of the transaction to the log, then apply it."""
        record = TransactionEnd(producer, committed)
        try:
            self._runtime.write(record)
        except LogWriteError:
            return Error.COORDINATOR_NOT_AVAILABLE
        self._ledger.end_transaction(record)
        return Error.NONE
