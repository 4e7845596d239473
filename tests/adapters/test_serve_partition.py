"""The log of one partition."""

from dataclasses import replace

import pytest

from fencepost.adapters.serve import record_apis as module
from fencepost.adapters.serve.record_apis import AbortedTransaction, Partition
from fencepost.model.wire.records import Batch, Record, decode_batches, encode_batch, make_batch


def data_batch(*values: bytes, producer: int | None = None, timestamp: int = 0) -> Batch:
    made = make_batch([Record(value, timestamp=timestamp) for value in values])
    return made if producer is None else replace(made, producer_id=producer, attributes=0x10)


def append_batch(log: Partition, batch: Batch) -> int:
    return log.append(batch, encode_batch(batch))


def base_offsets(data: bytes) -> list[int]:
    return [found.base_offset for found in decode_batches(data).batches]


def test_whole_batches_are_read_from_the_one_that_holds_the_offset() -> None:
    log = Partition()
    assert [append_batch(log, data_batch(b"a", b"b")) for _ in range(3)] == [0, 2, 4]
    size = data_batch(b"a", b"b").size
    assert base_offsets(log.read(3, 10 * size, committed_only=False, at_least_one=False).data) == [2, 4]
    assert base_offsets(log.read(0, 2 * size, committed_only=False, at_least_one=False).data) == [0, 2]
    assert base_offsets(log.read(0, 1, committed_only=False, at_least_one=True).data) == [0]
    assert log.read(0, size - 1, committed_only=False, at_least_one=False).data == b""
    assert log.read(6, 10 * size, committed_only=False, at_least_one=True).data == b""


def test_open_transactions_hold_back_readers_of_committed_records() -> None:
    log = Partition()
    append_batch(log, data_batch(b"plain"))
    append_batch(log, data_batch(b"in", producer=7))
    append_batch(log, data_batch(b"after"))
    assert log.last_stable_offset == 1
    assert base_offsets(log.read(0, 1000, committed_only=True, at_least_one=True).data) == [0]
    assert base_offsets(log.read(0, 1000, committed_only=False, at_least_one=True).data) == [0, 1, 2]
    assert log.end_transaction(7, 0, committed=False, now=5)
    assert not log.end_transaction(7, 0, committed=False, now=5)
    assert log.last_stable_offset == log.end_offset == 4
    read = log.read(0, 1000, committed_only=True, at_least_one=True)
    assert base_offsets(read.data) == [0, 1, 2, 3]
    assert read.aborted == (AbortedTransaction(7, 1, 3),)
    assert log.read(0, 1, committed_only=True, at_least_one=True).aborted == ()
    append_batch(log, data_batch(b"x", producer=8))
    log.end_transaction(8, 0, committed=True, now=6)
    assert log.read(4, 1000, committed_only=True, at_least_one=True).aborted == ()


def test_an_old_log_forgets_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    size = data_batch(b"value").size
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 3 * size)
    log = Partition()
    append_batch(log, data_batch(b"value", producer=1))
    log.end_transaction(1, 0, committed=False, now=0)
    for _ in range(5):
        append_batch(log, data_batch(b"value"))
    assert (log.start_offset, log.end_offset) == (4, 7)
    read = log.read(4, 1 << 20, committed_only=True, at_least_one=True)
    assert base_offsets(read.data) == [4, 5, 6] and read.aborted == ()


def test_offsets_are_found_by_timestamp() -> None:
    log = Partition()
    assert log.find_max_timestamp() is None and log.find_by_timestamp(0) is None
    append_batch(log, data_batch(b"a", timestamp=5))
    append_batch(log, data_batch(b"b", timestamp=9))
    append_batch(log, replace(data_batch(b"c", timestamp=9), attributes=1))
    assert log.find_by_timestamp(6) == (9, 1)
    assert log.find_max_timestamp() == (9, 1)
    assert log.find_by_timestamp(10) is None
