"""The parts of a trace: a header with the conditions of observation, and events in the order of observation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from fencepost.model.frozen import fast_frozen
from fencepost.model.settings import Settings

FORMAT_VERSION = 1
CLASSIC = "classic"
"""The protocol of a trace that names none: that of consumer groups since Kafka 0.9."""
SAVED = "saved"
"""The name of the internal event that says for which requirements a failing trace was saved."""

Body: TypeAlias = Mapping[str, Any]
"""A message by field name: Kafka's schema names in snake case; values are None, bool, int, float, str, bytes,
lists and further bodies. A field that the version does not have is absent."""


class Order(StrEnum):
    """Place of observation, which decides the meaning of the order of events."""

    TOTAL = "total"
    """Seen at the coordinator: a request event is the moment of its handling."""
    INTERVALS = "intervals"
    """Seen at clients: a request is handled somewhere between its event and its response's event."""


class Kind(StrEnum):
    """Kind of an event."""

    REQUEST = "request"
    RESPONSE = "response"
    CALLBACK = "callback"
    POLL = "poll"
    FAULT = "fault"
    INTERNAL = "internal"


REQUEST, RESPONSE, FAULT, INTERNAL = Kind.REQUEST, Kind.RESPONSE, Kind.FAULT, Kind.INTERNAL
"""The kinds that every event of a trace is compared with; members of an enumeration are looked up slowly."""


@dataclass(frozen=True, slots=True)
class Header:
    """First line of a trace.

    `clock` is "virtual" or "wall"; `settings` are the target's; a timer may fire up to `grace` milliseconds after its
    deadline; `implementation` describes the target. `protocol` names the protocol; `limits` are bounds and times of the
    target that `settings` has no field for, by name.
    """

    source: str
    order: Order
    clock: str
    settings: Settings
    grace: int
    implementation: Mapping[str, str] = field(default_factory=dict)
    protocol: str = CLASSIC
    limits: Mapping[str, int] = field(default_factory=dict)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Event:
    """One observation.

    `sequence` rises strictly within a trace; `time` is in milliseconds since the trace began and never falls;
    `of` is the sequence number of the request that a response (or a dropped connection) belongs to, else None.
    `member` is the label of the actor in the schedule ("A", "B", ...), never a member id.
    """

    sequence: int
    time: int
    connection: int
    member: str
    kind: Kind
    api: str
    version: int
    body: Body
    of: int | None = None
