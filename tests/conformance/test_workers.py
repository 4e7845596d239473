"""Worker processes end with their pool, and one that ends does not keep anybody waiting."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.run.workers import JudgePool, WorkerPool, run_tasks
from fencepost.conformance.zoo import hunt_plan, results
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask

PATIENCE_S = 60


def hunt_or_die(task: HuntTask) -> HuntResult:
    """BUG-02 ends the process it is hunted in, as the system does when memory runs out."""
    if task.name == "BUG-02":
        os.kill(os.getpid(), signal.SIGKILL)
    return HuntResult(task, "HB-06", 1, 1.0)


def test_a_worker_that_is_killed_ends_the_hunts_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(hunt_plan, "run_hunt", hunt_or_die)
    monkeypatch.setattr(results, "BUG_RESULTS", tmp_path / "none.json")
    assert main(["zoo", "--only", "BUG-0[123]", "--seeds", "1", "--jobs", "1"]) == 2
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == (
        "fencepost: a worker process ended in the middle of BUG-02: it was killed, or ran out of memory; "
        "try again with fewer --jobs"
    )
    assert "BUG-01" in output.out and "BUG-03" not in output.out


def test_what_still_runs_at_the_end_is_ended() -> None:
    before = set(multiprocessing.active_children())
    with WorkerPool(1) as pool:
        assert list(run_tasks(pool, 1, abs, [-1], str)) == [(-1, 1)]
        pool.submit(time.sleep, 600)
        (process,) = set(multiprocessing.active_children()) - before
    assert wait([process.sentinel], PATIENCE_S) == [process.sentinel]


def test_a_worker_that_no_one_ends_ends_with_the_pipe_that_it_watches() -> None:
    workers = WorkerPool(1)
    assert workers.executor.submit(abs, -1).result() == 1
    (process,) = workers.executor._processes.values()
    workers.executor.submit(time.sleep, 600)
    workers._lifeline.close()
    assert wait([process.sentinel], PATIENCE_S) == [process.sentinel]
    workers.end()


def test_a_process_that_still_judges_at_the_end_is_ended() -> None:
    pool = JudgePool(1)
    assert pool.executor.submit(abs, -1).result() == 1
    (process,) = pool.workers.executor._processes.values()
    pool.executor.submit(time.sleep, 600)
    pool.close()
    pool.close()
    assert wait([process.sentinel], PATIENCE_S) == [process.sentinel]
