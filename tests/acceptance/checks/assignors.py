"""Thresholds of the assignors: properties on random groups, agreement with Kafka's classes, speed beside them."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from fencepost.conformance.assignors.random_groups import draw_group
from fencepost.model.assignors.claims import cooperative_claim
from fencepost.model.assignors.properties import broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.assignors.rounds import MOST_ROUNDS, run_rounds
from fencepost.model.assignors.sticky_group import make_sticky_group
from tests.acceptance.framework import Check, Figure, MeasurementError, at_least, at_most, exactly, without_threshold
from tests.benchmarks.assignors.agreement import BROKEN, EQUAL, OPEN, UNEXPLAINED, compare_groups
from tests.benchmarks.assignors.java_assignors import JavaAssignors
from tests.benchmarks.assignors.speed import SIZES, Timing, measure_all
from tests.targets.kafka.installation import VERSIONS
from tests.targets.process import MissingDependencyError

GROUPS = int(os.environ.get("FENCEPOST_GROUPS", "100000"))
"""Random groups; each is given to every assignor."""
ROUNDS_EVERY = 10
"""Of so many groups one goes through rounds."""
COMPARED = 10_000
SLOWEST = 5.0
"""How many times as long as Kafka's classes the model's may take at the largest size."""
REPEATS = 5


def check_properties(folder: Path) -> Iterator[Figure]:
    """Every property of every assignor, on random groups."""
    broken: Counter[str] = Counter()
    longest: Counter[bool] = Counter()
    for seed in range(GROUPS):
        group = draw_group(Random(seed), most_members=6)
        for name, assignor in ASSIGNORS.items():
            assignment = assignor.assign(group.members, group.cluster)
            broken[name] += bool(broken_properties(name, group.members, group.cluster, assignment))
        if seed % ROUNDS_EVERY == 0:
            has_racks = make_sticky_group(group.members, group.cluster, cooperative_claim).racks is not None
            rounds = run_rounds(ASSIGNORS["cooperative-sticky"], group.members, group.cluster, 2 * MOST_ROUNDS)
            longest[has_racks] = max(longest[has_racks], sum(1 for _ in rounds) - 1)
    yield at_least("random groups, each under every assignor", GROUPS, 100_000)
    for name in ASSIGNORS:
        yield exactly(f"{name}: groups with a broken property", broken[name], 0)
    yield at_most("cooperative-sticky: assignments until nothing changes, at most", longest[False], MOST_ROUNDS)
    yield without_threshold("the same where racks are in use", longest[True])


def check_agreement(folder: Path) -> Iterator[Figure]:
    """The results of Kafka's own classes on random groups, half of them with contested claims."""
    with start_java() as java:
        found = compare_groups(java, range(COMPARED // 2), is_odd=False)
        found += compare_groups(java, range(COMPARED // 2, COMPARED), is_odd=True)
    for name in ASSIGNORS:
        kinds = {kind: count for (one, kind), count in found.items() if one == name}
        yield without_threshold(f"{name}: results equal to Kafka's", kinds.pop(EQUAL, 0))
        yield without_threshold(f"{name}: left open by the rules, Kafka's result possible", kinds.pop(OPEN, 0))
        yield exactly(f"{name}: unexplained differences", kinds.pop(UNEXPLAINED, 0), 0)
        if kinds:
            yield without_threshold(f"{name}: hazards of Kafka's classes (member.md appendix B)", sum(kinds.values()))
            breaks = sum(count for kind, count in kinds.items() if kind.endswith(BROKEN))
            yield without_threshold(f"{name}: of these, Kafka's result breaks a property", breaks)


def check_speed(folder: Path) -> Iterator[Figure]:
    """Seconds of one core beside warm Java, and how they grow."""
    with start_java() as java:
        for timing in measure_all(java, SIZES, REPEATS):
            yield from speed_figures(timing)


def speed_figures(timing: Timing) -> Iterator[Figure]:
    """The figures of a timing; the ratio has a threshold at the largest size."""
    what = f"{timing.assignor}, {timing.shape}, {timing.members:,} members x {timing.partitions:,} partitions"
    yield without_threshold(f"{what}: milliseconds", round(1e3 * timing.seconds, 2))
    than = "more than these milliseconds of the clock" if timing.is_cut else "milliseconds"
    yield without_threshold(f"{what}: {than} of Kafka's", round(1e3 * timing.java, 2))
    if (timing.members, timing.partitions) == SIZES[-1]:
        yield at_most(f"{what}: times as long as Kafka's", round(timing.ratio, 2), SLOWEST)


def start_java() -> JavaAssignors:
    """Kafka's own assignors. Raises MeasurementError without Java, Maven or the jars."""
    try:
        return JavaAssignors(VERSIONS["4"])
    except MissingDependencyError as error:
        raise MeasurementError(str(error)) from None


CHECKS = (
    Check("properties", f"no broken property on {GROUPS:,} random groups", check_properties),
    Check("agreement", f"Kafka's own results on {COMPARED:,} random groups", check_agreement),
    Check("speed", f"at most {SLOWEST:g} x warm Java's time at 1,000 members x 10,000 partitions", check_speed),
)
