"""Every known bug is found again with the seed that is recorded, and the record keeps what was promised."""

from statistics import median

import pytest

from fencepost.conformance.zoo.coordinator import COORDINATOR
from fencepost.conformance.zoo.hunting import SCHEDULES, Task, hunt
from fencepost.conformance.zoo.record import Row, recorded

FOUND_AT_LEAST = 55
MEDIAN_SECONDS = 5.0
"""Of one core, from the first schedule to the one that shows the bug."""
MEDIAN_REQUESTS = 12
"""After shrinking."""
PATIENCE_SECONDS = 60.0

KNOWN = [row for row in recorded().rows if row.name in COORDINATOR]
CAUGHT = [row for row in KNOWN if row.found_by]


def test_every_known_bug_is_recorded_and_nearly_all_are_found() -> None:
    assert [row.name for row in KNOWN] == list(COORDINATOR)
    assert len(CAUGHT) >= FOUND_AT_LEAST
    assert all(row.reason for row in KNOWN if not row.found_by)


def test_finding_is_quick_and_what_is_found_is_short() -> None:
    drawn = [row.hunts[SCHEDULES] for row in CAUGHT if row.found_by == SCHEDULES]
    assert median(hunts.median_seconds for hunts in drawn) <= MEDIAN_SECONDS
    assert median(hunts.median_requests for hunts in drawn) <= MEDIAN_REQUESTS


@pytest.mark.parametrize("row", CAUGHT, ids=lambda row: row.name)
def test_a_bug_is_found_with_its_recorded_seed(row: Row) -> None:
    only = "" if row.found_by == SCHEDULES else row.shortest[0]
    find = hunt(Task(row.name, row.found_by, row.seed, PATIENCE_SECONDS, 0, row.chunk, only))
    assert find.found
