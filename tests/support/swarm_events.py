"""The events of a swarm's schedule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SwarmEvent:
    """Something that happens to a client, or to them all; `amount` says how much of it."""

    kind: str
    client: int = 0
    amount: int = 1


KINDS = (
    *("poll", "wait", "send", "receive", "listener", "commit", "disconnect"),
    *("start", "crash", "close", "upgrade", "produce", "grow"),
)
"""The kinds of events."""
