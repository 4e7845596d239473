"""The log of one partition."""

from dataclasses import replace

import pytest

from fencepost.adapters.serve import partition as module
from fencepost.adapters.serve.partition import Aborted, Partition
from fencepost.model.wire.records import Batch, Record, decode_batches, encode_batch, make_batch


def batch(*values: bytes, producer: int | None = None, timestamp: int = 0) -> Batch:
    made = make_batch([Record(value, timestamp=timestamp) for value in values])
    return made if producer is None else replace(made, producer_id=producer, attributes=0x10)


def append(log: Partition, one: Batch) -> int:
    return log.append(one, encode_batch(one))


def offsets(data: bytes) -> list[int]:
    return [found.base_offset for found in decode_batches(data).batches]


def test_whole_batches_are_read_from_the_one_that_holds_the_offset() -> None:
    log = Partition()
    assert [append(log, batch(b"a", b"b")) for _ in range(3)] == [0, 2, 4]
    size = batch(b"a", b"b").size
    assert offsets(log.read(3, 10 * size, committed_only=False, at_least_one=False).data) == [2, 4]
    assert offsets(log.read(0, 2 * size, committed_only=False, at_least_one=False).data) == [0, 2]
    assert offsets(log.read(0, 1, committed_only=False, at_least_one=True).data) == [0]
    assert log.read(0, size - 1, committed_only=False, at_least_one=False).data == b""
    assert log.read(6, 10 * size, committed_only=False, at_least_one=True).data == b""


def test_open_transactions_hold_back_readers_of_committed_records() -> None:
    log = Partition()
    append(log, batch(b"plain"))
    append(log, batch(b"in", producer=7))
    append(log, batch(b"after"))
    assert log.last_stable == 1
    assert offsets(log.read(0, 1000, committed_only=True, at_least_one=True).data) == [0]
    assert offsets(log.read(0, 1000, committed_only=False, at_least_one=True).data) == [0, 1, 2]
    assert log.end_transaction(7, 0, committed=False, now=5)
    assert not log.end_transaction(7, 0, committed=False, now=5)
    assert log.last_stable == log.end == 4
    read = log.read(0, 1000, committed_only=True, at_least_one=True)
    assert offsets(read.data) == [0, 1, 2, 3]
    assert read.aborted == (Aborted(7, 1, 3),)
    assert log.read(0, 1, committed_only=True, at_least_one=True).aborted == ()
    append(log, batch(b"x", producer=8))
    log.end_transaction(8, 0, committed=True, now=6)
    assert log.read(4, 1000, committed_only=True, at_least_one=True).aborted == ()


def test_an_old_log_forgets_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    size = batch(b"value").size
    monkeypatch.setattr(module, "MOST_BYTES", 3 * size)
    log = Partition()
    append(log, batch(b"value", producer=1))
    log.end_transaction(1, 0, committed=False, now=0)
    for _ in range(5):
        append(log, batch(b"value"))
    assert (log.start, log.end) == (4, 7)
    read = log.read(4, 1 << 20, committed_only=True, at_least_one=True)
    assert offsets(read.data) == [4, 5, 6] and read.aborted == ()


def test_times() -> None:
    log = Partition()
    assert log.latest_time() is None and log.at_time(0) is None
    append(log, batch(b"a", timestamp=5))
    append(log, batch(b"b", timestamp=9))
    append(log, replace(batch(b"c", timestamp=9), attributes=1))
    assert log.at_time(6) == (9, 1)
    assert log.latest_time() == (9, 1)
    assert log.at_time(10) is None
