"""Searches over bytes and numbers: responses that look the same, ids and hashes that do not survive the draft."""

from collections.abc import Iterator
from itertools import product

from fencepost.model.push.coordinator import queue_index
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.wire import (
    MalformedFrame,
    decode_push_response,
    encode_push_response,
    has_stop_response,
    response_fields,
)

MAX_ALL_BYTES = 2
"""Every string of so many bytes is tried; longer ones are made by the encoder."""


def pushed_names(dialect: PushDialect) -> tuple[str, ...]:
    """The requests whose responses share a channel."""
    return ("RegisterConsumer", "Ping", "Start", *(("Stop",) if has_stop_response(dialect) else ()))


def ambiguous_responses(dialect: PushDialect) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Payloads that are responses to more than one request."""
    for payload in candidate_payloads(dialect):
        readings = tuple(name for name in pushed_names(dialect) if reads_as(payload, name, dialect))
        if len(readings) > 1:
            yield payload, readings


def offset_sources(dialect: PushDialect) -> tuple[str, ...]:
    """The requests whose responses have offsets without auto-commit, where that of a Ping is empty."""
    others = (name for name in pushed_names(dialect) if name != "Ping")
    return tuple(name for name in others if any(field.kind == "list" for field in response_fields(name, dialect)))


def candidate_payloads(dialect: PushDialect) -> Iterator[bytes]:
    """All short strings, then what the encoder makes of responses with a few values in each field."""
    for size in range(MAX_ALL_BYTES + 1):
        yield from (bytes(each) for each in product(range(256), repeat=size))
    offsets = [[], [{"topic": "t", "partition": "0-1", "offset": 5}]]
    for name in pushed_names(dialect):
        for error, attempt, partitions in product((0, 1, 24), (0, 1), offsets):
            body = {"error_code": error, "attempt": attempt, "partitions": partitions}
            yield encode_push_response(name, body, dialect)[4:]


def reads_as(payload: bytes, name: str, dialect: PushDialect) -> bool:
    """Whether the payload is a response to this request."""
    try:
        decode_push_response(name, payload, dialect)
    except MalformedFrame:
        return False
    return True


def lost_coordinator_ids(dialect: PushDialect, ids: range) -> Iterator[tuple[int, str]]:
    """The broker ids that a ClusterMetadataResponse cannot name, with what becomes of each."""
    for broker in ids:
        body = {"error_code": 0, "coordinator_id": broker, "brokers": [{"id": broker, "host": "h", "port": 1}]}
        try:
            seen = decode_push_response(
                "ClusterMetadata", encode_push_response("ClusterMetadata", body, dialect)[4:], dialect
            )
        except MalformedFrame as error:
            yield broker, str(error)
            continue
        if seen["coordinator_id"] != broker:
            yield broker, f"announced as {seen['coordinator_id']}"


def missing_queues(dialect: PushDialect, queues: int, groups: int) -> Iterator[tuple[str, int]]:
    """The names among so many groups whose queue there is not, with its index."""
    for number in range(groups):
        name = f"consumers-{number}"
        index = queue_index(name, queues, dialect)
        if not 0 <= index < queues:
            yield name, index
