"""The times of a client's heartbeats and of its lookups that failed, and its repeats of requests."""

from dataclasses import dataclass, field

STEADY = 3
"""So many heartbeats show a rhythm, and a silence of so many is one."""


@dataclass(slots=True)
class Rhythm:
    """When heartbeats came, and when the coordinator could not be found. Times in milliseconds."""

    last: int = 0
    gaps: list[int] = field(default_factory=list)
    """The times between heartbeats while the application polled."""
    failed: int | None = None
    """When a heartbeat got an error that may pass, if none came since."""
    lost_since: int | None = None
    """When the first lookup failed, if none has succeeded since."""
    callback: tuple[int, int] | None = None
    """When a slow callback began, if it is under way, and how long it takes."""
    found_at: int | None = None
    """When a lookup succeeded after one that had failed."""
    outage: int = 0
    """How long the coordinator could not be found, the last time."""

    @property
    def usual(self) -> int:
        """The longest time between heartbeats so far, 0 if there were too few."""
        return max(self.gaps) if len(self.gaps) >= STEADY else 0


@dataclass(slots=True)
class Repeats:
    """The repeats of a request to one API: when it failed last, if nothing came since, and how many came at once."""

    failed: int | None = None
    at_once: int = 0
