"""A program with a driver in it: commands to its standard input, messages from its standard output."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.adapters.client.application import Application, DriverError, Message, decode_message
from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ClientPlace, RunningProgram, launch_program
from fencepost.traces.model_transitions import Transition

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
