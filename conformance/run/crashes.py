"""Targets that go down: noticing it, starting one again, and finding out which of the scenarios that were being played
at once brings it down.

Whatever was in flight when the target went down is suspect, and one of the suspects needs as many seconds to bring it
down as it had been played for. They are played again, each begun so late that these seconds are over at a moment of its
own: the moment at which the target goes down again tells who it was, but for jitter, and for others that would have
brought it down a little later. Those nearest to that moment are tried alone, and then ever more of the others together.
A trial is given up when the target should be down.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.adapters.address import TargetError
from fencepost.conformance.run.protocol import RemoteTarget
from fencepost.conformance.subject import Scenario
from fencepost.traces.events import Event, Kind

# -- finding out which of the scenarios in flight did it --------------------------------------------------------------

SPACING_SECONDS = 0.1
"""How far the moments of two suspects are apart."""
JITTER_SECONDS = 0.2
"""How much earlier than its moment a suspect may bring the target down."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A scenario that was being played when the target went down, for so many seconds until then."""

    scenario: Scenario
    seconds: float


TryOut = Callable[[Sequence[Suspect]], Awaitable[bool]]
"""Plays suspects at once for a little longer than any of them needs. Whether the target went down; it is up again
afterwards."""


def separate_moments(suspects: Iterable[Suspect]) -> dict[Scenario, float]:
    """When each suspect brings the target down, if it does and is begun in time for that: as soon as possible, and at
    moments that are `SPACING_SECONDS` apart."""
    moments: dict[Scenario, float] = {}
    latest = 0.0
    for each in sorted(suspects, key=lambda each: each.seconds):
        moments[each.scenario] = latest = max(latest + SPACING_SECONDS, each.seconds)
    return moments


def order_suspects(suspects: Iterable[Suspect], moments: Mapping[Scenario, float], went_down: float) -> list[Suspect]:
    """The suspects by how near their moments are to when the target went down: those before it first, and those without
    a moment last."""

    def place(suspect: Suspect) -> tuple[bool, bool, float]:
        moment = moments.get(suspect.scenario)
        lag = went_down - moment if moment is not None else 0.0
        return moment is None, lag < -JITTER_SECONDS, abs(lag)

    return sorted(suspects, key=place)


async def find_crashing_scenario(suspects: Sequence[Suspect], try_out: TryOut) -> Scenario | None:
    """The scenario that brings the target down, None if no trial shows it. The most suspect come first."""
    left, size = list(suspects), 1
    while left:
        some, left = left[:size], left[size:]
        if await try_out(some):
            return some[0].scenario if len(some) == 1 else await find_crashing_scenario(some, try_out)
        size *= 2
    return None


# -- noticing that a target went down ---------------------------------------------------------------------------------

DISCONNECT_FAULTS = frozenset({"closed", "unreachable"})
"""Faults that a target leaves in traces when it goes down."""


@dataclass(frozen=True, slots=True)
class ConnectionLosses:
    """The lost connections of a scenario: `lost_at` is when the first one was lost, in seconds of the event loop;
    `reason` says why the target could not be reached any more, "" if that was not tried."""

    lost_at: float
    scenario: str
    reason: str


class TargetGone(Exception):
    """The target is gone and cannot be started again.

    The message says why. `losses` are those of the scenarios that noticed, the first one first; `last_sign` is when the
    target responded for the last time, in seconds of the event loop, None if it never did.
    """

    def __init__(self, reason: str, losses: Sequence[ConnectionLosses] = (), last_sign: float | None = None) -> None:
        super().__init__(reason)
        self.losses = tuple(losses)
        self.last_sign = last_sign


class CrashMonitor:
    """Whether a target is down, and the names of the scenarios that were being played when it went down."""

    def __init__(self, target: RemoteTarget, *, can_restart: bool) -> None:
        self.target = target
        self.can_restart = can_restart
        self.is_down = False
        self.crashing_scenarios: set[str] = set()
        self.last_sign: float | None = None
        """When the target responded for the last time, in seconds of the event loop."""
        self.losses: list[ConnectionLosses] = []
        """Of the scenarios that were being played when the target went down."""

    async def went_down(self, events: Sequence[Event], scenario: str = "", begun: float = 0.0) -> bool:
        """Whether the scenario with this trace may have brought the target down: it lost a connection, and the target
        does not respond any more. The trace began at `begun` seconds of the event loop."""
        responses = (begun + event.time / 1000 for event in events if event.kind is Kind.RESPONSE)
        self.last_sign = (
            max(responses, default=self.last_sign) if self.last_sign is None else max((self.last_sign, *responses))
        )
        if not was_disconnected(events):
            return False
        self.is_down = self.is_down or not await self.target.is_alive()
        if self.is_down:
            self.losses.append(connection_losses(events, scenario, begun))
        return self.is_down

    async def revive(self) -> None:
        """Start the target again. Raises `TargetGone` if the profile does not say how, or if that fails."""
        losses = sorted(self.losses, key=lambda each: each.lost_at)
        reasons = [each.reason for each in losses if each.reason] or ["it responds on no new connection"]
        if not self.can_restart:
            raise TargetGone(f"the target stopped answering: {reasons[-1]}", losses, self.last_sign)
        try:
            await self.target.restart()
        except TargetError as error:
            told = f"the target stopped answering and could not be started again: {error}"
            raise TargetGone(told, losses, self.last_sign) from error
        self.is_down = False
        self.losses.clear()


def disconnections(events: Iterable[Event]) -> list[Event]:
    """The faults that say that the target closed a connection or could not be reached."""
    return [event for event in events if event.kind is Kind.FAULT and event.api in DISCONNECT_FAULTS]


def was_disconnected(events: Sequence[Event]) -> bool:
    """The target closed a connection of this trace or could not be reached."""
    return bool(disconnections(events))


def connection_losses(events: Sequence[Event], scenario: str, begun: float) -> ConnectionLosses:
    """The lost connections of a scenario whose trace began at `begun` seconds; those before its last response do not
    count if there are later ones."""
    faults = disconnections(events)
    heard = max((event.sequence for event in events if event.kind is Kind.RESPONSE), default=-1)
    last = [fault for fault in faults if fault.sequence > heard] or faults
    unreachable = [str(fault.body.get("reason", "unreachable")) for fault in last if fault.api == "unreachable"]
    reason = f"{unreachable[-1]} since" if unreachable else ""
    return ConnectionLosses(begun + last[0].time / 1000, scenario, reason)
