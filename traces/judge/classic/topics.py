"""The cluster's topics as a trace shows them: their numbers of partitions, and their names by id (KIP-516)."""

from collections.abc import Iterator
from typing import Any

from fencepost.model.classic.messages.parsing import names_topics_by_id
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.traces.events import Body, Operation


class KnownTopics:
    """The topics as far as they are known: given by the schedule, or read from Metadata responses."""

    def __init__(self) -> None:
        self.partition_counts: dict[str, int] | None = None
        self.names: dict[str, str] = {}
        self.has_all_ids = False
        """The schedule gave the ids of all topics."""
        self.revision = 0
        """How often something was learned."""

    def learn_from_annotation(self, body: Body) -> None:
        """Learn topics from an annotation of the schedule."""
        self.revision += 1
        self.partition_counts = {**(self.partition_counts or {}), **body["topics"]}
        if "ids" in body:
            self.has_all_ids = True
            self.names |= {topic_id: name for name, topic_id in body["ids"].items()}

    def learn_from_metadata(self, response: Body) -> None:
        """Read the ids in a response to Metadata."""
        for topic in response.get("topics") or ():
            name, topic_id = topic.get("name"), topic.get("topic_id", ZERO_UUID)
            if name and topic_id != ZERO_UUID and self.names.get(topic_id) != name:
                self.names[topic_id] = name
                self.revision += 1

    def has_unknown_ids(self, operation: Operation) -> bool:
        """The request or its response goes by ids that may be those of any topic."""
        if self.has_all_ids or not names_topics_by_id(operation.api, operation.version):
            return False
        return any(
            each not in self.names for body in (operation.body, operation.response) for each in topic_ids_in(body)
        )

    def cluster(self, settings: Settings) -> Cluster:
        """A target with these topics; what is learned of names later counts too."""
        return Cluster(settings, self.partition_counts, self.names)


def topic_ids_in(value: Any) -> Iterator[str]:
    """Every topic id in a message."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from topic_ids_in(each)
    elif isinstance(value, dict):
        if "topic_id" in value:
            yield value["topic_id"]
        for each in value.values():
            yield from topic_ids_in(each)
