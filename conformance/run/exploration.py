"""`fencepost explore`: bounded instances of coordinator, members and network, searched through; what holds in them."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

from fencepost.conformance.results import Exit
from fencepost.model.explore.classic.group_search import Engine, explore, group_system, retold
from fencepost.model.explore.classic.liveness import Liveness, Stall, check_liveness
from fencepost.model.explore.classic.properties import PROPERTIES, ZOMBIE, Property
from fencepost.model.explore.classic.rendering import changed, in_words
from fencepost.model.explore.classic.state_diagram import arrows, picture
from fencepost.model.explore.classic.state_layout import Bounds, Setting, plain
from fencepost.model.explore.graph_export import explored_graph, whole, write_dot, write_graphml
from fencepost.model.explore.search import NEVER, Exploration, Finding, Pulse

MOST_MEMBERS = 6
SETTLES = Property(
    "settles",
    "Once the members stop changing, every fair run ends in a stable group of the living, with nothing parked.",
    "every run without end",
    "leaders that change their plan in every round, and how long it takes",
)


class UnusableSizes(Exception):
    """The sizes do not go together; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What is explored. `settle` is the number of requests of each process before the members stop changing."""

    members: int = 2
    static: int = 0
    eager: bool = False
    heartbeats: bool = True
    partitions: int = 1
    ids: int = 2
    generations: int = 2
    requests: int = 3
    slots: int = 2
    reduced: bool = True
    limit: int = NEVER
    settle: int = 1

    def setting(self) -> Setting:
        """Who is there. Raises `UnusableSizes`."""
        if self.members > MOST_MEMBERS:
            raise UnusableSizes(f"--members {self.members}: at most {MOST_MEMBERS} can be explored")
        if self.static > self.members:
            raise UnusableSizes(f"--static {self.static}: there are only {self.members} members")
        dynamic = [plain(not self.eager)] * (self.members - self.static)
        named = [plain(not self.eager, instance=f"instance {number}") for number in range(1, self.static + 1)]
        return Setting((*dynamic, *named), self.partitions, heartbeats=self.heartbeats)

    def bounds(self) -> Bounds:
        """How far the search goes."""
        return Bounds(self.ids, self.generations, self.requests, self.slots)

    def settling(self) -> Bounds:
        """From where on the members stop changing: within one id, one generation and one slot."""
        return Bounds(1, 1, min(self.settle, self.requests), 1)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a story: what happens, and what is different after it."""

    label: str
    after: str


@dataclass(frozen=True, slots=True)
class Result:
    """A property and what became of it: holds, violated, seen, not seen, or open where the search was cut short."""

    property: Property
    verdict: str
    where: str
    story: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of an exploration; no liveness where it was not asked for or cut short."""

    instance: Instance
    engine: Engine
    exploration: Exploration
    results: tuple[Result, ...]
    liveness: Liveness | None

    def exit_code(self) -> Exit:
        """1 if a property is violated, 3 if something is open or a witness was not seen, else 0."""
        verdicts = {result.verdict for result in self.results}
        if "violated" in verdicts:
            return Exit.VIOLATION
        return Exit.CONFORMANT if verdicts <= {"holds", "seen"} else Exit.INCONCLUSIVE


Watch = Callable[[Pulse], None]
Doing = Callable[[str], None]


def explored(instance: Instance, watch: Watch, doing: Doing, show: Callable[[Result], None]) -> Explored:
    """Explore, showing each result as soon as it is there. Ctrl-C ends a part early and keeps what was found."""
    setting = instance.setting()
    with stoppable() as stopped:

        def goes_on(pulse: Pulse) -> bool:
            watch(pulse)
            return not stopped()

        system = group_system(setting, instance.bounds(), instance.reduced)
        exploration, engine = explore(system, limit=instance.limit, watch=goes_on)
        interrupted = stopped()
    results: list[Result] = []
    for result in judged(instance, exploration):
        results.append(result)
        show(result)
    liveness = None
    if instance.settle:
        if not interrupted:
            liveness = settled(setting, instance, doing)
        results.append(settling(instance.settling(), liveness))
        show(results[-1])
    return Explored(instance, engine, exploration, tuple(results), liveness)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
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


def judged(instance: Instance, exploration: Exploration) -> Iterator[Result]:
    """What the search says of each property."""
    findings = {finding.name: finding for finding in exploration.findings}
    where = f"in {exploration.states:,} states"
    for one in PROPERTIES:
        if one == ZOMBIE and instance.members == 1:
            continue  # there is nobody else to own anything
        finding = findings.get(one.name)
        if finding is not None:
            yield Result(one, "violated" if one.always else "seen", where, story(exploration, finding))
        elif not exploration.finished:
            yield Result(one, "open", where)
        else:
            yield Result(one, "holds" if one.always else "not seen", where)


def story(exploration: Exploration, finding: Finding) -> tuple[Step, ...]:
    """A shortest way from the start, in words."""
    system = exploration.tables.system
    steps: list[Step] = []
    row = system.initial
    for told in retold(exploration.tables, finding):
        steps.append(Step(told.label, in_words(system, told.row, changed(row, told.row))))
        row = told.row
    return tuple(steps)


def settled(setting: Setting, instance: Instance, doing: Doing) -> Liveness | None:
    """Look for fair runs that do not settle; None if Ctrl-C was pressed."""
    sets = count(1)

    def tell(alive: str) -> None:
        doing(f"runs without end, {alive} ({next(sets)} of {2**instance.members} sets of living members)")

    try:
        return check_liveness(setting, instance.settling(), progress=tell)
    except KeyboardInterrupt:
        return None


def settling(bounds: Bounds, liveness: Liveness | None) -> Result:
    """What became of liveness."""
    if liveness is None:
        return Result(SETTLES, "open", "which was cut short")
    where = (
        f"from the {liveness.starts:,} states on that {counted(bounds.requests, 'request')} of each lead to, through "
        f"{liveness.states:,} states without bounds"
    )
    if liveness.stalls:
        return Result(SETTLES, "violated", where, stalled(liveness.stalls[0]))
    return Result(SETTLES, "holds" if liveness.cut == 0 else "open", where)


def counted(count: int, one: str, more: str = "") -> str:
    """A number of things."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def stalled(stall: Stall) -> tuple[Step, ...]:
    """A fair run that does not settle, in words."""
    living = f"alive: {', '.join(stall.alive) or 'nobody'}"
    way = [Step(label, "") for label in stall.way]
    return (Step(living, ""), *way, Step(f"and then for ever among {len(stall.around)} states", ""))


@dataclass(frozen=True, slots=True)
class Files:
    """Where to write the explored graph and the picture; None for nowhere."""

    dot: Path | None = None
    graphml: Path | None = None
    picture: Path | None = None

    def check(self) -> None:
        """Raises `OSError` for a file that cannot be written, before anything else takes time."""
        for path in filter(None, (self.dot, self.graphml, self.picture)):
            path.open("a").close()

    def write(self, exploration: Exploration, doing: Doing) -> str:
        """Write what was asked for. Returns what the graph leaves out, empty if nothing."""
        if self.picture is not None:
            self.picture.write_text(picture(arrows(exploration.tables)), encoding="utf-8")
        if self.dot is None and self.graphml is None:
            return ""
        doing("writing the graph")
        graph = explored_graph(exploration)
        if self.dot is not None:
            with self.dot.open("w", encoding="utf-8") as text:
                write_dot(graph, text)
        if self.graphml is not None:
            with self.graphml.open("wb") as stream:
                write_graphml(graph, stream)
        if whole(exploration):
            return ""
        return f"the graph has the first {len(graph):,} of {exploration.states:,} states"
