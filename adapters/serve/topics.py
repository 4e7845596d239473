"""The topics of the broker: their names, ids and partitions."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.bundled.classic.log import CorruptLogError
from fencepost.adapters.bundled.classic.topics import topic_id_of
from fencepost.adapters.serve.partition import Partition
from fencepost.model.errors import Error

DEFAULT_PARTITIONS = 4
"""Partitions of a topic created without a number; more than Kafka's 1, so that a group can share them."""

MAX_PARTITIONS = 10_000
"""Partitions of all topics together."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions; its id follows from its name."""

    name: str
    partitions: tuple[Partition, ...]

    @property
    def id(self) -> str:
        """The topic's id (KIP-516)."""
        return topic_id_of(self.name)


class TopicStore:
    """All topics by name. With a file, they survive a restart, without their records."""

    def __init__(self, file: Path | None = None) -> None:
        self._topics: dict[str, Topic] = {}
        self._file = file
        if file is not None and file.exists():
            self._topics = _read_topics(file)

    @property
    def by_name(self) -> Mapping[str, Topic]:
        """Every topic by name."""
        return self._topics

    def topic_with_id(self, topic_id: str) -> Topic | None:
        """The topic with that id."""
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def partition(self, name: str, index: int) -> Partition | None:
        """The partition of that topic and number; None if there is none."""
        topic = self._topics.get(name)
        return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of the topic, None if there is no such topic."""
        topic = self._topics.get(name)
        return len(topic.partitions) if topic else None

    def id_of(self, name: str) -> str | None:
        """The id of the topic, None if there is no such topic."""
        topic = self._topics.get(name)
        return topic.id if topic else None

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id, None if there is no such topic."""
        topic = self.topic_with_id(topic_id)
        return topic.name if topic else None

    def creation_error(self, name: str, partitions: int) -> Error:
        """The error of creating this topic, or NONE."""
        if not _NAME.fullmatch(name) or name in (".", ".."):
            return Error.INVALID_TOPIC_EXCEPTION
        if name in self._topics:
            return Error.TOPIC_ALREADY_EXISTS
        if partitions < 1:
            return Error.INVALID_PARTITIONS
        if partitions + sum(len(topic.partitions) for topic in self._topics.values()) > MAX_PARTITIONS:
            return Error.POLICY_VIOLATION
        return Error.NONE

    def create(self, name: str, partitions: int = DEFAULT_PARTITIONS) -> Error:
        """Create a topic and return NONE, or only the error of `creation_error`."""
        error = self.creation_error(name, partitions)
        if error is Error.NONE:
            self._topics[name] = _make_topic(name, partitions)
            self._save()
        return error

    def grow(self, name: str, partitions: int) -> None:
        """Add empty partitions to a topic, so that it has so many."""
        topic = self._topics[name]
        added = tuple(Partition() for _ in range(partitions - len(topic.partitions)))
        self._topics[name] = Topic(name, (*topic.partitions, *added))
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({name: len(topic.partitions) for name, topic in self._topics.items()}))
        os.replace(beside, self._file)


def _read_topics(file: Path) -> dict[str, Topic]:
    try:
        return {name: _make_topic(name, count) for name, count in json.loads(file.read_text()).items()}
    except (ValueError, AttributeError, TypeError) as cause:
        raise CorruptLogError(f"{file}: damaged ({cause}); delete it, the topics then have to be made again") from None


def _make_topic(name: str, partitions: int) -> Topic:
    return Topic(name, tuple(Partition() for _ in range(partitions)))
