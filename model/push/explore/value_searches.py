"""Searches over bytes, numbers and the orders of a few steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations, product

from fencepost.model.push.coordinator import queue_index
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.wire import (
    MalformedFrame,
    decode_push_response,
    encode_push_response,
    has_stop_response,
    response_fields,
)

# Searches over bytes and numbers: responses that look the same, ids and hashes that do not survive the draft.


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


# A group that two processors see for the first time at once: every order of their steps and the handler's.


PROCESSORS = ("A", "B")
ORDERS = 90
"""Of two steps each of three programs."""


@dataclass(slots=True)
class NewGroup:
    """The group in the coordinator's memory: whether it is there, its bit, and the requests for it."""

    makes_once: bool
    exists: bool = False
    bit: bool = False
    queued: int = 0
    is_running: bool = False
    unknown_to: set[str] = field(default_factory=set)

    def look(self, processor: str) -> None:
        """A registration is accepted: is the group known?"""
        if not self.exists:
            self.unknown_to.add(processor)

    def add_member(self, processor: str) -> None:
        """Make the group if it was not known (with its bit, and a request), else ask for a rebalance."""
        is_new = not self.exists if self.makes_once else processor in self.unknown_to
        if is_new or not self.bit:
            self.exists = self.bit = True
            self.queued += 1

    def take(self) -> None:
        """The handler takes a request."""
        if self.queued and not self.is_running:
            self.queued, self.is_running = self.queued - 1, True

    def reset(self) -> None:
        """The rebalance is over."""
        if self.is_running:
            self.is_running = self.bit = False

    def is_right(self) -> bool:
        """Whether the bit is set exactly while one request is queued or running."""
        work = self.queued + self.is_running
        return work <= 1 and self.bit == bool(work)


def twice_made_groups(dialect: PushDialect) -> Iterator[str]:
    """The orders of steps after which the bit does not say what is under way."""
    for order in sorted(set(permutations((*PROCESSORS, "the handler") * 2))):
        group, told = NewGroup(dialect.compares_and_sets), []
        for place, name in enumerate(order):
            is_first = name not in order[:place]
            if name in PROCESSORS:
                (group.look if is_first else group.add_member)(name)
                told.append(f"{name} {'looks' if is_first else 'adds a member'}")
            else:
                (group.take if is_first else group.reset)()
                told.append(f"{name} {'takes a request' if is_first else 'is done'}")
            if not group.is_right():
                yield ", ".join(told)
                break
