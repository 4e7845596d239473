"""The dialect of a push coordinator and its consumers: where the draft has a hole, as drafted or repaired."""

from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve


class Command(StrEnum):
    """How an assignment is pushed; the draft has the first two, an earlier page of the same design the third."""

    STOP_START = "stop, start"
    """Stop without a response, then Start."""
    RESTART = "restart"
    """One command with the new assignment."""
    STOP_RESPONSE = "stop with a response"
    """Stop, whose responses are awaited, then Start."""


@dataclass(frozen=True, slots=True)
class PushDialect:
    """Every repair, true where it is made. The defaults are the repaired protocol; `DRAFT` has none."""

    command: Command = Command.STOP_RESPONSE
    """PUSH-H01: no Start is sent before every member has responded to its Stop."""
    remembers_changes: bool = True
    """PUSH-H02: a change that meets a set rebalance bit is remembered, and followed by another rebalance."""
    trusts_own_map_only: bool = True
    """PUSH-H03: a recorded map is believed only if this coordinator completed it with these registrations."""
    stop_voids_map: bool = True
    """PUSH-H04: once a Stop is sent, the map before it is believed no longer."""
    releases_on_failure: bool = True
    """PUSH-H05: an attempt that is given up resets the bit, keeps its thread, and is queued again."""
    start_stops_first: bool = True
    """PUSH-H06: the handler of Start closes running fetchers first, and a consumer begins stopped."""
    numbers_registrations: bool = True
    """PUSH-H07: requests and responses belong to a registration, not to a consumer id."""
    lowers_flag_first: bool = True
    """PUSH-H08: the flag is lowered before the first fetcher starts, so that Stop closes half-started ones."""
    removal_waits_for_lease: bool = True
    """PUSH-H09: a member is removed only once it must have stopped by itself."""
    waits_after_election: bool = True
    """PUSH-H10: no rebalance before consumers of an earlier coordinator must have stopped."""
    steps_down_in_time: bool = True
    """PUSH-H11: a coordinator stops acting and closes its channels before its session can expire."""
    new_session_discards_all: bool = True
    """PUSH-H12: a new session discards bits and running rebalances too."""
    numbers_attempts: bool = True
    """PUSH-H13: requests carry the number of their attempt, responses echo it."""
    types_responses: bool = True
    """PUSH-H14: a response says what it responds to."""
    offers_consumed: bool = True
    """PUSH-H15: the offset in a response is the one up to which the application consumed."""
    stop_carries_offsets: bool = True
    """PUSH-H15: the response to Stop carries the last offsets."""
    owner_alone_reports: bool = True
    """PUSH-H15: an offset is recorded only from the consumer that owns the partition in the current attempt."""
    pings_when_due: bool = True
    """PUSH-H16: a ping is sent once its time has come; the draft's comparison says before."""
    lease_is_confirmed: bool = True
    """PUSH-H16: a consumer renews its lease only by a ping that echoes its last response."""
    checks_lease_on_delivery: bool = True
    """PUSH-H16: a consumer looks at its lease before it hands a batch to the application."""
    prepares_before_election: bool = True
    """PUSH-H17: listener and handlers are there before the coordinator is elected."""
    compares_and_sets: bool = True
    """PUSH-H18: every user of the rebalance bit tests and sets it in one step."""
    answers_registration: bool = True
    """PUSH-H19: a registration gets a response, for which the consumer waits. The draft says both; `DRAFT` has it."""
    wide_ids: bool = True
    """PUSH-H20: the id of the coordinator has 32 bits like that of every broker, and -1 says that there is none."""
    unsigned_hash: bool = True
    """PUSH-H20: the index of a queue is never negative."""


REPAIRED = PushDialect()
"""Every hole repaired."""
_KEPT = ("command", "answers_registration")
DRAFT = PushDialect(
    Command.STOP_START, **{name: False for name in PushDialect.__dataclass_fields__ if name not in _KEPT}
)
"""The draft as it is written; where it contradicts itself about registrations, as its steps say."""


def undo_repairs(*names: str) -> PushDialect:
    """The repaired dialect with these repairs taken back, `command` to STOP_START."""
    drafted = {name: getattr(DRAFT, name) for name in names}
    return evolve(REPAIRED, **drafted)
