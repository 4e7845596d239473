"""Settings that an operator accepts, and names that it makes of them (page, Assumptions and restrictions)."""

from fencepost.model.region.dialect import RegionDialect

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
