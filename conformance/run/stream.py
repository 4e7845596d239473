"""A run as a stream of events: how it ends, who takes the events, and the traces that are saved."""

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.adapters.address import TargetError
from fencepost.conformance.events import Progress, RunEvent, RunFinished, ScenarioFinished, ScheduleShrunk
from fencepost.conformance.results import Ending, EndKind, Report
from fencepost.conformance.run.crashes import TargetGone
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import FencepostError
from fencepost.traces.events import SAVED, Event, Header, Kind
from fencepost.traces.files.trace_files import write_trace

# -- how a run ends ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Why a run is cancelled: the message of `asyncio.Task.cancel`."""

    kind: EndKind
    reason: str


INTERRUPTED = StopRequest(EndKind.INTERRUPTED, "interrupted")


class TimeUp(Exception):
    """The seconds of a run for playing are over; the message says what was being played."""


class RunLimits:
    """The clock of a run and what ends it early: `seconds` after its start (None: no limit), and `stop`."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.started_at = time.monotonic()
        self.request: StopRequest | None = None
        self.timeout: asyncio.Timeout | None = None

    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started_at

    def share(self, parts: int) -> float | None:
        """The seconds for one of so many parts of what is left; None without a limit."""
        return None if self.seconds is None else max(self.seconds - self.elapsed_seconds(), 0.0) / parts

    def stop(self, reason: str) -> None:
        """End the run: what is being played is cancelled."""
        self.request = StopRequest(EndKind.STOPPED, reason)
        if self.timeout is not None:
            self.timeout.reschedule(asyncio.get_running_loop().time())

    async def play(self, playing: Coroutine[Any, Any, None], current: "CurrentWork") -> Ending | None:
        """Play, and return how it ended early, None if it did not. Never raises an `Exception`: whatever happens, what
        was judged until then is reported."""
        self.timeout = asyncio.timeout(self.share(1))
        try:
            async with self.timeout:
                await playing
        except asyncio.CancelledError as error:
            request = error.args[0] if error.args and isinstance(error.args[0], StopRequest) else INTERRUPTED
            return self.ending(request, current.describe())
        except TimeUp as up:
            return self.ending(self.time_is_up(), str(up))
        except TargetGone as gone:
            return self.target_down(gone, current)
        except TargetError as error:
            return self.ending(StopRequest(EndKind.TARGET_DOWN, str(error)), current.describe())
        except Exception as error:
            if self.timeout.expired():
                return self.ending(self.request or self.time_is_up(), current.describe())
            return self.harness_failed(error, current)
        return None

    def time_is_up(self) -> StopRequest:
        """The end of the run by its limit."""
        return StopRequest(EndKind.STOPPED, f"the time is up: --seconds {self.seconds or 0:g}")

    def ending(self, request: StopRequest, during: str) -> Ending:
        """The end of the run at this moment."""
        return Ending(request.kind, request.reason, round(self.elapsed_seconds(), 3), during)

    def target_down(self, gone: TargetGone, current: "CurrentWork") -> Ending:
        """The end of the run when the target went down, which was at the first loss of a connection."""
        offset = self.elapsed_seconds() - asyncio.get_running_loop().time()
        lost_at = gone.losses[0].lost_at + offset if gone.losses else self.elapsed_seconds()
        during = name_some([each.scenario for each in gone.losses]) or current.describe()
        last_sign = None if gone.last_sign is None else round(max(gone.last_sign + offset, 0.0), 3)
        return Ending(EndKind.TARGET_DOWN, str(gone), round(max(lost_at, 0.0), 3), during, last_sign)

    def harness_failed(self, error: Exception, current: "CurrentWork") -> Ending:
        """The end of the run by an error that is not the target's."""
        if isinstance(error, OSError) and error.filename is not None:
            reason, detail = f"cannot write {error.filename}: {error.strerror}", ""
        elif isinstance(error, FencepostError):
            reason, detail = str(error), ""
        else:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            reason, detail = f"an error in Fencepost itself: {told}", "".join(traceback.format_exception(error))
        return Ending(
            EndKind.HARNESS_FAILED, reason, round(self.elapsed_seconds(), 3), current.describe(), detail=detail
        )


class CurrentWork:
    """What is being played: the names of scenarios, or a `stage` in words where there are none."""

    def __init__(self) -> None:
        self.playing: set[str] = set()
        self.stage = ""

    def describe(self) -> str:
        """The work in a few words, "" if there is none."""
        return name_some(sorted(self.playing)) or self.stage


def name_some(names: Collection[str]) -> str:
    """The first of some names, and how many more there are."""
    first = next(iter(names), "")
    return f"{first} and {len(names) - 1} more" if len(names) > 1 else first


# -- traces on disk ---------------------------------------------------------------------------------------------------


def with_decisions(events: Iterable[Event], decisions: Mapping[str, bool]) -> Iterator[Event]:
    """The events of a trace with the decisions on reference differences that were made before it, so that the trace is
    judged alike when it is judged alone."""
    for event in events:
        has_topics = event.kind is Kind.INTERNAL and event.api == "topics"
        yield replace(event, body={**event.body, "decisions": dict(decisions)}) if has_topics else event


def with_requirements(events: Sequence[Event], requirements: Sequence[str]) -> Iterator[Event]:
    """The events of a trace, and the requirements whose violation it was saved for, so that its replay is about them.
    Without any, the events alone."""
    yield from events
    if requirements and events:
        last = events[-1]
        body = {"requirements": list(requirements)}
        yield Event(last.sequence + 1, last.time, 0, "", Kind.INTERNAL, SAVED, 0, body)


def saved_requirements(events: Iterable[Event]) -> frozenset[str]:
    """The requirements whose violation a trace was saved for, as it says itself; none if it does not say."""
    saved = (event.body for event in events if event.kind is Kind.INTERNAL and event.api == SAVED)
    return frozenset(id for body in saved for id in body.get("requirements", ()))


def requirements_saved_for(event: ScenarioFinished | ScheduleShrunk) -> tuple[str, ...]:
    """The requirements whose violation a trace is saved for: the one that a schedule was shrunk for; of a scenario
    those that it was written for, and all that it violates if it violates none of these."""
    if isinstance(event, ScheduleShrunk):
        return (event.requirement,)
    own = tuple(id for id in event.requirements if id in event.violated)
    return own or tuple(sorted(event.violated))


def trace_file(folder: Path, name: str) -> Path:
    """Where the trace of a scenario or schedule of this name is saved in a folder."""
    return folder / f"{name}.jsonl"


def write_run(folder: Path, run: ScenarioRun) -> None:
    """Write the trace of a run into a folder."""
    save_trace(trace_file(folder, run.scenario.name), run.header, run.events)


def save_trace(path: Path, header: Header, events: Iterable[Event]) -> None:
    """Write a trace. Raises `OSError`, which names the file also where the disk is full."""
    try:
        write_trace(path, header, events)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


class TraceSaver:
    """Consumes the events of a run: writes the traces of failures to the folder `failures` and those of all scenarios
    to the folder `traces`. Both folders exist; None for a folder saves nothing.

    Traces of random schedules that do not fail are written where they are judged: they are too many to be sent.
    """

    def __init__(self, failures: Path | None = None, traces: Path | None = None) -> None:
        self.failures = failures
        self.traces = traces

    def __call__(self, event: RunEvent) -> None:
        """Save the trace of an event that has one. Raises `OSError`."""
        if not isinstance(event, ScenarioFinished | ScheduleShrunk):
            return
        if self.traces is not None and isinstance(event, ScenarioFinished):
            save_trace(trace_file(self.traces, event.name), event.header, event.events)
        if self.failures is not None and (isinstance(event, ScheduleShrunk) or event.violated):
            events = with_requirements(event.events, requirements_saved_for(event))
            save_trace(trace_file(self.failures, event.name), event.header, events)


# -- the stream of events ---------------------------------------------------------------------------------------------

Emit = Callable[[RunEvent], None]


async def stream_events(
    start: Callable[[Emit], Coroutine[Any, Any, object]], *savers: Callable[[RunEvent], None]
) -> AsyncGenerator[RunEvent, None]:
    """The events that a run emits, after each of `savers` had them. Raises what the run raises.

    When the consumer is cancelled the run is cancelled in its place, and the events that the run still emits follow:
    a run that is cut short reports what it has. So it does when a saver raises `OSError`, which then gets no more
    events. When the stream is closed the run is cancelled and awaited.
    """
    queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    run = asyncio.create_task(start(queue.put_nowait))
    run.add_done_callback(lambda _: queue.put_nowait(None))
    left = list(savers)
    try:
        while True:
            try:
                event = await queue.get()
            except asyncio.CancelledError as error:
                run.cancel(*error.args)
                continue
            if event is None:
                break
            for saver in tuple(left):
                try:
                    saver(event)
                except OSError as error:
                    left.remove(saver)
                    told = f"cannot write {error.filename or 'a trace'}: {error.strerror or error}"
                    run.cancel(StopRequest(EndKind.HARNESS_FAILED, told))
            yield event
        await run
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


async def consume(events: AsyncGenerator[RunEvent, None], *consumers: Callable[[RunEvent], None]) -> Report:
    """Hand every event to each of the consumers and return the report of the last one. A run that is cancelled once
    more when its report is there is not waited for."""
    report: Report | None = None
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                for consumer in consumers:
                    consumer(event)
                if isinstance(event, RunFinished):
                    report = event.report
    except asyncio.CancelledError:
        if report is None:
            raise
    assert report is not None, "a run ends with its report or raises"
    return report


def progress_consumer(show: Callable[[Progress], None]) -> Callable[[RunEvent], None]:
    """A consumer that shows progress and nothing else."""

    def consume_progress(event: RunEvent) -> None:
        if isinstance(event, Progress):
            show(event)

    return consume_progress
