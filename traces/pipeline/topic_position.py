"""Where the next ingest of a topic goes on. It is committed with the rows of what was read, so both count or neither.

A section may be longer than others that begin after it, so records of some keys beyond the position are in the corpus
already: those before the end of the last section of the key that is over.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fencepost.traces.pipeline.corpus import InputRow
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.topics import OffsetRange, Topic, TopicRecord


class SectionSpan(NamedTuple):
    """Where a section is: the offsets of its first record, and of the record that ends it; -1 if it is not over."""

    partition: int
    key: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """For each partition the first record that may not be in the corpus, and the keys of which more is in it, up to,
    but without, a record."""

    next: Mapping[int, int] = field(default_factory=dict)
    taken: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def is_new(self, record: TopicRecord) -> bool:
        """Whether a record may not be in the corpus."""
        return record.offset >= self.taken.get(record.partition, {}).get(record.key, 0)

    def advance(self, ranges: Iterable[OffsetRange], spans: Iterable[SectionSpan]) -> "TopicPosition":
        """The position after these ranges were read, with these sections in them."""
        next = {**self.next, **{each.partition: max(each.end, self.next.get(each.partition, 0)) for each in ranges}}
        found = list(spans)
        for each in found:
            if each.end < 0:
                next[each.partition] = min(next[each.partition], each.first)
        ends = [(each.partition, each.key, each.end) for each in found if each.first < next[each.partition]]
        ends += [(partition, key, end) for partition, mine in self.taken.items() for key, end in mine.items()]
        taken: dict[int, dict[str, int]] = {}
        for partition, key, end in ends:
            if end > next[partition]:
                mine = taken.setdefault(partition, {})
                mine[key] = max(end, mine.get(key, 0))
        return TopicPosition(next, taken)

    def row(self, topic: Topic) -> InputRow:
        """The row of the table of inputs that remembers the position."""
        told = {"next": self.next, "taken": self.taken}
        return InputRow(position_name(topic), 0, time.time_ns(), 0, 0, 0, 0, json.dumps(told, sort_keys=True))


def position_name(topic: Topic) -> str:
    """The name of the positions of a topic in the table of inputs; those of its sections begin with it."""
    return f"{topic.uri}/"


def known_position(topic: Topic, rows: Iterable[InputRow]) -> TopicPosition:
    """The furthest of the positions of a topic in the table of inputs, for each partition."""
    found = TopicPosition()
    for row in rows:
        if row.input == position_name(topic):
            told = json.loads(row.report or "{}")
            for partition, next in told["next"].items():
                number = int(partition)
                if next >= found.next.get(number, 0):
                    taken = told["taken"].get(partition, {})
                    found = TopicPosition({**found.next, number: next}, {**found.taken, number: taken})
    return found


def unread_ranges(topic: Topic, position: TopicPosition, ranges: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield what is to be read of the records that a topic has. Raises `PipelineError` for a topic that has fewer
    records than were read."""
    for each in ranges:
        next = position.next.get(each.partition, each.start)
        if next > each.end:
            raise PipelineError(
                f"{topic.uri}: partition {each.partition} ends before record {next}, where the last ingest stopped: it "
                f"is another topic of this name; take the first out with fencepost pipeline forget CORPUS {topic.uri}"
            )
        yield OffsetRange(each.partition, max(each.start, next), each.end)


def lost_ranges(position: TopicPosition, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The records that were removed from a topic before they were read."""
    wheres = (OffsetRange(each.partition, position.next.get(each.partition, 0), each.start) for each in ranges)
    return [each for each in wheres if each.partition in position.next and each.start < each.end]
