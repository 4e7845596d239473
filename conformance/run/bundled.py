"""A run on the bundled coordinator: in this process, on virtual time, a coordinator for every scenario."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Target
from fencepost.adapters.virtual_clock import run_beside
from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.play import Played, play
from fencepost.conformance.execution.saving import save
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.run.run_state import Course, in_order
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import capabilities, needed, select
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.tours import with_tours
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.virtual_engine import Field, InProcessSeries
from fencepost.model.catalogue.classic import Requirement
from fencepost.model.settings import Settings

BUNDLED_SETTINGS = Settings(
    min_session_timeout=500,
    max_session_timeout=60_000,
    initial_rebalance_delay=600,
    max_group_size=6,
    offsets_retention=60_000,
    retention_check_interval=20_000,
)
"""Bounds, delays and limits of the bundled target, all within easy reach."""


class Bundled:
    """A run on the bundled coordinator, in process and on virtual time: a coordinator for every scenario."""

    def __init__(self, plan: Plan, profile: Profile) -> None:
        self.plan = plan
        self.known = profile.known
        self.settings = replace(BUNDLED_SETTINGS, **profile.settings)
        self.grace = profile.grace or 0
        self.make_target: Callable[[Settings], Target] = InProcessTarget

    def settings_for(self, scenario: Scenario) -> Settings:
        """The settings under which a scenario can be played."""
        if "no-initial-delay" in needed(scenario):
            return replace(self.settings, initial_rebalance_delay=0)
        return self.settings

    async def run(self, requirements: Sequence[Requirement], progress: Callable[[Progress], None]) -> Report:
        """Play everything, one scenario after the other."""
        description = await run_beside(self.describe())
        offered = capabilities(description, ("no-initial-delay", "resize"), slow=True)
        selection = select(ALL, requirements, offered, smoke=self.plan.smoke)
        course = Course(self.plan, with_tours(selection, description.settings, self.plan), progress)
        cut_short = False
        try:
            for scenario in in_order(course.selection.scenarios, self.plan.seed):
                one = await run_beside(self.play(scenario, "run"))
                course.keep(one)
                save(self.plan, one)
            while suspects := course.suspects():
                for scenario in suspects:
                    again = await run_beside(self.play(scenario, "replay"))
                    course.confirmed[scenario.name] = broken(again)
            if self.plan.schedules:
                await self.play_schedules(course)
        except asyncio.CancelledError:
            cut_short = True
        return course.report({"name": description.name, **description.implementation}, self.known, cut_short=cut_short)

    async def play_schedules(self, course: Course) -> None:
        """Play random schedules."""
        plan = self.plan
        field = Field(self.settings, self.grace, plan.traces, self.make_target)
        series = InProcessSeries(field, Ground(self.settings, cuts=True), plan.seed, plan.schedules, course.decisions)
        try:
            await course.follow(series)
        finally:
            series.close()

    async def describe(self) -> Description:
        """What the bundled target is."""
        target = self.make_target(self.settings)
        description = await target.open()
        await target.close()
        return description

    async def play(self, scenario: Scenario, attempt: str) -> Played:
        """Play one scenario on a coordinator of its own."""
        target = self.make_target(self.settings_for(scenario))
        description = await target.open()
        try:
            group = f"{scenario.name}-{self.plan.seed}-{attempt}"
            return await play(scenario, target, description, group, grace=self.grace, restart=target.restart)
        finally:
            await target.close()
