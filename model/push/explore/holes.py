"""The holes of the draft: each one repair undone, the property that breaks, and the repaired protocol beside it.

A search gets a dialect, bounds and the name of a property. No run is written down: every one is found.

Parts of the specification's list that have no search here, or are none:

- PUSH-H09 S3: not one. Searched whole (6,621 states): who starts after its removal is no member of the attempt that is
  under way. What breaks is S2, and S12 before it.
- PUSH-H12 L3: the thread lives; the bit that is never reset is L3-bit.
- PUSH-H15 d: an offset up to a third of the session timeout old is a duplicate later on, and S11 lets that be.
- PUSH-H17 L2: not one. Searched whole (43,602 states, a broker dies and a partition is added): a group that the new
  coordinator does not know comes back by registrations, and each of them computes the assignment anew.
- PUSH-H19, L8: not one. A consumer that restarts is refused until its old registration is removed, and accepted then;
  the searches of PUSH-H03 to H07 with a restart end with L1 kept.
- PUSH-H19, a timeout equal to the minimum: what the draft says ("larger than the minimum"); PUSH-27 tells it.
- PUSH-H19, S14: a broker that is not elected accepts nothing in the model, by the reading that the coordinator is who
  answers; S1 is that property, and PUSH-H11 breaks it.
- PUSH-H20, options that no step reads: no run can tell them. Repaired, the back-off lies between attempts (PUSH-21),
  and silence is counted in time, not in requests (PUSH-11).
- PUSH-H20, members with different topics: S9 speaks of one snapshot, and holds of the repaired assignment, which
  deals a topic to those that want it (PUSH-34).
- PUSH-H20, a consumer that leaves says nothing: a cost, of one session timeout, that no property forbids.
- PUSH-H20, consumers in Start and threads in the recorded owners: a matter of names; here both say the consumer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

from fencepost.model.explore.hole_search import HoleMaker, HoleSearch, value_hole
from fencepost.model.explore.rows import describe_faults
from fencepost.model.frozen import evolve
from fencepost.model.push.coordinator import queue_index
from fencepost.model.push.dialect import DRAFT, REPAIRED, Command, PushDialect, undo_repairs
from fencepost.model.push.explore.row import SENTENCES, Faults, PushBounds
from fencepost.model.push.explore.small_systems import (
    LEASE_SENTENCES,
    OFFSET_SENTENCES,
    LeaseBounds,
    lease_system,
    offset_system,
)
from fencepost.model.push.explore.system import push_system
from fencepost.model.push.wire import (
    MalformedFrame,
    decode_push_response,
    encode_push_response,
    has_stop_response,
    response_fields,
)

# Searches over bytes and numbers: responses that look the same, ids and hashes that do not survive the draft.


MAX_ALL_BYTES = 2
"""Every string of no more bytes is tried; longer ones are made by the encoder."""
SHORT_STRINGS = 1 + (1 << 8) + (1 << 16)
EDGE_IDS = range((1 << 15) - 2, (1 << 15) + 2)
MANY_GROUPS, QUEUES = 1000, 4


def pushed_names(dialect: PushDialect) -> tuple[str, ...]:
    """The requests whose responses share a channel."""
    return ("RegisterConsumer", "Ping", "Start", *(("Stop",) if has_stop_response(dialect) else ()))


def ambiguous_responses(dialect: PushDialect) -> Iterator[str]:
    """Payloads that are responses to more than one request."""
    for payload in candidate_payloads(dialect):
        readings = [name for name in pushed_names(dialect) if reads_as(payload, name, dialect)]
        if len(readings) > 1:
            yield f"{payload.hex(' ') or 'no byte'} is a response to {', '.join(readings)}"


def missing_offsets(dialect: PushDialect) -> Iterator[str]:
    """Where no response has offsets without auto-commit: that of a Ping is empty then."""
    others = (name for name in pushed_names(dialect) if name != "Ping")
    if not any(field.kind == "list" for name in others for field in response_fields(name, dialect)):
        yield "Start names an offset for each partition, and without auto-commit no response does"


def candidate_payloads(dialect: PushDialect) -> Iterator[bytes]:
    """All short strings, then what the encoder makes of responses with a few values in each field."""
    for size in range(MAX_ALL_BYTES + 1):
        yield from (bytes(each) for each in product(range(256), repeat=size))
    offsets = [[], [{"topic": "t", "partition": "0-1", "offset": 5}]]
    for name in pushed_names(dialect):
        for error, attempt, partitions in product((0, 1, 24), (0, 1), offsets):
            body = {"error_code": error, "attempt": attempt, "partitions": partitions}
            yield encode_push_response(name, body, dialect)[4:]


def reads_as(payload: bytes, name: str, dialect: PushDialect) -> bool:
    """Whether the payload is a response to this request."""
    try:
        decode_push_response(name, payload, dialect)
    except MalformedFrame:
        return False
    return True


def lost_coordinator_ids(dialect: PushDialect) -> Iterator[str]:
    """The broker ids that a ClusterMetadataResponse cannot name, with what becomes of each."""
    for broker in EDGE_IDS:
        body = {"error_code": 0, "coordinator_id": broker, "brokers": [{"id": broker, "host": "h", "port": 1}]}
        try:
            frame = encode_push_response("ClusterMetadata", body, dialect)
            seen = decode_push_response("ClusterMetadata", frame[4:], dialect)
        except MalformedFrame as error:
            yield f"broker {broker} is elected: {error}"
            continue
        if seen["coordinator_id"] != broker:
            yield f"broker {broker} is elected: announced as {seen['coordinator_id']}"


def missing_queues(dialect: PushDialect) -> Iterator[str]:
    """The group names whose queue there is not, with its index."""
    for number in range(MANY_GROUPS):
        name = f"consumers-{number}"
        index = queue_index(name, QUEUES, dialect)
        if not 0 <= index < QUEUES:
            yield f"{name} belongs to queue {index} of {QUEUES}"


# A group that two processors see for the first time at once: every order of their steps and the handler's.


PROCESSORS = ("A", "B")
ORDERS = 90
"""Of two steps each of three programs."""


@dataclass(slots=True)
class NewGroup:
    """The group in the coordinator's memory: whether it is there, its bit, and the requests for it."""

    makes_once: bool
    exists: bool = False
    bit: bool = False
    queued: int = 0
    is_running: bool = False
    unknown_to: set[str] = field(default_factory=set)

    def look(self, processor: str) -> None:
        """A registration is accepted: is the group known?"""
        if not self.exists:
            self.unknown_to.add(processor)

    def add_member(self, processor: str) -> None:
        """Make the group if it was not known (with its bit, and a request), else ask for a rebalance."""
        is_new = not self.exists if self.makes_once else processor in self.unknown_to
        if is_new or not self.bit:
            self.exists = self.bit = True
            self.queued += 1

    def take(self) -> None:
        """The handler takes a request."""
        if self.queued and not self.is_running:
            self.queued, self.is_running = self.queued - 1, True

    def reset(self) -> None:
        """The rebalance is over."""
        if self.is_running:
            self.is_running = self.bit = False

    def is_right(self) -> bool:
        """Whether the bit is set exactly while one request is queued or running."""
        work = self.queued + self.is_running
        return work <= 1 and self.bit == bool(work)


def twice_made_groups(dialect: PushDialect) -> Iterator[str]:
    """The orders of steps after which the bit does not say what is under way."""
    for order in sorted(set(permutations((*PROCESSORS, "the handler") * 2))):
        group, told = NewGroup(dialect.compares_and_sets), []
        for place, name in enumerate(order):
            is_first = name not in order[:place]
            if name in PROCESSORS:
                (group.look if is_first else group.add_member)(name)
                told.append(f"{name} {'looks' if is_first else 'adds a member'}")
            else:
                (group.take if is_first else group.reset)()
                told.append(f"{name} {'takes a request' if is_first else 'is done'}")
            if not group.is_right():
                yield ", ".join(told)
                break


# Every hole with the searches for it.


CROWDED = Faults(consumer_crashes=1)


def sizes_of(bounds: PushBounds) -> str:
    """What is explored, in words."""
    groups = ["2 groups"] * (bounds.groups > 1)
    sizes = f"{bounds.consumers} consumers, {bounds.partitions} partitions, {bounds.brokers} brokers"
    return ", ".join((*groups, sizes, *describe_faults(bounds.faults)))


def lease_hole(name: str, repair: str, drafted: LeaseBounds, fixed: LeaseBounds, words: str) -> HoleSearch:
    """A part of PUSH-H16, on a clock."""
    return HoleMaker(lease_system, LEASE_SENTENCES, lambda _: words).hole("PUSH-H16", name, repair, drafted, fixed)


def offset_hole(name: str, repair: str) -> HoleSearch:
    """A part of PUSH-H15."""
    words = "2 consumers, 1 partition that moves once, 2 messages, 2 responses under way"
    maker = HoleMaker(offset_system, OFFSET_SENTENCES, lambda _: words)
    return maker.hole("PUSH-H15", name, repair, undo_repairs(repair), REPAIRED)


def byte_holes() -> Iterator[HoleSearch]:
    """PUSH-H14, H15, H18 and H20: what bytes and numbers do not carry, and two processors at once."""
    both = DRAFT, REPAIRED
    told = "A response can be told apart from every other response on its channel."
    named = "The metadata response names the elected coordinator."
    queued = "Requests of a group go to a queue that there is."
    sourced = "The offsets of a Start come from a message."
    found, ids = ambiguous_responses, lost_coordinator_ids
    yield value_hole("PUSH-H14", "PUSH-51", told, "types_responses", found, both, SHORT_STRINGS, "byte strings")
    yield value_hole("PUSH-H15", "PUSH-46", sourced, "command", missing_offsets, both, 1, "set of messages")
    orders = twice_made_groups, both, ORDERS, "orders of steps"
    yield value_hole("PUSH-H18", "S6", SENTENCES["S6"], "compares_and_sets", *orders)
    yield value_hole("PUSH-H20", "PUSH-23", named, "wide_ids", ids, both, len(EDGE_IDS), "broker ids")
    yield value_hole("PUSH-H20", "PUSH-17", queued, "unsigned_hash", missing_queues, both, MANY_GROUPS, "group ids")


MAKER = HoleMaker(push_system, SENTENCES, sizes_of)
"""Makes the holes that show in the system of brokers, ZooKeeper and consumers."""


def main_hole(
    id: str,
    name: str,
    *repairs: str,
    drafted: PushDialect | None = None,
    fixed: PushDialect = REPAIRED,
    **bounds: Any,
) -> HoleSearch:
    """A hole of the draft that these repairs close, searched for within these bounds."""
    broken = PushBounds(dialect=undo_repairs(*repairs) if drafted is None else drafted, **bounds)
    return MAKER.hole(id, name, ", ".join(repairs), broken, PushBounds(dialect=fixed, **bounds))


def push_holes() -> tuple[HoleSearch, ...]:
    """Every hole of the draft; some have several parts."""
    two: dict[str, Any] = {"brokers": 2, "capacity": 2}
    restart = evolve(REPAIRED, command=Command.RESTART)
    early = undo_repairs("lease_is_confirmed")
    late = undo_repairs("checks_lease_on_delivery")
    unanswered = evolve(REPAIRED, answers_registration=False)
    rushed = undo_repairs("pings_when_due")
    return (
        main_hole("PUSH-H01", "S2", "command"),
        main_hole("PUSH-H01", "S3", "command"),
        main_hole("PUSH-H02", "L2", "remembers_changes"),
        main_hole("PUSH-H02", "L1", "remembers_changes", faults=Faults(partitions=1)),
        main_hole("PUSH-H03", "L1", "trusts_own_map_only", **two, faults=Faults(broker_crashes=1)),
        main_hole("PUSH-H03", "L1", "trusts_own_map_only", capacity=2, faults=CROWDED),
        main_hole("PUSH-H03", "S4", "trusts_own_map_only", consumers=1, capacity=2, faults=CROWDED),
        main_hole("PUSH-H04", "L1", "stop_voids_map", capacity=2, faults=CROWDED),
        main_hole("PUSH-H05", "L3", "releases_on_failure", capacity=2, faults=CROWDED),
        main_hole("PUSH-H05", "L7", "releases_on_failure", partitions=1, groups=2, capacity=2, faults=CROWDED),
        main_hole(
            "PUSH-H06", "S8", "start_stops_first", drafted=evolve(restart, start_stops_first=False), fixed=restart
        ),
        main_hole("PUSH-H07", "S10", "numbers_registrations", capacity=2, faults=CROWDED),
        main_hole("PUSH-H07", "S4", "numbers_registrations", capacity=2, faults=CROWDED),
        main_hole("PUSH-H08", "S2", "lowers_flag_first", faults=Faults(half_starts=1)),
        main_hole("PUSH-H09", "S2", "removal_waits_for_lease", capacity=2, faults=Faults(suspicions=1)),
        main_hole("PUSH-H09", "S12", "removal_waits_for_lease", capacity=2, faults=Faults(suspicions=1)),
        main_hole("PUSH-H10", "S2", "waits_after_election", **two, faults=Faults(broker_crashes=1)),
        main_hole("PUSH-H11", "S1", "steps_down_in_time", **two, faults=Faults(expiries=1)),
        main_hole("PUSH-H11", "S2", "steps_down_in_time", **two, faults=Faults(expiries=1)),
        main_hole("PUSH-H11", "S5", "steps_down_in_time", **two, faults=Faults(expiries=1)),
        main_hole("PUSH-H11", "S7", "steps_down_in_time", **two, faults=Faults(expiries=1)),
        main_hole("PUSH-H12", "S6", "new_session_discards_all", faults=Faults(expiries=1)),
        main_hole("PUSH-H12", "L1", "new_session_discards_all", faults=Faults(expiries=1)),
        main_hole("PUSH-H12", "L3-bit", "new_session_discards_all", faults=Faults(expiries=1)),
        main_hole("PUSH-H13", "S2", "numbers_attempts", retries=2, faults=Faults(timeouts=2)),
        main_hole("PUSH-H13", "S4", "numbers_attempts", retries=2, faults=Faults(timeouts=2)),
        main_hole("PUSH-H14", "S4", "types_responses", faults=Faults(pings=1)),
        offset_hole("S11", "offers_consumed"),
        offset_hole("S11-back", "owner_alone_reports"),
        lease_hole("PUSH-08", "pings_when_due", LeaseBounds(rushed), LeaseBounds(REPAIRED, horizon=5), "5 ticks"),
        lease_hole(
            "L5",
            "a wait for responses that is shorter than the lease less two pings",
            LeaseBounds(REPAIRED, timeout=6, horizon=9, loses=False, hold=7),
            LeaseBounds(REPAIRED, timeout=6, horizon=9, loses=False, hold=1),
            "a session timeout of 6 ticks, 9 ticks, nothing lost",
        ),
        lease_hole("S2", "lease_is_confirmed", LeaseBounds(early), LeaseBounds(REPAIRED, horizon=6), "6 ticks"),
        lease_hole("S2", "checks_lease_on_delivery", LeaseBounds(late), LeaseBounds(REPAIRED, horizon=6), "6 ticks"),
        main_hole("PUSH-H17", "L6", "prepares_before_election", faults=Faults(expiries=1)),
        main_hole("PUSH-H18", "S6", "compares_and_sets", faults=Faults(partitions=1)),
        main_hole("PUSH-H19", "L4", "answers_registration", drafted=unanswered),
        *byte_holes(),
    )
