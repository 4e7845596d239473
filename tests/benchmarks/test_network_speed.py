"""The benchmark of a run over the network compares two trees and says what is waited for."""

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from tests.acceptance.verdict_corpus.compare import ROOT
from tests.benchmarks import network_speed
from tests.support.served_coordinator import serve_in_thread

SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
JOIN = Event(0, 0, 1, "A", Kind.REQUEST, "JoinGroup", 9, {})
JOINED = Event(2, 5_000, 1, "A", Kind.RESPONSE, "JoinGroup", 9, {}, of=0)
HEARTBEAT = Event(1, 4_000, 2, "B", Kind.REQUEST, "Heartbeat", 4, {})


def test_a_wait_is_for_a_response_or_for_a_timer() -> None:
    parked = network_speed.longest_wait("parked", [JOIN, JOINED])
    assert (parked.seconds, parked.longest, parked.reason) == (5.0, 5.0, "the response to JoinGroup")
    timer = network_speed.longest_wait("timer", [JOIN, HEARTBEAT, JOINED])
    assert (timer.longest, timer.reason) == (4.0, "a timer, before request Heartbeat, with JoinGroup in flight")
    assert network_speed.longest_wait("empty", []).reason == "nothing"


@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.real_time
def test_network_benchmark_compares_two_trees(capsys: pytest.CaptureFixture[str]) -> None:
    with serve_in_thread(SETTINGS) as bootstrap:
        target, old = f"kafka://{bootstrap}", str(ROOT)
        assert network_speed.main([target, "--pairs", "1", "--only", "HB-04", "--old", old]) == 0
    told = capsys.readouterr().out
    assert "  pair 1: " in told and ", ratio " in told and "heartbeat" in told
