"""Traces on disk: file names, writing, and what a saved trace carries: the earlier reference decisions, and the
requirements that it was saved for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.events import RunEvent, ScenarioFinished, ScheduleShrunk
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.traces.events import SAVED, Event, Header, Kind
from fencepost.traces.files.trace_files import write_trace


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


def trace_path(folder: Path, run: ScenarioRun) -> Path:
    """Where the trace of a scenario is saved in a folder."""
    return trace_file(folder, run.scenario.name)


def trace_file(folder: Path, name: str) -> Path:
    """Where the trace of a scenario or schedule of this name is saved in a folder."""
    return folder / f"{name}.jsonl"


def write_run(folder: Path, run: ScenarioRun) -> None:
    """Write the trace of a run into a folder."""
    save_trace(trace_path(folder, run), run.header, run.events)


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
