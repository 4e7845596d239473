"""Traces on disk: where each is found, and what it says by itself so that it can be judged alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.plan import Plan
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import write_trace


def with_decisions(events: Iterable[Event], decisions: Mapping[str, bool]) -> Iterator[Event]:
    """The trace, which says by itself how reference differences were decided before it."""
    for event in events:
        tells = event.kind is Kind.INTERNAL and event.api == "topics"
        yield replace(event, body={**event.body, "decisions": dict(decisions)}) if tells else event


def trace_path(folder: Path, run: ScenarioRun) -> Path:
    """Where the trace of a scenario is saved."""
    return folder / f"{run.scenario.name}.jsonl"


def write_run(folder: Path, run: ScenarioRun) -> None:
    """Write the trace of a run into a folder."""
    write_trace(trace_path(folder, run), run.header, run.events)


def save_run(plan: Plan, run: ScenarioRun) -> None:
    """Write the trace where the plan wants it."""
    save_trace(plan, run)
    save_failure(plan, run)


def save_trace(plan: Plan, run: ScenarioRun) -> None:
    """Write the trace where every trace goes."""
    if plan.traces is not None:
        write_run(plan.traces, run)


def save_failure(plan: Plan, run: ScenarioRun) -> None:
    """Write the trace where those of failures go, if it is one."""
    if plan.save is not None and violated_requirements(run):
        write_run(plan.save, run)
