"""Hunting one specimen by one method: what it takes to find it, if it is found at all.

All seconds are those of one core, so that what else the machine does makes no difference.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import broken, violations
from fencepost.conformance.execution.play import Played
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, Bundled
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import needed
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.tours import scenarios, timed
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.falsify import Quarry, Source, drawn_from, requests_until, search
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.baselines import plain_hypothesis, random_walks
from fencepost.conformance.zoo.cache import Watch, drawn
from fencepost.conformance.zoo.crashing_target import MortalTarget
from fencepost.conformance.zoo.faulty import MakeTarget, Specimen, specimen
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES, WALK
from fencepost.conformance.zoo.timeouts import Stuck, at_most
from fencepost.model.explore.classic.coordinator_inputs import Universe, joinings
from fencepost.traces.verdict import Standing

SOURCES: Mapping[str, Callable[[int], Source]] = {
    SCHEDULES: lambda seed: drawn_from(Ground(BUNDLED_SETTINGS), seed),
    HYPOTHESIS: plain_hypothesis,
    WALK: random_walks,
}
"""Ways to draw schedules, by the seed."""
UNIVERSES = (Universe(1, 2, joinings(2)), Universe(2, 1, joinings(1)))
"""What the tours try: one member with two subscriptions in two generations, and two members."""
SHRINK_SECONDS = 6.0
STUCK_SECONDS = 30.0
"""How much longer than it should a hunt may take before the coordinator is taken to hang."""
UNOFFERED = frozenset({"second-node", "graceful-move"})
HANGS, DOES_NOT_START = "the coordinator hangs", "the coordinator does not start"


@dataclass(frozen=True, slots=True)
class Task:
    """A hunt to be done: of what, how, with which seed, and how many seconds it may take until something is found.

    It begins with the schedules of this `chunk`, and plays of scenarios or tours no more than the one named `only`, so
    that what was found once need not be waited for again.
    """

    name: str
    method: str
    seed: int = 0
    seconds: float = 60.0
    shrink: float = SHRINK_SECONDS
    chunk: int = 0
    only: str = ""


@dataclass(frozen=True, slots=True)
class Find:
    """What came of a hunt: the requirement that was seen broken ("" if none was), after how many schedules and seconds,
    how many requests it takes at least, `by` what (the shortest schedule a move a line, or a scenario's name), and in
    which `chunk` of the schedules."""

    task: Task
    requirement: str
    schedules: int
    seconds: float
    requests: int = 0
    by: tuple[str, ...] = ()
    chunk: int = 0

    @property
    def found(self) -> bool:
        """Something was found."""
        return bool(self.requirement)


def hunt(task: Task) -> Find:
    """Do a hunt. What does not even start, or never comes to an end, is found with that."""
    begun, hunted = time.process_time(), specimen(task.name)

    try:
        with at_most(task.seconds + task.shrink + STUCK_SECONDS):
            if not starts(hunted):
                return Find(task, DOES_NOT_START, 1, time.process_time() - begun)
            if task.method in SOURCES:
                return by_schedules(task, hunted)
            return by_remarks(task, hunted) if task.method == REMARKS else by_plays(task, hunted)
    except Stuck as stuck:
        return Find(task, HANGS if stuck.inside else "", 1, time.process_time() - begun)


def starts(hunted: Specimen) -> bool:
    """The specimen can be loaded, and a coordinator of its kind be started."""

    async def start(make_target: MakeTarget) -> None:
        target = make_target(BUNDLED_SETTINGS)
        await target.open()
        await target.close()

    try:
        with hunted.applied() as make_target:
            run_virtual(start(make_target))
    except Exception:  # whatever a mutant comes up with
        return False
    return True


def by_schedules(task: Task, hunted: Specimen) -> Find:
    """Draw schedules until one shows something."""
    watch, chunk = Watch(), task.chunk

    def chunks(number: int) -> Iterable[Schedule]:
        nonlocal chunk
        chunk = task.chunk + number
        schedules, seconds = watch.free(drawn, SOURCES[task.method], task.seed, chunk)
        watch.pay(seconds)
        return schedules

    with hunted.field(watch) as field:
        found = search(field, chunks, task.seconds, task.shrink, watch)
    if not isinstance(found, Quarry):
        return Find(task, "", found.schedules, found.seconds)
    moves = tuple(str(move) for move in found.shortest.moves)
    return Find(task, found.requirement, found.schedules, found.seconds, found.requests, moves, chunk)


def by_plays(task: Task, hunted: Specimen) -> Find:
    """Play the scenarios or the tours, until one shows something twice."""
    begun, tried = time.process_time(), 0
    with hunted.applied() as make_target:
        bundled = run_of(make_target, hunted.grace)
        for play in (each for each in plays(task.method) if task.only in ("", each.name)):
            tried += 1
            first = run_virtual(bundled.play(play, "run"))
            found = broken(first)
            if found and (again := found & broken(run_virtual(bundled.play(play, "replay")))):
                return shown(task, hunted, play, first, again, tried, time.process_time() - begun)
            if time.process_time() - begun > task.seconds:
                break
    return Find(task, "", tried, time.process_time() - begun)


def by_remarks(task: Task, hunted: Specimen) -> Find:
    """Play the scenarios, and look for what they twice show to be unusual, and not with the shipped coordinator."""
    begun, tried = time.process_time(), 0
    seen: list[tuple[int, Scenario, frozenset[Remark]]] = []
    with hunted.applied() as make_target:
        for play in (each for each in plays(SCENARIOS) if task.only in ("", each.name)):
            tried += 1
            odd = remarks(make_target, hunted.grace, play)
            if odd and (odd := odd & remarks(make_target, hunted.grace, play)):
                seen.append((tried, play, odd))
            if time.process_time() - begun > task.seconds:
                break
    for number, play, odd in seen:
        if news := odd - remarks(MortalTarget, hunted.grace, play):
            first = min(news, key=lambda each: each.requests)
            return Find(task, first.requirement, number, time.process_time() - begun, first.requests, (play.name,))
    return Find(task, "", tried, time.process_time() - begun)


class Remark(NamedTuple):
    """A requirement that is kept in an unusual way, and after how many requests that is seen."""

    requirement: str
    requests: int


def remarks(make_target: MakeTarget, grace: int, play: Scenario) -> frozenset[Remark]:
    """What is unusual when a scenario is played."""
    played = run_virtual(run_of(make_target, grace).play(play, "run"))
    marks = (mark for mark in played.verdict.evidence if mark.standing is Standing.UNUSUAL)
    return frozenset(Remark(mark.requirement, requests_until(played, mark.sequence)) for mark in marks)


def run_of(make_target: MakeTarget, grace: int) -> Bundled:
    """What plays scenarios on such targets."""
    bundled = Bundled(Plan(BUNDLED), Profile(grace=grace))
    target: Callable[..., Target] = make_target
    bundled.make_target = target
    return bundled


def plays(method: str) -> Iterable[Scenario]:
    """The scenarios that an in-process target offers everything for, or the tours."""
    if method == SCENARIOS:
        yield from (one for one in ALL if not needed(one) & UNOFFERED)
        return
    for universe in UNIVERSES:
        yield from tours(universe)


@cache
def tours(universe: Universe) -> tuple[Scenario, ...]:
    """The tours over a universe."""
    return tuple(scenarios(timed(BUNDLED_SETTINGS, universe)))


def shown(
    task: Task, hunted: Specimen, play: Scenario, played: Played, again: frozenset[str], tried: int, seconds: float
) -> Find:
    """What a play shows: of the requirements that forbid the bug one, if it is among them, else the first."""
    named = [each for each in violations(played.verdict) if each.requirement in again]
    first = min(named, key=lambda each: (each.requirement not in hunted.breaks, each.sequence))
    return Find(task, first.requirement, tried, seconds, requests_until(played, first.sequence), (play.name,))
