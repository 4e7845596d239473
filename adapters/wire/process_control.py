"""The commands of a profile that start and kill a target, and the process that stays in the foreground."""

import asyncio
import os
import shlex
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from fencepost.adapters.address import Address, CredentialsError, parse_bootstrap
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.listeners import find_listeners
from fencepost.adapters.wire.process_use import (
    PROC,
    IdleUse,
    ProcessUse,
    compare_use,
    output_size_of,
    processes_of_session,
    thread_use_of,
)

EXIT_GRACE_S = 0.3
"""How long a command may take to end after its address, to be one that leaves the target in the background."""
POLL_S = 0.02
MAX_OUTPUT_BYTES = 1_000_000
"""How much output of a process is kept on the disk."""


@dataclass(slots=True)
class RunningCommand:
    """A command that runs, in a session of its own, with its output in files: what it leaves running may keep them,
    and nobody waits for their end."""

    process: asyncio.subprocess.Process
    out: IO[bytes]
    err: IO[bytes]
    dropped: int = 0
    """Bytes of output that were thrown away."""

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.returncode is None

    def read(self) -> str:
        """Everything on stdout that is kept."""
        return _read_file(self.out)

    def complaint(self) -> str:
        """The last lines on stderr."""
        return " / ".join(self.last_errors(3)) or "nothing on stderr"

    def last_errors(self, count: int) -> list[str]:
        """So many of the last lines on stderr."""
        return _read_file(self.err).strip().splitlines()[-count:]

    def output_bytes(self) -> int:
        """How much it wrote so far; what is too much to keep is thrown away."""
        for file in (self.out, self.err):
            if (size := os.fstat(file.fileno()).st_size) > MAX_OUTPUT_BYTES:
                self.dropped += size
                os.ftruncate(file.fileno(), 0)
        return self.dropped + sum(os.fstat(file.fileno()).st_size for file in (self.out, self.err))

    async def end(self) -> None:
        """Kill the process and its group, and let go of the files."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        self.out.close()
        self.err.close()


@dataclass(slots=True)
class ProcessControl:
    """Two commands, run in `folder`, each with `timeout` seconds to finish.

    `start_command` prints the bootstrap address of the target (host:port) on a line of its own. Either it then ends,
    with nothing else printed, and leaves the target running in the background; `kill_command` ends that without
    warning. Or it stays in the foreground: then it is the target, and its process group is killed. The next start
    finds the same storage.
    """

    start_command: tuple[str, ...]
    kill_command: tuple[str, ...] = ()
    folder: Path = Path()
    timeout: float = 180.0
    _foreground: RunningCommand | None = field(default=None, init=False)

    async def start(self) -> Address:
        """Start the target and return its address, which may differ from the last one. Raises `TargetError`."""
        name = name_command("start", self.start_command)
        command = await launch_command(name, self.start_command, self.folder)
        try:
            return await self._await_address(name, command)
        except BaseException:
            await command.end()
            raise

    async def kill(self) -> None:
        """Kill the target. Raises `TargetError`."""
        command, self._foreground = self._foreground, None
        if command is None and not self.kill_command:
            raise TargetError(
                "the target cannot be killed: the kit did not start it, and its profile has no kill command"
            )
        try:
            if self.kill_command:
                await run_command(name_command("kill", self.kill_command), self.kill_command, self.folder, self.timeout)
        finally:
            if command is not None:
                await command.end()

    async def stop(self, *, in_background: bool) -> None:
        """End the target in the foreground, if there is one, and else with leave the one `in_background`.

        On a busy machine a start command may take so long to end that it seemed to stay: then too the target is in the
        background.
        """
        command, self._foreground = self._foreground, None
        has_ended = command is None or not command.is_running
        if command is not None:
            await command.end()
        if has_ended and in_background and self.kill_command:
            with suppress(TargetError) if command is not None else nullcontext():
                await run_command(name_command("kill", self.kill_command), self.kill_command, self.folder, self.timeout)

    async def measure_use(self, seconds: float, addresses: Sequence[Address] = ()) -> IdleUse | None:
        """What the target uses in so many seconds: the session of the process in the foreground, or the processes of
        this machine that listen at the addresses, and their descendants. None if there are no such processes."""
        command = self._foreground if self._foreground is not None and self._foreground.is_running else None
        begun, before = time.monotonic(), _look_at_target(command, addresses)
        if before is None:
            return None
        await asyncio.sleep(seconds)
        after = _look_at_target(command, addresses)
        if after is None or (command is not None and not command.is_running):
            return None
        return compare_use(before, after, time.monotonic() - begun)

    async def _await_address(self, name: str, command: RunningCommand) -> Address:
        """The address that a command prints before it ends, or before it stays."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        while command.is_running and loop.time() < deadline:
            address = _first_address(command.read())
            if address is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(EXIT_GRACE_S):
                        await command.process.wait()
                if command.is_running:
                    self._foreground = command
                    return address
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await command.process.wait()
        if command.is_running:
            raise TargetError(f"{name}: not finished after {self.timeout:g} s")
        return await self._address_of_ended(name, command)

    async def _address_of_ended(self, name: str, command: RunningCommand) -> Address:
        """The address of a target that a command has left in the background."""
        await _await_end(name, command, self.timeout)
        output = command.read()
        command.out.close()
        command.err.close()
        try:
            bootstrap = parse_bootstrap(output)
        except CredentialsError as error:
            raise TargetError(f"{name}: {error}") from None
        if bootstrap is None:
            raise TargetError(f"{name}: printed {output[:200]!r}, not one line with the bootstrap address host:port")
        if not self.kill_command:
            raise TargetError(
                f"{name}: ended, so that the target is in the background, and the profile has no kill command; give "
                "one, or have start stay in the foreground"
            )
        return bootstrap.addresses[0]


def name_command(role: str, arguments: Sequence[str]) -> str:
    """A command in words, for messages."""
    return f"{role} command {shlex.join(arguments)!r}"


async def run_command(name: str, arguments: Sequence[str], folder: Path, timeout: float) -> None:
    """Run a command to its end, within `timeout` seconds. Raises `TargetError`."""
    command = await launch_command(name, arguments, folder)
    try:
        await _await_end(name, command, timeout)
    finally:
        await command.end()


async def launch_command(
    name: str,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: int = asyncio.subprocess.DEVNULL,
    stdout: int | None = None,
) -> RunningCommand:
    """Start a command in a session of its own; `environment` is added to that of this process. Its standard output is
    kept unless it has another place. Raises `TargetError`."""
    out, err = _open_output(), _open_output()
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            cwd=folder,
            env=None if environment is None else {**os.environ, **environment},
            stdin=stdin,
            stdout=out if stdout is None else stdout,
            stderr=err,
            start_new_session=True,
        )
    except OSError as cause:
        out.close()
        err.close()
        raise TargetError(f"{name}: cannot be run: {cause.strerror}") from None
    return RunningCommand(process, out, err)


async def _await_end(name: str, command: RunningCommand, timeout: float) -> None:
    """Wait until a command has ended well. Raises `TargetError` otherwise."""
    try:
        async with asyncio.timeout(timeout):
            code = await command.process.wait()
    except TimeoutError:
        raise TargetError(f"{name}: not finished after {timeout:g} s") from None
    if code:
        raise TargetError(f"{name}: exit code {code}: {command.complaint()}")


def _look_at_target(command: RunningCommand | None, addresses: Sequence[Address]) -> ProcessUse | None:
    """What the target used so far; None if no process is found. `command` is the one in the foreground, if any."""
    if command is not None:
        return ProcessUse(thread_use_of(processes_of_session(command.process.pid)), command.output_bytes())
    processes = find_listeners(PROC, addresses)
    return ProcessUse(thread_use_of(processes), output_size_of(processes)) if processes else None


def _first_address(output: str) -> Address | None:
    """The first address in the first whole line that writes one."""
    for line in output.rpartition("\n")[0].splitlines():
        with suppress(CredentialsError):
            if (bootstrap := parse_bootstrap(line)) is not None:
                return bootstrap.addresses[0]
    return None


def _open_output() -> IO[bytes]:
    """A file that is appended to even after it was emptied; it has no name, and goes with the command."""
    return tempfile.TemporaryFile("a+b")


def _read_file(file: IO[bytes]) -> str:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")
