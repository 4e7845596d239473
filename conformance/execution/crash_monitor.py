"""Noticing that a target went down, and starting it again."""

from collections.abc import Sequence

from fencepost.conformance.execution.remote_target import RemoteTarget
from fencepost.traces.events import Event, Kind

DISCONNECT_FAULTS = frozenset({"closed", "unreachable"})
"""Faults that a target leaves in traces when it goes down."""


class TargetGone(Exception):
    """The target is gone and cannot be started again."""


class CrashMonitor:
    """Whether a target is down, and the names of the scenarios that were being played when it went down."""

    def __init__(self, target: RemoteTarget, *, can_restart: bool) -> None:
        self.target = target
        self.can_restart = can_restart
        self.is_down = False
        self.crashing_scenarios: set[str] = set()

    async def went_down(self, events: Sequence[Event]) -> bool:
        """Whether the scenario with this trace may have brought the target down: it lost a connection, and the target
        does not respond any more."""
        if not was_disconnected(events):
            return False
        self.is_down = self.is_down or not await self.target.is_alive()
        return self.is_down

    async def revive(self) -> None:
        """Start the target again. Raises `TargetGone` if the profile does not say how."""
        if not self.can_restart:
            raise TargetGone
        await self.target.restart()
        self.is_down = False


def was_disconnected(events: Sequence[Event]) -> bool:
    """The target closed a connection of this trace or could not be reached."""
    return any(event.kind is Kind.FAULT and event.api in DISCONNECT_FAULTS for event in events)
