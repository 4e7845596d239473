"""The topics of the cluster as the coordinator sees them: names, partition counts and ids (KIP-516)."""

import uuid
from collections.abc import Mapping
from typing import Protocol


class Topics(Protocol):
    """The topics of a cluster. Methods return None for a topic that it lacks."""

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of the topic."""
        ...

    def id_of(self, name: str) -> str | None:
        """The id of the topic."""
        ...

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""
        ...


def topic_id_of(name: str) -> str:
    """The id that is derived from the name, so that a restart does not change it."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class FixedTopics:
    """Topics with constant numbers of partitions."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)
        self._names = {topic_id_of(name): name for name in counts}

    def partition_count(self, name: str) -> int | None:
        """As `Topics.partition_count`."""
        return self._counts.get(name)

    def id_of(self, name: str) -> str | None:
        """As `Topics.id_of`."""
        return topic_id_of(name) if name in self._counts else None

    def name_of(self, topic_id: str) -> str | None:
        """As `Topics.name_of`."""
        return self._names.get(topic_id)
