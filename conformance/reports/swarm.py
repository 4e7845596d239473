"""The outcome of a swarm in plain text and in JSON."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from fencepost.conformance.swarm.run import SwarmOutcome

MAX_LINES = 10
"""How many partitions the text tells of, those that were longest without an owner."""


def render_outcome(outcome: SwarmOutcome) -> str:
    """The outcome as lines of text."""
    return "\n".join(_lines(outcome)) + "\n"


def _lines(outcome: SwarmOutcome) -> Iterator[str]:
    plan, watch = outcome.plan, outcome.watch
    yield (
        f"{plan.members} {plan.kind} members, {plan.partitions} partitions, {len(outcome.happened)} events in "
        f"{outcome.seconds:.0f} s, seed {plan.seed}: generation {watch.newest}, {watch.assignments} assignments"
    )
    yield (
        f"{watch.accepted} commits accepted, {watch.refused} refused, {watch.stale_refused} of these of a generation "
        f"that was over; {sum(map(len, watch.returned.values()))} of {outcome.written * plan.partitions} records "
        f"returned, {watch.repeated} of them again"
    )
    yield f"the loop of the kit was {outcome.lag:.1f} s late at most"
    yield from _absence_lines(outcome)
    for violation in watch.violations:
        yield f"VIOLATION at {violation.time / 1000:.1f} s, {violation.rule}: {violation.sentence}"
    for left in outcome.stays:
        yield f"could not be removed: {left}"
    if watch.violations:
        yield f"NOT CONFORMANT: {len(watch.violations)} violations."
    elif outcome.unsettled:
        yield f"INCONCLUSIVE: after {plan.settle_seconds:g} s without events {outcome.unsettled}."
    else:
        yield "CONFORMANT: one owner at a time, no commit of a fenced member, every record returned."


def _absence_lines(outcome: SwarmOutcome) -> Iterator[str]:
    """When partitions had their first owner, and how long they had none after they had one."""
    first, spans = list(outcome.watch.first_owned.values()), absences_by_partition(outcome)
    if first:
        yield f"first owner: {len(first)} partitions, median after {median(first)} ms, the last after {max(first)} ms"
    if not spans:
        yield "no partition lost its owner"
        return
    every = [duration for durations in spans.values() for duration in durations]
    yield (
        f"without an owner: {len(spans)} partitions, {len(every)} times, median {median(every)} ms, longest "
        f"{max(every)} ms"
    )
    for name, durations in sorted(spans.items(), key=lambda row: -sum(row[1]))[:MAX_LINES]:
        yield f"  {name}: {len(durations)} times, {sum(durations)} ms in all, longest {max(durations)} ms"


def absences_by_partition(outcome: SwarmOutcome) -> dict[str, list[int]]:
    """The times without an owner in milliseconds, by partition."""
    found: dict[str, list[int]] = defaultdict(list)
    for absence in outcome.watch.absences:
        found[str(absence.partition[1])].append(absence.duration)
    return dict(found)


def outcome_as_json(outcome: SwarmOutcome) -> dict[str, Any]:
    """The outcome as plain data."""
    plan, watch = outcome.plan, outcome.watch
    return {
        "members": plan.members,
        "kind": plan.kind.value,
        "partitions": plan.partitions,
        "seed": plan.seed,
        "seconds": outcome.seconds,
        "lag_seconds": outcome.lag,
        "events": list(outcome.happened),
        "generation": watch.newest,
        "commits": {"accepted": watch.accepted, "refused": watch.refused, "stale_refused": watch.stale_refused},
        "records": {
            "written": outcome.written * plan.partitions,
            "returned": sum(map(len, watch.returned.values())),
            "again": watch.repeated,
        },
        "first_owned_ms": {str(partition[1]): time for partition, time in watch.first_owned.items()},
        "absences_ms": absences_by_partition(outcome),
        "violations": [
            {"rule": each.rule, "time_ms": each.time, "sentence": each.sentence} for each in watch.violations
        ],
        "unsettled": outcome.unsettled,
    }
