"""The schedule engine: random schedules, played until the number asked for, and a shrunk trace of each violation.

Theory of operation
-------------------

    seed, batch number
          │
          ▼
     ┌──────────┐  GeneratedSchedule  ┌──────┐  trace  ┌───────┐  ScheduleResult
     │ generate │────────────────────►│ play │────────►│ judge │────────┐
     └──────────┘                     └──────┘         └───────┘        ▼
          ▲                               ▲                      RunStatistics
          │                               │                             │ candidate
       protocol                           │                             ▼ failures
                                          │  replay twice  ┌──────────────────┐
      trace of the violation  ◄── save ───┴────────────────│ confirm ► shrink │
                                                           └──────────────────┘

1. Generate. A protocol draws schedules: a cast of actors and their moves, as plain data. It plays each on the model
   while it draws it, so that moves make sense, and so that the transitions of the model that the schedule takes are
   predicted. The same seed and batch number give the same schedules, in any process.
2. Play. The protocol turns a schedule into a scenario, which is played as all scenarios are: on a target of its own on
   virtual time (`VirtualEngine`), with a client of its own (`ClientEngine`), or with many others in groups of their own
   on a real target (`ConcurrentEngine`; schedules that restart the target share the restarts, `RestartBatch`).
3. Judge. The judge holds the trace against the model. No expectation is part of a schedule: whatever the model does
   not allow is a violation of the requirements that the judge names.
4. Confirm. Of each violated requirement the shortest failing schedules are candidates. They are replayed, and with them
   shortcuts of the shortest: parts of it that lead the model to the state in which it failed. The violation counts only
   if one of these violates the requirement again; one that no replay shows is reported as inconclusive.
5. Shrink. The first replay that failed is where shrinking begins. Actors, kinds of moves, moves and special roles are
   removed and options simplified by delta debugging (`traces.shrinker`) for as long as the requirement stays violated.
   Each attempt is a run of its own: any sequence of moves can be played, because a move that makes no sense in a state
   is sent all the same or left out. The time to replay the shortest schedule twice more is left over. If it does not
   fail both times, the unshrunk run is reported; if that takes longer than expected, the run where shrinking began.
6. Save. The run that is reported carries the reference differences it was judged by, so that its trace can be judged
   and replayed by itself.

The engine knows no protocol and no target: the former is a `ScheduleProtocol`, the latter is known to a subclass.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from fencepost.adapters.virtual_clock import run_in_thread
from fencepost.conformance.results import Coverage
from fencepost.conformance.run.play import explain_lag
from fencepost.conformance.run.schedule import (
    BATCH_SIZE,
    BatchSpec,
    CoverageGoals,
    GeneratedSchedule,
    Schedule,
    ScheduleProtocol,
    build_schedule,
    related_items,
    shrinkable_items,
    simplifications,
)
from fencepost.conformance.run.stream import with_decisions
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.shrinker import shrink_steps
from fencepost.traces.verdict import CheckStatus, TraceVerdict, Transition, violations_in

# -- statistics of the random schedules of a run ----------------------------------------------------------------------

MAX_CANDIDATES = 3
"""How many schedules that violate one requirement are kept."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The result of one schedule. `undecided` is the reason if it could not be judged; `run` is kept if it violates
    a requirement."""

    generated: GeneratedSchedule
    events: int
    rules: Mapping[str, int]
    transitions: Mapping[Transition, int]
    violated: frozenset[str] = frozenset()
    undecided: str = ""
    run: ScenarioRun | None = None
    kept: frozenset[str] = frozenset()
    """The requirements that its checks show to hold."""

    @classmethod
    def from_run(cls, generated: GeneratedSchedule, run: ScenarioRun) -> "ScheduleResult":
        """The result of a schedule by its run."""
        verdict = run.verdict
        violated = run.verdict.violated
        undecided = next(iter(verdict.inconclusive), "") or run.misconduct or run.blocked
        kept = frozenset(each.requirement for each in verdict.check_results if each.status is CheckStatus.PASS)
        shown = run if violated else None
        return cls(generated, len(run.events), verdict.rules, verdict.transitions, violated, undecided, shown, kept)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule that violated a requirement once, and that run."""

    schedule: Schedule
    run: ScenarioRun

    def run_named_after(self, requirement: str) -> ScenarioRun:
        """The run under a name that ends in the requirement."""
        scenario = self.run.scenario
        return replace(self.run, scenario=replace(scenario, name=f"{scenario.name}-{requirement}"))


@dataclass(slots=True)
class RunStatistics:
    """Counts over all schedules so far."""

    schedules: int = 0
    events: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[Transition] = field(default_factory=Counter)
    predicted: Counter[Transition] = field(default_factory=Counter)
    undecided: dict[str, str] = field(default_factory=dict)
    """The reason, by name of the schedule that could not be judged."""
    kept: set[str] = field(default_factory=set)
    """The requirements that a schedule was seen to keep."""
    candidate_failures: dict[str, list[Candidate]] = field(default_factory=dict)
    """By violated requirement, the shortest first."""

    def add_result(self, result: ScheduleResult) -> None:
        """Count a result, and keep its run if it is among the shortest that violate a requirement."""
        self.schedules += 1
        self.events += result.events
        self.rules.update(result.rules)
        self.transitions.update(result.transitions)
        self.predicted.update(result.generated.transitions)
        self.kept |= result.kept
        if result.undecided and not result.violated:
            self.undecided[result.generated.schedule.name] = result.undecided
        if result.run is None:
            return
        for requirement in sorted(result.violated):
            known = self.candidate_failures.setdefault(requirement, [])
            known.append(Candidate(result.generated.schedule, result.run))
            known.sort(key=lambda each: len(each.run.events))
            del known[MAX_CANDIDATES:]


# -- coverage of the model by a target --------------------------------------------------------------------------------

INTERNAL_EVENT = "by itself"


def measure_coverage(statistics: RunStatistics, goals: CoverageGoals, others: Iterable[TraceVerdict] = ()) -> Coverage:
    """The coverage of the goals, and of the transitions predicted in this run, by its schedules and other traces."""
    seen, rules_seen = Counter(statistics.transitions), set(statistics.rules)
    for each in others:
        seen.update(each.transitions)
        rules_seen |= each.rules.keys()
    possible = goals.transitions | statistics.predicted.keys()
    missed = sorted(possible - seen.keys(), key=lambda one: (-nearness(one, seen), str(one)))
    rules = sorted(goals.rules.keys() - rules_seen)
    return Coverage(
        schedules=statistics.schedules,
        undecided=statistics.undecided,
        transitions={str(each): seen[each] for each in sorted(seen)},
        missed={str(each): describe_nearest(each, seen) for each in missed},
        rules={rule: describe_nearest_rule(rule, goals.rules[rule], possible, seen) for rule in rules},
    )


def nearness(wanted: Transition, seen: Mapping[Transition, int]) -> int:
    """3 if the event was seen in the state, 2 if the state was seen, 1 if the event was seen, else 0."""
    if any((each.state, each.event) == (wanted.state, wanted.event) for each in seen):
        return 3 if wanted.event != INTERNAL_EVENT else 2
    if any(each.state == wanted.state for each in seen):
        return 2
    return int(any(each.event == wanted.event for each in seen))


def describe_nearest(wanted: Transition, seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to this transition, in words."""
    at = Counter[str]()
    states = events = 0
    for each, times in seen.items():
        states += times * (each.state == wanted.state)
        events += times * (each.event == wanted.event)
        if (each.state, each.event) == (wanted.state, wanted.event):
            at[each.rule] += times
    if at:
        instead = ", ".join(f"{rule} ({times})" for rule, times in at.most_common(2))
        return f"the state met the event, but then came {instead}"
    if states:
        return f"the state was there for {states} steps, the event came {events} times, never both at once"
    return f"the state was never reached, the event came {events} times"


def describe_nearest_rule(rule: str, guard: str, possible: Iterable[Transition], seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to a rule, in words; its guard if no schedule is known to reach it."""
    ways = [each for each in possible if each.rule == rule]
    if not ways:
        return f"no schedule is known to come there: {guard or 'it takes a failure of the target'}"
    best = max(ways, key=lambda one: (nearness(one, seen), str(one)))
    return f"{best.state}, {best.event}: {describe_nearest(best, seen)}"


# -- the schedule engine ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replay:
    """A schedule that was played once more, that run, and the seconds that it took to play and judge it."""

    schedule: Schedule
    run: ScenarioRun
    seconds: float


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The shortest candidate of a requirement, and the shortest replay that shows the violation again, if one does."""

    candidate: Candidate
    replay: Replay | None


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The run to report for a requirement, and the requirements that its replay violates; none if no replay showed the
    violation again. It is minimal if there was time to try everything."""

    run: ScenarioRun
    again: frozenset[str]
    is_minimal: bool


class ScheduleEngine(ABC):
    """The random schedules of a run. Subclasses play them on one kind of target."""

    batches_per_round = 2
    """How many batches are generated and played together."""
    shrink_seconds = 10.0
    """How long the schedule of one violation is shrunk."""

    def __init__(self, protocol: ScheduleProtocol, seed: int, count: int, decisions: dict[str, bool]) -> None:
        self.protocol = protocol
        self.seed = seed
        self.count = count
        self.decisions = tuple(sorted(decisions.items()))
        self.statistics = RunStatistics()

    async def run(self, on_result: Callable[[ScheduleResult], None]) -> None:
        """Generate and play all schedules; `on_result` gets the result of each."""

        def add_result(result: ScheduleResult) -> None:
            self.statistics.add_result(result)
            on_result(result)

        await self.play(self.rounds(), add_result)

    def rounds(self) -> Iterator[list[BatchSpec]]:
        """The batches of each round."""
        sizes = [min(BATCH_SIZE, self.count - begin) for begin in range(0, self.count, BATCH_SIZE)]
        numbered = list(enumerate(sizes))
        for begin in range(0, len(numbered), self.batches_per_round):
            some = numbered[begin : begin + self.batches_per_round]
            yield [BatchSpec(self.protocol, self.seed, batch, size, self.decisions) for batch, size in some]

    async def confirm_violations(
        self, requirements: Sequence[str], seconds: float | None = None
    ) -> dict[str, Confirmation]:
        """Replay the candidates of each requirement, and shortcuts of the first: the shortest run that shows the
        violation again, and the requirements that it violates; those are none if no replay shows it, in so many seconds
        if they are given."""
        deadline = math.inf if seconds is None else asyncio.get_running_loop().time() + seconds
        attempts = {each: await self.find_attempts(each) for each in requirements}
        shown = await self.first_failing(attempts, deadline)
        return {
            each: Confirmation(self.statistics.candidate_failures[each][0], shown.get(each)) for each in requirements
        }

    async def find_attempts(self, requirement: str) -> list[Schedule]:
        """As `attempts_for`; the loop goes on meanwhile, for shortcuts may take long to find."""
        return await run_in_thread(partial(self.attempts_for, requirement))

    def attempts_for(self, requirement: str) -> list[Schedule]:
        """The schedules that may show a violation again, the shortest first."""
        candidates = self.statistics.candidate_failures[requirement]
        first = candidates[0]
        sequence = min(each.sequence for each in violations_in(first.run.verdict) if each.requirement == requirement)
        shortcuts = self.protocol.shortcuts(first.schedule, first.run.events, sequence)
        return sorted((*shortcuts, *(each.schedule for each in candidates)), key=lambda each: len(each.moves))

    async def first_failing(
        self, attempts: Mapping[str, Sequence[Schedule]], deadline: float = math.inf
    ) -> dict[str, Replay]:
        """For each requirement the replay of the first of its schedules that violates it; none is begun after the
        deadline, and no other one after a replay that the kit itself was too late for."""
        shown: dict[str, Replay] = {}
        for requirement, schedules in attempts.items():
            for schedule in schedules:
                if asyncio.get_running_loop().time() >= deadline:
                    return shown
                replay = await self.replay_once(schedule)
                if requirement in replay.run.verdict.violated:
                    shown[requirement] = replay
                if requirement in shown or explain_lag(replay.run.loop_lag, replay.run.header.grace):
                    break
        return shown

    async def replay_once(self, schedule: Schedule) -> Replay:
        """Play a schedule once more."""
        begun = asyncio.get_running_loop().time()
        (run,) = await self.replay([schedule])
        return Replay(schedule, run, asyncio.get_running_loop().time() - begun)

    def group_for_shrinking(self, found: Mapping[str, Confirmation]) -> list[list[str]]:
        """The requirements in this order, in groups that are shrunk side by side."""
        return [[requirement] for requirement in found]

    async def shrink_violation(self, requirement: str, found: Confirmation, seconds: float | None = None) -> Shrunk:
        """The shortest run that violates a requirement and that a further replay confirms. The candidate's own run if
        there is no shorter one, or none is confirmed; the replay where shrinking began if there is no time for that.

        That takes at most `seconds`, and never more than `shrink_seconds`. What no replay shows is not shrunk.
        """
        candidate, shown = found.candidate, found.replay
        whole = self.record_decisions(candidate.run_named_after(requirement))
        if shown is None:
            return Shrunk(whole, frozenset(), is_minimal=True)
        limit = self.shrink_seconds if seconds is None else min(seconds, self.shrink_seconds)
        deadline = asyncio.get_running_loop().time() + limit
        short, is_minimal = await self.shrink_schedule(shown, requirement, limit)
        if short.schedule == candidate.schedule:
            return Shrunk(whole, shown.run.verdict.violated, is_minimal)
        confirming = await self.replay_twice(short.schedule, deadline)
        if confirming is None:
            short, is_minimal = shown, False
        run, other = confirming or (shown.run, shown.run)
        again = other.verdict.violated
        if requirement not in run.verdict.violated & again:
            return Shrunk(whole, shown.run.verdict.violated, is_minimal=False)
        named = Candidate(short.schedule, run).run_named_after(requirement)
        return Shrunk(self.record_decisions(named), again, is_minimal)

    async def replay_twice(self, schedule: Schedule, deadline: float) -> list[ScenarioRun] | None:
        """Two more runs of a schedule, None if there is not the time."""
        if asyncio.get_running_loop().time() < deadline:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    return await self.replay([schedule, schedule])
        return None

    def record_decisions(self, run: ScenarioRun) -> ScenarioRun:
        """The run with the reference differences that it was judged by in its trace."""
        return replace(run, events=tuple(with_decisions(run.events, dict(self.decisions))))

    async def shrink_schedule(self, shown: Replay, requirement: str, seconds: float) -> tuple[Replay, bool]:
        """The shortest replay found in so many seconds that violates the same requirement, and whether nothing was left
        to try. The time to confirm it is left over."""
        loop = asyncio.get_running_loop()
        deadline, best = loop.time() + seconds, shown
        steps = shrink_steps(
            shrinkable_items(self.protocol, shown.schedule), partial(simplifications, self.protocol), related_items
        )
        try:
            batch = next(steps)
            while loop.time() < (until := deadline - self.seconds_to_confirm(best)):
                candidates = [build_schedule(self.protocol, shown.schedule, each) for each in batch]
                failing = await self.failing_replays(candidates, requirement, until, best.seconds)
                if failing:
                    best = next(iter(failing.values()))
                elif loop.time() >= until:
                    break
                batch = steps.send(list(failing))
        except StopIteration:
            return best, True
        return best, False

    def seconds_to_confirm(self, shortest: Replay) -> float:
        """How long it takes to replay a schedule twice."""
        return 2 * shortest.seconds

    async def failing_replays(
        self, candidates: Sequence[Schedule], requirement: str, deadline: float, usual_seconds: float
    ) -> dict[int, Replay]:
        """The replays that violate the requirement, by the indices of the candidates; at least the first, if there is
        one. A run that takes until the deadline is given up, or longer than twice `usual_seconds` where others wait for
        it."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                for index, candidate in enumerate(candidates):
                    replay = await self.replay_once(candidate)
                    if requirement in replay.run.verdict.violated:
                        return {index: replay}
        return {}

    @abstractmethod
    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """Generate and play the batches of each round."""

    @abstractmethod
    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """Play some schedules once more."""
