"""The strict reader accepts the traces that the kit itself records."""

from pathlib import Path

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.heartbeats import heartbeats
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from tests.support.group_driver import BundledGroup, wait_for_response


@pytest.mark.parametrize("scenario", heartbeats.scenarios, ids=lambda scenario: scenario.name)
def test_scenarios_with_their_evidence(scenario: Scenario, tmp_path: Path) -> None:
    async def run_scenario() -> ScenarioRun:
        target = InProcessTarget()
        return await play_scenario(scenario, target, await target.open(), "g", grace=0, restart=target.restart)

    seen = run_virtual(run_scenario())
    assert any(event.kind is Kind.INTERNAL and event.of is not None for event in seen.events)
    write_trace(tmp_path / "t", seen.header, seen.events)
    header, events = open_trace(tmp_path / "t")
    assert (header, tuple(events)) == (seen.header, seen.events)


async def test_drops_and_restarts(bundled: BundledGroup, tmp_path: Path) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    dropped, kept = b.join(), a.join()
    dropped.drop()
    await wait_for_response(kept)
    await bundled.target.restart()
    header = Header("test", Order.TOTAL, "virtual", Settings(), 0)
    write_trace(tmp_path / "t", header, bundled.recorder.events)
    assert tuple(open_trace(tmp_path / "t")[1]) == bundled.recorder.events
