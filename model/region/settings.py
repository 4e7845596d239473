"""The dialect of a consistent region, and the settings that an operator accepts.

The dialect says, where the design page has a hole, whether it is as documented or repaired.
"""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen


@dataclass(frozen=True, slots=True)
class RegionDialect:
    """Every repair, true where it is made. The defaults are the repaired design; `DOCUMENTED` has none."""

    checkpoints_seek_map: bool = True
    """REGION-H01: a checkpoint has the seek map below the offsets of what is assigned."""
    fixes_names: bool = True
    """REGION-H02: the names of the group are those of the job's operators, and do not depend on who has registered."""
    takes_with_permit: bool = True
    """REGION-H03: the process thread gets its permit before it takes a message, not after."""
    vetoes_checkpoint: bool = True
    """REGION-H04: an operator that waits for a reset, is between callbacks or lacks an offset refuses a checkpoint."""
    checks_membership: bool = True
    """REGION-H05: an operator whose membership has ended refuses a checkpoint."""
    fails_on_commit: bool = True
    """REGION-H05: a failed commit restarts the operator. The page says so; releases of the toolkit only log it."""
    notifies_again: bool = True
    """REGION-H06: the bean notifies on each contribution to a merge that is complete."""
    queues_requests: bool = True
    """REGION-H07: a reset requested during another follows it. The page does not say; the runtime forgot it."""
    creates_first: bool = True
    """REGION-H08: an operator creates the control variable if there is none, and then seeks what it reads there."""
    assigns_eagerly: bool = True
    """REGION-H09: the group's assignors are eager, so that every assignment follows a revocation."""
    drops_late_messages: bool = True
    """REGION-H10: a message whose partition is assigned no longer is not submitted."""
    contributes_again: bool = True
    """REGION-H11: an operator that registers again during a reset repeats its contribution."""
    counts_forced_resets: bool = True
    """REGION-H12: only a complete checkpoint sets the count of attempts back."""
    outdates_seek_map: bool = True
    """REGION-H13: a map older than the last complete checkpoint is not sought from: its operator requests a reset."""
    starts_new_partitions_first: bool = True
    """REGION-H14: a partition that did not exist at subscription is read from its beginning."""
    checks_position: bool = True
    """REGION-H15: a position that differs from the offset sought fails the reset."""
    waits_for_region: bool = True
    """REGION-H16: the wait for a merge lasts as long as the region's reset may, and polling lasts longer than both."""
    names_group_exactly: bool = True
    """REGION-H17: the name of the bean contains the group id, and not a hash of it."""
    counts_present_operators: bool = True
    """REGION-H17: a merge waits for the operators of the present job, and not for those of the checkpoint's."""
    refuses_operator_driven: bool = True
    """REGION-H17: a group of several operators is refused in a region that they drive."""


REPAIRED = RegionDialect()
"""Every hole repaired."""
DOCUMENTED = RegionDialect(
    **{name: name == "fails_on_commit" for name in RegionDialect.__dataclass_fields__},
)
"""The page as it is written; where it says nothing, what loses more."""


def undo_repairs(*names: str) -> RegionDialect:
    """The repaired dialect with these repairs taken back."""
    return evolve(REPAIRED, **dict.fromkeys(names, False))


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
    """Whether a group of this number of operators starts (H17)."""
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
