"""Partitions as numbers: `sticky` compares and sorts them too often to do so by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.model.assignors.group import ClusterTopics, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The partitions that take part, each with a code. Codes ascend by topic, then by partition number."""

    names: tuple[TopicPartition, ...]
    """The partitions by code."""
    codes: dict[str, range]
    """The codes of each topic's partitions."""

    def codes_of(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The codes of those partitions that take part."""
        codes, nothing = self.codes, range(0)
        return [codes[topic][number] for topic, number in partitions if 0 <= number < len(codes.get(topic, nothing))]

    def names_of(self, codes: Iterable[int]) -> tuple[TopicPartition, ...]:
        """The partitions with these codes, ordered."""
        names = self.names
        return tuple([names[code] for code in sorted(codes)])


def index_partitions(topics: Sequence[str], cluster: ClusterTopics) -> PartitionIndex:
    """The index of the partitions of these topics, which are in order."""
    names: list[TopicPartition] = []
    codes = {}
    for topic in topics:
        begin, count = len(names), cluster.partitions[topic]
        names += zip([topic] * count, range(count), strict=True)
        codes[topic] = range(begin, begin + count)
    return PartitionIndex(tuple(names), codes)
