"""Traces on disk: where each is found, and what it says by itself so that it can be judged alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.play import Played
from fencepost.conformance.plan import Plan
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import write_trace


def decided(events: Iterable[Event], decisions: Mapping[str, bool]) -> Iterator[Event]:
    """The trace, which says by itself how reference differences were decided before it."""
    for event in events:
        tells = event.kind is Kind.INTERNAL and event.api == "topics"
        yield replace(event, body={**event.body, "decisions": dict(decisions)}) if tells else event


def trace_file(folder: Path, played: Played) -> Path:
    """Where the trace of a scenario is saved."""
    return folder / f"{played.scenario.name}.jsonl"


def save(plan: Plan, played: Played) -> None:
    """Write the trace where the plan wants it."""
    save_trace(plan, played)
    save_failure(plan, played)


def save_trace(plan: Plan, played: Played) -> None:
    """Write the trace where every trace goes."""
    if plan.traces is not None:
        write_trace(trace_file(plan.traces, played), played.header, played.events)


def save_failure(plan: Plan, played: Played) -> None:
    """Write the trace where those of failures go, if it is one."""
    if plan.save is not None and broken(played):
        write_trace(trace_file(plan.save, played), played.header, played.events)
