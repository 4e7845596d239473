"""An exploration for people and programs: lines, the summary, JSON, and how far a search has come."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from time import monotonic
from typing import Any, TextIO

from fencepost.conformance.classic.exploration import ExplorationResult, Instance, PropertyResult, pluralize
from fencepost.conformance.reports.progress import StatusLine
from fencepost.conformance.reports.words import format_duration
from fencepost.conformance.results import ExitCode
from fencepost.model.explore.search import NO_LIMIT, SearchProgress

_BETWEEN_LINES = 5.0
"""Seconds between two lines of progress where lines are not rewritten."""
_CONCLUSIONS = {
    ExitCode.CONFORMANT: "CONFORMANT: everything that was looked for holds within the bounds.",
    ExitCode.VIOLATION: "VIOLATION: something does not hold; the sequence above shows it.",
    ExitCode.INCONCLUSIVE: "INCONCLUSIVE: something is open: the search was cut short, or its bounds are too small.",
}


def heading(instance: Instance) -> str:
    """What is explored."""
    kind = "eager" if instance.eager else "cooperative"
    static = f", {instance.static} of them static" if instance.static else ""
    direct = f", {instance.direct_members()} let in without an id at first" if instance.direct_members() else ""
    members = f"{pluralize(instance.members, f'{kind} member')}{static}{direct}"
    who = f"{members}, {pluralize(instance.partitions, 'partition')}"
    limits = (
        f"{pluralize(instance.ids, 'id')}, {pluralize(instance.generations, 'generation')}, "
        f"{pluralize(instance.requests, 'JoinGroup or SyncGroup', 'JoinGroups and SyncGroups')} of each, "
        f"{pluralize(instance.slots, 'slot')}"
    )
    lost = f"; {pluralize(instance.failovers, 'fail-over')}" if instance.failovers else ""
    events = "crashes, leaves, commits" + (", heartbeats" if instance.heartbeats else ", no heartbeats")
    return (
        f"One group, {who}; up to {limits}. Requests come late, twice or never, answers get lost, "
        f"timers fire at any moment; {events}{lost}."
    )


def result_line(result: PropertyResult) -> str:
    """One result in one line, and the sequence that shows it below, if there is one to show."""
    one = result.property
    text = f"{result.verdict}  {one.name}: {one.sentence} Covers {one.covers} {result.where}. Not: {one.excludes}."
    return "\n".join([text, *path_lines(result)]) if result.verdict == "violated" else text


def path_lines(result: PropertyResult) -> Iterator[str]:
    """The steps of a story, numbered."""
    for number, step in enumerate(result.path, 1):
        yield f"  {number:3}. {step.label}" + (f"  [{step.after}]" if step.after else "")


def summary(explored: ExplorationResult) -> str:
    """The last lines."""
    found = explored.exploration
    rate = found.states / found.seconds if found.seconds else 0.0
    reduced = ", reduced" if explored.instance.reduced else ""
    end = "exhausted" if found.finished else "cut short"
    return (
        f"{found.states:,} states{reduced}, {found.transitions:,} moves, {found.depth} deep, {end} in "
        f"{format_duration(found.seconds)} ({rate:,.0f} states/s, {explored.engine}); "
        f"{found.cut:,} moves lead beyond the bounds.\n{_CONCLUSIONS[explored.exit_code()]}"
    )


def to_json(explored: ExplorationResult) -> str:
    """The exploration as JSON."""
    found, instance, liveness = explored.exploration, explored.instance, explored.liveness
    sizes = {name: value for name, value in asdict(instance).items() if name != "limit" or value != NO_LIMIT}
    sizes["direct"] = instance.direct_members()
    report: dict[str, Any] = {
        "fencepost": 1,
        "instance": sizes,
        "engine": explored.engine.value,
        "states": found.states,
        "transitions": found.transitions,
        "beyond": found.cut,
        "depth": found.depth,
        "deadlocks": found.deadlocks,
        "exhausted": found.finished,
        "seconds": round(found.seconds, 3),
        "properties": [
            {
                "id": result.property.name,
                "sentence": result.property.sentence,
                "verdict": result.verdict,
                "covers": f"{result.property.covers} {result.where}",
                "excludes": result.property.excludes,
                "story": [asdict(step) for step in result.path],
            }
            for result in explored.results
        ],
        "liveness": None
        if liveness is None
        else {name: getattr(liveness, name) for name in ("starts", "states", "edges", "cycles", "finals", "cut")}
        | {"stalls": len(liveness.stalls)},
        "rules": found.rule_counts(),
    }
    return json.dumps(report, indent=2) + "\n"


class SearchDisplay:
    """Shows how far a search has come: one line that is rewritten on a terminal, else a line every few seconds."""

    def __init__(self, stream: TextIO, *, live: bool, limit: int = NO_LIMIT) -> None:
        self._status = StatusLine(stream, live=live)
        self._live = live
        self._limit = limit
        self._began = self._shown = monotonic()
        self._levels: list[int] = []

    def __call__(self, pulse: SearchProgress) -> None:
        """Show how far the search is, if it is time."""
        if pulse.done == 0:
            self._levels = [*self._levels[-1:], pulse.level]
        now = monotonic()
        if self._live or now - self._shown >= _BETWEEN_LINES:
            self._shown = now
            self._status.show(pulse_line(pulse, now - self._began, self._levels, self._limit))

    def show_status(self, what: str) -> None:
        """Show what is being done."""
        self._status.show(what)

    def clear(self) -> None:
        """Leave the stream at the beginning of an empty line."""
        self._status.clear()


def pulse_line(pulse: SearchProgress, seconds: float, levels: list[int], limit: int = NO_LIMIT) -> str:
    """The progress of a search in one line; remaining time is estimated from shrinking levels or the state limit."""
    text = (
        f"{pulse.states:,} states, level {pulse.depth}: {pulse.done:,} of {pulse.level:,}, {format_duration(seconds)}"
    )
    if seconds <= 0:
        return text
    text += f", {pulse.states / seconds:,.0f} states/s"
    left = states_left(pulse, levels)
    if left is not None:
        expanded = pulse.states - pulse.level + pulse.done
        text += f", about {format_duration(seconds * left / max(expanded, 1))} left"
    elif limit != NO_LIMIT:
        text += f", at most {format_duration(seconds * max(limit - pulse.states, 0) / pulse.states)} left"
    return text


def states_left(pulse: SearchProgress, levels: list[int]) -> float | None:
    """How many states are left to look at if the levels go on getting smaller as they do; None if they do not."""
    if len(levels) < 2 or levels[-1] >= levels[-2]:
        return None
    ratio = levels[-1] / levels[-2]
    return pulse.level - pulse.done + pulse.level * ratio / (1 - ratio)
