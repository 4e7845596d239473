"""Limits end what would never end, even if they are not heard at first."""

import time

import pytest

from fencepost.conformance.zoo import timeouts
from fencepost.conformance.zoo.timeouts import Stuck, at_most

PATIENCE_SECONDS = 20


def work() -> None:
    """Be busy for much longer than any limit here."""
    begun = time.process_time()
    while time.process_time() - begun < PATIENCE_SECONDS:
        pass


def test_a_limit_rings_until_it_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "AGAIN_SECONDS", 0.1)
    deaf = 0
    with pytest.raises(Stuck), at_most(0.1):
        try:
            work()
        except Stuck:
            deaf += 1
        work()
    assert deaf == 1


def test_an_outer_limit_rings_after_an_inner_one() -> None:
    begun = time.process_time()
    with pytest.raises(Stuck), at_most(0.4):
        with pytest.raises(Stuck), at_most(0.1):
            work()
        work()
    assert 0.3 < time.process_time() - begun < PATIENCE_SECONDS


def test_what_is_in_time_is_let_be() -> None:
    with at_most(PATIENCE_SECONDS):
        pass
