"""A run as a stream of events: order, errors, cancellation, and traces saved from it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.events import Progress, RunEvent, RunFinished, ScenarioFinished, ScheduleShrunk
from fencepost.conformance.results import Report
from fencepost.conformance.run.stream import Emit, TraceSaver, consume, progress_consumer, stream_events
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.verdict import TraceVerdict

REPORT = Report({"name": "target"}, 0, ())
CUT_SHORT = Report({"name": "target"}, 0, (), cut_short=True)
HEADER = Header("source", Order.TOTAL, "virtual", Settings(), 0)


async def short_run(emit: Emit) -> None:
    """One of two scenarios, then the end."""
    emit(Progress(1, 2, 1.0))
    await asyncio.sleep(1)
    emit(RunFinished(REPORT))


async def endless_run(emit: Emit) -> None:
    """A run that ends when it is cancelled, and reports what it has."""
    emit(Progress(1, 2, 1.0))
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        emit(RunFinished(CUT_SHORT))


async def failing_run(emit: Emit) -> None:
    """A run whose target goes away."""
    emit(Progress(1, 2, 1.0))
    raise ConnectionError("gone")


async def collect(stream: AsyncGenerator[RunEvent, None]) -> list[RunEvent]:
    return [event async for event in stream]


def test_consumers_get_every_event_in_order() -> None:
    seen: list[RunEvent] = []
    shown: list[Progress] = []
    report = run_virtual(consume(stream_events(short_run), seen.append, progress_consumer(shown.append)))
    assert report is REPORT
    assert seen == [Progress(1, 2, 1.0), RunFinished(REPORT)]
    assert shown == seen[:1]


def test_an_error_of_the_run_comes_after_its_events() -> None:
    seen: list[RunEvent] = []
    with pytest.raises(ConnectionError, match="gone"):
        run_virtual(consume(stream_events(failing_run), seen.append))
    assert len(seen) == 1


def test_a_cancelled_consumer_still_gets_the_report() -> None:
    async def cancel() -> list[RunEvent]:
        task = asyncio.create_task(collect(stream_events(endless_run)))
        await asyncio.sleep(1)
        task.cancel()
        return await task

    assert run_virtual(cancel())[-1] == RunFinished(CUT_SHORT)


def test_a_stream_that_is_closed_waits_for_the_end_of_its_run() -> None:
    ended: list[bool] = []

    async def slow_to_end(emit: Emit) -> None:
        emit(Progress(1, 2, 1.0))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append(True)

    async def close_early() -> None:
        stream = stream_events(slow_to_end)
        await anext(stream)
        await stream.aclose()

    run_virtual(close_early())
    assert ended == [True]


def test_traces_of_failures_are_saved_apart(tmp_path: Path) -> None:
    failures, traces = tmp_path / "failures", tmp_path / "traces"
    failures.mkdir()
    traces.mkdir()
    save = TraceSaver(failures, traces)
    verdict = TraceVerdict((), (), {})
    save(ScenarioFinished("kept", (), HEADER, (), verdict))
    save(ScenarioFinished("broken", (), HEADER, (), verdict, violated=frozenset({"HB-05"})))
    save(ScheduleShrunk("schedule-HB-05", "HB-05", HEADER, (), confirmed=True))
    save(RunFinished(REPORT))
    assert sorted(path.name for path in traces.iterdir()) == ["broken.jsonl", "kept.jsonl"]
    assert sorted(path.name for path in failures.iterdir()) == ["broken.jsonl", "schedule-HB-05.jsonl"]
