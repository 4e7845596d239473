"""The reference client as a subject of tests in this process, with or without an application that the kit drives."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.classic.client.bodies import ReturnedRecords
from fencepost.adapters.classic.client.client import CYCLE_S, ReferenceClient
from fencepost.adapters.classic.client.links import MemoryNetwork
from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import CALLBACKS, Application, ClientPlace
from fencepost.model.classic.member.client import (
    Callback,
    Client,
    CommitPurpose,
    CommitReport,
    assigned_partitions,
    next_handle,
)
from fencepost.model.classic.member.commits import error_in
from fencepost.model.classic.member.settings import RANGE, ROUND_ROBIN, ClientSettings, ResetPolicy
from fencepost.model.classic.member.step import (
    AssignManually,
    ClientInput,
    ClientStep,
    CommitOffsets,
    EnforceRebalance,
    ListenerReturned,
    PausePartition,
    ResponseArrived,
    Seek,
    Unsubscribe,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import PartitionErrors
from fencepost.model.settings import Settings
from fencepost.traces.verdict import Transition

BUNDLED_CLIENT = ClientSettings(
    strategies=(RANGE, ROUND_ROBIN),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    reset_policy=ResetPolicy.EARLIEST,
)
"""Those of the client that the kit brings along: an eager one whose timers are short."""
LONG_POLL_MS = 2_000
"""A poll that may take as long returns as soon as there are records."""


class ReferenceDriver(ReferenceClient):
    """A client in the cluster of a test: a running client, and its own driver if it `is_driven`."""

    def __init__(self, cluster: ScriptedCluster, settings: ClientSettings, is_driven: bool) -> None:
        super().__init__(settings, MemoryNetwork(cluster.brokers.accept), cluster.now)
        self.application = Application(cluster, self._take_command) if is_driven else None
        self._committing: asyncio.Future[str] | None = None
        self.listener: Mapping[str, Any] = {}
        """What the listener does, as the kit has asked for it."""
        self.is_calling_back = False
        """The listener commits."""
        self._unawaited: dict[int, int] = {}
        """The commands that asked for asynchronous commits, by the numbers of these."""
        self.long_poll_ms: float = LONG_POLL_MS
        self._transitions: Counter[Transition] = Counter()

    @property
    def transitions(self) -> Mapping[Transition, int]:
        """As `RunningClient.transitions`: each step of the model, by the rules that applied."""
        return self._transitions

    def take_step(self, given: ClientInput) -> ClientStep:
        """Take note of the rules of a step."""
        step = super().take_step(given)
        before, after, event = state_of(self.client), state_of(step.client), describe_input(self.client, given)
        for rule in step.rules:
            self._transitions[Transition(before, event, rule, after)] += 1
        return step

    def run(self, topic: str) -> None:
        """Begin with an application that consumes a topic."""
        self.topics = {topic}
        if self.application is None:
            self.start_task(self.poll_forever([topic]))
        else:
            self.start_task(self.application.run(topic))
            self.say({"ready": self.describe()})
        self.begin()

    def describe(self) -> dict[str, Any]:
        """What the driver says of the client at first."""
        settings = self.client.settings
        return {
            "callbacks": list(CALLBACKS),
            "max_poll_records": self.fetcher.limit,
            "auto_commit": settings.auto_commit,
            "auto_commit_ms": settings.auto_commit_interval,
            "timeouts": {
                "session": settings.session_timeout,
                "rebalance": settings.rebalance_timeout,
                "request": settings.request_timeout,
            },
        }

    def ask_to_end(self) -> None:
        """As `RunningClient.ask_to_end`."""
        if self.application is None:
            self.close()
        else:
            self.application.close()

    def last_words(self) -> str:
        """As `RunningClient.last_words`: it says nothing."""
        return ""

    def say(self, message: dict[str, Any]) -> None:
        """Write a message of the driver, if there is one."""
        if self.application is not None:
            self.application.receive(message)

    def on_records(self, returned: list[ReturnedRecords]) -> None:
        """Tell of the records."""
        self.say({"records": [[*taken.partition, offset] for taken in returned for offset in taken.offsets]})

    def on_callback(self, callback: Callback) -> None:
        """Tell of the callback, do in it what the kit has asked for, and return from it."""
        name = callback.kind.value
        if name == "lost" and not self.listener.get("lost", True):
            name = "revoked"
        raises, commits = (name in self.listener.get(each, ()) for each in ("raises", "commits"))
        assignment = [list(each) for each in assigned_partitions(self.client)]
        partitions = [list(each) for each in callback.partitions]
        about: dict[str, Any] = {
            "partitions": partitions,
            "assignment": assignment,
            "raises": raises,
            "commits": commits,
        }
        about["takes_ms"] = self.listener.get("takes_ms", 0) if name == "revoked" else 0
        self.say({"event": name, **about})
        if commits:
            self._committing = asyncio.get_running_loop().create_future()
            self.is_calling_back = True
            self.give(CommitOffsets())
            self.is_calling_back = False
        asyncio.get_running_loop().call_later(about["takes_ms"] / 1000, self.give, ListenerReturned(raises))

    def on_commit(self, report: CommitReport) -> None:
        """Tell the application that waits for it, or has asked for it."""
        if report.purpose is CommitPurpose.ASYNC and report.number in self._unawaited:
            failed = {"error": report.failure.name} if report.failure is not None else {}
            self.say({"committed": self._unawaited[report.number], **failed})
        if report.purpose is CommitPurpose.SYNC and self._committing is not None and not self._committing.done():
            self._committing.set_result(report.failure.name if report.failure is not None else "")

    # -- commands -------------------------------------------------------------------------------------------------

    def _take_command(self, command: Mapping[str, Any]) -> None:
        self.start_task(self.obey(dict(command)))

    async def obey(self, command: dict[str, Any]) -> None:
        """Carry out a command of the kit."""
        self.failure = ""
        match command["do"]:
            case "poll":
                is_over = self.poll(command["ms"]) and command["ms"] >= self.long_poll_ms
                await asyncio.sleep(CYCLE_S if is_over else command["ms"] / 1000)
                while self.client.callback is not None and self.listener.get("takes_ms"):
                    await asyncio.sleep(CYCLE_S)
            case "commit":
                self._committing = asyncio.get_running_loop().create_future()
                self.give(CommitOffsets())
                self.failure = self.failure or await self._committing
            case "unsubscribe":
                self.give(Unsubscribe())
                await asyncio.sleep(CYCLE_S)
                while self.client.callback is not None:
                    await asyncio.sleep(CYCLE_S)
            case "close":
                self.close()
                while not self.has_closed():
                    await asyncio.sleep(CYCLE_S)
            case _:
                self.obey_at_once(command)
        number = command["id"]
        answer: dict[str, Any] = {}
        if command["do"] == "position":
            known = (each for each in self.client.positions if each.offset is not None)
            answer["positions"] = [[*each.partition, each.offset] for each in known]
        self.say({"error": self.failure, "of": number} if self.failure else {"done": number, **answer})
        if command["do"] == "close":
            self.end()

    def obey_at_once(self, command: Mapping[str, Any]) -> None:
        """Carry out a command that takes no time."""
        partitions = tuple((str(topic), int(number)) for topic, number in command.get("partitions", ()))
        match command["do"]:
            case "subscribe" if "pattern" in command:
                self.subscribe_to_pattern(command["pattern"])
            case "rejoin":
                self.give(EnforceRebalance("asked for"))
            case "commit_async":
                self._unawaited[next_handle(self.client)] = command["id"]
                self.give(CommitOffsets(is_sync=False))
            case "listener":
                self.listener = command
            case "subscribe":
                self.subscribe(command["topics"])
            case "pause" | "resume":
                for partition in partitions:
                    self.give(PausePartition(partition, command["do"] == "pause"))
            case "seek":
                self.give(Seek((command["topic"], command["partition"]), command["offset"]))
            case "assign":
                self.give(AssignManually(partitions))


def state_of(client: Client) -> str:
    """The state of a client in words."""
    return "manual" if client.is_manual else client.member.state.name.lower().replace("_", " ")


def describe_input(client: Client, given: ClientInput) -> str:
    """An input in words: the API and the error of a response, and the kind of anything else."""
    if not isinstance(given, ResponseArrived):
        return type(given).__name__
    error = getattr(given.response, "error", Error.NONE)
    if isinstance(given.response, PartitionErrors):
        error = error_in(given.response)
    return f"{type(given.response).__name__} {error.name}"


@dataclass(frozen=True, slots=True)
class ReferenceSubject:
    """The reference client as a client under test."""

    settings: ClientSettings
    is_driven: bool = False

    async def start_cluster(self, settings: Settings) -> ScriptedCluster:
        """A cluster in this process, which needs no port."""
        return ScriptedCluster(settings)

    async def start(self, place: ClientPlace, cluster: ScriptedCluster) -> ReferenceDriver:
        """As `ClientUnderTest.start`."""
        driver = ReferenceDriver(cluster, evolve(self.settings, group=place.group), self.is_driven)
        driver.run(place.topic)
        return driver
