"""An ingest of a topic goes on where the last one stopped, and takes every section once, whatever killed it."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline import topic_ingest as module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, forget
from fencepost.traces.pipeline.topic_ingest import TopicSummary, ingest_topic
from fencepost.traces.pipeline.topics import OffsetRange, Topic, TopicRecord
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ProcessKilled, read_rows

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

    def ingest(self, corpus: Corpus, *, unended: bool = False) -> TopicSummary:
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
    assert (summary.ingested.flaws, summary.unended, summary.ingested.already_ingested) == ((), (), 0)
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
    assert there.ingest(corpus, unended=True).ingested.inputs == 1
    assert there.ingest(corpus).records == 0
    there.produce("a", lines[5], None)
    summary = there.ingest(corpus)
    assert (summary.records, len(summary.ingested.flaws)) == (2, 1)
    assert names(corpus) == ["0/a", "before 6/a"]


def test_records_that_were_removed_unread_are_told(there: TopicInMemory, lines: list[bytes], tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 3)
    there.produce("a", *lines[:3], None)
    there.ingest(corpus)
    there.produce("a", *lines[:3], None, *lines[:3], None)
    there.begins = 8
    told = "records 4 to 7 of partition 0 were removed from the topic before they were read"
    assert there.ingest(corpus).ingested.flaws == (f"kafka://c/t/0: {told}",)
    assert [row[0::3] for row in read_rows(corpus, "quarantine")] == [("kafka://c/t/0", told)]
    assert there.ingest(corpus).ingested.flaws == ()
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
    assert there.ingest(corpus).ingested.inputs == 1


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
