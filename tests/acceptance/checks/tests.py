"""Tests that repeat at length, or on another target, what a quicker test shows: those marked `acceptance`."""

from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.framework import Check, Figure
from tests.acceptance.runs import expect_passing, run_tests


def check_long_tests(folder: Path) -> Iterator[Figure]:
    """All tests that the marker `acceptance` keeps out of a plain run."""
    yield from expect_passing(run_tests(folder, ["tests"], "-m", "acceptance"))


CHECKS = (Check("long", "the tests that a plain run leaves out pass", check_long_tests),)
