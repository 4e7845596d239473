"""A run of a swarm: its topic, what happens to its members, and the outcome in plain text and in JSON."""

import argparse
import asyncio
import json
import time
from asyncio.subprocess import DEVNULL
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from fencepost.adapters.address import TargetError, parse_target
from fencepost.adapters.classic.client.links import Link, MemoryNetwork, Network, TcpNetwork
from fencepost.adapters.serve.server import Server
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.classic.swarm.members import (
    UPGRADE,
    SwarmEvent,
    SwarmEventKind,
    SwarmKind,
    SwarmMember,
    SwarmPlan,
    SwarmWatch,
)
from fencepost.conformance.cli.console import Console, UsageError, run_interruptible
from fencepost.conformance.cli.files import check_outputs
from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.results import ExitCode
from fencepost.model.classic.member.client import assigned_partitions
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import ClientSettings, ResetPolicy
from fencepost.model.errors import Error, FencepostError, error_name
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, decode_response, encode_request
from fencepost.model.wire.records import Record, encode_batch, make_batch

# --- The topic of a swarm: it is made, written to, and removed with the group, over connections of its own.

VERSIONS: Mapping[str, int] = MappingProxyType(
    {"CreateTopics": 4, "Metadata": 9, "Produce": 7, "DeleteTopics": 4, "DeleteGroups": 1, "FindCoordinator": 3}
)
TIMEOUT_S = 30.0
WAITS = 100
"""How often the kit looks whether a new topic has leaders."""
ANY_NODE = 0
CLIENT_ID = "fencepost"


@dataclass(slots=True)
class SwarmAdmin:
    """The kit's own requests on behalf of a swarm."""

    network: Network
    topic: str
    group: str
    leaders: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """The offset behind the last record that was written to each partition."""
    _links: dict[int, Link] = field(default_factory=dict)
    _count: int = 0

    async def ask(self, api: str, body: Body, node: int = ANY_NODE) -> Body:
        """Send a request to a node, and return its response. Raises `TargetError`."""
        link = self._links.get(node)
        if link is None or link.is_over:
            link = self._links[node] = self.network.connect(node)
        self._count += 1
        link.send(encode_request(api, VERSIONS[api], self._count, CLIENT_ID, body))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                frame = await link.receive()
        except (ConnectionError, TimeoutError) as error:
            self._links.pop(node).hang_up()
            raise TargetError(f"no response to {api}: {error or 'it takes too long'}; is the broker running?") from None
        return decode_response(api, VERSIONS[api], frame).body

    async def create_topic(self, partitions: int) -> None:
        """Create the topic, and wait until each partition has a leader. Raises `TargetError`."""
        row = {"name": self.topic, "num_partitions": partitions, "replication_factor": -1}
        body = await self.ask("CreateTopics", {"topics": [row], "timeout_ms": 10_000})
        for result in body["topics"]:
            if result["error_code"]:
                raise TargetError(f"cannot create topic {self.topic!r}: {error_name(result['error_code'])}")
        for _ in range(WAITS):
            await self.learn_leaders()
            if len(self.leaders) == partitions:
                return
            await asyncio.sleep(0.1)
        raise TargetError(f"topic {self.topic!r} has {len(self.leaders)} of {partitions} leaders; is the broker well?")

    async def learn_leaders(self) -> None:
        """Ask who leads each partition."""
        body = await self.ask("Metadata", {"topics": [{"name": self.topic}], "allow_auto_topic_creation": False})
        for broker in body["brokers"]:
            self.network.learn(broker["node_id"], broker["host"], broker["port"])
        rows = [row for topic in body["topics"] for row in topic["partitions"] if row["leader_id"] >= 0]
        self.leaders = {row["partition_index"]: row["leader_id"] for row in rows if not row["error_code"]}

    async def produce(self, count: int) -> None:
        """Write `count` records to each partition. Raises `TargetError`."""
        now = int(time.time() * 1000)  # brokers delete records that are old by their timestamps
        data = encode_batch(make_batch([Record(b"%d" % number, None, now) for number in range(count)]))
        for node in sorted(set(self.leaders.values())):
            rows = [{"index": index, "records": data} for index, leader in self.leaders.items() if leader == node]
            topic = {"name": self.topic, "partition_data": rows}
            body = await self.ask("Produce", {"acks": -1, "timeout_ms": 10_000, "topic_data": [topic]}, node)
            for response in body["responses"]:
                for row in response["partition_responses"]:
                    if row["error_code"]:
                        raise TargetError(f"cannot write to {self.topic!r}: {error_name(row['error_code'])}")
                    self.ends[row["index"]] = row["base_offset"] + count

    async def clean_up(self) -> list[str]:
        """Remove the topic and the group; what could not be removed."""
        stays = []
        try:
            deleted = await self.ask("DeleteTopics", {"topic_names": [self.topic], "timeout_ms": 10_000})
            stays += [f"topic {self.topic}" for row in deleted["responses"] if row["error_code"]]
            found = await self.ask("FindCoordinator", {"key": self.group, "key_type": 0})
            groups = await self.ask("DeleteGroups", {"groups_names": [self.group]}, found["node_id"])
            forgotten = (Error.NONE, Error.GROUP_ID_NOT_FOUND)
            stays += [f"group {self.group}" for row in groups["results"] if row["error_code"] not in forgotten]
        except TargetError as error:
            stays.append(f"topic {self.topic} and group {self.group}: {error}")
        for link in self._links.values():
            link.hang_up()
        return stays


# --- A run of a swarm: processes start, crash, freeze and come back, records are written, and the group settles.

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
    """What a run has shown. `written` counts the records; `unsettled` says what was missing at the
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


class GroupIsFull(FencepostError):
    """The group takes no more members; the message says how many it has."""


@dataclass(slots=True)
class SwarmRun:
    """A run under way; `tell` gets a line for each thing that happens. `restart` kills the broker and starts it again,
    which happens halfway."""

    plan: SwarmPlan
    network: Network
    admin: SwarmAdmin
    tell: Callable[[str], None]
    cleans_up: bool = True
    """Whether what was made has to be removed: what ends with the run has not."""
    restart: Callable[[], Awaitable[None]] | None = None
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
        watch = SwarmWatch(self.now, lambda name: self.members[name].generation)
        try:
            await self.admin.create_topic(self.plan.partitions)
            self._began = asyncio.get_running_loop().time()
            self.processes = [SwarmProcess(number) for number in range(self.plan.members)]
            try:
                await self._play_all(watch)
                unsettled = await self._settle(watch)
            except* GroupIsFull as full:
                unsettled = str(full.exceptions[0])
        finally:
            await self._end_all(watch)
            stays = await self.admin.clean_up() if self.cleans_up else []
        seconds, written = self.now() / 1000, sum(self.admin.ends.values())
        return SwarmOutcome(self.plan, watch, written, unsettled, seconds, self.lag, tuple(stays), tuple(self.happened))

    async def _play_all(self, watch: SwarmWatch) -> None:
        """Have everything happen that is to happen. Raises a group of `GroupIsFull`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._start_all(watch))
            group.create_task(self._write())
            for event in self.plan.draw_events(SWARM_SETTINGS.session_timeout / 1000):
                group.create_task(self._play(event, watch))
            if self.plan.kind is SwarmKind.UPGRADE:
                group.create_task(self._upgrade(watch))
            if self.restart is not None:
                group.create_task(self._restart_broker(self.restart))
            for work in (self._measure_lag(), self._watch_size()):
                task = group.create_task(work)
                end = group.create_task(asyncio.sleep(self.plan.seconds))
                end.add_done_callback(partial(end_task, task))

    async def _restart_broker(self, restart: Callable[[], Awaitable[None]]) -> None:
        """Have the broker die and come back, halfway."""
        await self._sleep_until(self.plan.seconds / 2)
        self._note("restart of the broker")
        await restart()
        self._note("the broker was started again")

    async def _watch_size(self) -> None:
        """Watch for members that the group has no place for. Raises `GroupIsFull` at the first one."""
        while True:
            await asyncio.sleep(LOOK_S)
            lives = [process.member for process in self.processes if process.member is not None]
            refused = sum(one.failure == Error.GROUP_MAX_SIZE_REACHED.name for one in lives)
            if refused:
                raise GroupIsFull(
                    f"the group takes {len(lives) - refused} members, and refuses more with GROUP_MAX_SIZE_REACHED; "
                    f"raise group.max.size, or run --members {len(lives) - refused}"
                )

    async def _end_all(self, watch: SwarmWatch) -> None:
        """Have all members leave, and end those that do not in time."""
        for process in self.processes:
            if process.member is not None:
                self._close(process.member, watch)
        await asyncio.gather(*self._closing)
        for member in self.members.values():
            await member.kill()

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
            await self._write_once()

    async def _write_once(self) -> None:
        """Write records, again and again while the broker does not take them, as long as the group may take to settle;
        what it has taken before it failed is written twice."""
        begun, told = self.now(), ""
        while self.now() - begun < self.plan.settle_seconds * 1000:
            try:
                if told:
                    await self.admin.learn_leaders()
                await self.admin.produce(self.plan.records)
                return
            except TargetError as error:
                if str(error) != told:
                    self._note(f"no records are written: {error}")
                told = str(error)
                await asyncio.sleep(LOOK_S)

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
        """Begin another life of a process whose life has ended, `after` seconds later."""
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
            ends = f"; told {', '.join(told)}" if told else ""
            return f"{len(joining)} of {len(lives)} members join, such as {joining[0]}{ends}"
        generations = {one.generation for one in lives}
        if len(generations) > 1:
            return f"members are in the generations {sorted(generations)}"
        owned: list[Partition] = [partition for one in lives for partition in assigned_partitions(one.client)]
        if sorted(owned) != sorted(everything):
            return (
                f"{len(everything - set(owned))} partitions have no owner, and {len(owned) - len(set(owned))} several"
            )
        behind = [
            partition
            for partition in everything
            if not watch.returned.get(partition, set()).issuperset(range(self.admin.ends.get(partition[1], 0)))
        ]
        if behind:
            return f"records of {len(behind)} partitions were not returned"
        return "" if len(self.admin.ends) == self.plan.partitions else "records could not be written to all partitions"


def end_task(task: "asyncio.Task[None]", ended: "asyncio.Task[None]") -> None:
    """End a task as another one has ended."""
    task.cancel()


def make_run(
    plan: SwarmPlan,
    network: Network,
    tell: Callable[[str], None],
    restart: Callable[[], Awaitable[None]] | None = None,
    *,
    cleans_up: bool = True,
) -> SwarmRun:
    """A run on the nodes of a network, in a group and on a topic of its own."""
    unique = uuid4().hex[:8]
    admin = SwarmAdmin(network, f"fencepost-swarm-{unique}", f"fencepost-swarm-{unique}")
    return SwarmRun(plan, network, admin, tell, cleans_up, restart)


# --- Swarms on the bundled coordinator, in this process.


ROOMY = Settings()
"""Those of a server that takes as many members as come."""
DOWN_S = 5.0
"""How long the bundled server is down."""


async def run_bundled(
    plan: SwarmPlan, tell: Callable[[str], None], settings: Settings = ROOMY, *, restarts: bool = False
) -> SwarmOutcome:
    """Run a swarm on a server of its own, whose connections need no ports."""
    server = Server(settings, None)

    async def restart() -> None:
        server.go_down()
        await asyncio.sleep(DOWN_S)
        server.come_back()

    network = MemoryNetwork(server.accept)
    try:
        return await make_run(plan, network, tell, restart if restarts else None, cleans_up=False).run()
    finally:
        await server.close()


# --- The outcome of a swarm in plain text and in JSON.

MAX_LINES = 10
"""How many partitions the text tells of, those that were longest without an owner."""


def render_outcome(outcome: SwarmOutcome) -> str:
    """The outcome as lines of text."""
    return "\n".join(_lines(outcome)) + "\n"


def _lines(outcome: SwarmOutcome) -> Iterator[str]:
    plan, watch = outcome.plan, outcome.watch
    yield (
        f"{plan.members} {plan.kind} members, {plan.partitions} partitions, {len(outcome.happened)} events in "
        f"{outcome.seconds:.0f} s, seed {plan.seed}: generation {watch.newest}, {watch.assignments} assignments"
    )
    yield (
        f"{watch.accepted} commits accepted, {watch.refused} refused, {watch.stale_refused} of these of a generation "
        f"that was over; {sum(map(len, watch.returned.values()))} of {outcome.written} records "
        f"returned, {watch.repeated} of them again"
    )
    yield f"the loop of the kit was {outcome.lag:.1f} s late at most"
    yield from _absence_lines(outcome)
    for violation in watch.violations:
        yield f"VIOLATION at {violation.time / 1000:.1f} s, {violation.rule}: {violation.sentence}"
    for left in outcome.stays:
        yield f"could not be removed: {left}"
    if watch.violations:
        yield f"NOT CONFORMANT: {len(watch.violations)} violations."
    elif outcome.seconds < plan.seconds:
        yield f"INCONCLUSIVE: {outcome.unsettled}."
    elif outcome.unsettled:
        yield f"INCONCLUSIVE: after {plan.settle_seconds:g} s without events {outcome.unsettled}."
    else:
        yield "CONFORMANT: one owner at a time, no commit of a fenced member, every record returned."


def _absence_lines(outcome: SwarmOutcome) -> Iterator[str]:
    """When partitions had their first owner, and how long they had none after they had one."""
    first, spans = list(outcome.watch.first_owned.values()), absences_by_partition(outcome)
    if first:
        yield f"first owner: {len(first)} partitions, median after {median(first)} ms, the last after {max(first)} ms"
    if not spans:
        yield "no partition lost its owner"
        return
    every = [duration for durations in spans.values() for duration in durations]
    yield (
        f"without an owner: {len(spans)} partitions, {len(every)} times, median {median(every)} ms, longest "
        f"{max(every)} ms"
    )
    for name, durations in sorted(spans.items(), key=lambda row: -sum(row[1]))[:MAX_LINES]:
        yield f"  {name}: {len(durations)} times, {sum(durations)} ms in all, longest {max(durations)} ms"


def absences_by_partition(outcome: SwarmOutcome) -> dict[str, list[int]]:
    """The times without an owner in milliseconds, by partition."""
    found: dict[str, list[int]] = defaultdict(list)
    for absence in outcome.watch.absences:
        found[str(absence.partition[1])].append(absence.duration)
    return dict(found)


def outcome_as_json(outcome: SwarmOutcome) -> dict[str, Any]:
    """The outcome as plain data."""
    plan, watch = outcome.plan, outcome.watch
    return {
        "members": plan.members,
        "kind": plan.kind.value,
        "partitions": plan.partitions,
        "seed": plan.seed,
        "seconds": outcome.seconds,
        "lag_seconds": outcome.lag,
        "events": list(outcome.happened),
        "generation": watch.newest,
        "commits": {"accepted": watch.accepted, "refused": watch.refused, "stale_refused": watch.stale_refused},
        "records": {
            "written": outcome.written,
            "returned": sum(map(len, watch.returned.values())),
            "again": watch.repeated,
        },
        "first_owned_ms": {str(partition[1]): time for partition, time in watch.first_owned.items()},
        "absences_ms": absences_by_partition(outcome),
        "violations": [
            {"rule": each.rule, "time_ms": each.time, "sentence": each.sentence} for each in watch.violations
        ],
        "unsettled": outcome.unsettled,
    }


def run_swarm(options: argparse.Namespace, console: Console) -> int:
    """Run a swarm, print what it has shown, and write it."""
    check_outputs({"--json": options.json})
    plan = SwarmPlan(
        options.members,
        SwarmKind(options.kind),
        options.partitions,
        options.lasts,
        options.events,
        seed=options.seed,
        settle_seconds=options.settle_seconds,
    )
    outcome = run_interruptible(start_swarm(options.target, plan, console, options.verbose, options.restart))
    console.print_line(render_outcome(outcome).rstrip("\n"))
    if options.json is not None:
        options.json.write_text(json.dumps(outcome_as_json(outcome), indent=1) + "\n", encoding="utf-8")
    if outcome.watch.violations:
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if outcome.unsettled else ExitCode.CONFORMANT


async def start_swarm(
    target: str, plan: SwarmPlan, console: Console, is_verbose: bool, command: str | None
) -> SwarmOutcome:
    """Run a swarm on a target: the bundled coordinator on virtual time, or a broker, which a command restarts. Raises
    `TargetError`."""

    def tell(line: str) -> None:
        if is_verbose:
            console.log(line)

    if target == BUNDLED:
        return await run_virtual_in_thread(run_bundled(plan, tell, restarts=command is not None))

    async def restart() -> None:
        shell = await asyncio.create_subprocess_shell(command or "", stdout=DEVNULL, stderr=DEVNULL)
        if await shell.wait():
            tell(f"exit code {shell.returncode} of {command}")

    bootstrap = parse_target(target)
    if bootstrap.wants_tls:
        raise UsageError("swarm", "the members of a swarm speak no TLS; name an address without it")
    network = TcpNetwork(bootstrap.addresses[0])
    return await make_run(plan, network, tell, restart if command else None).run()
