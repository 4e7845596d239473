"""Tests are slow by measurement, and left out unless somebody asks for them."""

from pathlib import Path

import pytest

from tests.support.plugin_arguments import run_apart
from tests.support.slow_tests import is_there, read_slow_tests, slow_tests_of

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_x[1]" time="0.7"/>
<testcase classname="tests.test_a" name="test_x[2]" time="0.7"/>
<testcase classname="tests.test_a" name="test_y" time="0.9"/>
<testcase classname="tests.test_a" name="test_z" time="0.0"><skipped/></testcase>
</testsuite></testsuites>"""


def test_the_cases_of_a_function_count_together_and_skipped_ones_keep_their_seconds() -> None:
    known = {"tests/test_a.py::test_y": 3.0, "tests/test_a.py::test_z": 2.0}
    assert slow_tests_of(JUNIT, known) == {"tests/test_a.py::test_x": 1.4, "tests/test_a.py::test_z": 2.0}


def test_every_slow_test_is_there() -> None:
    gone = [test for test in read_slow_tests() if not is_there(test, ROOT)]
    assert gone == [], "remove their lines, or measure again: see tests/support/slow_tests.py"


SUITE = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.acceptance
def test_long(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), {"test_quick", "test_slow"}),
        (("-m", "not slow"), {"test_quick"}),
        (("-m", "slow and not nightly"), set()),
        (("-m", "acceptance"), {"test_long"}),
        (("test_it.py::test_long",), {"test_long"}),
    ],
)
def test_long_tests_run_if_somebody_asks_for_them(
    arguments: tuple[str, ...], expected: set[str], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers = slow\n nightly\n acceptance\n")
    pytester.makepyfile(test_it=SUITE)
    shown = run_apart(pytester, "--collect-only", "-q", *arguments).outlines
    assert {line.partition("::")[2] for line in shown if "::" in line} == expected
