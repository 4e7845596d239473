"""The search of a small group by `fencepost explore`: its instance, its result, and what is shown of both."""

import argparse
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, TextIO

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.files import check_outputs
from fencepost.conformance.reports.progress import StatusLine
from fencepost.conformance.reports.words import format_duration
from fencepost.conformance.results import ExitCode
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.liveness import LivenessResult, Stall, check_liveness
from fencepost.model.classic.explore.properties import NO_DEADLOCK, ONE_LEADER_EVER, PROPERTIES, Property
from fencepost.model.classic.explore.state_diagram import render_search, searched_arrows
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.errors import FencepostError
from fencepost.model.explore.engine import Engine, explore_system, replay_path
from fencepost.model.explore.rendering import (
    changed_columns,
    explored_graph,
    is_complete,
    render_row,
    write_dot,
    write_graphml,
)
from fencepost.model.explore.search import NO_LIMIT, Discovery, Exploration, SearchProgress
from fencepost.model.explore.transition_system import PropertyKind

# --- `fencepost explore`: searches bounded instances of coordinator, members and network, and checks their
# properties.

MAX_MEMBERS = 6
SETTLES = Property(
    "settles",
    "Once the members stop changing, every fair run ends in a stable group of the living, with nothing parked.",
    "every run without end",
    "leaders that change their plan in every round, and how long it takes",
)


KNOWN_FALSE = "false, as it should be"
"""Of a generation that is stored with its assignment, as Kafka does it: its number is given again."""


class UnusableSizes(FencepostError):
    """The sizes do not go together; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What is explored. `settle` is the number of requests of each process before the members stop changing."""

    members: int = 2
    static: int = 0
    direct: int | None = None
    """How many members are let in without a member id in their first JoinGroup; None for half of them."""
    eager: bool = False
    heartbeats: bool = True
    partitions: int = 1
    ids: int = 2
    generations: int = 2
    requests: int = 4
    slots: int = 2
    reduced: bool = True
    limit: int = NO_LIMIT
    settle: int = 1
    failovers: int = 0
    stores_early: bool = False
    """A generation is stored before JoinGroup is answered, and not with its assignment."""

    def setting(self) -> ModelConfig:
        """Who is there. Raises `UnusableSizes`."""
        if self.members > MAX_MEMBERS:
            raise UnusableSizes(f"--members {self.members}: at most {MAX_MEMBERS} can be explored")
        if self.static > self.members:
            raise UnusableSizes(f"--static {self.static}: there are only {self.members} members")
        if self.static and self.failovers:
            raise UnusableSizes(f"--static {self.static}: fail-overs are explored with dynamic members")
        if self.direct_members() > self.members:
            raise UnusableSizes(f"--direct {self.direct}: there are only {self.members} members")
        dynamic = [untimed_member(not self.eager)] * (self.members - self.static)
        named = [untimed_member(not self.eager, instance=f"instance {number}") for number in range(1, self.static + 1)]
        members = [*dynamic, *named]
        direct = [replace(one, requires_id=False) for one in members[: self.direct_members()]]
        return ModelConfig((*direct, *members[len(direct) :]), self.partitions, heartbeats=self.heartbeats)

    def direct_members(self) -> int:
        """How many members are let in without a member id in their first JoinGroup."""
        return self.members // 2 if self.direct is None else self.direct

    def bounds(self) -> Bounds:
        """How far the search goes."""
        return Bounds(self.ids, self.generations, self.requests, self.slots, self.failovers)

    def settled_bounds(self) -> Bounds:
        """From where on the members stop changing: within one id, one generation and one slot."""
        return Bounds(1, 1, min(self.settle, self.requests), 1)


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a path: its label, and the columns that it changes with their new values (empty if not shown)."""

    label: str
    after: str


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """A property and what became of it: holds, violated, vacuous where it says nothing of any state or step, seen, not
    seen, or open where the search was cut short; false, as it should be, where a design is known not to keep it."""

    property: Property
    verdict: str
    where: str
    path: tuple[PathStep, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplorationResult:
    """What came of an exploration; no liveness where it was not asked for or cut short."""

    instance: Instance
    engine: Engine
    exploration: Exploration
    results: tuple[PropertyResult, ...]
    liveness: LivenessResult | None

    def exit_code(self) -> ExitCode:
        """1 if a property is violated, 3 if something is open or vacuous or a witness was not seen, else 0."""
        verdicts = {result.verdict for result in self.results}
        if "violated" in verdicts:
            return ExitCode.VIOLATION
        return ExitCode.CONFORMANT if verdicts <= {"holds", "seen", KNOWN_FALSE} else ExitCode.INCONCLUSIVE


PulseCallback = Callable[[SearchProgress], None]
StatusCallback = Callable[[str], None]


def run_exploration(
    instance: Instance, watch: PulseCallback, show_status: StatusCallback, show: Callable[[PropertyResult], None]
) -> ExplorationResult:
    """Explore, showing each result as soon as it is there. Ctrl-C ends a part early and keeps what was found."""
    setting = instance.setting()
    with interruptible() as stopped:

        def goes_on(pulse: SearchProgress) -> bool:
            watch(pulse)
            return not stopped()

        system = group_system(setting, instance.bounds(), instance.reduced, instance.stores_early)
        exploration, engine = explore_system(system, limit=instance.limit, watch=goes_on)
        interrupted = stopped()
    results: list[PropertyResult] = []
    for result in property_results(instance, exploration):
        results.append(result)
        show(result)
    liveness = None
    if instance.settle:
        if not interrupted:
            liveness = check_settling(setting, instance, show_status)
        results.append(liveness_result(instance.settled_bounds(), liveness))
        show(results[-1])
    return ExplorationResult(instance, engine, exploration, tuple(results), liveness)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Tells whether Ctrl-C was pressed meanwhile; pressed twice it interrupts."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return

    def press(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def property_results(instance: Instance, exploration: Exploration) -> Iterator[PropertyResult]:
    """What the search says of each property."""
    findings, shown = {finding.name: finding for finding in exploration.discoveries}, exploration.find_witnesses()
    where = f"in {exploration.states:,} states"
    there = {"another": instance.members > 1, "heartbeats": instance.heartbeats, "failovers": instance.failovers > 0}
    for one in PROPERTIES:
        if not there.get(one.needs, True):
            continue
        finding, always = findings.get(one.name), one.kind is PropertyKind.ALWAYS
        if finding is not None:
            wrong = KNOWN_FALSE if one == ONE_LEADER_EVER and not instance.stores_early else "violated"
            yield PropertyResult(one, wrong if always else "seen", where, path_to(exploration, finding))
        elif not exploration.finished:
            yield PropertyResult(one, "open", where)
        elif always:
            said = one == NO_DEADLOCK or one.name in shown or one.premise in findings
            yield PropertyResult(one, "holds" if said else "vacuous", where)
        else:
            yield PropertyResult(one, "seen" if one.name in shown else "not seen", where)


def path_to(exploration: Exploration, finding: Discovery) -> tuple[PathStep, ...]:
    """A shortest way from the start, in words."""
    system = exploration.tables.system
    steps: list[PathStep] = []
    row = system.initial
    for told in replay_path(exploration.tables, finding):
        steps.append(PathStep(told.label, render_row(system, told.row, changed_columns(row, told.row))))
        row = told.row
    return tuple(steps)


def check_settling(setting: ModelConfig, instance: Instance, show_status: StatusCallback) -> LivenessResult | None:
    """Look for fair runs that do not settle; None if Ctrl-C was pressed."""
    sets = count(1)

    def tell(alive: str) -> None:
        show_status(f"runs without end, {alive} ({next(sets)} of {2**instance.members} sets of living members)")

    try:
        return check_liveness(setting, instance.settled_bounds(), progress=tell)
    except KeyboardInterrupt:
        return None


def liveness_result(bounds: Bounds, liveness: LivenessResult | None) -> PropertyResult:
    """What became of liveness."""
    if liveness is None:
        return PropertyResult(SETTLES, "open", "which was cut short")
    where = (
        f"from the {liveness.starts:,} states on that {pluralize(bounds.requests, 'request')} of each lead to, through "
        f"{liveness.states:,} states without bounds"
    )
    if liveness.stalls:
        return PropertyResult(SETTLES, "violated", where, stall_path(liveness.stalls[0]))
    return PropertyResult(SETTLES, "holds" if liveness.cut == 0 else "open", where)


def pluralize(count: int, one: str, more: str = "") -> str:
    """A number of things."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def stall_path(stall: Stall) -> tuple[PathStep, ...]:
    """A fair run that does not settle, in words."""
    living = f"alive: {', '.join(stall.alive) or 'nobody'}"
    way = [PathStep(label, "") for label in stall.path]
    return (PathStep(living, ""), *way, PathStep(f"and then for ever among {len(stall.cycle)} states", ""))


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """Where to write the explored graph and the picture; None for nowhere."""

    dot: Path | None = None
    graphml: Path | None = None
    picture: Path | None = None

    def write(self, exploration: Exploration, show_status: StatusCallback) -> str:
        """Write the requested files. Returns a note on the states that the graph leaves out, empty if none."""
        if self.picture is not None:
            self.picture.write_text(render_search(searched_arrows(exploration.tables)), encoding="utf-8")
        if self.dot is None and self.graphml is None:
            return ""
        show_status("writing the graph")
        graph = explored_graph(exploration)
        if self.dot is not None:
            with self.dot.open("w", encoding="utf-8") as text:
                write_dot(graph, text)
        if self.graphml is not None:
            with self.graphml.open("wb") as stream:
                write_graphml(graph, stream)
        if is_complete(exploration):
            return ""
        return f"the graph has the first {len(graph):,} of {exploration.states:,} states"


# --- An exploration for people and programs: lines, the summary, JSON, and how far a search has come.

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
    if result.verdict in ("violated", KNOWN_FALSE):
        for number, step in enumerate(result.path, 1):
            text += f"\n  {number:3}. {step.label}" + (f"  [{step.after}]" if step.after else "")
    return text


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


def explore_classic(options: argparse.Namespace, console: Console) -> int:
    """Search the instance of the options, print each result as it comes, write the files. Raises `UnusableSizes`."""
    instance = instance_of(options)
    instance.setting()
    files = OutputFiles(options.dot, options.graphml, options.picture)
    check_outputs({"--json": options.json, "--dot": files.dot, "--graphml": files.graphml, "--picture": files.picture})
    display = SearchDisplay(console.progress_stream(), live=console.is_live(), limit=instance.limit)

    def show(text: str) -> None:
        display.clear()
        console.print_line(text)

    show(heading(instance))
    result = run_exploration(instance, display, display.show_status, lambda finding: show(result_line(finding)))
    show(summary(result))
    if options.json is not None:
        options.json.write_text(to_json(result), encoding="utf-8")
    omission = files.write(result.exploration, display.show_status)
    if omission:
        show(omission)
    display.clear()
    return result.exit_code()


def instance_of(options: argparse.Namespace) -> Instance:
    """The instance with the sizes and the behaviour of the options."""
    return Instance(
        members=options.members,
        static=options.static,
        direct=options.direct,
        eager=options.eager,
        heartbeats=not options.no_heartbeats,
        partitions=options.partitions,
        ids=options.ids,
        generations=options.generations,
        requests=options.requests,
        slots=options.slots,
        reduced=not options.full and options.failovers == 0,
        failovers=options.failovers,
        stores_early=options.stores_early,
        limit=NO_LIMIT if options.limit is None else options.limit,
        settle=0 if options.no_liveness else options.settle,
    )
