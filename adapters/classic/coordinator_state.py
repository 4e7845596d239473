"""The state that the parts of the coordinator share: groups, timers, log, time, and responses to be sent."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.log import Log
from fencepost.adapters.classic.records import Record
from fencepost.adapters.classic.responses import trim_to_version
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.serve.coordination import Body, Request, Response, Topics
from fencepost.model.errors import Error
from fencepost.model.settings import Settings

IDS_SINCE = 10
"""From this version on OffsetCommit and OffsetFetch name topics by their ids."""


@dataclass(slots=True)
class CoordinatorState:
    """The coordinator's memory. `now` is the time of what is being handled, in milliseconds.

    `new_id` makes a member id from a prefix and never makes one twice.
    """

    settings: Settings
    log: Log
    new_id: Callable[[str], str]
    topics: Topics
    now: int
    groups: dict[str, Group] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    responses: list[Response] = field(default_factory=list)
    commits: int = 0

    def respond(self, request: Request, body: dict[str, Any]) -> None:
        """Send a response, without the fields that the request's version lacks."""
        self.responses.append(Response(request.handle, trim_to_version(request.api, request.version, body)))

    def write(self, *batch: Record) -> None:
        """Append all records to the log or none. Raises `LogWriteError`."""
        if batch:
            self.log.append(batch)

    def topic_name(self, request: Request, topic: Body) -> str | None:
        """The name of a topic in a request, None if it goes by an id that no topic has."""
        return self.topics.name_of(topic["topic_id"]) if request.version >= IDS_SINCE else topic["name"]

    def topic_reference(self, request: Request, name: str | None, topic_id: str | None) -> dict[str, Any]:
        """The name or the id of a topic, as the response to the request has it."""
        return {"topic_id": topic_id} if request.version >= IDS_SINCE else {"name": name}

    def partition_error(self, topic: str | None, partition: int) -> Error:
        """NONE if the cluster has the partition, else the error of a response (COMMIT-13)."""
        if topic is None:
            return Error.UNKNOWN_TOPIC_ID
        return Error.NONE if self.has_partition(topic, partition) else Error.UNKNOWN_TOPIC_OR_PARTITION

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether the cluster has this partition."""
        count = self.topics.partition_count(topic)
        return count is not None and 0 <= partition < count

    def next_commit_number(self) -> int:
        """The next number for a committed offset; rises with every call."""
        self.commits += 1
        return self.commits
