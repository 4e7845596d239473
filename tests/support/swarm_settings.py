"""The settings of clients in a swarm."""

from fencepost.model.classic.member.settings import (
    COOPERATIVE_STICKY,
    RANGE,
    ClientSettings,
    ResetPolicy,
    Strategy,
)
from fencepost.model.sorts import InstanceId

ONLY_RANGE: tuple[Strategy, ...] = (RANGE,)
BOTH = (COOPERATIVE_STICKY, RANGE)
ONLY_COOPERATIVE = (COOPERATIVE_STICKY,)
"""The steps of an upgrade by two rolling restarts (KIP-429)."""


def settings_of(strategies: tuple[Strategy, ...], instance: str | None, auto_commit: bool) -> ClientSettings:
    """Short times, so that a fair time need not be long."""
    return ClientSettings(
        strategies=strategies,
        instance=None if instance is None else InstanceId(instance),
        session_timeout=6_000,
        heartbeat_interval=1_000,
        max_poll_interval=8_000,
        auto_commit=auto_commit,
        auto_commit_interval=1_000,
        reset_policy=ResetPolicy.EARLIEST,
    )
