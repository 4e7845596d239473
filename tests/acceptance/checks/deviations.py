"""Known deviations, put into the bundled coordinator: each is found under a right name; no correct variant is blamed.

They are training cases: the kit was mended on them. What it is worth on faults that nobody has looked at, strangers and
held-out faults measure.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.classic.zoo.variants import VARIANTS
from tests.acceptance.deviation_runs import Outcome, run_deviation
from tests.acceptance.framework import Check, Figure, exactly, without_threshold

SEEDS = (1, 2, 3)
SCHEDULES = 40
"""Random schedules of each seed."""
THIRTEEN = (
    "leave-forgets-parked-join",
    "session-ends-in-parked-sync",
    "anybody-commits",
    "deleted-group-comes-back",
    "groups-are-not-stored",
    "every-rejoin-rebalances",
    "static-newcomer-needs-id",
    "session-ends-in-parked-join",
    "absent-static-members-dropped",
    "replaced-static-member-counts-twice",
    "instance-id-alone-removes",
    "client-is-not-described",
    "deleted-offset-comes-back",
)
"""The deviations of klite that matter most, of which the kit missed six when it had not met them."""


def play_case(name: str, seed: int, schedules: int) -> Outcome:
    """The outcome of all scenarios, or of so many random schedules of a seed, on a case."""
    return run_deviation({**DEVIATIONS, **VARIANTS}[name], seed, schedules)


def play_all(cases: Sequence[CoordinatorFault], schedules: int) -> dict[str, list[Outcome]]:
    """The outcomes of each case, by seed; one for all seeds of scenarios, which have a target of their own each."""
    seeds = SEEDS if schedules else SEEDS[:1]
    names = [case.id for case in cases for _ in seeds]
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        outcomes = list(pool.map(partial(play_case, schedules=schedules), names, seeds * len(cases)))
    return {case.id: outcomes[number * len(seeds) :][: len(seeds)] for number, case in enumerate(cases)}


def check_deviations(cases: Sequence[CoordinatorFault], folder: Path) -> Iterator[Figure]:
    """Each case with every seed: the name that scenarios give first, and that random schedules give first."""
    by_scenarios, by_schedules = play_all(cases, 0), play_all(cases, SCHEDULES)
    found = right = right_schedules = of_schedules = undecided = 0
    for case in cases:
        (scenarios,) = by_scenarios[case.id]
        firsts = [scenarios.first or schedules.first for schedules in by_schedules[case.id]]
        found += all(firsts)
        right += all(first in case.breaks for first in firsts)
        drawn = [schedules.first for schedules in by_schedules[case.id] if schedules.first]
        of_schedules += len(drawn)
        right_schedules += sum(first in case.breaks for first in drawn)
        undecided += len(scenarios.undecided)
        yield without_threshold(
            case.id, f"scenarios {tell_names(case, by_scenarios)}; schedules {tell_names(case, by_schedules)}"
        )
    yield exactly("found, with every seed", found, len(cases))
    yield exactly("of them under a right name, with every seed", right, len(cases))
    yield without_threshold("random schedules alone: first names", of_schedules)
    yield without_threshold("of them right", right_schedules)
    yield without_threshold("requirements undecided by scenarios, in all", undecided)


def tell_names(case: CoordinatorFault, outcomes: dict[str, list[Outcome]]) -> str:
    """The first name of each seed, marked where it is a wrong one."""
    firsts = [outcome.first for outcome in outcomes[case.id]]
    told = ["none" if not first else first if first in case.breaks else f"{first} (wrong)" for first in firsts]
    return told[0] if len(set(told)) == 1 else ", ".join(told)


def check_variants(folder: Path) -> Iterator[Figure]:
    """Each correct variant with every seed: what fails although the variant keeps it."""
    cases = tuple(VARIANTS.values())
    by_scenarios, by_schedules = play_all(cases, 0), play_all(cases, SCHEDULES)
    for case in cases:
        outcomes = [*by_scenarios[case.id], *by_schedules[case.id]]
        wrong = sorted({id for outcome in outcomes for id in outcome.wrong_names(case)})
        yield exactly(case.id, ", ".join(wrong) or "none", "none")


CHECKS = (
    Check(
        "thirteen",
        "deviations of klite that matter most",
        partial(check_deviations, [DEVIATIONS[id] for id in THIRTEEN]),
    ),
    Check(
        "products",
        "further deviations of products and of public bug reports",
        partial(check_deviations, [case for case in DEVIATIONS.values() if case.id not in THIRTEEN]),
    ),
    Check("variants", "correct variants are not blamed", check_variants),
)
