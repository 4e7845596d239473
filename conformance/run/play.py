"""Playing: a scenario on a target, what the delays of the kit itself make of its verdict, and schedules in this process
and on virtual time, until one fails twice, which is shrunk."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Protocol

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description, Target, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import is_specific, satisfied_requirements
from fencepost.conformance.results import WENT_DOWN
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Blocked, Unanswered, Unsupported
from fencepost.conformance.run.schedule import (
    BATCH_SIZE,
    Schedule,
    ScheduleProtocol,
    build_schedule,
    related_items,
    shrinkable_items,
    simplifications,
)
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import NO_DECISIONS, Scenario, ScenarioRun, TraceJudge
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.shrinker import shrink
from fencepost.traces.verdict import CheckResult, TraceVerdict, violations_in, without_remarks

# -- playing a scenario -----------------------------------------------------------------------------------------------

MAX_PLAY_S = 1_800.0
"""How long a scenario may take on a clock on the wall, in seconds; the longest waits for some periods of a clean-up."""
DEFAULT_GRACE_MS = 2_000
"""How late a timer of a real target may fire, and how long it may take over an answer."""


JudgeFunction = Callable[[Header, tuple[Event, ...]], Awaitable[TraceVerdict]]
"""Has a trace judged."""


class TargetWatch(Protocol):
    """Finds out whether a target is down, by the faults that it is told of."""

    @property
    def is_gone(self) -> asyncio.Event:
        """Set while it is down."""
        ...

    def on_fault(self, fault: Event) -> None:
        """Take in a fault of a trace."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """How a play ended."""

    unsupported: str = ""
    blocked: str = ""


async def record_scenario(
    scenario: Scenario,
    target: Target,
    description: Description,
    group: str,
    *,
    grace: int,
    restart: Callable[..., Awaitable[None]] | None = None,
    watch: TargetWatch | None = None,
) -> ScenarioRun:
    """Play a scenario in a group of its own, until `watch` finds that the target is down, and return the run, not
    judged yet. `grace` is in milliseconds."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    recorder = TraceBuilder(
        lambda: int((loop.time() - begun) * 1000 + 1e-6), lambda fault: watch.on_fault(fault) if watch else None
    )
    header = Header(
        source=f"scenario {scenario.name}",
        order=description.order,
        clock=description.clock,
        settings=description.settings,
        grace=grace,
        implementation=description.implementation,
        protocol=description.protocol,
        limits=description.limits,
        not_told=description.not_told,
    )
    channel = target.channel(recorder)
    move = target.move if description.can_move else None
    context = ScenarioContext(description, channel, recorder, group, grace=grace, restart=restart, move=move)
    try:
        completion = await run_schedule(scenario, context, None if watch is None else watch.is_gone)
    finally:
        await channel.close()
    context.record_checks()
    unjudged = TraceVerdict((), (), {}, events=len(recorder.events))
    return ScenarioRun(scenario, header, recorder.events, unjudged, completion.unsupported, completion.blocked)


async def play_scenario(
    scenario: Scenario,
    target: Target,
    description: Description,
    group: str,
    *,
    grace: int,
    restart: Callable[..., Awaitable[None]] | None = None,
    judge_trace: JudgeFunction | None = None,
) -> ScenarioRun:
    """Play a scenario in a group of its own and judge its trace: here, unless `judge_trace` does it elsewhere."""
    run = await record_scenario(scenario, target, description, group, grace=grace, restart=restart)
    verdict = judge(run.header, run.events) if judge_trace is None else await judge_trace(run.header, run.events)
    return replace(run, verdict=verdict)


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A target of its own for each scenario that is played, whose timers may be `grace` milliseconds late."""

    make_target: Callable[[], Target]
    grace: int = 0

    async def play(self, scenario: Scenario, name: str, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Open a target, play a scenario in a group of this name, and close the target."""
        target = self.make_target()
        description = await target.open()
        try:
            return await play_scenario(
                scenario,
                target,
                description,
                name,
                grace=self.grace,
                restart=target.restart,
                judge_trace=judge_trace,
            )
        finally:
            await target.close()


async def run_schedule(
    scenario: Scenario, context: ScenarioContext, is_gone: asyncio.Event | None = None
) -> Completion:
    """Run the schedule to its end, or to where it cannot go on, as when the target is gone."""
    try:
        if is_gone is None:
            await scenario.play(context)
        else:
            async with asyncio.timeout(MAX_PLAY_S):
                await play_until(scenario.play(context), is_gone)
    except TimeoutError:
        return Completion(blocked=f"not over after {MAX_PLAY_S:g} s")
    except Unsupported as missing:
        return Completion(unsupported=f"the target does not offer {missing}")
    except Unanswered as reason:
        await context.seek_sign_of_life()
        return Completion(blocked=str(reason))
    except Blocked as reason:
        return Completion(blocked=str(reason))
    except TargetError as reason:
        return Completion(blocked=str(reason))
    except (KeyError, IndexError, TypeError) as broken:
        # An answer without the fields it has to have; the judge says which.
        return Completion(blocked=f"an answer was not well formed ({type(broken).__name__}: {broken})")
    return Completion()


async def play_until(playing: Coroutine[Any, Any, None], is_gone: asyncio.Event) -> None:
    """Play until the target is gone. Raises `Blocked` then, and what the scenario raises."""
    tasks = [asyncio.ensure_future(playing), asyncio.ensure_future(is_gone.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0] not in done:
            raise Blocked(WENT_DOWN)
        await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


# -- the kit's own delays ---------------------------------------------------------------------------------------------

TICK_SECONDS = 0.02
MIN_LAG_SECONDS = 0.1
"""Shorter delays are not recorded."""
MAX_LAGS = 10_000
TOO_BUSY = "this machine is too busy"
MAX_GRACE_SHARE = 0.5
"""The share of a target's grace that the kit itself may use up."""


class LoopLagMonitor:
    """Watches the event loop and records when it was late to run what was due."""

    def __init__(self) -> None:
        self.lags: deque[tuple[float, float]] = deque(maxlen=MAX_LAGS)
        """Pairs of loop time and delay, in seconds."""

    async def watch(self) -> None:
        """Measure the delay of a timer over and over, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            now = loop.time()
            if now - due >= MIN_LAG_SECONDS:
                self.lags.append((now, now - due))

    def worst_since(self, since: float, window_s: float = 0.0, until: float = math.inf) -> int:
        """The longest delay in milliseconds that ends after `since` and begins before `until`, times of the loop in
        seconds: of those that follow each other within `window_s` seconds the sum."""
        worst, total, recent = 0.0, 0.0, deque[tuple[float, float]]()
        for at, late in self.lags:
            if at >= since and at - late <= until:
                recent.append((at, late))
                total += late
                while recent[0][0] < at - window_s:
                    total -= recent.popleft()[1]
                worst = max(worst, total)
        return round(1000 * worst)


def doubtful_spans(run: ScenarioRun) -> Iterator[tuple[int, int]]:
    """The times of a trace, in milliseconds, in which a delay of the kit itself may make a violation of the run: around
    the request, and before the response, or before the end of a trace without one."""
    requests = {event.sequence: event.time for event in run.events if event.kind is Kind.REQUEST}
    responses = {event.of: event.time for event in run.events if event.kind is Kind.RESPONSE}
    grace = run.header.grace
    for violation in violations_in(run.verdict):
        asked = requests.get(violation.sequence, 0)
        answered = responses.get(violation.sequence, run.events[-1].time)
        yield asked - grace, min(asked + grace, answered)
        yield answered - grace, answered


def discard_if_lagging(run: ScenarioRun) -> ScenarioRun:
    """The run; if the kit itself was too late to be sure of anything, without its verdict if that has a violation, and
    without remarks."""
    note = explain_lag(run.loop_lag, run.header.grace)
    if not note:
        return run
    if run.verdict.violated:
        nothing = TraceVerdict((), (), inconclusive=(note,), events=len(run.events))
        return replace(run, verdict=nothing, blocked=note)
    checks = tuple(without_remarks(run.verdict.check_results))
    if checks == run.verdict.check_results:
        return run
    return replace(run, verdict=replace(run.verdict, check_results=checks))


def explain_lag(loop_lag: int, grace: int) -> str:
    """Why a violation proves nothing if the kit was this late on a target with this grace, both in milliseconds; "" if
    it was in time."""
    if loop_lag <= MAX_GRACE_SHARE * grace:
        return ""
    return f"the kit itself was {loop_lag} ms late, so it can blame nobody: {TOO_BUSY}"


def is_inconclusive(run: ScenarioRun) -> bool:
    """Neither did the run pass a check of each of its requirements nor did it violate any, as in a stall."""
    missing = not satisfied_requirements([run]).issuperset(run.scenario.requirements)
    return missing and not run.unsupported and not run.crashed and not run.verdict.violated


# -- playing schedules in this process --------------------------------------------------------------------------------


class Player(Protocol):
    """Plays scenarios, each on a target or with a client of its own."""

    async def play(self, scenario: Scenario, name: str, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a scenario under a name that tells this play from others of it, and have its trace judged."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """Plays schedules one after the other, on virtual time."""

    protocol: ScheduleProtocol
    make_player: Callable[[], Player]
    judge: TraceJudge = judge

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a schedule and judge its trace: by `judge` without decisions, or by `judge_trace` if it is given."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, NO_DECISIONS)

        scenario = self.protocol.scenario_of(schedule)
        return run_virtual(self.make_player().play(scenario, schedule.name, judge_trace or judge_here))

    def play_decided(self, schedule: Schedule, decisions: Mapping[str, bool]) -> ScenarioRun:
        """As `play`, with these reference differences settled."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, decisions)

        return self.play(schedule, judge_here)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows violated."""
        return self.play(schedule).verdict.violated

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, for a schedule that is played the first time."""
        return self.violated_by(schedule)


def target_bench(
    protocol: ScheduleProtocol, make_target: Callable[[], Target], grace: int = 0, judge: TraceJudge = judge
) -> Bench:
    """A bench with a new target for each schedule, whose timers may be `grace` milliseconds late."""
    return Bench(protocol, partial(NewTarget, make_target, grace), judge)


# -- falsification of one target in this process ----------------------------------------------------------------------

ScheduleSource = Callable[[int], Iterable[Schedule]]
"""Gives schedules by the number of their batch, without end."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A violated requirement, after how many schedules and seconds it was found, the schedule as it was generated and
    as it was shrunk, and the run of the latter."""

    requirement: str
    schedules: int
    seconds: float
    generated: Schedule
    shrunk: Schedule
    run: ScenarioRun

    @property
    def requests(self) -> int:
        """The number of requests of the shrunk run, up to the wrong response."""
        last = min(each.sequence for each in violations_in(self.run.verdict) if each.requirement == self.requirement)
        return count_requests(self.run, last)


def most_specific(violations: Sequence[CheckResult]) -> CheckResult:
    """The first violation of which the judge says more than its rule, else the first."""
    rules = DEFAULT_SPECIFICATION.rules
    specific = (each for each in violations if each.violation is None or is_specific(each.violation, rules))
    return next(specific, violations[0])


def count_requests(run: ScenarioRun, sequence: int) -> int:
    """The number of requests of a run until the one with this sequence number has its response, all of them if it gets
    none: what came while it was parked may be why its response is wrong."""
    answered = (event.sequence for event in run.events if event.of == sequence)
    last = next(answered, run.events[-1].sequence if run.events else 0)
    return sum(event.kind is Kind.REQUEST and event.sequence <= last for event in run.events)


@dataclass(frozen=True, slots=True)
class NoCounterexample:
    """A search without a result: the schedules it played and the seconds it took."""

    schedules: int
    seconds: float


def schedule_source(protocol: ScheduleProtocol, seed: int) -> ScheduleSource:
    """The schedules that the protocol generates from a seed."""
    return lambda batch: (each.schedule for each in protocol.generate(seed, batch, BATCH_SIZE))


def falsify(bench: Bench, seed: int, seconds: float, shrink_seconds: float = 10.0) -> Counterexample | NoCounterexample:
    """Look for a violation by the schedules of a seed."""
    return find_counterexample(bench, schedule_source(bench.protocol, seed), seconds, shrink_seconds)


def find_counterexample(
    bench: Bench,
    source: ScheduleSource,
    seconds: float,
    shrink_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Counterexample | NoCounterexample:
    """Look for a violation for `seconds` on this clock. A violation counts once a second run shows it again."""
    begun = clock()
    played = 0
    for batch in count():
        for schedule in source(batch):
            if clock() - begun > seconds:
                return NoCounterexample(played, clock() - begun)
            played += 1
            found = bench.violated_by_new(schedule)
            again = bench.violated_by(schedule) if found else found
            if found & again:
                return shrink_counterexample(bench, schedule, played, clock() - begun, shrink_seconds, clock)
    raise AssertionError("batches never end")


def shrink_counterexample(
    bench: Bench, schedule: Schedule, played: int, taken: float, seconds: float, clock: Callable[[], float]
) -> Counterexample:
    """Shrink a failing schedule for at most `seconds`, keeping the most specific requirement that it violates."""
    deadline = clock() + seconds
    found = bench.violated_by(schedule)
    run = bench.play(schedule)
    violation = most_specific([each for each in violations_in(run.verdict) if each.requirement in found])
    requirement = violation.requirement
    shortcuts = bench.protocol.shortcuts(schedule, run.events, violation.sequence)
    shorter = (each for each in shortcuts if clock() < deadline and requirement in bench.violated_by(each))
    begin = next(shorter, schedule)
    kept = shrink(
        shrinkable_items(bench.protocol, begin),
        lambda candidate: requirement in bench.violated_by(build_schedule(bench.protocol, begin, candidate)),
        partial(simplifications, bench.protocol),
        lambda: clock() < deadline,
        related_items,
    )
    shortest = build_schedule(bench.protocol, begin, kept)
    return Counterexample(requirement, played, taken, schedule, shortest, bench.play(shortest))
