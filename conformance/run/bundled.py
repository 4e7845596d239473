"""A run on the bundled coordinator: in this process, on virtual time, a coordinator for every scenario."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Target
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.analysis.failures import MemberLabels, schedule_lines
from fencepost.conformance.capabilities import describe_facts, offered_capabilities, requirements_not_told
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report
from fencepost.conformance.run.play import NewTarget
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.provenance import name_target, record_run
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.run_state import RunState, add_tours, order_scenarios, play_and_confirm, run_schedules
from fencepost.conformance.run.stream import Emit, RunLimits
from fencepost.conformance.subject import Scenario, ScenarioRun, Selection, required_capabilities, select_scenarios
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind

if TYPE_CHECKING:
    from fencepost.conformance.run.schedule import ScheduleScope

# -- a run on the bundled coordinator ---------------------------------------------------------------------------------

BUNDLED_SETTINGS = Settings(
    min_session_timeout=500,
    max_session_timeout=60_000,
    initial_rebalance_delay=600,
    max_group_size=6,
    offsets_retention=60_000,
    retention_check_interval=20_000,
)
"""Bounds, delays and limits of the bundled target, all within easy reach."""


class BundledRun:
    """A run in this process and on virtual time, with a target of its own for every scenario.

    `make_target` makes targets for given settings, by default the bundled coordinator. `scenarios` are played besides
    those of the kit. If `can_configure` is False the target has settings of its own, whatever it is given.
    """

    def __init__(
        self,
        plan: Plan,
        profile: Profile,
        make_target: Callable[[Settings], Target] | None = None,
        *,
        scenarios: Sequence[Scenario] = (),
        can_configure: bool = True,
        protocol: ProtocolDescription | None = None,
    ) -> None:
        self.plan = plan
        self.profile = profile
        self.deviations = profile.deviations
        self.settings = replace(BUNDLED_SETTINGS, **profile.settings)
        self.grace = profile.grace or 0
        self.make_target = make_target if make_target is not None else InProcessTarget
        self.scenarios = tuple(scenarios)
        self.can_configure = can_configure
        self.protocol = DEFAULT_PROTOCOL if protocol is None else protocol
        self.scope: ScheduleScope | None = None
        """What random schedules are drawn for: the target, unless it is given."""

    async def run(self, requirements: Sequence[Requirement], emit: Emit) -> Report:
        """Play everything, one scenario after the other, emitting events. However it ends, there is a report."""
        limits = RunLimits(self.plan.seconds)
        description = await run_virtual_in_thread(self.describe_target())
        selection = self.select(requirements, description)
        facts = describe_facts(description, self.capabilities(description))
        subject = self.protocol.subject
        state = RunState(self.plan, selection, emit, self.deviations, limits, subject=subject, facts=facts)
        state.provenance = record_run(self.plan, self.profile, description.implementation)
        name = name_target(description.name, description.implementation, self.profile.about)
        state.start(name)
        return state.finish(name, await limits.play(self.play_all(state, description), state.work))

    async def play_all(self, state: RunState, description: Description) -> None:
        """Play the scenarios, replay what failed, then play random schedules."""
        await self.play_scenarios(state, order_scenarios(state.selection.scenarios, self.plan.seed))
        if self.plan.schedules:
            await self.play_schedules(state, description)

    async def play_scenarios(self, state: RunState, scenarios: Sequence[Scenario]) -> None:
        """Play scenarios one after the other, and replay what failed."""
        at_once = 1 if self.plan.max_failures is not None else len(scenarios)
        for begin in range(0, len(scenarios), max(at_once, 1)):
            await play_and_confirm(state, partial(self.play_in_turn, state), scenarios[begin : begin + at_once])

    async def play_in_turn(
        self, state: RunState, scenarios: Sequence[Scenario], attempt: str, on_run: Callable[[ScenarioRun], None]
    ) -> None:
        """Play scenarios one after the other."""
        for scenario in scenarios:
            on_run(await self.play_now(scenario, attempt, state))

    async def play_now(self, scenario: Scenario, attempt: str, state: RunState) -> ScenarioRun:
        """Play one scenario, in a thread of its own."""
        state.work.playing.add(scenario.name)
        run = await run_virtual_in_thread(self.play(scenario, attempt))
        state.work.playing.discard(scenario.name)
        return run

    def select(self, requirements: Sequence[Requirement], description: Description) -> Selection:
        """The scenarios and tours to play on a target."""
        offered = self.capabilities(description)
        scenarios = (*self.protocol.scenarios, *self.scenarios)
        selection = select_scenarios(scenarios, requirements, offered, smoke=self.plan.smoke)
        selection = replace(selection, not_told=requirements_not_told(requirements, description))
        return add_tours(selection, description.settings, self.plan, self.protocol)

    def capabilities(self, description: Description) -> frozenset[str]:
        """The capabilities of a target."""
        configurable = ("no-initial-delay", "resize") if self.can_configure else ()
        return offered_capabilities(description, configurable, slow=True)

    async def play_schedules(self, state: RunState, description: Description) -> None:
        """Play random schedules."""
        # Imported late: Hypothesis is for those who ask for random schedules.
        from fencepost.conformance.run.engines import BatchWorker, VirtualEngine
        from fencepost.conformance.run.play import target_bench
        from fencepost.conformance.run.schedule import ScheduleScope

        plan, settings = self.plan, description.settings
        self.scope = scope = self.scope or ScheduleScope(
            settings,
            restarts=description.can_restart,
            transactions="TxnOffsetCommit" in description.versions,
            cuts=True,
        )
        bench = target_bench(
            self.protocol.make_schedules(scope),
            partial(self.make_target, settings),
            self.grace,
            self.protocol.subject.judge,
        )
        engine = VirtualEngine(
            BatchWorker(bench, plan.traces),
            plan.seed,
            plan.schedules,
            state.decisions,
            may_start_processes=self.can_configure,
        )
        try:
            await run_schedules(state, engine, partial(self.play_scenarios, state))
        finally:
            engine.close()

    async def describe_target(self) -> Description:
        """What the target is."""
        target = self.make_target(self.settings)
        description = await target.open()
        await target.close()
        return description

    async def play(self, scenario: Scenario, attempt: str) -> ScenarioRun:
        """Play one scenario on a coordinator of its own, under settings that it can be played with."""
        settings = self.settings
        if "no-initial-delay" in required_capabilities(scenario):
            settings = replace(settings, initial_rebalance_delay=0)
        group = f"{scenario.name}-{self.plan.seed}-{attempt}"
        run = await NewTarget(partial(self.make_target, settings), self.grace).play(scenario, group)
        # In this process nothing but an end of the coordinator closes a connection.
        return replace(run, crashed=any(event.kind is Kind.FAULT and event.api == "closed" for event in run.events))


# -- an example of how a requirement is tested ------------------------------------------------------------------------


def example_schedule(requirement: Requirement) -> tuple[str, ...]:
    """The numbered lines of the first scenario that checks a requirement, up to the request whose response is checked;
    none if no scenario does, or it needs more than a single node."""
    scenario = next((each for each in DEFAULT_PROTOCOL.scenarios if requirement.id in each.requirements), None)
    if scenario is None:
        return ()
    bundled = BundledRun(Plan(BUNDLED), Profile())
    events = asyncio.run(run_virtual_in_thread(bundled.play(scenario, "example"))).events
    lines, _ = schedule_lines(events, _checked_request(events, requirement.id), MemberLabels(events))
    return tuple(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _checked_request(events: tuple[Event, ...], requirement: str) -> int:
    """The number of the first request whose response is checked, else of the last event."""
    by_number = {event.sequence: event for event in events}
    for event in events:
        is_check = event.kind is Kind.INTERNAL and event.api == "check" and event.body.get("requirement") == requirement
        if is_check and event.of is not None:
            answered = by_number[event.of].of
            return event.of if answered is None else answered
    return events[-1].sequence if events else 0
