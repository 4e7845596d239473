"""Odd clients: what is not kept of the promises is told."""

import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from fencepost.conformance.results import ExitCode
from tests.acceptance.odd_clients import MARK, ODD_CLIENTS, OddClient, count_kept, processes_with, try_client


@pytest.mark.real_time
def test_broken_promises_are_told(tmp_path: Path) -> None:
    case = OddClient("exits", ("sh", "-c", "exit 7"), "it shines", ExitCode.INCONCLUSIVE)
    broken = ["exit code 2", "the report does not say 'it shines'"]
    assert try_client(case, tmp_path) == broken
    *_, failed, told = count_kept([("exits", broken)])
    assert not failed.kept and not told.kept and "it shines" in str(told.value)


@pytest.mark.real_time
def test_a_process_that_is_left_is_found() -> None:
    mark = uuid4().hex
    left = subprocess.Popen(["sleep", "60"], env=os.environ | {MARK: mark})
    try:
        assert list(processes_with(mark)) == [left.pid]
    finally:
        left.kill()
        left.wait()
    assert list(processes_with(mark)) == []


def test_a_client_that_goes_wrong_later_lives_first(tmp_path: Path) -> None:
    case = OddClient("exits later", ("false",), "", lives=2)
    command = [word if word != case.command(tmp_path)[4] else "true" for word in case.command(tmp_path)]
    codes = [subprocess.run(command).returncode for _ in range(3)]
    assert codes == [0, 0, 1]
    assert len({case.name for case in ODD_CLIENTS}) == len(ODD_CLIENTS)
