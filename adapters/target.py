"""The interface of a target: its description, its channels, and the events that they record.

A target makes channels; a channel sends requests, one connection for each request in flight, and records
everything in the order and at the time it was seen.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fencepost.adapters.address import TargetError
from fencepost.model.settings import Settings
from fencepost.traces.events import CLASSIC, Body, Event, Kind, Order


class SettingOrigin(StrEnum):
    """Where the value of a setting comes from, in the order of trust."""

    KIT = "kit"
    """The kit made the target with this value."""
    CONSTANT = "constant"
    """Every Kafka has this value."""
    PROFILE = "profile"
    OVERRIDE = "override"
    """The profile, which may contradict the broker."""
    BROKER = "broker"
    """The response to DescribeConfigs, or to Metadata."""
    PROBE = "probe"
    """Measured: the target itself refuses what is beyond."""
    ESTIMATE = "estimate"
    """Measured by how long responses take, which on a busy machine or a cold target is too long. The value excuses a
    response that comes late, and accuses none that comes early."""
    UNLIMITED = "no limit met"
    """Measured: no limit as far as the kit looks. The value is the farthest that was tried, or none of importance."""
    NOT_TOLD = "not told"
    """Neither told nor measured. The value, Kafka's default, decides nothing."""

    @property
    def is_known(self) -> bool:
        """Whether there is a value that requirements can be tested with."""
        return self not in (SettingOrigin.ESTIMATE, SettingOrigin.UNLIMITED, SettingOrigin.NOT_TOLD)

    @property
    def is_measured(self) -> bool:
        """Whether the kit has found the value out by requests of its own."""
        return self in (SettingOrigin.PROBE, SettingOrigin.ESTIMATE, SettingOrigin.UNLIMITED)


@dataclass(frozen=True, slots=True)
class Description:
    """A target as discovered when it was opened.

    `versions` maps an API name to the lowest and highest version that both the target and the kit know;
    an API that the target does not advertise is missing. `origins` says where each setting comes from, by field of
    `Settings` (empty: all of them are the kit's), and `remarks` what else the kit found out.
    """

    name: str
    order: Order
    clock: str
    versions: Mapping[str, tuple[int, int]]
    settings: Settings
    topic: str
    """An existing topic with at least four partitions; the kit creates a missing one."""
    topic_id: str | None = None
    """Its id (KIP-516); without one, `versions` has none that needs ids."""
    brokers: tuple[int, ...] = (0,)
    can_restart: bool = False
    can_move: bool = False
    """Whether a group can be moved to another node while its old one stays up."""
    implementation: Mapping[str, str] = field(default_factory=dict)
    protocol: str = CLASSIC
    limits: Mapping[str, int] = field(default_factory=dict)
    """As in the header of a trace."""
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def origin_of(self, setting: str) -> SettingOrigin:
        """Where a setting comes from."""
        return self.origins.get(setting, SettingOrigin.KIT)

    def knows(self, *settings: str) -> bool:
        """Whether all of the settings were told or measured."""
        return all(self.origin_of(setting).is_known for setting in settings)

    @property
    def not_told(self) -> frozenset[str]:
        """The settings whose values are guesses: they may excuse a response, and never accuse one."""
        return frozenset(name for name, origin in self.origins.items() if not origin.is_known)


class TraceBuilder:
    """Collects the events of one schedule. `now` gives milliseconds since the run began; `on_fault` is told of each
    fault."""

    def __init__(self, now: Callable[[], int], on_fault: Callable[[Event], None] = lambda fault: None) -> None:
        self._now = now
        self._on_fault = on_fault
        self._events: list[Event] = []

    def now(self) -> int:
        """Milliseconds since the run began."""
        return self._now()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events recorded so far, in order."""
        return tuple(self._events)

    def record(
        self,
        kind: Kind,
        api: str,
        version: int,
        body: Body,
        *,
        connection: int = 0,
        member: str = "",
        of: int | None = None,
    ) -> Event:
        """Append one event at the present time and return it."""
        event = Event(len(self._events), self._now(), connection, member, kind, api, version, body, of)
        self._events.append(event)
        if kind is Kind.FAULT:
            self._on_fault(event)
        return event


@dataclass(slots=True)
class Exchange:
    """A request that was sent, and its response to come.

    `response` resolves to the body of the response, or to None when the connection ended without one.
    """

    request: Event | None
    """Recorded just before the bytes are written: None while a connection is still being made, and for a request of
    which only a part is sent."""
    response: asyncio.Future[Body | None]
    drop: Callable[[], None]
    """Close the connection of this request; its response is then never seen."""


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How a request is sent.

    `member` is the label recorded with its events, `client_id` the one in its header. `broker` is the node that gets it
    (None: the coordinator of its group). With a `share`, only so many percent of its bytes are sent, and then the
    connection is closed: below 100 the target cannot handle it, and no request is recorded; at 100 it may.
    """

    member: str = ""
    client_id: str = "fencepost"
    broker: int | None = None
    share: int | None = None

    @property
    def is_torn(self) -> bool:
        """Whether the target gets only a part of the request."""
        return self.share is not None and self.share < 100


DEFAULT_OPTIONS = SendOptions()


def torn_request_body(api: str, body: Body, options: SendOptions) -> Body:
    """The body of the fault event that is recorded instead of a request that was sent in part."""
    return {"api": api, "share": options.share, "request": body}


class Channel(Protocol):
    """A schedule's own connections to the target."""

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Send a request on a connection that has none in flight."""
        ...

    async def close(self) -> None:
        """Close every connection of this channel."""
        ...


class Target(Protocol):
    """An implementation under test: opened once, then used through channels."""

    async def open(self) -> Description:
        """Reach the target and learn what it is. Raises `TargetError` if it cannot be used."""
        ...

    def channel(self, recorder: TraceBuilder) -> Channel:
        """Return a new channel that records into `recorder`."""
        ...

    async def restart(self) -> None:
        """Kill the target without warning and start it again with the same storage."""
        ...

    async def move(self, group: str) -> None:
        """Have another node coordinate the group, while its old one stays up, and record when that began and ended.
        Other groups may move with it. Raises `TargetError`."""
        ...

    async def close(self) -> None:
        """Close every connection to the target, which may keep running."""
        ...


# --- The methods of a target over the network that do nothing where it leaves no traces and cannot be restarted.


class RemoteTargetBase:
    """A target that leaves nothing behind, is not watched while it is idle, and cannot be restarted or moved."""

    name: str
    """Its address, for messages."""
    idle_findings: tuple[str, ...] = ()
    idle_remarks: tuple[str, ...] = ()

    async def mark_run(self, token: str) -> None:
        """Nothing is marked."""

    async def remove_traces(self, token: str) -> tuple[str, ...]:
        """Nothing stays."""
        return ()

    async def watch_idle(self, when: str) -> None:
        """Nothing is measured."""

    async def open_idle_connections(self, connections: int) -> None:
        """None is opened in advance."""

    async def measure_again(self, topic_id: str | None) -> Mapping[str, tuple[int, int]]:
        """Nothing was measured."""
        return {}

    async def measure_response_time(self) -> float:
        """No time to speak of: the kit need not slow down."""
        return 0.0

    async def restart(self) -> None:
        """Raises TargetError."""
        raise TargetError(f"{self.name}: cannot be restarted")

    async def move(self, group: str) -> None:
        """Raises TargetError."""
        raise TargetError(f"{self.name}: groups cannot be moved")

    async def close(self) -> None:
        """Nothing is open."""
