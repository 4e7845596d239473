"""Traces on disk: file names, writing, and the earlier reference decisions that a saved trace carries."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.events import RunEvent, ScenarioFinished, ScheduleShrunk
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import write_trace


def with_decisions(events: Iterable[Event], decisions: Mapping[str, bool]) -> Iterator[Event]:
    """The events of a trace with the decisions on reference differences that were made before it, so that the trace is
    judged alike when it is judged alone."""
    for event in events:
        has_topics = event.kind is Kind.INTERNAL and event.api == "topics"
        yield replace(event, body={**event.body, "decisions": dict(decisions)}) if has_topics else event


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
            save_trace(trace_file(self.failures, event.name), event.header, event.events)
