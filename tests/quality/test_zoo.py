"""Every known bug is found again with its recorded seed, and the recorded results keep the thresholds.

A mutant takes a second or two, and there are hundreds: one in twenty is hunted here, and all of them by
`fencepost zoo --only '[a-z]*'`.
"""

from statistics import median

import pytest

from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.coordinator_stand import HANGS
from fencepost.conformance.zoo.hunt import HuntTask
from fencepost.conformance.zoo.hunt_plan import is_not_told_apart
from fencepost.conformance.zoo.registry import run_hunt, systematic_mutants
from fencepost.conformance.zoo.results import MUTANT_RESULTS, ResultRow, load_results
from fencepost.conformance.zoo.strategies import SCHEDULES

MIN_BUGS_FOUND = 55
MAX_MEDIAN_SECONDS = 5.0
"""Of one core, from the first schedule to the one that shows the bug."""
MAX_MEDIAN_REQUESTS = 12
"""After shrinking."""
HUNT_TIMEOUT_SECONDS = 60.0

KNOWN = [row for row in load_results().rows if row.name in COORDINATOR_BUGS]
CAUGHT = [row for row in KNOWN if row.found_by]
MIN_MUTANTS_FOUND_PERCENT = 95.0
"""Of those that are told apart: seen broken, or told to be unusual."""
MUTATED = load_results(MUTANT_RESULTS).rows
SAMPLE_STEP = 20


def test_every_known_bug_is_recorded_and_nearly_all_are_found() -> None:
    assert [row.name for row in KNOWN] == list(COORDINATOR_BUGS)
    assert len(CAUGHT) >= MIN_BUGS_FOUND
    assert all(row.reason for row in KNOWN if not row.found_by)


def test_finding_is_quick_and_what_is_found_is_short() -> None:
    drawn = [row.hunts[SCHEDULES] for row in CAUGHT if row.found_by == SCHEDULES]
    assert median(hunts.median_seconds for hunts in drawn) <= MAX_MEDIAN_SECONDS
    assert median(hunts.median_requests for hunts in drawn) <= MAX_MEDIAN_REQUESTS


@pytest.mark.slow
@pytest.mark.parametrize("row", CAUGHT, ids=lambda row: row.name)
def test_a_bug_is_found_with_its_recorded_seed(row: ResultRow) -> None:
    assert is_found_again(row)


def is_found_again(row: ResultRow) -> bool:
    """The recorded hunt finds it again."""
    only = "" if row.found_by == SCHEDULES else row.shortest[0]
    return run_hunt(HuntTask(row.name, row.found_by, row.seed, HUNT_TIMEOUT_SECONDS, 0, row.chunk, only)).is_found


def test_the_mutants_are_those_of_the_bundled_coordinator() -> None:
    # If it changed: `fencepost zoo --only PATTERN --record`.
    assert [row.name for row in MUTATED] == list(systematic_mutants())


def test_nearly_every_mutant_is_found() -> None:
    wrong = [row for row in MUTATED if not is_not_told_apart(row)]
    assert 100 * sum(bool(row.found_by) for row in wrong) >= MIN_MUTANTS_FOUND_PERCENT * len(wrong)
    assert all(row.reason for row in MUTATED if not row.found_by)


@pytest.mark.parametrize(
    "row",
    [row for row in MUTATED if row.found_by and row.requirement != HANGS][::SAMPLE_STEP],
    ids=lambda row: row.name,
)
def test_a_mutant_is_found_with_its_recorded_seed(row: ResultRow) -> None:
    assert is_found_again(row)
