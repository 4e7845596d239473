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

from collections.abc import Callable, Iterator
from typing import Any

from fencepost.model.explore.hole_search import HoleMaker, HoleSearch, value_hole
from fencepost.model.frozen import evolve
from fencepost.model.push.dialect import DRAFT, REPAIRED, Command, PushDialect, undo_repairs
from fencepost.model.push.explore.properties import SENTENCES
from fencepost.model.push.explore.row import Faults, PushBounds
from fencepost.model.push.explore.small_systems import (
    LEASE_SENTENCES,
    OFFSET_SENTENCES,
    LeaseBounds,
    lease_system,
    offset_system,
)
from fencepost.model.push.explore.system import push_system
from fencepost.model.push.explore.value_searches import (
    ORDERS,
    ambiguous_responses,
    lost_coordinator_ids,
    missing_queues,
    offset_sources,
    twice_made_groups,
)

SHORT_STRINGS = 1 + (1 << 8) + (1 << 16)
EDGE_IDS = range((1 << 15) - 2, (1 << 15) + 2)
MANY_GROUPS = 1000
CROWDED = Faults(consumer_crashes=1)


def sizes_of(bounds: PushBounds) -> str:
    """What is explored, in words."""
    groups = "2 groups, " * (bounds.groups > 1)
    sizes = f"{bounds.consumers} consumers, {bounds.partitions} partitions, {bounds.brokers} brokers"
    return groups + sizes + faults_in(bounds)


def faults_in(limits: PushBounds) -> str:
    """The faults that are let happen, in words."""
    names = Faults.__dataclass_fields__
    told = [
        f"{getattr(limits.faults, name)} {name.replace('_', ' ')}" for name in names if getattr(limits.faults, name)
    ]
    return "".join(f", {each}" for each in told)


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

    def ambiguous(dialect: PushDialect) -> Iterator[str]:
        for payload, names in ambiguous_responses(dialect):
            yield f"{payload.hex(' ') or 'no byte'} is a response to {', '.join(names)}"

    def lost(dialect: PushDialect) -> Iterator[str]:
        for broker, fate in lost_coordinator_ids(dialect, EDGE_IDS):
            yield f"broker {broker} is elected: {fate}"

    def missing(dialect: PushDialect) -> Iterator[str]:
        for group, index in missing_queues(dialect, 4, MANY_GROUPS):
            yield f"{group} belongs to queue {index} of 4"

    def hole(
        id: str,
        name: str,
        sentence: str,
        repair: str,
        values: Callable[[PushDialect], Iterator[str]],
        count: int,
        unit: str,
    ) -> HoleSearch:
        return value_hole(id, name, sentence, repair, values, (DRAFT, REPAIRED), count, unit)

    def offsetless(dialect: PushDialect) -> Iterator[str]:
        if not offset_sources(dialect):
            yield "Start names an offset for each partition, and without auto-commit no response does"

    told = "A response can be told apart from every other response on its channel."
    named = "The metadata response names the elected coordinator."
    queued = "Requests of a group go to a queue that there is."
    sourced = "The offsets of a Start come from a message."
    yield hole("PUSH-H14", "PUSH-51", told, "types_responses", ambiguous, SHORT_STRINGS, "byte strings")
    yield hole("PUSH-H15", "PUSH-46", sourced, "command", offsetless, 1, "set of messages")
    yield hole("PUSH-H18", "S6", SENTENCES["S6"], "compares_and_sets", twice_made_groups, ORDERS, "orders of steps")
    yield hole("PUSH-H20", "PUSH-23", named, "wide_ids", lost, len(EDGE_IDS), "broker ids")
    yield hole("PUSH-H20", "PUSH-17", queued, "unsigned_hash", missing, MANY_GROUPS, "group ids")


def push_holes() -> tuple[HoleSearch, ...]:
    """Every hole of the draft; some have several parts."""
    maker = HoleMaker(push_system, SENTENCES, sizes_of)

    def main_hole(
        id: str,
        name: str,
        *repairs: str,
        drafted: PushDialect | None = None,
        fixed: PushDialect = REPAIRED,
        **bounds: Any,
    ) -> HoleSearch:
        broken = PushBounds(dialect=undo_repairs(*repairs) if drafted is None else drafted, **bounds)
        return maker.hole(id, name, ", ".join(repairs), broken, PushBounds(dialect=fixed, **bounds))

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
