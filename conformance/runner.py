"""Running a plan: open the target, play the scenarios, replay what failed, add everything up."""

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Target
from fencepost.adapters.virtual import run_virtual
from fencepost.adapters.wire.lifecycle import Lifecycle
from fencepost.adapters.wire.target import KafkaTarget, parse_target
from fencepost.conformance import aggregation
from fencepost.conformance.execution import DEFAULT_GRACE_MS, Played, play
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.scenarios import ALL
from fencepost.conformance.selection import Selection, capabilities, select, wanted
from fencepost.model.settings import Settings
from fencepost.traces.format import write_trace
from fencepost.traces.judge.judge import judge

T = TypeVar("T")
AT_ONCE = 120
"""How many scenarios are in flight on a real target."""
BUNDLED = "bundled"
BUNDLED_SETTINGS = Settings(
    min_session_timeout=500,
    max_session_timeout=60_000,
    initial_rebalance_delay=600,
    max_group_size=6,
    offsets_retention=60_000,
    retention_check_interval=20_000,
)
"""Bounds, delays and limits of the bundled target, all within easy reach."""


@dataclass(slots=True)
class Course:
    """A run under way: what was played so far, and who is told."""

    plan: Plan
    selection: Selection
    progress: Callable[[Progress], None]
    begun: float = field(default_factory=time.monotonic)
    played: list[Played] = field(default_factory=list)
    confirmed: dict[str, frozenset[str]] = field(default_factory=dict)
    decisions: dict[str, bool] = field(default_factory=dict)

    def keep(self, one: Played) -> None:
        """A scenario was played. What it decides about the reference differences binds all later ones."""
        sides = one.verdict.decisions.items()
        contrary = {name: self.decisions[name] for name, side in sides if self.differs(name, side)}
        if contrary:
            one = replace(one, verdict=judge(one.header, one.events, contrary))
        self.decisions.update(one.verdict.decisions)
        self.played.append(one)
        violated = len({each for played in self.played for each in aggregation.broken(played)})
        seconds = time.monotonic() - self.begun
        self.progress(Progress(len(self.played), len(self.selection.scenarios), seconds, violated, one.scenario.name))

    def differs(self, name: str, side: bool) -> bool:
        """A reference difference was decided otherwise before."""
        return name in self.decisions and self.decisions[name] != side

    def suspects(self) -> list[Scenario]:
        """The scenarios that have to be replayed before anything is called a failure."""
        return [one.scenario for one in self.played if aggregation.broken(one)]

    def report(self, target: Mapping[str, str], known: Mapping[str, str], *, cut_short: bool) -> Report:
        """Everything that is known so far."""
        return Report(
            target=target,
            seed=self.plan.seed,
            results=aggregation.results(self.selection, self.played, self.confirmed, known),
            rules=aggregation.coverage(self.played),
            schedules=len(self.played),
            events=sum(len(one.events) for one in self.played),
            seconds=round(time.monotonic() - self.begun, 3),
            cut_short=cut_short,
        )


async def run(plan: Plan, progress: Callable[[Progress], None]) -> Report:
    """Test a target. When cancelled, return what was judged so far, with `cut_short` set."""
    profile = load_profile(plan.profile) if plan.profile is not None else Profile()
    requirements = wanted(plan.patterns)
    if plan.target == BUNDLED:
        return await Bundled(plan, profile).run(requirements, progress)
    return await Remote(plan, profile).run(requirements, progress)


def in_order(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """The scenarios in the order of this seed; 0 keeps the order they are written in."""
    ordered = list(scenarios)
    if seed:
        random.Random(seed).shuffle(ordered)
    return ordered


def save(plan: Plan, played: Played) -> None:
    """Write the trace where the plan wants it."""
    name = f"{played.scenario.name}.jsonl"
    if plan.traces is not None:
        write_trace(plan.traces / name, played.header, played.events)
    if plan.save is not None and aggregation.broken(played):
        write_trace(plan.save / name, played.header, played.events)


class Bundled:
    """A run on the bundled coordinator, in process and on virtual time: a coordinator for every scenario."""

    def __init__(self, plan: Plan, profile: Profile) -> None:
        self.plan = plan
        self.known = profile.known
        self.settings = replace(BUNDLED_SETTINGS, **profile.settings)
        self.make_target: Callable[[Settings], Target] = InProcessTarget

    def settings_for(self, scenario: Scenario) -> Settings:
        """The settings under which a scenario can be played."""
        if "no-initial-delay" in scenario.needs:
            return replace(self.settings, initial_rebalance_delay=0)
        return self.settings

    async def run(self, requirements: Any, progress: Callable[[Progress], None]) -> Report:
        """Play everything, one scenario after the other."""
        description = await virtually(self.describe())
        offered = capabilities(description, ("no-initial-delay", "resize"), slow=True)
        course = Course(self.plan, select(ALL, requirements, offered, smoke=self.plan.smoke), progress)
        cut_short = False
        try:
            for scenario in in_order(course.selection.scenarios, self.plan.seed):
                one = await virtually(self.play(scenario, "run"))
                course.keep(one)
                save(self.plan, one)
            for scenario in course.suspects():
                again = await virtually(self.play(scenario, "replay"))
                course.confirmed[scenario.name] = aggregation.broken(again)
        except asyncio.CancelledError:
            cut_short = True
        return course.report({"name": description.name, **description.implementation}, self.known, cut_short=cut_short)

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
            return await play(scenario, target, description, group, grace=0, restart=target.restart)
        finally:
            await target.close()


async def virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on virtual time, beside the running loop."""
    return await asyncio.to_thread(run_virtual, coroutine)


class Gathering:
    """Where all restart scenarios meet: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.here = 0
        self.done = asyncio.Event()

    async def arrive(self) -> None:
        """Wait for the restart."""
        self.here += 1
        await self.go_if_all()
        await self.done.wait()

    async def leave(self) -> None:
        """One that will not come, or is finished."""
        self.expected -= 1
        await self.go_if_all()

    async def go_if_all(self) -> None:
        """Restart once everyone is here."""
        if self.here and self.here >= self.expected and not self.done.is_set():
            await self.restart()
            self.done.set()


class Remote:
    """A run on a target that is reached over the network: many scenarios at once, restarts gathered at the end."""

    def __init__(self, plan: Plan, profile: Profile) -> None:
        self.plan = plan
        self.profile = profile
        self.token = secrets.token_hex(3)
        self.grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS

    async def run(self, requirements: Any, progress: Callable[[Progress], None]) -> Report:
        """Play everything."""
        target = open_remote(self.plan.target, self.profile)
        try:
            description = await target.open()
            offered = capabilities(description, self.profile.capabilities, slow=self.plan.slow)
            selection = select(ALL, requirements, offered, smoke=self.plan.smoke)
            course = Course(self.plan, selection, progress)
            cut_short = False
            try:
                await self.play_all(course, target, description)
            except asyncio.CancelledError:
                cut_short = True
            name = {"name": self.plan.target, **description.implementation}
            return course.report(name, self.profile.known, cut_short=cut_short)
        finally:
            await target.close()

    async def play_all(self, course: Course, target: Target, description: Description) -> None:
        """Play the scenarios, then replay what failed."""

        def keep(one: Played) -> None:
            course.keep(one)
            save(self.plan, one)

        def confirm(one: Played) -> None:
            course.confirmed[one.scenario.name] = aggregation.broken(one)

        await self.play_batch(in_order(course.selection.scenarios, self.plan.seed), "run", target, description, keep)
        await self.play_batch(course.suspects(), "replay", target, description, confirm)

    async def play_batch(
        self,
        scenarios: Sequence[Scenario],
        attempt: str,
        target: Target,
        description: Description,
        keep: Callable[[Played], None],
    ) -> None:
        """Play scenarios side by side, then those that need a restart."""
        calm = [scenario for scenario in scenarios if "restart" not in scenario.needs]
        rough = [scenario for scenario in scenarios if "restart" in scenario.needs]
        places = asyncio.Semaphore(AT_ONCE)

        async def one(scenario: Scenario) -> None:
            async with places:
                group = f"{scenario.name}-{self.token}-{attempt}"
                keep(await play(scenario, target, description, group, grace=self.grace))

        await asyncio.gather(*(one(scenario) for scenario in calm))
        meeting = Gathering(len(rough), target.restart)

        async def restarting(scenario: Scenario) -> None:
            group = f"{scenario.name}-{self.token}-{attempt}"
            try:
                keep(await play(scenario, target, description, group, grace=self.grace, restart=meeting.arrive))
            finally:
                await meeting.leave()

        await asyncio.gather(*(restarting(scenario) for scenario in rough))


def open_remote(address: str, profile: Profile) -> KafkaTarget:
    """The target at an address, with what the profile knows of it."""
    lifecycle = Lifecycle(profile.start, profile.kill, profile.folder) if profile.can_restart else None
    return KafkaTarget(parse_target(address), overrides=profile.settings, lifecycle=lifecycle)
