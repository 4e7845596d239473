"""The client under test: a program that is started, asked to end, and ended with all processes that it started."""

import asyncio
import json
import os
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fencepost.adapters.client.cluster import CLIENT_LABEL, ScriptedCluster
from fencepost.adapters.wire.process_control import RunningCommand, launch_command, processes_of_session
from fencepost.model.assignors.consumer_protocol import encode_assignment, encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error, FencepostError
from fencepost.model.wire.codec import Body
from fencepost.traces.events import Kind
from fencepost.traces.verdict import Transition

# --- The application that drives a client under test: commands to it, and its callbacks, records and results.
#
# A driver is a program with a client in it. It reads commands and writes messages, one JSON object a line; the page on
# testing clients has both. Everything that passes is in the trace of the cluster.

CALLBACKS = ("assigned", "revoked", "lost")
POLL_MS = 100
"""How long a poll of the application waits for records."""
UNSUPPORTED = "unsupported"
"""The error of a command that a driver does not know."""
PAUSE_S = 0.1
"""How long the application waits after a poll that has failed."""

Message = Mapping[str, Any]


class DriverError(FencepostError):
    """A driver does not keep its protocol; the message is one clear line."""


def decode_message(line: bytes) -> Message:
    """The message in a line of a driver. Raises `DriverError`."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise DriverError(f"the driver wrote no JSON object: {line[:80].decode(errors='replace')!r}")
    return message


class Application:
    """An application that subscribes to a topic, polls, and does what a scenario asks for. `send` takes a command to
    the driver."""

    def __init__(self, cluster: ScriptedCluster, send: Callable[[Message], None]) -> None:
        self.is_closing = False
        self._cluster = cluster
        self._send = send
        self._results: dict[int, asyncio.Future[Message]] = {}
        self._count = 0
        self._turn = asyncio.Lock()
        self._is_ready = asyncio.Event()
        self._may_poll = asyncio.Event()
        self._may_poll.set()

    # -- what a scenario does ----------------------------------------------------------------------------------------

    async def run(self, topic: str) -> None:
        """Subscribe to the topic and poll until the application is to close."""
        await self._is_ready.wait()
        await self.do("subscribe", topics=[topic])
        while not self.is_closing:
            await self._may_poll.wait()
            if not self.is_closing and "error" in await self.do("poll", ms=POLL_MS):
                await asyncio.sleep(PAUSE_S)
        await self.do("close")

    def close(self) -> None:
        """Have the application close its client after the poll under way."""
        self.is_closing = True
        self.go_on_polling()

    def stop_polling(self) -> None:
        """Have the application stop polling until `go_on_polling`."""
        self._may_poll.clear()

    def go_on_polling(self) -> None:
        """Have the application poll again."""
        self._may_poll.set()

    async def do(self, command: str, **fields: Any) -> Message:
        """Have the driver carry out a command; the message with its result."""
        async with self._turn:
            self._count += 1
            number = self._count
            result: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            self._results[number] = result
            message = {"id": number, "do": command, **fields}
            self._record(Kind.INTERNAL, "command", message)
            self._send(message)
            return await result

    # -- what the driver says ----------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """Take a message of the driver. Raises `DriverError`."""
        match message:
            case {"ready": dict(about)}:
                self._record(Kind.INTERNAL, "driver", about)
                self._is_ready.set()
            case {"event": str(name), "partitions": list(partitions)} if name in CALLBACKS:
                self._record(Kind.CALLBACK, name, {**message, "partitions": sorted(partitions)})
            case {"records": list(records)}:
                counts = Counter(f"{topic}/{number}" for topic, number, _ in records)
                self._record(Kind.POLL, "records", {"returned": dict(counts), "records": records})
            case {"committed": int(number)} if 0 < number <= self._count:
                self._record(Kind.INTERNAL, "committed", message)
            case {"done": int(number)} | {"error": str(_), "of": int(number)} if number in self._results:
                self._record(Kind.INTERNAL, "result", message)
                result = self._results.pop(number)
                if not result.done():  # nobody waits for it any more
                    result.set_result(message)
            case _:
                raise DriverError(f"the driver wrote an unknown message: {json.dumps(message)[:80]}")

    def _record(self, kind: Kind, name: str, body: Message) -> None:
        rest = {key: value for key, value in body.items() if key != "event"}
        self._cluster.trace.record_event(kind, name, 0, rest, 0, CLIENT_LABEL)


PLACEHOLDERS = ("bootstrap", "group", "topic")
"""What a program is told: each as `{name}` in its arguments, and as FENCEPOST_NAME in its environment."""
LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where a client is to go: the bootstrap address, the group and the topic."""

    bootstrap: str
    group: str
    topic: str

    def values(self) -> dict[str, str]:
        """The values by placeholder."""
        return {name: getattr(self, name) for name in PLACEHOLDERS}


class RunningClient(Protocol):
    """A client that runs, with the application that drives it; without one, nobody sees more than its requests."""

    @property
    def application(self) -> Application | None: ...

    @property
    def transitions(self) -> Mapping[Transition, int]:
        """The steps of the model that it took, with how often; none for a client that does not tell."""
        ...

    async def wait(self) -> int:
        """Wait until it has ended; its exit code."""
        ...

    def ask_to_end(self) -> None:
        """Have it close cleanly."""

    async def kill(self) -> None:
        """End it at once, if it still runs."""

    def last_words(self) -> str:
        """The last lines of its errors, in one line."""
        ...


class ClientUnderTest(Protocol):
    """A client that can be started, once for each scenario."""

    async def start(self, place: ClientPlace, cluster: ScriptedCluster) -> RunningClient:
        """Start it in a cluster. Raises `TargetError`."""
        ...


@dataclass(slots=True)
class RunningProgram:
    """A program that runs, with its process group."""

    command: RunningCommand
    application: Application | None = field(default=None, init=False)
    killed: bool = field(default=False, init=False)

    @property
    def transitions(self) -> Mapping[Transition, int]:
        """As `RunningClient.transitions`: a program does not tell."""
        return {}

    async def wait(self) -> int:
        """As `RunningClient.wait`; meanwhile, output that is too much to keep is thrown away."""
        while True:
            self.command.output_bytes()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    return await self.command.process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the program alone: what it has started is its own affair."""
        with suppress(ProcessLookupError):
            self.command.process.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill the program, its process group, and what is left of its session."""
        if self.killed:
            return
        self.killed = True
        self.end_group()
        await self.command.process.wait()
        await self.command.end()

    def end_group(self) -> None:
        """Send SIGKILL to the program, its process group, and what is left of its session."""
        session = self.command.process.pid
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)
        for process in processes_of_session(session):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)

    def last_words(self) -> str:
        """As `RunningClient.last_words`."""
        return " / ".join(self.command.last_errors(LAST_LINES))


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """A command that runs a client; its arguments may hold placeholders."""

    command: Sequence[str]
    folder: Path = Path()

    async def start(self, place: ClientPlace, cluster: ScriptedCluster) -> RunningProgram:
        """As `ClientUnderTest.start`."""
        return await launch_program(self.command, place, self.folder)


async def launch_program(
    command: Sequence[str],
    place: ClientPlace,
    folder: Path,
    stdin: int = asyncio.subprocess.DEVNULL,
    stdout: int | None = None,
) -> RunningProgram:
    """Start a command at a place, with files or pipes in the place of its standard input and output. Raises
    `TargetError`."""
    values = place.values()
    arguments = [fill_placeholders(word, values) for word in command]
    environment = {f"FENCEPOST_{name.upper()}": value for name, value in values.items()}
    name = f"client {shlex.join(command)!r}"
    return RunningProgram(await launch_command(name, arguments, folder, environment, stdin, stdout))


def fill_placeholders(word: str, values: dict[str, str]) -> str:
    """A word with values in the place of its placeholders; other braces are left as they are."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


# --- A program with a driver in it: commands to its standard input, messages from its standard output.

CHUNK_BYTES = 65_536
MAX_LINE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class DrivenProgram:
    """A command that runs a driver; its arguments may hold placeholders."""

    command: Sequence[str]
    folder: Path = Path()

    async def start(self, place: ClientPlace, cluster: ScriptedCluster) -> "RunningDriver":
        """As `ClientUnderTest.start`."""
        read_end, write_end = os.pipe()
        try:
            program = await launch_program(self.command, place, self.folder, asyncio.subprocess.PIPE, write_end)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        return RunningDriver(program, cluster, place, read_end)


@dataclass(slots=True)
class RunningDriver:
    """A driver that runs, with the application that it is for; `messages` is the end of the pipe that it writes to.

    Messages are taken from the pipe before each request of the client, so that what the driver wrote before its client
    sent the request comes before it in the trace.
    """

    program: RunningProgram
    cluster: ScriptedCluster
    place: ClientPlace
    messages: int
    application: Application = field(init=False)
    problem: str = field(default="", init=False)
    """What the driver did against its protocol."""
    _rest: bytes = field(default=b"", init=False)
    _is_open: bool = field(default=True, init=False)
    _running: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.application = Application(self.cluster, self._send)
        os.set_blocking(self.messages, False)
        asyncio.get_running_loop().add_reader(self.messages, self.read_messages)
        self.cluster.before_request = self.read_messages
        self._running = asyncio.ensure_future(self.application.run(self.place.topic))

    @property
    def transitions(self) -> Mapping[Transition, int]:
        """As `RunningClient.transitions`: a driver does not tell."""
        return {}

    async def wait(self) -> int:
        """As `RunningClient.wait`."""
        return await self.program.wait()

    def ask_to_end(self) -> None:
        """Have the application close its client; the driver ends then."""
        self.application.close()

    async def kill(self) -> None:
        """As `RunningClient.kill`."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.program.kill()
        self._close()

    def last_words(self) -> str:
        """As `RunningClient.last_words`."""
        return self.problem or self.program.last_words()

    def read_messages(self) -> None:
        """Take all messages that the driver has written so far. A driver that breaks its protocol is ended."""
        if not self._is_open:
            return
        try:
            while chunk := os.read(self.messages, CHUNK_BYTES):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    self.application.receive(decode_message(line))
                if len(self._rest) > MAX_LINE_BYTES:
                    raise DriverError("the driver wrote a line without an end")
            self._close()
        except BlockingIOError:
            return
        except DriverError as error:
            self.problem = str(error)
            self._close()
            self.program.end_group()

    def _send(self, message: Message) -> None:
        stdin = self.program.command.process.stdin
        assert stdin is not None
        with suppress(ConnectionError):
            stdin.write(json.dumps(message).encode() + b"\n")

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self.messages)
            os.close(self.messages)


# --- A second member of the client's group, driven by a script; its requests are recorded, and not judged.

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 5, 3, 3, 3


class ScriptedMember:
    """A member with a label, which offers the protocols of these names.

    `owned` are the partitions that its next JoinGroup declares.
    """

    def __init__(
        self, cluster: ScriptedCluster, label: str, group: str, topics: Sequence[str], protocols: Sequence[str]
    ) -> None:
        self.label = label
        self.id = ""
        self.generation = -1
        self.leads = False
        self.members: tuple[str, ...] = ()
        self.owned: tuple[TopicPartition, ...] = ()
        self._cluster = cluster
        self._group = group
        self._topics = tuple(topics)
        self._protocols = tuple(protocols)

    async def join(self, session_ms: int = 30_000, rebalance_ms: int = 30_000) -> Body:
        """Join until the response is no request to use another id; the last response."""
        while True:
            subscription = encode_subscription(Subscription(self._topics, owned=self.owned), 1)
            body = {
                "group_id": self._group,
                "session_timeout_ms": session_ms,
                "rebalance_timeout_ms": rebalance_ms,
                "member_id": self.id,
                "group_instance_id": None,
                "protocol_type": "consumer",
                "protocols": [{"name": name, "metadata": subscription} for name in self._protocols],
            }
            response = await self._ask("JoinGroup", JOIN_VERSION, body)
            self.id = response["member_id"] or self.id
            if response["error_code"] != Error.MEMBER_ID_REQUIRED:
                break
        self.generation = response["generation_id"]
        self.leads = bool(self.id) and response["leader"] == self.id
        self.members = tuple(row["member_id"] for row in response["members"])
        return response

    async def sync(self, plan: Mapping[str, Sequence[TopicPartition]] | None = None) -> Body:
        """SyncGroup, with a plan if it leads."""
        assignments = [
            {"member_id": member, "assignment": encode_assignment(partitions)}
            for member, partitions in (plan or {}).items()
        ]
        body = {**self._identity(), "assignments": assignments}
        return await self._ask("SyncGroup", SYNC_VERSION, body)

    async def heartbeat(self) -> Error:
        """Heartbeat, and the error of its response."""
        return Error((await self._ask("Heartbeat", HEARTBEAT_VERSION, self._identity()))["error_code"])

    async def leave(self) -> None:
        """Leave the group."""
        row = {"member_id": self.id, "group_instance_id": None}
        await self._ask("LeaveGroup", LEAVE_VERSION, {"group_id": self._group, "members": [row]})

    async def take_part(self) -> None:
        """Join, sync and heartbeat until it is cancelled; it joins again whenever it is asked to, and never plans."""
        while True:
            await self.join()
            if (await self.sync())["error_code"] == Error.NONE:
                while await self.heartbeat() == Error.NONE:
                    await asyncio.sleep(0.2)

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self._group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": None,
        }

    async def _ask(self, api: str, version: int, body: Body) -> Body:
        """Have the cluster handle a request, and record it."""
        trace = self._cluster.trace
        request = trace.record_event(Kind.REQUEST, api, version, body, 0, self.label)
        response = await self._cluster.brokers.ask(api, version, body)
        trace.record_event(Kind.RESPONSE, api, version, response, 0, self.label, request.sequence)
        return response
