"""Thresholds of the push coordinator and the consistent region: every fault put in is found in both ways."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.acceptance.framework import Check, Figure, at_least, exactly, without_threshold
from tests.support.faulty_regions import FAULTS as REGION_FAULTS
from tests.support.older_faults import FindFault, find_push_fault, find_region_fault
from tests.support.push.faults import FAULTS as PUSH_FAULTS

FEWEST = 15
"""Faults of a system."""


def check_faults(names: Iterable[str], find: FindFault, folder: Path) -> Iterator[Figure]:
    """Each fault: what scenarios say of it, and which random schedule is the first to show it."""
    found = {}
    for name in names:
        requirements, schedule = found[name] = find(name)
        told = ", ".join(sorted(requirements)) or "no scenario"
        yield without_threshold(name, f"{told}; {f'schedule {schedule}' if schedule else 'no schedule'}")
    yield at_least("faults", len(found), FEWEST)
    yield exactly("found by scenarios", sum(bool(requirements) for requirements, _ in found.values()), len(found))
    yield exactly("found by random schedules", sum(bool(schedule) for _, schedule in found.values()), len(found))


CHECKS = (
    Check("push", "Faults of the push coordinator", partial(check_faults, PUSH_FAULTS, find_push_fault)),
    Check("region", "Faults of the consistent region", partial(check_faults, REGION_FAULTS, find_region_fault)),
)
