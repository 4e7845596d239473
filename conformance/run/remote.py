"""A run on a target over the network: its scenarios, a replay of each failed one, then random schedules."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fencepost.adapters.security.loading import load_security
from fencepost.adapters.target import Description
from fencepost.adapters.wire.process_control import ProcessControl
from fencepost.adapters.wire.target import KafkaTarget, parse_target
from fencepost.conformance.execution.crash_monitor import CrashMonitor, TargetGone
from fencepost.conformance.execution.judge_pool import JudgePool
from fencepost.conformance.execution.loop_lag import LoopLagMonitor, is_inconclusive
from fencepost.conformance.execution.pacing import Pacer
from fencepost.conformance.execution.play import DEFAULT_GRACE_MS
from fencepost.conformance.execution.pool import ScenarioPool
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report
from fencepost.conformance.run.run_state import RunState, add_tours, order_scenarios
from fencepost.conformance.run.stream import Emit
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.scenario.selection import offered_capabilities, select_scenarios
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.versions import versions
from fencepost.model.catalogue.classic import Requirement
from fencepost.traces.events import Event, Kind

if TYPE_CHECKING:
    from fencepost.conformance.schedules.classic.generation import ScheduleScope
    from fencepost.conformance.schedules.concurrent_engine import ConcurrentEngine

MAX_CONCURRENT_SCHEDULES = 400
"""How many random schedules are in flight."""
RETRY_NAMES = ("again", "at-last")
"""The further attempts of an inconclusive scenario: mostly the machine stalled, and a session expired."""


class RemoteRun:
    """A run on a Kafka address; `scenarios` are played besides those of the kit."""

    def __init__(self, plan: Plan, profile: Profile, *, scenarios: Sequence[Scenario] = ()) -> None:
        self.plan = plan
        self.scenarios = tuple(scenarios)
        self.profile = profile
        self.token = secrets.token_hex(3)
        self.grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        self.target = kafka_target(plan.target, profile)
        self.judges = JudgePool()

    async def run(self, requirements: Sequence[Requirement], emit: Emit) -> Report:
        """Play everything, then replay what failed, emitting events. When cancelled, the report is cut short."""
        lag_monitor = LoopLagMonitor()
        watching = asyncio.create_task(lag_monitor.watch())
        try:
            pool = self.scenario_pool(await self.target.open(), lag_monitor)
            self.judges.start()
            first = await pool.play(versions.scenarios[0], "versions")
            description = replace(pool.description, versions=usable_versions(pool.description.versions, first.events))
            pool = replace(pool, description=description)
            offered = offered_capabilities(description, self.profile.capabilities, slow=self.plan.slow)
            if not self.profile.survives_restarts:
                offered -= {"restart"}
            selection = select_scenarios((*ALL, *self.scenarios), requirements, offered, smoke=self.plan.smoke)
            selection = add_tours(selection, description.settings, self.plan)
            state = RunState(self.plan, selection, emit)
            name = {"name": self.plan.target, **description.implementation}
            state.start(name)
            cut_short = False
            try:
                await self.play_and_confirm(state, pool, first)
                if self.plan.schedules:
                    await self.play_schedules(state, pool, offered)
            except (asyncio.CancelledError, TargetGone):
                cut_short = True
            return state.finish(name, self.profile.deviations, cut_short=cut_short)
        finally:
            watching.cancel()
            await self.target.close()
            self.judges.close()

    def scenario_pool(self, description: Description, lag_monitor: LoopLagMonitor) -> ScenarioPool:
        """A pool that plays scenarios and has them judged as they end."""
        return ScenarioPool(
            target=self.target,
            description=description,
            crash_monitor=CrashMonitor(self.target, can_restart=self.profile.can_restart),
            lag_monitor=lag_monitor,
            judge=self.judges.judge,
            token=self.token,
            grace=self.grace,
        )

    def schedule_engine(
        self, pool: ScenarioPool, scope: "ScheduleScope", decisions: Mapping[str, bool]
    ) -> "ConcurrentEngine":
        """The engine of random schedules on the target of `pool`: more of them at once, judged by the engine."""
        # Imported late: Hypothesis is for those who ask for random schedules.
        from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
        from fencepost.conformance.schedules.concurrent_engine import ConcurrentEngine

        schedule_pool = replace(
            pool,
            judge=None,
            max_concurrency=MAX_CONCURRENT_SCHEDULES,
            pacer=Pacer(self.target.measure_response_time),
        )
        plan = self.plan
        return ConcurrentEngine(
            schedule_pool, self.judges, ClassicSchedules(scope), plan.seed, plan.schedules, dict(decisions), plan.traces
        )

    async def play_and_confirm(self, state: RunState, pool: ScenarioPool, versions_run: ScenarioRun) -> None:
        """Play the scenarios, play the inconclusive ones again, then replay what failed."""
        inconclusive: list[Scenario] = []

        def keep(run: ScenarioRun) -> None:
            state.add_run(run)
            if is_inconclusive(run):
                inconclusive.append(run.scenario)

        rest = order_scenarios(state.selection.scenarios, self.plan.seed)
        if versions_run.scenario in rest:
            rest.remove(versions_run.scenario)
            keep(versions_run)
        await pool.play_all(rest, "run", keep)
        for attempt in RETRY_NAMES:
            scenarios, inconclusive = inconclusive, []
            await pool.play_all(scenarios, attempt, keep)
        while again := state.failures_to_replay():
            if versions_run.scenario in again:
                # The versions that failed are left out of the description by now, but not out of this replay.
                again.remove(versions_run.scenario)
                whole = replace(pool, description=await self.target.open())
                state.confirm_run(await whole.play(versions_run.scenario, "replay"))
            await pool.play_all(again, "replay", state.confirm_run)

    async def play_schedules(self, state: RunState, pool: ScenarioPool, offered: frozenset[str]) -> None:
        """Play random schedules."""
        from fencepost.conformance.schedules.classic.generation import ScheduleScope

        scope = ScheduleScope(
            pool.description.settings,
            restarts="restart" in offered,
            transactions="transactions" in offered,
            virtual_time=False,
            grace=self.grace,
            cuts=True,
        )
        await state.run_schedules(self.schedule_engine(pool, scope, state.decisions))


def kafka_target(address: str, profile: Profile) -> KafkaTarget:
    """The target at an address, with security, settings and commands of the profile. Raises `TargetError` for no
    address, and if a file or secret of the profile is missing."""
    bootstrap = parse_target(address)
    security = load_security(profile.security, wants_tls=bootstrap.wants_tls)
    lifecycle = ProcessControl(profile.start, profile.kill, profile.folder) if profile.can_restart else None
    return KafkaTarget(bootstrap, security=security, overrides=profile.settings, process_control=lifecycle)


def usable_versions(advertised: Mapping[str, tuple[int, int]], events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """The versions of each API below the first that got no complete response in `events`."""
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
    """The bytes of a response end early, so that none of its fields can be trusted."""
    return any(finding.startswith("truncated") for finding in response.body.get("_findings", ()))
