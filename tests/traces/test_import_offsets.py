"""What coordinators stored, as a trace: segments and dumps tell the generations that its log tells."""

import json
from pathlib import Path

import pytest

from fencepost.model.wire.codec import encode_body
from fencepost.model.wire.records import Batch, Record, control_batch, encode_batch, make_batch
from fencepost.traces.events import Event
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.offsets_topic import OffsetsImportResult, import_offsets
from fencepost.traces.judge.judge import judge
from tests.support.log_stories import DATA, group_of, tell, tell_trace

SEGMENTS = DATA / "__consumer_offsets-1"
SOURCES = [SEGMENTS, DATA / "dump-3.9.txt", DATA / "dump-3.4.txt"]


def read(folder: Path, *paths: Path) -> tuple[OffsetsImportResult, list[Event]]:
    """What the import says, and the steps in the trace, on which nobody is accused."""
    told = import_offsets(paths, folder / "trace.jsonl")
    header, events = open_trace(folder / "trace.jsonl")
    seen = list(events)
    assert judge(header, seen).violations == ()
    return told, seen[1:]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_what_was_stored_tells_the_generations_of_the_log(source: Path, tmp_path: Path) -> None:
    own = group_of(tell(tmp_path, DATA / "broker.log"), "orders")
    read(tmp_path, source)
    stored = tell_trace(tmp_path)
    assert stored.kind == "offsets topic"
    group = group_of(stored, "orders")
    ended = {each.generation: each for each in own.rebalances}
    assert [each.generation for each in group.rebalances] == list(range(1, 11))
    assert all(each.members == ended[each.generation].members for each in group.rebalances)
    assert (group.phase, group.generation) == ("Empty", 10) and group.partition_count == 6


def test_a_segment_tells_when_a_join_phase_ended(tmp_path: Path) -> None:
    own = group_of(tell(tmp_path, DATA / "broker.log"), "orders").rebalances[1]
    _, steps = read(tmp_path, SEGMENTS)
    first, *_ = (each for each in steps if each.body["step"] == "stored")
    body = next(each.body for each in steps if each.body.get("generation") == 2)
    assert own.joined is not None and own.ended is not None
    apart = body["joined"] - first.body["joined"]
    before = group_of(tell(tmp_path, DATA / "broker.log"), "orders").rebalances[0]
    assert before.joined is not None and abs(apart - (own.joined - before.joined)) < 10


def a_commit(offset: int) -> Record:
    """A record of a committed offset of group g."""
    key = b"\0\1" + encode_body("OffsetCommitKey", 1, {"group": "g", "topic": "t", "partition": 0})
    value = b"\0\3" + encode_body("OffsetCommitValue", 3, {"offset": offset, "commit_timestamp": 5})
    return Record(value, key, timestamp=1_000 + offset)


def of_producer(batch: Batch, producer: int) -> Batch:
    """The batch as a part of a transaction of this producer."""
    fields = {name: getattr(batch, name) for name in Batch.__slots__}
    return Batch(**{**fields, "attributes": 0x10, "producer_id": producer, "producer_epoch": 0})


def test_offsets_of_a_transaction_count_when_it_is_committed(tmp_path: Path) -> None:
    batches = [
        make_batch([a_commit(1)]),
        of_producer(make_batch([a_commit(2)], 1), 7),
        of_producer(make_batch([a_commit(3)], 2), 8),
        control_batch(3, 8, 0, False, 1_010),
        control_batch(4, 7, 0, True, 1_020),
    ]
    (tmp_path / "0.log").write_bytes(b"".join(map(encode_batch, batches)))
    _, steps = read(tmp_path, tmp_path / "0.log")
    assert [(each.time, each.body["offset"]) for each in steps] == [(0, 1), (19, 2)]


def test_a_group_without_a_value_is_deleted(tmp_path: Path) -> None:
    key = b"\0\2" + encode_body("GroupMetadataKey", 2, {"group": "g"})
    records = [a_commit(4), Record(None, key, timestamp=2_000), Record(b"", b"\0\3x", timestamp=2_000)]
    (tmp_path / "0.log").write_bytes(encode_batch(make_batch(records)))
    told, steps = read(tmp_path, tmp_path / "0.log")
    assert ([each.body["step"] for each in steps], told.records, told.others) == (["committed", "forget"], 3, 1)


def test_what_is_cut_or_damaged_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = (SEGMENTS / "00000000000000000000.log").read_bytes()
    for cut in range(400, len(whole), 997):
        (tmp_path / "0.log").write_bytes(whole[:cut])
        told, steps = read(tmp_path, tmp_path / "0.log")
        assert steps and told.unread <= 1
    (tmp_path / "0.log").write_bytes(whole[:100] + b"!" + whole[101:])
    told, _ = read(tmp_path, tmp_path / "0.log")
    assert told.reason.startswith("wrong checksum")


@pytest.mark.parametrize("content", [b"", b"nothing\n", b"\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff", bytes(100)])
def test_a_file_that_is_neither_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(content)
    with pytest.raises(TraceError):
        import_offsets([tmp_path / "x.log"], tmp_path / "trace.jsonl")


def test_the_words_of_older_releases(tmp_path: Path) -> None:
    row = "offset: 3 position: 0 CreateTime: 1500 keysize: 3 key: group_metadata::group=g payload: consumer:range:4:{}"
    (tmp_path / "dump.txt").write_text(f"{row}\n")
    _, steps = read(tmp_path, tmp_path / "dump.txt")
    assert json.loads(json.dumps(dict(steps[0].body))) == {
        "step": "stored",
        "group": "g",
        "generation": 4,
        "leader": "",
        "protocol": "range",
        "members": [],
        "file": 0,
        "line": 1,
    }
