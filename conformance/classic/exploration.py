"""`fencepost explore`: searches bounded instances of coordinator, members and network, and checks their properties."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import FrameType

from fencepost.conformance.results import ExitCode
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.liveness import LivenessResult, Stall, check_liveness
from fencepost.model.classic.explore.properties import NO_DEADLOCK, PROPERTIES, Property
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

MAX_MEMBERS = 6
SETTLES = Property(
    "settles",
    "Once the members stop changing, every fair run ends in a stable group of the living, with nothing parked.",
    "every run without end",
    "leaders that change their plan in every round, and how long it takes",
)


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
    seen, or open where the search was cut short."""

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
        return ExitCode.CONFORMANT if verdicts <= {"holds", "seen"} else ExitCode.INCONCLUSIVE


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
            yield PropertyResult(one, "violated" if always else "seen", where, path_to(exploration, finding))
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
