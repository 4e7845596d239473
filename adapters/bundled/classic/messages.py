"""What goes into the coordinator and what comes out: requests, answers, error codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]
"""A message by field name, Kafka's schema names in snake case."""


class Error(IntEnum):
    """Kafka's error codes, as far as a group coordinator gives them out."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_NOT_AVAILABLE = 15
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    UNKNOWN_TOPIC_ID = 100


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. `handle` is the caller's name for it, given back with the answer.

    A field that `body` lacks has its schema default; fields that `version` does not have are not looked for.
    """

    handle: int
    api: str
    version: int
    client_id: str | None
    client_host: str
    body: Body


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to the request of that handle, with every field that its version has, in plain values."""

    handle: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A JoinGroup request, read (timeouts in milliseconds, protocols in the order of preference)."""

    request: Request
    group_id: str
    member_id: str
    instance_id: str | None
    session_timeout: int
    rebalance_timeout: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, request: Request) -> "JoinGroup":
        """Take the fields out of the body."""
        body = request.body
        session_timeout = body.get("session_timeout_ms", 0)
        return cls(
            request,
            body.get("group_id", ""),
            body.get("member_id", ""),
            body.get("group_instance_id"),
            session_timeout,
            # JOIN-42: version 0 has no rebalance timeout of its own.
            session_timeout if request.version == 0 else body.get("rebalance_timeout_ms", -1),
            body.get("protocol_type", ""),
            tuple((protocol["name"], bytes(protocol.get("metadata", b""))) for protocol in body.get("protocols", ())),
        )

    @property
    def is_static(self) -> bool:
        """Whether the member names its own instance (KIP-345)."""
        return self.instance_id is not None
