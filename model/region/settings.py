"""Settings that an operator accepts, where it begins a partition, and how long it waits."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.dialect import RegionDialect

# Settings that an operator accepts, and names that it makes of them (page, Assumptions and restrictions).


DEFAULT_MAX_POLL_RECORDS = 500
START_POSITIONS = ("Beginning", "End", "Default", "Time")
"""Default is the last committed offset."""


def queue_capacity(max_poll_records: int = DEFAULT_MAX_POLL_RECORDS) -> int:
    """The messages that the queue holds."""
    return 100 * max_poll_records


def must_pause(queued: int, max_poll_records: int) -> bool:
    """Whether fetching pauses: another poll might not fit."""
    return queue_capacity(max_poll_records) - queued < max_poll_records


def accepts_start_position(name: str) -> bool:
    """Whether a start position is allowed in a region: none that belongs to one partition."""
    return name in START_POSITIONS


def accepts_control_port(has_control_port: bool) -> bool:
    """Whether an operator in a region starts."""
    return not has_control_port


def accepts_operators(operators: int, is_operator_driven: bool, dialect: RegionDialect) -> bool:
    """Whether a group of so many operators starts (H17)."""
    return not (dialect.refuses_operator_driven and is_operator_driven and operators > 1)


def runtime_allows(operators: int, is_operator_driven: bool) -> bool:
    """Whether the runtime does: an operator-driven region has one start operator."""
    return not is_operator_driven or operators == 1


def bean_name(group_id: str, dialect: RegionDialect) -> str:
    """The name of a group's bean: of the id, as documented of its 32-bit hash (H17)."""
    return f"group {group_id}" if dialect.names_group_exactly else f"group {string_hash(group_id)}"


def string_hash(text: str) -> int:
    """The hash of a Java string, as a number without sign."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) % (1 << 32)
    return value


# Where an operator begins a partition, and where it really is after a reset: control variables and the log (page,
# Shared, Partition assignment, Reset processing).


@fast_frozen
@dataclass(frozen=True, slots=True)
class FirstSight:
    """An operator that is assigned a partition which it has not seen: the offset it has sought, whether it is done."""

    sought: int | None = None
    is_done: bool = False


def start_position(end: int, knew_partition: bool, dialect: RegionDialect) -> int:
    """The offset of the start position End: the end of the log, repaired its beginning if the partition did not exist
    when the operator subscribed (H14)."""
    return 0 if dialect.starts_new_partitions_first and not knew_partition else end


def look(own: FirstSight, variable: int | None, start: int, dialect: RegionDialect) -> tuple[FirstSight, int | None]:
    """Look for the control variable. Documented: seek it, or the start position if there is none; repaired: make it if
    there is none, and seek what is in it."""
    if variable is not None:
        return FirstSight(variable, True), variable
    if dialect.creates_first:
        return FirstSight(start, True), start
    return FirstSight(start), None


def store(own: FirstSight, variable: int | None) -> tuple[FirstSight, int | None]:
    """Documented: make the control variable of the offset that was sought; if another was quicker, leave it."""
    return evolve(own, is_done=True), own.sought if variable is None else variable


def position_after_reset(sought: int, first: int, end: int) -> int:
    """Where the client is once it fetches: an offset that the log no longer has becomes the end (Kafka's default)."""
    return sought if sought >= first else end


def reset_succeeds(sought: int, position: int, dialect: RegionDialect) -> bool:
    """Whether the operator takes the position for that of its reset (H15)."""
    return position == sought or not dialect.checks_position


# Waiting times and attempts (page, Reset processing; the runtime's limits).


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
