"""The methods of a target over the network that do nothing where it leaves no traces and cannot be restarted."""

from fencepost.adapters.target import TargetError


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
