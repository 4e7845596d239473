"""The pictures of the documentation, drawn by the kit: scenarios on the bundled coordinator, findings, timelines."""

import asyncio
import tempfile
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from docs.generator.ideas import PREFIX, draw_idea
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance import reports
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.drawings import draw_coverage, to_mermaid, to_svg
from fencepost.conformance.reports.incident_words import Clock, names_in
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.reports.sequence import PhaseSpan, SequenceDiagram, draw_sequence, follow_phases
from fencepost.conformance.reports.timeline import draw_timeline
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.runner import judge_files
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.builder import TraceHistory
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import violations_in

FINDING, TIMELINE, COVERAGE = "finding", "timeline", "coverage"


def draw_picture(name: str, docs: Path) -> str:
    """The picture of a name as an SVG file: `finding`, `timeline` and `coverage` are of the examples under `docs`,
    `idea-INCIDENT-SYSTEM` is an incident under a system, any other is the name of a scenario. Raises `KeyError` for a
    scenario that there is none of."""
    if name == FINDING:
        return make_standalone(draw_finding(docs))
    if name == TIMELINE:
        return make_standalone(draw_incident(docs))
    if name == COVERAGE:
        return make_standalone(draw_seen_transitions(docs))
    if name.startswith(PREFIX):
        return make_standalone(draw_idea(name))
    return make_standalone(draw_scenario(name))


def draw_scenario(name: str) -> str:
    """A scenario on the bundled coordinator."""
    header, events = play(name)
    diagram = draw_sequence(events)
    return to_svg(
        diagram, follow_phases(header, events, diagram.steps), name.replace("-", " "), "A schedule and its responses."
    )


@cache
def play(name: str) -> tuple[Header, tuple[Event, ...]]:
    """The trace of a scenario on the bundled coordinator."""
    scenario = next((each for each in DEFAULT_PROTOCOL.scenarios if each.name == name), None)
    if scenario is None:
        raise KeyError(f"no scenario {name!r}")
    run = asyncio.run(run_virtual_in_thread(BundledRun(Plan(BUNDLED), Profile()).play(scenario, "picture")))
    return run.header, run.events


def follow_finding(docs: Path) -> tuple[SequenceDiagram, tuple[PhaseSpan, ...]]:
    """The true finding as a diagram with its phases: the rebalance that ends in the wrong response."""
    header, events = open_trace(docs / "examples" / "finding" / "two-leaders.jsonl")
    known = tuple(events)
    (wrong,) = {each.sequence for each in violations_in(judge(header, known))}
    diagram = draw_sequence(known, wrong)
    phases = follow_phases(header, known, diagram.steps)
    settled = max(each.end for each in phases if each.phase == "Stable")
    asked = {step.request for step in diagram.steps[settled:]}
    begin = next(place for place, step in enumerate(diagram.steps) if step.request in asked)
    cut = replace(diagram, steps=diagram.steps[begin:], omitted=begin)
    late = (each for each in phases if each.end > begin)
    return cut, tuple(replace(each, first=max(0, each.first - begin), end=each.end - begin) for each in late)


def draw_finding(docs: Path) -> str:
    """The true finding."""
    return to_svg(*follow_finding(docs), "A finding", "The last response is wrong.")


def finding_as_mermaid(docs: Path) -> str:
    """The true finding as Mermaid text, for README.md."""
    return to_mermaid(*follow_finding(docs))


def draw_incident(docs: Path) -> str:
    """The timeline of the group in the broker log of the tutorial."""
    histories: list[TraceHistory] = []
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "group.jsonl"
        import_log([docs / "examples" / "incident" / "server.log"], trace)
        judge_files([trace], lambda _: None, histories)
    (history,) = histories
    group = history.groups[0]
    return draw_timeline(group, names_in(group), Clock(history.began), f"Group {group.group}")


def draw_seen_transitions(docs: Path) -> str:
    """The transitions that a run on the bundled coordinator took."""
    (file,) = (docs / "registry" / "coordinators" / "fencepost-bundled").glob("*/report.json")
    coverage = from_json(file.read_text(encoding="utf-8")).coverage
    assert coverage is not None
    return draw_coverage(coverage)


def make_standalone(svg: str) -> str:
    """An SVG element as a file of its own, with the colours of the kit's pages on their own ground."""
    style = files(reports).joinpath("style.css").read_text(encoding="utf-8")
    head, _, rest = svg.partition(">")
    ground = "svg { background: var(--paper); }"
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{style}\n{ground}</style>{rest}\n'
