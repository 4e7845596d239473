"""What the tests themselves rest on: async tests, extras, and the list of the slow ones."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.support import extras
from tests.support.extras import missing_extra, reason_to_skip, skip_without_extra
from tests.support.group_driver import BundledGroup, now_ms
from tests.support.plugin_arguments import run_apart
from tests.support.slow_tests import is_there, read_slow_tests, slow_tests_of

# --- How async tests run: on virtual time unless marked, with context managers entered.

ROOT = Path(__file__).parent.parent
events: list[str] = []


@pytest.fixture
def entered() -> AbstractAsyncContextManager[str]:
    @asynccontextmanager
    async def enter() -> AsyncIterator[str]:
        events.append("entered")
        yield "value"
        events.append("left")

    return enter()


async def test_virtual_time_costs_nothing() -> None:
    begin = time.monotonic()
    await asyncio.sleep(604_800)
    assert now_ms() == 604_800_000 and time.monotonic() - begin < 60


@pytest.mark.real_time
async def test_real_time_has_sockets() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("number", [1])
async def test_arguments_are_passed(number: int, tmp_path: Path, entered: str, bundled: BundledGroup) -> None:
    assert (number, tmp_path.is_dir(), entered, events) == (1, True, "value", ["entered"])
    assert await bundled.group_state() == "Dead"


FAILING_TESTS = """
import asyncio

async def test_an_assertion():
    await asyncio.sleep(1)
    assert False, "seen"

async def test_a_deadlock():
    await asyncio.get_running_loop().create_future()
"""


def test_a_failing_async_test_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_pyfunc_call")
    (tmp_path / "test_x.py").write_text(FAILING_TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "AssertionError: seen" in done.stdout and "Deadlock: at 0 ms nothing is scheduled" in done.stdout


# --- Tests are slow by measurement, and left out unless somebody asks for them.

pytest_plugins = ["pytester"]
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


# --- Tests where an extra is not installed: skipped, or failed in CI.

CORE_TESTS = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))
import pytest
options = "-q --collect-only -n 0 -p no:cacheprovider -c pyproject.toml".split()
sys.exit(pytest.main([*options, "tests/model/test_rules.py"]))
"""


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> ModuleNotFoundError:
    """What an import of pyspark raises where it is not installed."""
    monkeypatch.setattr(extras, "MISSING_MODULES", frozenset({"pyspark"}))
    return ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql")


def test_a_test_that_lacks_an_extra_is_skipped(
    without_spark: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="pyspark is not installed"), skip_without_extra():
        raise without_spark


def test_in_ci_it_fails(without_spark: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert reason_to_skip(without_spark) is None
    with pytest.raises(ModuleNotFoundError), skip_without_extra():
        raise without_spark


def test_other_missing_modules_are_errors(without_spark: ModuleNotFoundError) -> None:
    assert missing_extra(ModuleNotFoundError("No module named 'tests.x'", name="tests.x")) is None
    assert missing_extra(ModuleNotFoundError("No module named 'dpkt'", name="dpkt")) is None, "dpkt is installed"
    assert missing_extra(AssertionError()) is None


def test_core_tests_are_collected_without_any_extra() -> None:
    script = CORE_TESTS.format(modules=extras.EXTRA_MODULES)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
