"""The client under test: a program that is started, asked to end, and ended with all processes that it started."""

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fencepost.adapters.client.application import Application
from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.wire.process_control import RunningCommand, launch_command
from fencepost.adapters.wire.process_use import processes_of_session
from fencepost.traces.model_transitions import Transition

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
