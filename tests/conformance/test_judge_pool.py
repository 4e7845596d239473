"""Processes that judge: none outlives the run, whatever it is at."""

import time
from multiprocessing.connection import wait

from fencepost.conformance.execution.judge_pool import JudgePool

PATIENCE_S = 60


def test_a_process_that_still_judges_at_the_end_is_ended() -> None:
    pool = JudgePool(1)
    assert pool.executor.submit(abs, -1).result() == 1
    (process,) = pool.executor._processes.values()
    pool.executor.submit(time.sleep, 600)
    pool.close()
    pool.close()
    assert wait([process.sentinel], PATIENCE_S) == [process.sentinel]
