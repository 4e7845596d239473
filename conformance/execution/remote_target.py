"""The part of a target on the network that a pool needs beside `Target`."""

from typing import Protocol

from fencepost.adapters.target import Target


class RemoteTarget(Target, Protocol):
    """A target in other processes: it may go down or be busy, and connections to it take time."""

    @property
    def idle_findings(self) -> tuple[str, ...]:
        """What it did while it was idle that it should not."""
        ...

    @property
    def idle_remarks(self) -> tuple[str, ...]:
        """Why it was not watched while it was idle, if it should have been."""
        ...

    async def mark_run(self, token: str) -> str | None:
        """Leave a sign of the run with this token; the id of the topic, if it has one."""
        ...

    async def remove_traces(self, token: str) -> tuple[str, ...]:
        """Remove what the run with this token left; a line for each kind of thing that stays."""
        ...

    async def is_alive(self) -> bool:
        """Whether it responds on a fresh connection."""
        ...

    async def measure_response_time(self) -> float:
        """How many seconds a trivial request takes at present."""
        ...

    async def watch_idle(self, when: str) -> None:
        """Measure the idle target; `when` is a phrase such as "after the scenarios"."""
        ...

    async def open_idle_connections(self, connections: int) -> None:
        """Open connections in advance until so many are idle."""
        ...
