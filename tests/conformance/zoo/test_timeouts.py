"""Limits end code that never ends, even if it swallows the first alarm."""

import time

import pytest

from fencepost.conformance.zoo import measuring
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, cpu_limit

PATIENCE_SECONDS = 20


def burn_cpu() -> None:
    """Be busy for much longer than any limit here."""
    begun = time.process_time()
    while time.process_time() - begun < PATIENCE_SECONDS:
        pass


def test_cpu_limit_raises_until_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "REPEAT_SECONDS", 0.1)
    deaf = 0
    with pytest.raises(CpuLimitExceeded), cpu_limit(0.1):
        try:
            burn_cpu()
        except CpuLimitExceeded:
            deaf += 1
        burn_cpu()
    assert deaf == 1


def test_an_outer_limit_rings_after_an_inner_one() -> None:
    begun = time.process_time()
    with pytest.raises(CpuLimitExceeded), cpu_limit(0.4):
        with pytest.raises(CpuLimitExceeded), cpu_limit(0.1):
            burn_cpu()
        burn_cpu()
    assert 0.3 < time.process_time() - begun < PATIENCE_SECONDS


def test_work_within_the_limit_finishes() -> None:
    with cpu_limit(PATIENCE_SECONDS):
        pass
