"""A run of a swarm: processes start, crash, freeze and come back, records are written, and the group settles."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from fencepost.adapters.classic.client.links import Network
from fencepost.conformance.swarm.admin import SwarmAdmin
from fencepost.conformance.swarm.member import SwarmMember
from fencepost.conformance.swarm.plan import UPGRADE, SwarmEvent, SwarmEventKind, SwarmKind, SwarmPlan
from fencepost.conformance.swarm.watch import SwarmWatch
from fencepost.model.classic.member.client import assigned_partitions
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import ClientSettings, ResetPolicy
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition

WRITES = 10
"""How often records are written."""
LOOK_S = 0.5
CLOSING_S = 5.0
"""How long members may take to leave."""
RESTART_S = 0.5
"""How long a process is gone that an upgrade restarts."""
SWARM_SETTINGS = ClientSettings(
    session_timeout=10_000,
    heartbeat_interval=1_500,
    max_poll_interval=20_000,
    auto_commit_interval=1_000,
    reset_policy=ResetPolicy.EARLIEST,
)
"""Timeouts that brokers take with their defaults, and that a run need not wait for long."""


@dataclass(slots=True)
class SwarmProcess:
    """A process: its present life, if it runs, how often it was started again, and its step of an upgrade."""

    number: int
    restarts: int = 0
    step: int = 0
    member: SwarmMember | None = None
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by what happens to it."""


@dataclass(frozen=True, slots=True)
class SwarmOutcome:
    """What a run has shown. `written` counts the records of each partition; `unsettled` says what was missing at the
    end, "" if nothing was; `stays` are what could not be removed. Seconds."""

    plan: SwarmPlan
    watch: SwarmWatch
    written: int
    unsettled: str
    seconds: float
    lag: float
    """How late the kit's own loop was at most."""
    stays: tuple[str, ...] = ()
    happened: tuple[str, ...] = ()


@dataclass(slots=True)
class SwarmRun:
    """A run under way; `tell` gets a line for each thing that happens."""

    plan: SwarmPlan
    network: Network
    admin: SwarmAdmin
    tell: Callable[[str], None]
    cleans_up: bool = True
    """Whether what was made has to be removed: what ends with the run has not."""
    processes: list[SwarmProcess] = field(default_factory=list)
    members: dict[str, SwarmMember] = field(default_factory=dict)
    """All lives, by their names."""
    happened: list[str] = field(default_factory=list)
    lag: float = 0.0
    _began: float = 0.0
    _closing: set["asyncio.Task[None]"] = field(default_factory=set)

    def now(self) -> int:
        """Milliseconds since the run began."""
        return int((asyncio.get_running_loop().time() - self._began) * 1000)

    async def run(self) -> SwarmOutcome:
        """Play the plan to its end, and remove what was made. Raises `TargetError`."""
        self._began = asyncio.get_running_loop().time()
        watch = SwarmWatch(self.now, self._generation_of)
        try:
            await self.admin.create_topic(self.plan.partitions)
            self._began = asyncio.get_running_loop().time()
            self.processes = [SwarmProcess(number) for number in range(self.plan.members)]
            async with asyncio.TaskGroup() as group:
                group.create_task(self._start_all(watch))
                group.create_task(self._write())
                for event in self.plan.draw_events(SWARM_SETTINGS.session_timeout / 1000):
                    group.create_task(self._play(event, watch))
                if self.plan.kind is SwarmKind.UPGRADE:
                    group.create_task(self._upgrade(watch))
                measuring = group.create_task(self._measure_lag())
                measuring_end = group.create_task(asyncio.sleep(self.plan.seconds))
                measuring_end.add_done_callback(lambda _: measuring.cancel())
            unsettled = await self._settle(watch)
        finally:
            await self._end_all(watch)
            stays = await self.admin.clean_up() if self.cleans_up else []
        seconds = self.now() / 1000
        written = self.plan.records * WRITES
        return SwarmOutcome(self.plan, watch, written, unsettled, seconds, self.lag, tuple(stays), tuple(self.happened))

    async def _end_all(self, watch: SwarmWatch) -> None:
        """Have all members leave, and end those that do not in time."""
        for process in self.processes:
            if process.member is not None:
                self._close(process.member, watch)
        await asyncio.gather(*self._closing)
        for member in self.members.values():
            await member.kill()

    def _generation_of(self, name: str) -> int:
        return self.members[name].generation

    # -- what happens ---------------------------------------------------------------------------------------------

    async def _start_all(self, watch: SwarmWatch) -> None:
        for process, at in zip(self.processes, self.plan.starts(), strict=True):
            await self._sleep_until(at)
            self._start(process, watch)

    def _start(self, process: SwarmProcess, watch: SwarmWatch) -> None:
        """A process starts, or starts again."""
        name = f"{process.number}.{process.restarts}"
        strategies = self.plan.strategies_of(process.number, process.restarts, process.step)
        settings = evolve(SWARM_SETTINGS, group=self.admin.group, strategies=strategies)
        process.member = self.members[name] = SwarmMember(name, settings, self.network, self.now, watch)
        process.member.start(self.admin.topic)

    async def _write(self) -> None:
        """Write records until things have stopped to happen."""
        for number in range(WRITES):
            await self._sleep_until(self.plan.seconds * (1 + number * 5 / WRITES) / 6)
            await self.admin.produce(self.plan.records)

    async def _play(self, event: SwarmEvent, watch: SwarmWatch) -> None:
        """An event, and what comes when it is over. Nothing happens to a process to which something happens already."""
        await self._sleep_until(event.at)
        process = self.processes[event.process]
        if process.member is None or process.busy.locked():
            return
        self._note(f"{event.kind} of {process.member.name}, for {event.lasts:.1f} s")
        async with process.busy:
            await self._carry_out(event, process, process.member, watch)

    async def _carry_out(
        self, event: SwarmEvent, process: SwarmProcess, member: SwarmMember, watch: SwarmWatch
    ) -> None:
        if event.kind is SwarmEventKind.DISCONNECT:
            for link in tuple(member.links.values()):
                link.hang_up()
            return
        if event.kind is SwarmEventKind.FREEZE:
            member.freeze()
            await asyncio.sleep(event.lasts)
            member.thaw()
            return
        if event.kind is SwarmEventKind.CRASH:
            watch.on_gone(member.name)
            await member.kill()
        else:
            self._close(member, watch)
        await self._start_again(process, event.lasts, watch)

    def _close(self, member: SwarmMember, watch: SwarmWatch) -> None:
        """Have a member leave in the background, as its process may be started again meanwhile."""
        task = asyncio.ensure_future(self._end_closed(member, watch))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _end_closed(self, member: SwarmMember, watch: SwarmWatch) -> None:
        member.close()
        await asyncio.wait([asyncio.ensure_future(member.wait())], timeout=CLOSING_S)
        watch.on_gone(member.name)
        await member.kill()

    async def _start_again(self, process: SwarmProcess, after: float, watch: SwarmWatch) -> None:
        """A process whose life has ended begins another one, so many seconds later."""
        process.member = None
        await asyncio.sleep(after)
        process.restarts += 1
        self._start(process, watch)

    async def _upgrade(self, watch: SwarmWatch) -> None:
        """Restart each process for a step of the upgrade; nobody takes the next one before all have taken this."""
        for step in range(1, len(UPGRADE)):
            async with asyncio.TaskGroup() as group:
                for process, at in zip(self.processes, self.plan.upgrade_times(step), strict=True):
                    group.create_task(self._upgrade_process(process, step, at, watch))

    async def _upgrade_process(self, process: SwarmProcess, step: int, at: float, watch: SwarmWatch) -> None:
        await self._sleep_until(at)
        async with process.busy:
            process.step = step
            if process.member is not None:
                self._note(f"upgrade of {process.member.name}, step {step}")
                self._close(process.member, watch)
                await self._start_again(process, RESTART_S, watch)

    def _note(self, what: str) -> None:
        line = f"at {self.now() / 1000:.1f} s {what}"
        self.happened.append(line)
        self.tell(line)

    async def _sleep_until(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds - self.now() / 1000))

    async def _measure_lag(self) -> None:
        """Measure how late the loop is, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self.lag = max(self.lag, loop.time() - due)

    # -- the end --------------------------------------------------------------------------------------------------

    async def _settle(self, watch: SwarmWatch) -> str:
        """Wait until the group has settled and every record was returned; what is missing if that takes too long."""
        deadline = self.now() + self.plan.settle_seconds * 1000
        while (missing := self._missing(watch)) and self.now() < deadline:
            await asyncio.sleep(LOOK_S)
        return missing

    def _missing(self, watch: SwarmWatch) -> str:
        """What the group lacks, in words; "" if that is nothing."""
        everything = {(self.admin.topic, number) for number in range(self.plan.partitions)}
        lives = [process.member for process in self.processes if process.member is not None]
        joining = [
            one.name for one in lives if one.client.member.state != MemberState.STABLE or one.client.member.rejoins
        ]
        if joining:
            told = sorted({one.failure for one in lives if one.name in joining} - {""})
            return f"{len(joining)} of {len(lives)} members join, such as {joining[0]}{describe_failures(told)}"
        generations = {one.generation for one in lives}
        if len(generations) > 1:
            return f"members are in the generations {sorted(generations)}"
        owned: list[Partition] = [partition for one in lives for partition in assigned_partitions(one.client)]
        if sorted(owned) != sorted(everything):
            return (
                f"{len(everything - set(owned))} partitions have no owner, and {len(owned) - len(set(owned))} several"
            )
        wanted = set(range(self.plan.records * WRITES))
        behind = [partition for partition in everything if not wanted <= watch.returned.get(partition, set())]
        return f"records of {len(behind)} partitions were not returned" if behind else ""


def describe_failures(told: list[str]) -> str:
    """What members have raised, as the end of a sentence."""
    return f"; told {', '.join(told)}" if told else ""


def make_run(plan: SwarmPlan, network: Network, tell: Callable[[str], None], *, cleans_up: bool = True) -> SwarmRun:
    """A run on the nodes of a network, in a group and on a topic of its own."""
    unique = uuid4().hex[:8]
    admin = SwarmAdmin(network, f"fencepost-swarm-{unique}", f"fencepost-swarm-{unique}")
    return SwarmRun(plan, network, admin, tell, cleans_up)
