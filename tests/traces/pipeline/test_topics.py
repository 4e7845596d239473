"""Lines of traces in a Kafka topic are read as those in files are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.topic_ingest import Section, sections_of
from fencepost.traces.pipeline.topics import (
    OffsetRange,
    TopicRecord,
    TopicStreamReader,
    find_topic,
    limit_offsets,
    offset_ranges,
    read_records,
)
from tests.support.altered_traces import altered_trace
from tests.support.served_coordinator import serve_in_thread
from tests.support.trace_topics import create_topic, produce_records, records_of

HEADER = b'{"fencepost_trace": 1, "source": "s"}'


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a broker."""
    with serve_in_thread() as found:
        yield found


def sections(*records: tuple[str, bytes | None], first: int = 0) -> list[tuple[str, bytes, bool]]:
    rows = [TopicRecord(0, first + place, *each) for place, each in enumerate(records)]
    return [
        (each.name, each.open("").read(), each.is_over)
        for each in sections_of("kafka://c/t", sorted(rows, key=lambda row: row.key))
    ]


def test_a_section_ends_with_the_next_header_or_a_record_without_value() -> None:
    found = sections(("a", HEADER), ("b", HEADER), ("a", b"1\n"), ("a", None), ("a", None), ("b", b"2"), ("b", HEADER))
    assert found == [
        ("kafka://c/t/0/0/a", HEADER + b"\n1\n", True),
        ("kafka://c/t/0/1/b", HEADER + b"\n2\n", True),
        ("kafka://c/t/0/6/b", HEADER + b"\n", False),
    ]


def test_a_section_without_its_beginning_is_named_by_its_end() -> None:
    whole = [("a", b"1"), ("a", b"2"), ("a", HEADER)]
    assert sections(*whole)[0][0] == sections(*whole[1:], first=1)[0][0] == "kafka://c/t/0/before 2/a"
    assert sections(("", HEADER))[0][0] == "kafka://c/t/0/0"


def test_long_sections_go_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    section = Section("kafka://c/t", TopicRecord(0, 0, "a", HEADER), True)
    for _ in range(3):
        section.add(b"x" * 20_000_000)
    assert section.open("").read() == (b"x" * 20_000_000 + b"\n") * 3 and section.size == 60_000_003


def test_the_records_of_a_topic_are_read_in_order(address: str, tmp_path: Path) -> None:
    topic = create_topic(address, "order", 2)
    for number in range(2):
        write_trace(tmp_path / f"{number}.jsonl", *altered_trace(number))
        produce_records(address, "order", records_of(tmp_path / f"{number}.jsonl", str(number)))
    ranges = offset_ranges(topic)
    found = [record for where in ranges for record in read_records(topic, where)]
    assert [each.start for each in ranges] == [0, 0] and len(found) == sum(each.end for each in ranges)
    for number in range(2):
        mine = [each.value for each in found if each.key == str(number)]
        assert mine.pop() is None
        assert b"\n".join(filter(None, mine)) + b"\n" == (tmp_path / f"{number}.jsonl").read_bytes()
    assert [each.offset for each in read_records(topic, OffsetRange(found[0].partition, 2, 5))] == [2, 3, 4]
    assert topic.uri == f"kafka://{topic.cluster}/order" and topic.cluster
    with_names = find_topic(f"kafka://localhost:{address.rpartition(':')[2]}/order", {})
    assert with_names.uri == topic.uri, "the same topic, whatever the broker is called"


def test_a_stream_takes_a_limited_number_of_records_at_once(address: str) -> None:
    topic = create_topic(address, "stream", 3)
    produce_records(address, "stream", [(str(number), b"x") for number in range(60)])
    reader = TopicStreamReader(topic, 20)
    start = reader.initialOffset()
    ends = {str(each.partition): each.end for each in offset_ranges(topic)}
    assert start == {"0": 0, "1": 0, "2": 0} and reader.latestOffset() == ends
    at, steps = start, 0
    while at != ends:
        after = reader.latestOffset(at, None)
        assert 0 < sum(after.values()) - sum(at.values()) <= 20
        at, steps = after, steps + 1
    assert steps == 3 and reader.latestOffset(at, None) == ends
    assert limit_offsets({}, [OffsetRange(0, 5, 6), OffsetRange(1, 0, 100)], 10) == {"0": 6, "1": 9}


def test_what_is_wrong_with_a_topic_is_told_in_one_line(address: str) -> None:
    for uri, line in (
        (f"kafka://{address}", "a topic is given as kafka://HOST:PORT/TOPIC"),
        (f"kafka://{address}/none", r"none: .*[Uu]nknown topic"),
    ):
        with pytest.raises(PipelineError, match=line):
            find_topic(uri, {})
    with pytest.raises(PipelineError, match="No such configuration property"):
        find_topic(f"kafka://{address}/t", {"no.such.thing": "1"})
    with pytest.raises(PipelineError, match="Fencepost sets this one itself"):
        find_topic(f"kafka://{address}/t", {"group.id": "1"})


def test_records_that_are_gone_are_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = create_topic(address, "gone")
    produce_records(address, "gone", [("a", b"x")])
    monkeypatch.setattr("fencepost.traces.pipeline.topics.offset_ranges", lambda topic: [OffsetRange(0, 7, 9)])
    with pytest.raises(PipelineError, match="records 3 to 6 of partition 0 were removed from the topic before"):
        TopicStreamReader(topic, 20).latestOffset({"0": 3}, None)
