"""How async tests run: on virtual time unless marked, with context managers entered."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.group_driver import BundledGroup, now_ms

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
