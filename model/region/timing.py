"""Waiting times and attempts (page, Reset processing; the runtime's limits)."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.dialect import RegionDialect

MAX_WAIT_MS = 15_000
MAX_ATTEMPTS = 5
"""How many resets may fail one after the other before the region fails."""


def merge_wait_ms(reset_timeout_ms: int, max_poll_interval_ms: int, dialect: RegionDialect) -> int:
    """How long an operator waits for the merge."""
    if dialect.waits_for_region:
        return reset_timeout_ms
    return min(reset_timeout_ms // 2, max_poll_interval_ms // 2, MAX_WAIT_MS)


def accepts_timeouts(
    reset_timeout_ms: int, drain_timeout_ms: int, max_poll_interval_ms: int, dialect: RegionDialect
) -> bool:
    """Whether an operator starts with these timeouts: repaired only if Kafka waits longer than the region does."""
    return not dialect.waits_for_region or max_poll_interval_ms > max(reset_timeout_ms, drain_timeout_ms)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Attempts:
    """Resets since the last one that led to a checkpoint: as the runtime counts them, and as they were."""

    counted: int = 0
    made: int = 0
    has_failed: bool = False


def begin_attempt(attempts: Attempts, is_forced: bool, dialect: RegionDialect) -> Attempts:
    """A reset begins; one that an operator forces sets the count back first, as documented (H12)."""
    counted = 0 if is_forced and not dialect.counts_forced_resets else attempts.counted
    if counted >= MAX_ATTEMPTS:
        return evolve(attempts, has_failed=True)
    return evolve(attempts, counted=counted + 1, made=attempts.made + 1)
