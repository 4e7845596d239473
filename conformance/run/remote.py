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
from fencepost.adapters.wire.process_control import Lifecycle
from fencepost.adapters.wire.target import KafkaTarget, parse_target
from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.loop_lag import Lateness, fair, undecided
from fencepost.conformance.execution.pacing import Pace
from fencepost.conformance.execution.play import DEFAULT_GRACE_MS, Judging, Played, play
from fencepost.conformance.execution.restart_barrier import Gathering
from fencepost.conformance.execution.saving import save
from fencepost.conformance.execution.signals import ignore_interrupts, started
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.run.run_state import Course, in_order
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import capabilities, needed, select
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.tours import with_tours
from fencepost.conformance.scenarios.classic.versions import versions
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.concurrent_engine import RemoteSeries
from fencepost.model.catalogue.classic import Requirement
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

AT_ONCE = 120
"""How many scenarios are in flight."""
JUDGES = 2
"""How many processes judge, and draw random schedules."""
CONNECTIONS = 3
"""How many connections a scenario needs at the same time, as a rule."""
AGAIN = ("again", "at-last")
"""The further attempts of a scenario that decides nothing: mostly the machine stalled, and a session ran out."""
CUT = frozenset({"closed", "unreachable"})
"""Faults that a target leaves behind when it goes down."""


class Down(Exception):
    """The target is gone and cannot be started again."""


class Interrupted(Exception):
    """The target went down while scenarios were played side by side."""


class Remote:
    """A run on a Kafka address."""

    def __init__(self, plan: Plan, profile: Profile) -> None:
        self.plan = plan
        self.profile = profile
        self.token = secrets.token_hex(3)
        self.grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        self.target = remote_target(plan.target, profile)
        self.pace = Pace()
        self.lateness = Lateness()
        self.down = False
        self.crashing: set[str] = set()
        self.at_once = AT_ONCE
        self.judge: Callable[[Header, tuple[Event, ...]], TraceVerdict] = judge
        self.judging: Judging = self.judged
        self.judges = ProcessPoolExecutor(JUDGES, get_context("spawn"), initializer=ignore_interrupts)

    async def run(self, requirements: Sequence[Requirement], progress: Callable[[Progress], None]) -> Report:
        """Play everything, then replay what failed."""
        watching = asyncio.create_task(self.lateness.watch())
        try:
            description = await self.target.open()
            started(self.judges, JUDGES)
            first = await self.play(versions.scenarios[0], description, "versions")
            description = replace(description, versions=usable(description.versions, first.events))
            offered = capabilities(description, self.profile.capabilities, slow=self.plan.slow)
            if not self.profile.survives_restarts:
                offered -= {"restart"}
            selection = select(ALL, requirements, offered, smoke=self.plan.smoke)
            course = Course(self.plan, with_tours(selection, description.settings, self.plan), progress)
            cut_short = False
            try:
                await self.play_all(course, description, first)
                if self.plan.schedules:
                    await self.play_schedules(course, description, offered)
            except (asyncio.CancelledError, Down):
                cut_short = True
            name = {"name": self.plan.target, **description.implementation}
            return course.report(name, self.profile.known, cut_short=cut_short)
        finally:
            watching.cancel()
            await self.target.close()
            self.judges.shutdown(wait=False, cancel_futures=True)

    async def play_all(self, course: Course, description: Description, first: Played) -> None:
        """Play the scenarios, those that decide nothing again, then replay what failed."""
        astray: list[Scenario] = []

        def keep(one: Played) -> None:
            course.keep(one)
            save(self.plan, one)
            if undecided(one):
                astray.append(one.scenario)

        def confirm(one: Played) -> None:
            course.confirmed[one.scenario.name] = broken(one)

        rest = in_order(course.selection.scenarios, self.plan.seed)
        if first.scenario in rest:
            rest.remove(first.scenario)
            keep(first)
        await self.play_batch(rest, "run", description, keep)
        for attempt in AGAIN:
            scenarios, astray = astray, []
            await self.play_batch(scenarios, attempt, description, keep)
        while again := course.suspects():
            if first.scenario in again:
                # The versions that failed are left out of the description by now, but not out of this replay.
                again.remove(first.scenario)
                confirm(await self.play(first.scenario, await self.target.open(), "replay"))
            await self.play_batch(again, "replay", description, confirm)

    async def play_schedules(self, course: Course, description: Description, offered: frozenset[str]) -> None:
        """Play random schedules."""
        ground = Ground(
            description.settings,
            restarts="restart" in offered,
            transactions="transactions" in offered,
            patient=False,
            grace=self.grace,
            cuts=True,
        )
        await course.follow(RemoteSeries(self, description, ground, self.plan.schedules, course.decisions))

    async def play(
        self,
        scenario: Scenario,
        description: Description,
        attempt: str,
        restart: Callable[[], Coroutine[Any, Any, None]] | None = None,
        *,
        alone: bool = True,
    ) -> Played:
        """Play one scenario. Raises `Interrupted` if the target went down and it may have been another's doing."""

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            if cut_off(events) and (self.down or not await self.target.alive()):
                self.down = True
                if not alone:
                    raise Interrupted
            return await self.judging(header, events)

        group = f"{scenario.name}-{self.token}-{attempt}"
        begun = asyncio.get_running_loop().time()
        played = await play(
            scenario, self.target, description, group, grace=self.grace, restart=restart, judging=judging
        )
        if self.down:
            self.crashing.add(scenario.name)
        return fair(replace(played, crashed=self.down, late=self.lateness.worst(begun)))

    async def judged(self, header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        """What a trace shows, found in a process beside this one: members must not miss their heartbeats meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.judges, self.judge, header, events)

    async def play_batch(
        self, scenarios: Sequence[Scenario], attempt: str, description: Description, keep: Callable[[Played], None]
    ) -> None:
        """Play scenarios side by side, then those that need a restart; those that brought it down before go first."""
        calm = [scenario for scenario in scenarios if "restart" not in needed(scenario)]
        rough = [scenario for scenario in scenarios if "restart" in needed(scenario)]
        for scenario in calm:
            if scenario.name in self.crashing:
                await self.play_company([scenario], attempt, description, keep)
        harmless = [scenario for scenario in calm if scenario.name not in self.crashing]
        await self.play_company(harmless, attempt, description, keep)
        meeting = Gathering(len(rough), self.target.restart)

        await asyncio.gather(*(self.play_restarted(each, attempt, description, keep, meeting) for each in rough))

    async def play_restarted(
        self,
        scenario: Scenario,
        attempt: str,
        description: Description,
        keep: Callable[[Played], None],
        meeting: Gathering,
    ) -> None:
        """Play a scenario that needs a restart, and wait for it where the others do."""
        try:
            keep(await self.play(scenario, description, attempt, meeting.arrive))
        except Exception:
            await meeting.leave()
            raise
        await meeting.leave()  # but not when cancelled: the target is not restarted for a run that is cut short

    async def play_company(
        self, scenarios: Sequence[Scenario], attempt: str, description: Description, keep: Callable[[Played], None]
    ) -> None:
        """Play scenarios side by side; if the target goes down, find out which of them does it."""
        if not scenarios:
            return
        await self.target.warm(CONNECTIONS * min(len(scenarios), self.at_once))
        places = asyncio.Semaphore(self.at_once)
        interrupted: list[Scenario] = []

        async def one(scenario: Scenario) -> None:
            async with places:
                try:
                    if self.down:
                        raise Interrupted
                    await self.pace.wait()
                    keep(await self.play(scenario, description, attempt, alone=len(scenarios) == 1))
                except Interrupted:
                    interrupted.append(scenario)

        await asyncio.gather(*(one(scenario) for scenario in scenarios))
        if self.down:
            await self.revive()
        middle = (len(interrupted) + 1) // 2
        for half in (interrupted[:middle], interrupted[middle:]):
            if half:
                await self.play_company(half, attempt, description, keep)

    async def revive(self) -> None:
        """Start the target again after it went down."""
        if not self.profile.can_restart:
            raise Down
        await self.target.restart()
        self.down = False


def remote_target(address: str, profile: Profile) -> KafkaTarget:
    """The target at an address, with what the profile knows of it. Raises `TargetError` for what is no address."""
    lifecycle = Lifecycle(profile.start, profile.kill, profile.folder) if profile.can_restart else None
    return KafkaTarget(parse_target(address), overrides=profile.settings, lifecycle=lifecycle)


def cut_off(events: Sequence[Event]) -> bool:
    """The target ended a connection of this trace, or could not be reached."""
    return any(event.kind is Kind.FAULT and event.api in CUT for event in events)


def usable(advertised: Mapping[str, tuple[int, int]], events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """The versions that can be used for everything else: those below the first that got no whole answer."""
    asked = {event.sequence: event for event in events if event.kind is Kind.REQUEST}
    whole = {event.of for event in events if event.kind is Kind.ANSWER and not is_broken(event)}
    broken: dict[str, int] = {}
    for sequence, event in asked.items():
        if sequence not in whole:
            broken[event.api] = min(event.version, broken.get(event.api, event.version))
    return {
        api: (lowest, min(highest, broken[api] - 1) if broken.get(api, 0) > lowest else highest)
        for api, (lowest, highest) in advertised.items()
    }


def is_broken(answer: Event) -> bool:
    """The bytes of an answer end early, so that nothing in it can be trusted."""
    return any(finding.startswith("truncated") for finding in answer.body.get("_findings", ()))
