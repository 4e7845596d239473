"""The records of the log, from which another coordinator can take over.

Never written: the two rebalance states, pending ids, parked requests, timers, and the protocols not selected.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member in the log: of its protocols only the metadata of the selected one. Timeouts in ms."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A whole group; the latest record of a group counts. `since` is when it entered its state, in ms."""

    group: str
    protocol_type: str | None
    generation: int
    protocol: str | None
    leader: str | None
    since: int
    members: tuple[MemberRecord, ...]


@dataclass(frozen=True, slots=True)
class SynchronizationRecord:
    """How far the generation of a group's record is: whether it has its assignment, and the ids of those who have yet
    to ask for it. Only the proposal of client-side assignment writes it."""

    group: str
    awaited: tuple[str, ...]
    is_assigned: bool


@dataclass(frozen=True, slots=True)
class GroupTombstone:
    """The end of a group and its offsets."""

    group: str


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """A committed offset. With a `producer` it waits for the end of that producer's transaction. Times in ms."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int | None = None
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetTombstone:
    """The end of an offset and of the uncommitted ones of its partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of the producer's transaction, which commits or discards its offsets."""

    producer: int
    committed: bool


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """The producer id and epoch that a transactional id stands for (None: an idempotent producer's)."""

    transactional_id: str | None
    producer: int
    epoch: int


Record: TypeAlias = (
    GroupRecord
    | SynchronizationRecord
    | GroupTombstone
    | OffsetRecord
    | OffsetTombstone
    | TransactionEnd
    | ProducerRecord
)

_KINDS: dict[str, type[Record]] = {
    "group": GroupRecord,
    "synchronization": SynchronizationRecord,
    "group-gone": GroupTombstone,
    "offset": OffsetRecord,
    "offset-gone": OffsetTombstone,
    "transaction-end": TransactionEnd,
    "producer": ProducerRecord,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode(batch: Sequence[Record]) -> bytes:
    """A batch as JSON; bytes are written in base 64."""
    return json.dumps(
        [{"kind": _NAMES[type(record)]} | asdict(record) for record in batch], default=_encode_bytes
    ).encode()


def decode(data: bytes) -> tuple[Record, ...]:
    """The batch that `encode` wrote. Raises `ValueError`, `KeyError` or `TypeError` on anything else."""
    return tuple(_decode_record(entry) for entry in json.loads(data))


def _encode_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _decode_record(entry: dict[str, Any]) -> Record:
    kind = _KINDS[entry.pop("kind")]
    if kind is SynchronizationRecord:
        entry["awaited"] = tuple(entry["awaited"])
    if kind is GroupRecord:
        entry["members"] = tuple(_decode_member(member) for member in entry["members"])
    if set(entry) != {field.name for field in fields(kind)}:
        raise ValueError(f"a {_NAMES[kind]} record with the fields {sorted(entry)}")
    return kind(**entry)


def _decode_member(entry: dict[str, Any]) -> MemberRecord:
    for name in ("metadata", "assignment"):
        entry[name] = base64.b64decode(entry[name])
    return MemberRecord(**entry)
