"""Where an operator begins a partition, and where it really is after a reset: control variables and the log (page,
Shared, Partition assignment, Reset processing)."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.dialect import RegionDialect


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
