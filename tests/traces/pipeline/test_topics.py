"""Lines of traces in a Kafka topic are read as those in files are."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline import topic_ingest as module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, forget
from fencepost.traces.pipeline.ingest import IngestSummary
from fencepost.traces.pipeline.stream import findings_log, new_findings, watch_topic
from fencepost.traces.pipeline.topic_ingest import Section, ingest_topic, sections_of
from fencepost.traces.pipeline.topics import (
    OffsetRange,
    Topic,
    TopicRecord,
    TopicStreamReader,
    find_topic,
    limit_offsets,
    offset_ranges,
    read_records,
)
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.corpus_tables import ProcessKilled, ingest_here, read_rows
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


NO_SPARK = cast(SparkSession, None)


class TopicInMemory:
    """The records of a topic with one partition, in the place of a broker and of Spark."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topic = Topic("here:1", "t", cluster="c")
        self.records: list[TopicRecord] = []
        self.begins = 0
        self.read: list[int] = []
        monkeypatch.setattr(module, "offset_ranges", lambda _: [OffsetRange(0, self.begins, len(self.records))])
        monkeypatch.setattr(module, "map_sections", self.map_sections)

    def map_sections(self, _: Any, topic: Topic, ranges: Sequence[OffsetRange], task: Any, progress: Any) -> list[Any]:
        """As Spark does it, in two parts."""
        mine = [record for where in ranges for record in self.records[where.start : where.end]]
        self.read = [record.offset for record in mine]
        parts = ([each for each in mine if hash(each.key) % 2 == number] for number in range(2))
        return [task(iter(sorted(part, key=lambda each: (each.key, each.offset)))) for part in parts]

    def produce(self, key: str, *lines: bytes | None) -> None:
        """Add records."""
        begin = len(self.records)
        self.records += [TopicRecord(0, begin + place, key, line) for place, line in enumerate(lines)]

    def ingest(self, corpus: Corpus, *, unended: bool = False) -> IngestSummary:
        """Ingest what is new."""
        return ingest_topic(NO_SPARK, corpus, self.topic, lambda *_: None, takes_unended=unended)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> TopicInMemory:
    return TopicInMemory(monkeypatch)


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The lines of a trace."""
    write_trace(tmp_path / "t.jsonl", *altered_trace(0))
    return (tmp_path / "t.jsonl").read_bytes().splitlines()


def names(corpus: Corpus) -> list[str]:
    return sorted(row.input.removeprefix("kafka://c/t/0/") for row in corpus.inputs())


def test_a_later_ingest_begins_at_the_first_section_that_is_not_over(
    there: TopicInMemory, lines: list[bytes], tmp_path: Path
) -> None:
    """`b` begins before `a` and `c` end, and goes on beyond: its records are not taken for ones without a header."""
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("b", *lines[:3])
    there.produce("a", *lines[:5])
    there.produce("b", *lines[3:], None)
    assert (names(corpus), there.ingest(corpus).unended) == ([], ("kafka://c/t/0/3/a",))
    assert names(corpus) == ["0/b"]
    there.produce("a", *lines[5:], None)
    summary = there.ingest(corpus)
    assert there.read[0] == 3 and names(corpus) == ["0/b", "3/a"]
    assert (summary.flaws, summary.unended, summary.already_ingested) == ((), (), 0)
    assert not read_rows(corpus, "quarantine")
    assert there.ingest(corpus).records == 0


def test_every_section_is_there_once_whatever_is_killed(
    there: TopicInMemory, lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after the commit, with sections of several keys in each other."""
    draw, corpus = random.Random(1), Corpus.create(tmp_path / "c", 3)
    append = CorpusWriter.append

    def dying(self: CorpusWriter, *arguments: Any) -> frozenset[str]:
        if draw.random() < 0.5:
            append(self, *arguments)
        raise ProcessKilled

    waiting = {f"k{number}": [*lines[: draw.randrange(3, 9)], None] * 4 for number in range(5)}
    total = 0
    while any(waiting.values()):
        for _ in range(draw.randrange(1, 30)):
            key = draw.choice([key for key, left in waiting.items() if left] or [""])
            if key:
                there.produce(key, waiting[key].pop(0))
        with monkeypatch.context() as patch:
            patch.setattr(CorpusWriter, "append", dying)
            with pytest.raises(ProcessKilled):
                there.ingest(corpus)
                raise ProcessKilled  # there was nothing to commit
        if draw.random() < 0.6:
            there.ingest(corpus)
            total += len(there.read)
    there.ingest(corpus)
    assert len(names(corpus)) == len(set(names(corpus))) == 20
    events = sum(row.events for row in corpus.inputs())
    assert events == len(read_rows(corpus, "events")) == sum(each.value is not None for each in there.records) - 20
    assert not read_rows(corpus, "quarantine") and there.ingest(corpus).records == 0
    assert total < 3 * len(there.records)


def test_sections_taken_as_they_are_do_not_hold_up_the_position(
    there: TopicInMemory, lines: list[bytes], tmp_path: Path
) -> None:
    """What comes of them later has no header."""
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("a", *lines[:5])
    assert there.ingest(corpus, unended=True).inputs == 1
    assert there.ingest(corpus).records == 0
    there.produce("a", lines[5], None)
    summary = there.ingest(corpus)
    assert (summary.records, len(summary.flaws)) == (2, 1)
    assert names(corpus) == ["0/a", "before 6/a"]


def test_records_that_were_removed_unread_are_told(there: TopicInMemory, lines: list[bytes], tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("a", *lines[:3], None)
    there.ingest(corpus)
    there.produce("a", *lines[:3], None, *lines[:3], None)
    there.begins = 8
    told = "records 4 to 7 of partition 0 were removed from the topic before they were read"
    assert there.ingest(corpus).flaws == (f"kafka://c/t/0: {told}",)
    assert [row[0::3] for row in read_rows(corpus, "quarantine")] == [("kafka://c/t/0", told)]
    assert there.ingest(corpus).flaws == ()
    assert names(corpus) == ["0/a", "8/a"]


def test_a_topic_is_forgotten_with_its_position(there: TopicInMemory, lines: list[bytes], tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("a", *lines[:3], None)
    there.ingest(corpus)
    there.records.clear()
    there.produce("a", *lines[:2])
    with pytest.raises(PipelineError, match=r"ends before record 4, .* forget CORPUS kafka://c/t$"):
        there.ingest(corpus)
    assert forget(corpus, "kafka://c/t").lines == 3 and not list(corpus.input_rows())
    there.produce("a", None)
    assert there.ingest(corpus).inputs == 1


def test_a_topic_that_is_forgotten_meanwhile_is_read_again(
    there: TopicInMemory, lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("a", *lines[:3], None)
    there.ingest(corpus)
    there.produce("a", *lines[:3], None)
    map_sections: Callable[..., list[Any]] = module.map_sections

    def forgetting(*arguments: Any) -> Iterator[Any]:
        forget(corpus, "kafka://c/t")
        return iter(map_sections(*arguments))

    monkeypatch.setattr(module, "map_sections", forgetting)
    with pytest.raises(PipelineError, match=r"was taken out of .* meanwhile: try again$"):
        there.ingest(corpus)
    monkeypatch.setattr(module, "map_sections", map_sections)
    there.ingest(corpus)
    assert names(corpus) == ["0/a", "4/a"]


SEEDS = (1, 2, 5, 6)


def lines_of(corpus: Corpus) -> "Counter[str]":
    """The rows of events, without the names of traces and the days."""
    return Counter(repr(row[1:25]) for row in read_rows(corpus, "events"))


def violations_of(path: Path) -> "Counter[int]":
    header, events = open_trace(path)
    return Counter(each.sequence for each in Judge(header).judge_events(list(events)).violations)


def watch_to_the_end(spark: SparkSession, topic: Topic, to: Path, attempts: int = 5) -> None:
    """Watch a topic until everything in it is judged. Spark waits ten seconds for the worker of a source, which may not
    be enough on a busy machine: a watch that it gives up goes on where it was."""
    try:
        watch_topic(spark, topic, to, once=True).awaitTermination()
    except StreamingQueryException as error:
        if attempts < 2 or "waiting for the Python worker to connect back" not in str(error):
            raise
        watch_to_the_end(spark, topic, to, attempts - 1)


def test_a_topic_is_ingested_and_watched_like_files(spark: SparkSession, address: str, tmp_path: Path) -> None:
    topic = create_topic(address, "traces", 2)
    paths = []
    for seed in SEEDS:
        paths.append(tmp_path / f"{seed}.jsonl")
        write_trace(paths[-1], *altered_trace(seed))
        produce_records(address, "traces", records_of(paths[-1], str(seed), ends=seed != SEEDS[-1]))
    (tmp_path / "r").mkdir()
    parts = write_in_parts(tmp_path / "r", *altered_trace(8), 2)
    for part in parts:
        produce_records(address, "traces", records_of(part, "r", ends=part == parts[-1]))
    produce_records(address, "traces", [("bad", b"?"), ("bad", None)])

    corpus, beside = Corpus.create(tmp_path / "c", 3), Corpus.create(tmp_path / "f", 3)
    done = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert done.records == sum(each.end for each in offset_ranges(topic))
    ingest_here(beside, [*paths[:-1], *parts])
    assert lines_of(corpus) == lines_of(beside)
    assert (done.inputs, len(done.unended), len(done.flaws)) == (len(paths) - 1 + len(parts) + 1, 1, 1)
    assert {(row[9], row[10]) for row in read_rows(corpus, "traces")} == {("", 0), ("r", 1), ("r", 2)}

    watch_to_the_end(spark, topic, tmp_path / "w")
    produce_records(address, "traces", [(str(SEEDS[-1]), None)])
    again = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert (again.inputs, again.unended, again.records < done.records) == (1, (), True)
    last = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert (last.inputs, last.records, last.flaws) == (0, 0, ())
    ingest_here(beside, paths[-1:])
    assert lines_of(corpus) == lines_of(beside) and len(corpus.inputs()) == done.inputs + 1
    watch_to_the_end(spark, topic, tmp_path / "w")
    found = list(new_findings(findings_log(tmp_path / "w")))
    for seed, path in zip(SEEDS, paths, strict=True):
        mine = [row for row in found if row["trace"].endswith(f"/{seed}")]
        assert Counter(row["sequence"] for row in mine) == violations_of(path)
    assert sum(map(Counter.total, map(violations_of, paths))) > 2
    assert [row["kind"] for row in found if row["trace"].endswith("/bad")] == ["quarantine"]
