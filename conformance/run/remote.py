"""A run on a target that is reached over the network: many scenarios at once, one restart for all that need it.

A target that goes down is a finding, not the end: it is started again, and the scenarios that were under way are
played in ever smaller companies until the one that brings it down is alone.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from fencepost.adapters.target import Description
from fencepost.adapters.wire.process_control import ProcessControl
from fencepost.adapters.wire.target import KafkaTarget, parse_target
from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.loop_lag import LoopLagMonitor, discard_if_lagging, is_inconclusive
from fencepost.conformance.execution.pacing import Pacer
from fencepost.conformance.execution.play import DEFAULT_GRACE_MS, JudgeFunction, ScenarioRun, play_scenario
from fencepost.conformance.execution.restart_barrier import RestartBarrier
from fencepost.conformance.execution.saving import save_run
from fencepost.conformance.execution.signals import ignore_interrupts, start_workers
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.run.run_state import RunState, order_scenarios
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import offered_capabilities, required_capabilities, select_scenarios
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.tours import with_tours
from fencepost.conformance.scenarios.classic.versions import versions
from fencepost.conformance.schedules.classic.generation import ScheduleScope
from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
from fencepost.conformance.schedules.concurrent_engine import ConcurrentEngine
from fencepost.model.catalogue.classic import Requirement
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

MAX_CONCURRENCY = 120
"""How many scenarios are in flight."""
JUDGE_PROCESSES = 2
"""How many processes judge, and draw random schedules."""
CONNECTIONS_PER_SCENARIO = 3
"""How many connections a scenario needs at the same time, as a rule."""
RETRY_NAMES = ("again", "at-last")
"""The further attempts of a scenario that decides nothing: mostly the machine stalled, and a session ran out."""
DISCONNECT_FAULTS = frozenset({"closed", "unreachable"})
"""Faults that a target leaves behind when it goes down."""


class TargetGone(Exception):
    """The target is gone and cannot be started again."""


class RunInterrupted(Exception):
    """The target went down while scenarios were played side by side."""


class RemoteRun:
    """A run on a Kafka address."""

    def __init__(self, plan: Plan, profile: Profile) -> None:
        self.plan = plan
        self.profile = profile
        self.run_id = secrets.token_hex(3)
        self.grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        self.target = kafka_target(plan.target, profile)
        self.pacer = Pacer()
        self.lag_monitor = LoopLagMonitor()
        self.is_down = False
        self.crashing_scenarios: set[str] = set()
        self.max_concurrency = MAX_CONCURRENCY
        self.judge: Callable[[Header, tuple[Event, ...]], TraceVerdict] = judge
        self.judge_run_trace: JudgeFunction = self.judge_in_pool
        self.judge_pool = ProcessPoolExecutor(JUDGE_PROCESSES, get_context("spawn"), initializer=ignore_interrupts)

    async def run(self, requirements: Sequence[Requirement], progress: Callable[[Progress], None]) -> Report:
        """Play everything, then replay what failed."""
        watching = asyncio.create_task(self.lag_monitor.watch())
        try:
            description = await self.target.open()
            start_workers(self.judge_pool, JUDGE_PROCESSES)
            first = await self.play(versions.scenarios[0], description, "versions")
            description = replace(description, versions=usable_versions(description.versions, first.events))
            offered = offered_capabilities(description, self.profile.capabilities, slow=self.plan.slow)
            if not self.profile.survives_restarts:
                offered -= {"restart"}
            selection = select_scenarios(ALL, requirements, offered, smoke=self.plan.smoke)
            course = RunState(self.plan, with_tours(selection, description.settings, self.plan), progress)
            cut_short = False
            try:
                await self.play_and_confirm(course, description, first)
                if self.plan.schedules:
                    await self.play_schedules(course, description, offered)
            except (asyncio.CancelledError, TargetGone):
                cut_short = True
            name = {"name": self.plan.target, **description.implementation}
            return course.build_report(name, self.profile.deviations, cut_short=cut_short)
        finally:
            watching.cancel()
            await self.target.close()
            self.judge_pool.shutdown(wait=False, cancel_futures=True)

    async def play_and_confirm(self, state: RunState, description: Description, versions_run: ScenarioRun) -> None:
        """Play the scenarios, those that decide nothing again, then replay what failed."""
        astray: list[Scenario] = []

        def keep(one: ScenarioRun) -> None:
            state.add_run(one)
            save_run(self.plan, one)
            if is_inconclusive(one):
                astray.append(one.scenario)

        def confirm(one: ScenarioRun) -> None:
            state.confirmed[one.scenario.name] = violated_requirements(one)

        rest = order_scenarios(state.selection.scenarios, self.plan.seed)
        if versions_run.scenario in rest:
            rest.remove(versions_run.scenario)
            keep(versions_run)
        await self.play_batch(rest, "run", description, keep)
        for attempt in RETRY_NAMES:
            scenarios, astray = astray, []
            await self.play_batch(scenarios, attempt, description, keep)
        while again := state.failures_to_replay():
            if versions_run.scenario in again:
                # The versions that failed are left out of the description by now, but not out of this replay.
                again.remove(versions_run.scenario)
                confirm(await self.play(versions_run.scenario, await self.target.open(), "replay"))
            await self.play_batch(again, "replay", description, confirm)

    async def play_schedules(self, state: RunState, description: Description, offered: frozenset[str]) -> None:
        """Play random schedules."""
        scope = ScheduleScope(
            description.settings,
            restarts="restart" in offered,
            transactions="transactions" in offered,
            virtual_time=False,
            grace=self.grace,
            cuts=True,
        )
        protocol = ClassicSchedules(scope)
        await state.run_schedules(ConcurrentEngine(self, description, protocol, self.plan.schedules, state.decisions))

    async def play(
        self,
        scenario: Scenario,
        description: Description,
        attempt: str,
        restart: Callable[[], Coroutine[Any, Any, None]] | None = None,
        *,
        alone: bool = True,
    ) -> ScenarioRun:
        """Play one scenario. Raises `RunInterrupted` if the target went down and it may have been another's doing."""

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            if was_disconnected(events) and (self.is_down or not await self.target.is_alive()):
                self.is_down = True
                if not alone:
                    raise RunInterrupted
            return await self.judge_run_trace(header, events)

        group = f"{scenario.name}-{self.run_id}-{attempt}"
        begun = asyncio.get_running_loop().time()
        played = await play_scenario(
            scenario, self.target, description, group, grace=self.grace, restart=restart, judge_trace=judging
        )
        if self.is_down:
            self.crashing_scenarios.add(scenario.name)
        return discard_if_lagging(replace(played, crashed=self.is_down, loop_lag=self.lag_monitor.worst_since(begun)))

    async def judge_in_pool(self, header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        """What a trace shows, found in a process beside this one: members must not miss their heartbeats meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.judge_pool, self.judge, header, events)

    async def play_batch(
        self,
        scenarios: Sequence[Scenario],
        attempt: str,
        description: Description,
        on_run: Callable[[ScenarioRun], None],
    ) -> None:
        """Play scenarios side by side, then those that need a restart; those that brought it down before go first."""
        calm = [scenario for scenario in scenarios if "restart" not in required_capabilities(scenario)]
        rough = [scenario for scenario in scenarios if "restart" in required_capabilities(scenario)]
        for scenario in calm:
            if scenario.name in self.crashing_scenarios:
                await self.play_concurrently([scenario], attempt, description, on_run)
        harmless = [scenario for scenario in calm if scenario.name not in self.crashing_scenarios]
        await self.play_concurrently(harmless, attempt, description, on_run)
        meeting = RestartBarrier(len(rough), self.target.restart)

        await asyncio.gather(*(self.play_with_restart(each, attempt, description, on_run, meeting) for each in rough))

    async def play_with_restart(
        self,
        scenario: Scenario,
        attempt: str,
        description: Description,
        on_run: Callable[[ScenarioRun], None],
        barrier: RestartBarrier,
    ) -> None:
        """Play a scenario that needs a restart, and wait for it where the others do."""
        try:
            on_run(await self.play(scenario, description, attempt, barrier.wait))
        except Exception:
            await barrier.leave()
            raise
        await barrier.leave()  # but not when cancelled: the target is not restarted for a run that is cut short

    async def play_concurrently(
        self,
        scenarios: Sequence[Scenario],
        attempt: str,
        description: Description,
        on_run: Callable[[ScenarioRun], None],
    ) -> None:
        """Play scenarios side by side; if the target goes down, find out which of them does it."""
        if not scenarios:
            return
        await self.target.open_idle_connections(CONNECTIONS_PER_SCENARIO * min(len(scenarios), self.max_concurrency))
        places = asyncio.Semaphore(self.max_concurrency)
        interrupted: list[Scenario] = []

        async def one(scenario: Scenario) -> None:
            async with places:
                try:
                    if self.is_down:
                        raise RunInterrupted
                    await self.pacer.wait()
                    on_run(await self.play(scenario, description, attempt, alone=len(scenarios) == 1))
                except RunInterrupted:
                    interrupted.append(scenario)

        await asyncio.gather(*(one(scenario) for scenario in scenarios))
        if self.is_down:
            await self.restart_target()
        middle = (len(interrupted) + 1) // 2
        for half in (interrupted[:middle], interrupted[middle:]):
            if half:
                await self.play_concurrently(half, attempt, description, on_run)

    async def restart_target(self) -> None:
        """Start the target again after it went down."""
        if not self.profile.can_restart:
            raise TargetGone
        await self.target.restart()
        self.is_down = False


def kafka_target(address: str, profile: Profile) -> KafkaTarget:
    """The target at an address, with what the profile knows of it. Raises `TargetError` for what is no address."""
    lifecycle = ProcessControl(profile.start, profile.kill, profile.folder) if profile.can_restart else None
    return KafkaTarget(parse_target(address), overrides=profile.settings, process_control=lifecycle)


def was_disconnected(events: Sequence[Event]) -> bool:
    """The target ended a connection of this trace, or could not be reached."""
    return any(event.kind is Kind.FAULT and event.api in DISCONNECT_FAULTS for event in events)


def usable_versions(advertised: Mapping[str, tuple[int, int]], events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """The versions that can be used for everything else: those below the first that got no whole answer."""
    asked = {event.sequence: event for event in events if event.kind is Kind.REQUEST}
    whole = {event.of for event in events if event.kind is Kind.RESPONSE and not is_truncated(event)}
    broken: dict[str, int] = {}
    for sequence, event in asked.items():
        if sequence not in whole:
            broken[event.api] = min(event.version, broken.get(event.api, event.version))
    return {
        api: (lowest, min(highest, broken[api] - 1) if broken.get(api, 0) > lowest else highest)
        for api, (lowest, highest) in advertised.items()
    }


def is_truncated(response: Event) -> bool:
    """The bytes of an answer end early, so that nothing in it can be trusted."""
    return any(finding.startswith("truncated") for finding in response.body.get("_findings", ()))
