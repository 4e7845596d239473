"""The kit's consumers of a scenario: they register, do what they are told, and pause or die as the scenario says."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.push.target import (
    BundledPushTarget,
    PushChannel,
    PushConnection,
    find_coordinator,
    registration,
)
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Blocked, Unsupported
from fencepost.model.push.group import Interest
from fencepost.traces.events import Body, Event, Kind

Partition = tuple[str, str]
LOOK_S = 0.005
"""How often a scenario looks whether something has come."""
SHORT_TIMEOUT_MS, LONG_TIMEOUT_MS = 600, 6_000
"""Session timeouts on virtual time."""
RETRY_S = 0.1
PATIENCE_S = 20.0
"""How long a scenario waits for what has to come."""


@dataclass(eq=False, slots=True)
class KitConsumer:
    """A consumer of the kit. It handles requests in order, and none while it is paused."""

    context: "PushContext"
    group: str
    name: str
    label: str
    timeout_ms: int
    interest: Interest
    auto_commit: bool = False
    connection: PushConnection | None = None
    positions: dict[Partition, int] = field(default_factory=dict)
    """The next offset of each partition that it fetches."""
    seen: list[Event] = field(default_factory=list)
    """The requests that it got."""
    waiting: list[Event] = field(default_factory=list)
    """Those that it has not handled."""
    is_paused: bool = False
    pauses_at: str = ""
    """The API of the request at which it is to pause."""
    consumes: int = 0
    """How many messages of each partition it consumes before it is stopped."""

    async def register(self, **marks: bool) -> int:
        """Register on a new connection to the coordinator; the error of the response, -1 without one."""
        address = await self.context.coordinator()
        connection = await self.context.channel.open(self.label, address)
        if connection is None:
            return -1
        body = registration(self.group, self.name, self.interest, self.timeout_ms, auto_commit=self.auto_commit)
        response = await connection.ask("RegisterConsumer", body, **marks)
        if response is None:
            return -1
        self.connection, self.positions, self.waiting = connection, {}, []
        error = int(response["error_code"])
        if error:
            await connection.read_payload(forever=True)
        else:
            self.context.start(self.take_requests(connection))
        return error

    async def join(self) -> "KitConsumer":
        """Register. Raises `Blocked` if that is refused."""
        error = await self.register()
        if error:
            raise Blocked(f"{self.label} could not register: {error}")
        return self

    async def take_requests(self, connection: PushConnection) -> None:
        """Take requests until the connection ends."""
        while (request := await connection.next_request()) is not None:
            self.seen.append(request)
            self.waiting.append(request)
            self.is_paused = self.is_paused or request.api == self.pauses_at
            self.handle_waiting()
        if self.connection is connection:
            self.positions = {}

    def handle_waiting(self) -> None:
        """Handle what waits, unless it is paused."""
        while self.waiting and not self.is_paused:
            self.handle_next()

    def handle_next(self) -> None:
        """Handle the oldest request that waits."""
        request = self.waiting.pop(0)
        echo: dict[str, Any] = {"attempt": request.body["attempt"]} if "attempt" in request.body else {}
        if request.api == "Ping":
            body: Body = {"partitions": self.offsets()} if self.auto_commit else {}
        elif request.api == "Stop":
            self.positions = {partition: offset + self.consumes for partition, offset in self.positions.items()}
            body = {**echo, "partitions": self.offsets()}
            self.positions = {}
        else:
            entries = request.body["partitions"]
            self.positions = {(each["topic"], each["partition"]): each["offset"] for each in entries}
            body = {**echo, "error_code": 0}
        if self.connection is not None:
            self.connection.respond(request, body)

    def offsets(self) -> list[Body]:
        """The offsets of a response."""
        return [
            {"topic": topic, "partition": name, "offset": offset} for (topic, name), offset in self.positions.items()
        ]

    def consume(self, messages: int) -> None:
        """Consume `messages` messages of each partition."""
        self.positions = {partition: offset + messages for partition, offset in self.positions.items()}

    def resume(self) -> None:
        """Go on with what waits."""
        self.is_paused, self.pauses_at = False, ""
        self.handle_waiting()

    def crash(self) -> None:
        """The process dies: its connection ends."""
        if self.connection is not None:
            self.connection.drop()
        self.positions, self.waiting, self.is_paused, self.pauses_at = {}, [], False, ""

    def count(self, api: str) -> int:
        """How many requests of this API it has seen."""
        return sum(request.api == api for request in self.seen)

    async def await_requests(self, api: str, count: int = 1) -> None:
        """Wait until the consumer has seen `count` more requests to an API. Raises `Blocked` if they do not come."""
        goal = self.count(api) + count
        await self.context.until(lambda: self.count(api) >= goal, f"{self.label} saw no {api}")

    async def await_start(self) -> None:
        """Wait until it fetches something."""
        await self.context.until(lambda: bool(self.positions), f"{self.label} was not told to start")

    async def await_end(self) -> None:
        """Wait until the coordinator has closed its connection. Raises `Blocked` if it does not."""
        await self.context.until(lambda: not self.is_connected, f"the channel of {self.label} was not closed")

    @property
    def is_connected(self) -> bool:
        """Whether its connection is open."""
        return self.connection is not None and not self.connection.is_over


class PushContext:
    """The group under test of one scenario, its consumers, and what can be done to the target."""

    def __init__(self, context: ScenarioContext) -> None:
        channel = context.channel
        assert isinstance(channel, PushChannel)
        self.base, self.channel, self.group_id = context, channel, context.group_id
        self.topic, self.limits = context.topic, context.description.limits
        self.is_virtual = context.description.clock == "virtual"
        self.consumers: list[KitConsumer] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.tell_partitions()

    # --- consumers ----------------------------------------------------------------------------------------------

    @property
    def short_timeout(self) -> int:
        """A session timeout, in milliseconds, that can be waited for."""
        return SHORT_TIMEOUT_MS if self.is_virtual else self.limits.get("session_timeout_ms", 3_000)

    @property
    def long_timeout(self) -> int:
        """A session timeout that outlasts the retries of a rebalance, if the target allows one."""
        return self.limits.get("max_session_timeout", 2 * self.short_timeout)

    def consumer(
        self, name: str, timeout_ms: int | None = None, interest: Interest | None = None, *, auto_commit: bool = False
    ) -> KitConsumer:
        """A new consumer, by default of the kit's topic and with a short session timeout."""
        label = chr(ord("A") + len(self.consumers))
        wanted = Interest(((self.topic, 1),)) if interest is None else interest
        made = KitConsumer(self, self.group_id, name, label, timeout_ms or self.short_timeout, wanted, auto_commit)
        self.consumers.append(made)
        return made

    async def group_of(self, *names: str, timeout_ms: int | None = None) -> list[KitConsumer]:
        """Consumers that have joined one after the other and fetch."""
        made = [await self.consumer(name, timeout_ms).join() for name in names]
        for each in made:
            await each.await_start()
        await self.settle()
        return made

    async def coordinator(self) -> tuple[str, int]:
        """Where the coordinator is. Raises `Blocked` if nobody knows."""
        for _ in range(50):
            found = await find_coordinator(self.channel)
            if found is not None:
                return found
            await asyncio.sleep(RETRY_S)
        raise Blocked("no broker knows of a coordinator")

    # --- time ---------------------------------------------------------------------------------------------------

    async def sleep(self, milliseconds: int) -> None:
        """Let time pass."""
        await self.base.sleep(milliseconds)

    async def settle(self) -> None:
        """Wait until nothing has come for a while."""
        await self.sleep(100 if self.is_virtual else 300)

    async def until(self, condition: Callable[[], bool], problem: str, seconds: float = PATIENCE_S) -> None:
        """Wait until the condition holds. Raises `Blocked` with the problem if it does not come to that."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not condition():
            if loop.time() > end:
                raise Blocked(f"{problem} within {seconds:g} s")
            await asyncio.sleep(LOOK_S)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work beside the scenario."""
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def close(self) -> None:
        """End what is done beside the scenario, and put the moment on record: what is overdue by then shows there."""
        self.base.recorder.record(Kind.INTERNAL, "end", 0, {})
        for task in self.tasks:
            task.cancel()

    # --- the target ---------------------------------------------------------------------------------------------

    @property
    def hooks(self) -> BundledPushTarget:
        """What can be done beside the wire. Raises `Unsupported`."""
        if self.channel.hooks is None:
            raise Unsupported("a way to change topics or to end its coordinator")
        return self.channel.hooks

    def limit(self, name: str) -> int:
        """A limit of the target. Raises `Unsupported` if it is not told."""
        if name not in self.limits:
            raise Unsupported(f"a known {name} ([limits] of a profile)")
        return self.limits[name]

    def limit_over_grace(self, name: str) -> int:
        """A limit of the target that is longer than the grace. Raises `Unsupported` if it is not."""
        limit = self.limit(name)
        if self.base.grace >= limit:
            raise Unsupported(
                f"a {name} longer than the grace of {self.base.grace} ms ([timing] grace_ms of a profile)"
            )
        return limit

    def add_partition(self, topic: str | None = None) -> None:
        """Add a partition to a topic, by default to the kit's, and put it on record."""
        topic = self.topic if topic is None else topic
        hooks = self.hooks
        topics = hooks.topics()
        names = topics.get(topic, [])
        hooks.add_partition(topic)
        assert hooks.topics()[topic] != names
        self.tell_partitions()

    def tell_partitions(self) -> None:
        """Put the partitions on record, if they are known."""
        hooks = self.channel.hooks
        topics = dict(self.channel.known) if hooks is None else hooks.topics()
        if topics:
            self.base.recorder.record(Kind.INTERNAL, "partitions", 0, {"topics": topics})
