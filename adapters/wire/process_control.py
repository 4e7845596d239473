"""The commands of a profile that start and kill a target."""

import asyncio
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fencepost.adapters.address import Address, CredentialsError, parse_bootstrap
from fencepost.adapters.target import TargetError


@dataclass(frozen=True, slots=True)
class ProcessControl:
    """Two commands, run in `folder`, each with `timeout` seconds to finish.

    `start_command` leaves the target running in the background, prints its bootstrap address (host:port) as its only
    line on stdout, and ends. `kill_command` ends the target without warning; the next start finds the same storage.
    """

    start_command: tuple[str, ...]
    kill_command: tuple[str, ...]
    folder: Path = Path()
    timeout: float = 180.0

    async def start(self) -> Address:
        """Start the target and return its address, which may differ from the last one. Raises `TargetError`."""
        output = await self._run("start", self.start_command)
        try:
            bootstrap = parse_bootstrap(output)
        except CredentialsError as error:
            raise TargetError(f"start command {shlex.join(self.start_command)!r}: {error}") from None
        if bootstrap is None:
            raise TargetError(
                f"start command {shlex.join(self.start_command)!r}: printed {output[:200]!r}, "
                "not one line with the bootstrap address host:port"
            )
        return bootstrap.addresses[0]

    async def kill(self) -> None:
        """Kill the target. Raises `TargetError`."""
        await self._run("kill", self.kill_command)

    async def _run(self, role: str, command: tuple[str, ...]) -> str:
        name = f"{role} command {shlex.join(command)!r}"
        # Files instead of pipes: what the command leaves running may keep them, and nobody waits for their end.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                code = await self._wait_for_exit(command, out, err)
            except TimeoutError:
                raise TargetError(f"{name}: not finished after {self.timeout:g} s") from None
            except OSError as cause:
                raise TargetError(f"{name}: cannot be run: {cause.strerror}") from None
            out.seek(0)
            err.seek(0)
            if code:
                complaint = " / ".join(err.read().decode(errors="replace").strip().splitlines()[-3:])
                raise TargetError(f"{name}: exit code {code}: {complaint or 'nothing on stderr'}")
            return out.read().decode(errors="replace")

    async def _wait_for_exit(self, command: tuple[str, ...], out: IO[bytes], err: IO[bytes]) -> int:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err
        )
        try:
            async with asyncio.timeout(self.timeout):
                return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
