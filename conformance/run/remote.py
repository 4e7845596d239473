"""A run on a target over the network: its scenarios, a replay of each failed one, then random schedules."""

import asyncio
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description, SettingOrigin
from fencepost.conformance.capabilities import describe_facts, offered_capabilities, requirements_not_told
from fencepost.conformance.events import ScheduleShrunk
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report
from fencepost.conformance.run.crashes import Crash, CrashMonitor, describe_unexplained, failures_of
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, LoopLagMonitor, is_inconclusive
from fencepost.conformance.run.pool import Pacer, RunCallback, ScenarioPool, play_together
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.provenance import name_target, record_run
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.run_state import (
    FinishScenarios,
    RunState,
    add_tours,
    order_scenarios,
    replay_failures,
    run_schedules,
)
from fencepost.conformance.run.stream import Emit, RunLimits, TimeUp
from fencepost.conformance.run.workers import JudgePool
from fencepost.conformance.subject import Scenario, ScenarioRun, required_capabilities, select_scenarios
from fencepost.model.catalogue.requirement import Requirement
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import UNCLASSIFIED

if TYPE_CHECKING:
    from fencepost.conformance.run.engines import ConcurrentEngine
    from fencepost.conformance.run.schedule import ScheduleScope

Prepared = TypeVar("Prepared")
CLEAN_UP_S = 20.0
"""How long the removal of what the kit created may take, in seconds."""
MEASURING_S = 30.0
"""How long the second measurement of settings may take, in seconds."""
PARTS_WITH_REPLAYS = 4
"""Of so many parts of the seconds of a run, one is kept for replays."""
RETRY_NAMES = ("again", "at-last")
"""The further attempts of an inconclusive scenario: mostly the machine stalled, and a session expired."""


class RemoteRun:
    """A run on an address; `scenarios` are played besides those of the kit."""

    def __init__(
        self,
        plan: Plan,
        profile: Profile,
        *,
        scenarios: Sequence[Scenario] = (),
        protocol: ProtocolDescription | None = None,
    ) -> None:
        self.plan = plan
        self.protocol = DEFAULT_PROTOCOL if protocol is None else protocol
        self.scenarios = tuple(scenarios)
        self.profile = profile
        self.token = secrets.token_hex(3)
        self.grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        self.target = self.protocol.make_target(plan.target, profile)
        self.judges = JudgePool()
        self.scope: ScheduleScope | None = None
        """What random schedules are drawn for: the target, unless it is given."""

    async def run(self, requirements: Sequence[Requirement], emit: Emit) -> Report:
        """Play everything, then replay what failed, emitting events. However it ends once the target was reached, there
        is a report."""
        limits = RunLimits(self.plan.seconds)
        lag_monitor = LoopLagMonitor()
        watching = asyncio.create_task(lag_monitor.watch())
        try:
            opened = await self.within(limits, self.open_target())
            pool = self.scenario_pool(opened, lag_monitor)
            advertised = pool.description.versions
            self.judges.start()
            first = await self.within(limits, pool.play(self.protocol.versions_scenario, "versions"))
            description = replace(pool.description, versions=usable_versions(pool.description.versions, first.events))
            pool = replace(pool, description=description)
            offered = offered_capabilities(
                description,
                self.profile.capabilities,
                slow=self.plan.slow,
                intrusive=self.plan.intrusive or self.profile.can_restart,
            )
            if not self.profile.survives_restarts:
                offered -= {"restart"}
            scenarios = (*self.protocol.scenarios, *self.scenarios)
            selection = select_scenarios(scenarios, requirements, offered, smoke=self.plan.smoke)
            selection = replace(selection, not_told=requirements_not_told(requirements, description))
            selection = add_tours(selection, description.settings, self.plan, self.protocol)
            facts = describe_facts(description, offered)
            deviations = self.profile.deviations
            subject = self.protocol.subject
            state = RunState(self.plan, selection, emit, deviations, limits, subject=subject, facts=facts)
            state.kafka_release = self.protocol.release_of(advertised)
            state.work.playing = pool.playing
            state.is_remote = True
            implementation = description.implementation
            state.provenance = record_run(self.plan, self.profile, implementation)
            name = name_target(self.plan.target or description.name, implementation, self.profile.about)
            state.start(name)
            ended = await limits.play(self.play_all(state, pool, first, offered), state.work)
            state.idle_findings = self.target.idle_findings
            self.tell_crashes(state, pool.crash_monitor.crashes)
            state.tell_delays(lag_monitor.worst_since(0.0))
            await self.clean_up(state, pool)
            return state.finish(name, ended)
        finally:
            watching.cancel()
            await self.target.close()
            self.judges.close()

    async def open_target(self) -> Description:
        """Reach the target, and mark the run there. Raises `TargetError`."""
        opened = await self.target.open()
        return replace(opened, topic_id=await self.target.mark_run(self.token))

    async def within(self, limits: RunLimits, preparing: Awaitable[Prepared]) -> Prepared:
        """Await a step before the first scenario. Raises `TargetError` if no seconds are left for it."""
        try:
            async with asyncio.timeout(limits.share(1)):
                return await preparing
        except TimeoutError:
            told = f"{self.plan.target or 'the target'}: could not be prepared within --seconds {limits.seconds:g}"
            raise TargetError(told) from None

    async def play_all(
        self, state: RunState, pool: ScenarioPool, versions_run: ScenarioRun, offered: frozenset[str]
    ) -> None:
        """Play the scenarios, replay what failed, then play random schedules.

        Scenarios that wait for clean-up passes go on beside the schedules, unless a restart would end what they wait
        for.
        """
        scenarios = order_scenarios(state.selection.scenarios, self.plan.seed)
        overlaps = self.plan.schedules > 0 and "restart" not in offered
        waiting = [each for each in scenarios if overlaps and "retention" in required_capabilities(each)]
        others = [each for each in scenarios if each not in waiting]
        until_cleaned_up = asyncio.create_task(self.play_until_conclusive(state, pool, waiting))

        async def finish() -> None:
            await until_cleaned_up
            await self.replay_failures(state, pool, versions_run)

        async def play_others() -> None:
            await self.play_and_confirm(state, pool, versions_run, others)
            await self.target.watch_idle("after the scenarios")
            if self.plan.schedules:
                await self.play_schedules(state, pool, versions_run, offered, finish)

        await play_together([until_cleaned_up, play_others()])
        await self.measure_again(state, pool.description)

    async def measure_again(self, state: RunState, description: Description) -> None:
        """Measure the settings again that were measured, on a target that is warm by now. What depends on one that
        differs was judged by a guess, and becomes unsupported."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MEASURING_S):
                found = await self.target.measure_again(description.topic_id)
                origins = {**description.origins, **dict.fromkeys(found, SettingOrigin.NOT_TOLD)}
                doubted = requirements_not_told(state.selection.requirements, replace(description, origins=origins))
                state.selection = replace(state.selection, not_told=doubted)
                told = (
                    f"{name} was {one} at the beginning, and {two} at the end" for name, (one, two) in found.items()
                )
                state.add_remarks(*told)

    def tell_crashes(self, state: RunState, crashes: Sequence[Crash]) -> None:
        """Have the report say what brought the target down: as a failure if it was seen again, else as left open. The
        trace that a failure names is saved, for the scenario itself may violate nothing."""
        runs = {request.run.scenario.name: request.run for crash in crashes for request in crash.requests}
        origins = {name: state.origin_of(run, UNCLASSIFIED) for name, run in runs.items()}
        state.harm = failures_of(crashes, origins)
        state.undecided = describe_unexplained(crashes)
        named = {each.trace for each in state.harm}
        for name, run in runs.items():
            if origins[name].trace in named:
                state.emit(ScheduleShrunk(name, UNCLASSIFIED, run.header, run.events, confirmed=True))

    async def clean_up(self, state: RunState, pool: ScenarioPool) -> None:
        """Remove what the run created on the target, and note in the report what stays."""
        if pool.crash_monitor.is_down:
            stays: tuple[str, ...] = ("groups of the kit stay: the target is down",)
        else:
            try:
                async with asyncio.timeout(CLEAN_UP_S):
                    stays = await self.target.remove_traces(self.token)
            except (TimeoutError, asyncio.CancelledError):
                stays = (f"groups of the kit stay, with {self.token} in their names: there was no time to remove them",)
        state.add_remarks(*self.target.idle_remarks, *stays)

    def scenario_pool(self, description: Description, lag_monitor: LoopLagMonitor) -> ScenarioPool:
        """A pool that plays scenarios at the pace of the target, and has them judged as they end.

        Those that begin in one moment have their responses in one, and the kit would be late for all of them.
        """
        return ScenarioPool(
            target=self.target,
            description=description,
            crash_monitor=CrashMonitor(self.target, can_restart=self.profile.can_restart),
            lag_monitor=lag_monitor,
            judge=self.judges.judge,
            token=self.token,
            grace=self.grace,
            pacer=Pacer(self.target.measure_response_time),
        )

    def schedule_engine(
        self, pool: ScenarioPool, scope: "ScheduleScope", decisions: Mapping[str, bool]
    ) -> "ConcurrentEngine":
        """The engine of random schedules on the target of `pool`, which it judges itself."""
        # Imported late: Hypothesis is for those who ask for random schedules.
        from fencepost.conformance.run.engines import ConcurrentEngine

        schedule_pool = replace(pool, judge=None, lag_window_s=self.grace / 1000)
        plan, schedules = self.plan, self.protocol.make_schedules(scope)
        return ConcurrentEngine(
            schedule_pool, self.judges, schedules, plan.seed, plan.schedules, dict(decisions), plan.traces
        )

    async def play_and_confirm(
        self, state: RunState, pool: ScenarioPool, versions_run: ScenarioRun, scenarios: Sequence[Scenario]
    ) -> None:
        """Play scenarios, play the inconclusive ones again, then replay what failed.

        Of the seconds of a run, some are kept for the replays: what was seen once only is no failure in the report.
        """
        rest = [each for each in scenarios if each != versions_run.scenario]
        if len(rest) < len(scenarios):
            state.add_run(versions_run)
            rest += [versions_run.scenario] if is_inconclusive(versions_run) else []
        kept = state.limits.share(PARTS_WITH_REPLAYS)
        playing = asyncio.timeout(None if kept is None else kept * (PARTS_WITH_REPLAYS - 1))
        try:
            async with playing:
                await self.play_until_conclusive(state, pool, rest)
        except TimeoutError:
            if not playing.expired():
                raise
        during = state.work.describe()
        if playing.expired():
            pool.playing.clear()
        await self.replay_failures(state, pool, versions_run)
        if playing.expired():
            raise TimeUp(during)

    async def play_until_conclusive(self, state: RunState, pool: ScenarioPool, scenarios: Sequence[Scenario]) -> None:
        """Play scenarios, and the inconclusive ones again."""
        for attempt in ("run", *RETRY_NAMES):
            inconclusive: list[Scenario] = []

            def keep(run: ScenarioRun, inconclusive: list[Scenario] = inconclusive) -> None:
                state.add_run(run)
                if is_inconclusive(run):
                    inconclusive.append(run.scenario)

            await pool.play_all(scenarios, attempt, keep)
            scenarios = inconclusive

    async def replay_failures(self, state: RunState, pool: ScenarioPool, versions_run: ScenarioRun) -> None:
        """Replay the scenarios that failed until nothing is left to confirm. What was played before may have ended in
        the middle of a crash."""
        if self.profile.can_restart:
            await pool.crash_monitor.look()
        await pool.crash_monitor.revive()

        async def play(scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback) -> None:
            if versions_run.scenario in scenarios:
                # The versions that failed are left out of the description by now, but not out of this replay.
                whole = replace(pool, description=await self.target.open())
                on_run(await whole.play(versions_run.scenario, attempt))
            await pool.play_all([each for each in scenarios if each != versions_run.scenario], attempt, on_run)

        await replay_failures(state, play)

    async def play_schedules(
        self,
        state: RunState,
        pool: ScenarioPool,
        versions_run: ScenarioRun,
        offered: frozenset[str],
        finish: FinishScenarios,
    ) -> None:
        """Play random schedules; `finish` ends the scenarios that are played beside them."""
        from fencepost.conformance.run.schedule import ScheduleScope

        self.scope = scope = self.scope or ScheduleScope(
            pool.description.settings,
            restarts="restart" in offered,
            transactions="transactions" in offered,
            virtual_time=False,
            grace=self.grace,
            cuts=True,
        )

        async def play(scenarios: Sequence[Scenario]) -> None:
            await pool.play_all(scenarios, "run", state.add_run)
            await self.replay_failures(state, pool, versions_run)

        engine = self.schedule_engine(pool, scope, state.decisions)
        await run_schedules(state, engine, play, self.target.watch_idle, finish)


def usable_versions(advertised: Mapping[str, tuple[int, int]], events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """The versions of each API below the first that got no complete response in `events`."""
    asked = {event.sequence: event for event in events if event.kind is Kind.REQUEST}
    responses = ((event.of, event.body.get("_findings", ())) for event in events if event.kind is Kind.RESPONSE)
    whole = {of for of, findings in responses if not any(each.startswith("truncated") for each in findings)}
    broken: dict[str, int] = {}
    for sequence, event in asked.items():
        if sequence not in whole:
            broken[event.api] = min(event.version, broken.get(event.api, event.version))
    return {
        api: (lowest, min(highest, broken[api] - 1) if broken.get(api, 0) > lowest else highest)
        for api, (lowest, highest) in advertised.items()
    }
