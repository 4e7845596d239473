"""What the messages of clients and of drivers say, read and in words."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.classic.messages import topic_of
from fencepost.model.errors import Error, error_name
from fencepost.model.groups.messages import TopicNames
from fencepost.traces.events import Body, Event, Operation

NO_GENERATION = -1
FIRST_WITH_GENERATION = 2
"""The first version of a subscription that has the generation of the owned partitions (KIP-792)."""
PASSING_ERRORS = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.REQUEST_TIMED_OUT,
        Error.UNSTABLE_OFFSET_COMMIT,
    }
)
"""The errors that pass, where the same request is sent again."""
MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS})
"""The errors by which a coordinator says that it is another one, or not ready."""


def generation_in(operation: Operation) -> int:
    """The generation that a Heartbeat, SyncGroup or OffsetCommit carries."""
    body = operation.body
    return int(body.get("generation_id", body.get("generation_id_or_member_epoch", NO_GENERATION)))


def error_in(event: Event) -> int:
    """The error of a response, or else the first one of its coordinators, groups or their partitions; 0 for none."""
    body = event.body
    parts = (body, *(body.get("coordinators") or ()), *(body.get("groups") or ()))
    rows = (row for part in parts for topic in part.get("topics") or () for row in topic.get("partitions") or ())
    return next((int(part["error_code"]) for part in (*parts, *rows) if part.get("error_code")), 0)


def is_found(event: Event) -> bool:
    """Whether a response to FindCoordinator names a coordinator."""
    return any(not row["error_code"] for row in event.body.get("coordinators") or (event.body,))


def is_contradicting(body: Mapping[str, Any]) -> bool:
    """Whether a response has another protocol type than the one of consumers."""
    return body.get("protocol_type") not in (None, "", "consumer")


def read_subscriptions(join: Operation) -> dict[str, Subscription]:
    """What a JoinGroup carries, by protocol, as far as it can be read."""
    found: dict[str, Subscription] = {}
    for protocol in join.body["protocols"]:
        with suppress(ConsumerProtocolError):
            found[protocol["name"]] = decode_subscription(protocol["metadata"])
    return found


def protocols_in(join: Operation) -> frozenset[str]:
    """The names of the protocols of a JoinGroup."""
    return frozenset(row["name"] for row in join.body["protocols"])


UNSUPPORTED = "unsupported"
"""The error of a command that the driver does not carry out."""

# --- Offsets and fetches.


def fetch_offsets(body: Body, names: TopicNames) -> Iterator[tuple[TopicPartition, int]]:
    """The partitions of a Fetch in their order, each with the offset that it asks for."""
    for topic in body.get("topics") or ():
        for row in topic["partitions"]:
            yield (topic_of_fetch(topic, names), row["partition"]), row["fetch_offset"]


def fetched_partitions(fetch: Operation, names: TopicNames) -> list[TopicPartition]:
    """The partitions of a Fetch, in their order."""
    return [partition for partition, _ in fetch_offsets(fetch.body, names)]


def topic_of_fetch(row: Body, names: TopicNames) -> str:
    """The topic that a row of a Fetch or of its response is about, which has its id from version 13 on."""
    return str(row.get("topic") or names.get(row.get("topic_id", ""), row.get("topic_id", "")))


def out_of_range(event: Event, names: TopicNames) -> frozenset[TopicPartition]:
    """The partitions at whose offset there is nothing to fetch: the reset policy decides where they go on."""
    return frozenset(
        (topic_of_fetch(topic, names), int(row["partition_index"]))
        for topic in event.body.get("responses") or ()
        for row in topic["partitions"]
        if row["error_code"] == Error.OFFSET_OUT_OF_RANGE
    )


def read_committed(body: Body, names: TopicNames) -> Iterator[tuple[TopicPartition, int]]:
    """The committed offsets that a response to OffsetFetch tells, -1 for none."""
    for group in body.get("groups") or (body,):
        for topic in group.get("topics") or ():
            for row in topic["partitions"]:
                if not row["error_code"] and not group.get("error_code"):
                    yield (topic_of(topic, names), int(row["partition_index"])), row["committed_offset"]


def read_bounds(body: Body) -> Iterator[tuple[TopicPartition, int]]:
    """The bounds of logs that a response to ListOffsets tells."""
    for topic in body.get("topics") or ():
        for row in topic["partitions"]:
            partition = str(topic.get("name", "")), int(row["partition_index"])
            yield from ((partition, offset) for offset in (row.get("old_style_offsets") or (row.get("offset", -1),)))


# --- What a driver tells.


def partitions_in(event: Event, name: str = "partitions") -> frozenset[TopicPartition]:
    """The partitions in a field of a message of the driver."""
    return frozenset((str(topic), int(number)) for topic, number in event.body.get(name) or ())


def read_partition(name: str) -> TopicPartition:
    """The partition with this name in an annotation."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def name_of_error(event: Event) -> str:
    """What a client calls the error of a command, "" for none."""
    return str(event.body.get("error") or "").partition(":")[0]


# --- Words.


def describe_news(operation: Operation, event: Event) -> str:
    """A response in words."""
    return f"{operation.api} got {error_name(error_in(event))} at {event.time} ms"


def describe_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in words, sorted."""
    return ", ".join(f"{topic}/{number}" for topic, number in sorted(partitions)) or "nothing"


def describe_id(member_id: str | None) -> str:
    """A member id in words, quoted."""
    return "any" if member_id is None else f"'{member_id}'"
