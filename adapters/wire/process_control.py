"""The commands of a profile that start and kill a target, and the process that stays in the foreground."""

import asyncio
import os
import shlex
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import IO

from fencepost.adapters.address import Address, CredentialsError, TargetError, parse_bootstrap

# --- What a process uses while nobody asks it anything.

PROC = Path("/proc")
MAX_IDLE_CPU_SHARE = 0.5
"""The share of a core that a target may use while it is idle."""
MIN_SPINNING_SHARE = 0.8
"""A thread that runs, or waits for a core, for so much of the time does not rest: on a busy machine it gets less."""
MIN_SPINNING_CPU_SHARE = 0.1
MAX_IDLE_OUTPUT_BYTES_S = 1_000_000
"""How much a target may write to stdout and stderr while it is idle, in bytes per second."""


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """How long a thread ran so far, and how long it waited for a core, in seconds."""

    ran_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class IdleUse:
    """What a process and its children used in so many seconds: seconds of CPU, seconds for which the busiest thread ran
    or waited for a core, and bytes written to their output."""

    seconds: float
    cpu_s: float
    busiest_s: float
    output_bytes: int

    def describe_excess(self) -> str:
        """What is too much for an idle target, with the numbers; "" if nothing is."""
        excesses = []
        spins = self.busiest_s > MIN_SPINNING_SHARE * self.seconds
        if self.cpu_s > (MIN_SPINNING_CPU_SHARE if spins else MAX_IDLE_CPU_SHARE) * self.seconds:
            share = self.cpu_s / self.seconds
            excesses.append(f"used {self.cpu_s:.1f} s of CPU ({share:.2f} s a second)")
        if self.output_bytes > MAX_IDLE_OUTPUT_BYTES_S * self.seconds:
            excesses.append(f"wrote {self.output_bytes / 1_000_000:.1f} MB of output")
        return f"{' and '.join(excesses)} in {self.seconds:.1f} s without a request" if excesses else ""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What processes used so far: each thread, by the path that names it, and the bytes of their output."""

    threads: Mapping[str, ThreadUse]
    output_bytes: int


def process_folders(proc: Path) -> Iterator[Path]:
    """The folder of each process; none where the system has no /proc."""
    return proc.glob("[0-9]*")


def processes_of_session(session: int) -> frozenset[int]:
    """The processes of a session; none where the system does not tell (it has no /proc)."""
    return frozenset(int(folder.name) for folder in process_folders(PROC) if _session_of(folder) == session)


def thread_use_of(processes: Iterable[int]) -> dict[str, ThreadUse]:
    """What each thread of the processes used, by the path that names it."""
    found = {}
    for process in processes:
        for thread in (PROC / str(process)).glob("task/*"):
            use = _use_of(thread)
            if use is not None:
                found[str(thread)] = use
    return found


def output_size_of(processes: Iterable[int]) -> int:
    """The bytes in the files to which the processes write their stdout and stderr; what is no file has none."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        for stream in ("1", "2"):
            try:
                status = (PROC / str(process) / "fd" / stream).stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def compare_use(before: ProcessUse, after: ProcessUse, seconds: float) -> IdleUse:
    """What was used between two looks. A file that was emptied meanwhile counts as unchanged."""
    nothing = ThreadUse(0.0, 0.0)
    former = before.threads
    ran = [use.ran_s - former.get(name, nothing).ran_s for name, use in after.threads.items()]
    waited = [use.waited_s - former.get(name, nothing).waited_s for name, use in after.threads.items()]
    busiest = max((run + wait for run, wait in zip(ran, waited, strict=True)), default=0.0)
    return IdleUse(seconds, sum(ran), busiest, max(0, after.output_bytes - before.output_bytes))


def stat_fields(folder: Path) -> list[str]:
    """The fields of a `stat` behind the name of the program, which may hold anything; none if it has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session_of(process: Path) -> int | None:
    fields = stat_fields(process)
    return int(fields[3]) if fields else None


def _use_of(thread: Path) -> ThreadUse | None:
    try:
        ran, waited, _ = (thread / "schedstat").read_text().split()
        return ThreadUse(int(ran) / 1e9, int(waited) / 1e9)
    except (OSError, ValueError):
        fields = stat_fields(thread)
        ticks = int(fields[11]) + int(fields[12]) if fields else None
        return None if ticks is None else ThreadUse(ticks / os.sysconf("SC_CLK_TCK"), 0.0)


# --- The processes of this machine that listen at an address, from /proc of Linux; none elsewhere.

LISTENING = "0A"
"""The state of a socket that takes connections, in /proc/net/tcp."""
WORD_BYTES = 4
"""/proc/net/tcp writes an IP address in words of this size, each in the order of this machine."""

IpAddress = IPv4Address | IPv6Address


def find_listeners(proc: Path, addresses: Iterable[Address]) -> frozenset[int]:
    """The ids of the processes that listen at one of the addresses, with their descendants."""
    wanted = {place for address in addresses for place in _local_places(address)}
    sockets = {inode for inode, ip, port in _listening_sockets(proc) if (ip, port) in wanted}
    if not sockets:
        return frozenset()
    return with_descendants(proc, [int(folder.name) for folder in process_folders(proc) if _holds(folder, sockets)])


def with_descendants(proc: Path, processes: Collection[int]) -> frozenset[int]:
    """The processes and all that they started, directly or not."""
    children: dict[int, list[int]] = {}
    for folder in process_folders(proc):
        fields = stat_fields(folder)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, left = set[int](), list(processes)
    while left:
        process = left.pop()
        if process not in found:
            found.add(process)
            left += children.get(process, ())
    return frozenset(found)


def _local_places(address: Address) -> Iterator[tuple[IpAddress, int]]:
    """The IP addresses and ports at which a process of this machine may listen for connections to `address`; none if
    the address is another machine's."""
    host, port = address
    try:
        resolved = {(family, str(place[0])) for family, _, _, _, place in socket.getaddrinfo(host, port)}
    except OSError:
        return
    for family, text in resolved:
        if _is_of_this_machine(family, text):
            ip: IpAddress = (IPv4Address if family is socket.AF_INET else IPv6Address)(text)
            yield from ((each, port) for each in (ip, IPv4Address(0), IPv6Address(0)))


def _is_of_this_machine(family: int, ip: str) -> bool:
    """Whether a socket may be bound to this IP address."""
    try:
        with socket.socket(family) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def _listening_sockets(proc: Path) -> Iterator[tuple[str, IpAddress, int]]:
    """Inode, IP address and port of each socket that takes connections."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTENING:
                ip, _, port = fields[1].partition(":")
                yield fields[9], _read_ip(ip), int(port, 16)


def _read_ip(text: str) -> IpAddress:
    """The IP address that /proc/net/tcp writes so; an IPv4 address that is written as IPv6 is an IPv4 address."""
    words = [text[begin : begin + 2 * WORD_BYTES] for begin in range(0, len(text), 2 * WORD_BYTES)]
    raw = b"".join(socket.ntohl(int(word, 16)).to_bytes(WORD_BYTES, "big") for word in words)
    if len(raw) == WORD_BYTES:
        return IPv4Address(raw)
    return IPv6Address(raw).ipv4_mapped or IPv6Address(raw)


def _holds(process: Path, sockets: Collection[str]) -> bool:
    """Whether a process has one of the sockets, given by their inodes, open; not known of other people's."""
    try:
        with os.scandir(process / "fd") as entries:
            links = [_read_link(Path(entry.path)) for entry in entries]
    except OSError:
        return False
    return any(link.startswith("socket:[") and link[8:-1] in sockets for link in links)


def _read_link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


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
        """The last `count` lines on stderr."""
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


# --- The command of a profile that has another node coordinate a group.

GROUP_PLACE = "{group}"
"""What stands for the group in the words of the command."""


@dataclass(frozen=True, slots=True)
class MoveCommand:
    """A command, run in `folder`, with `timeout` seconds to finish.

    When it ends, another node coordinates the group, and the old one is up.
    """

    arguments: tuple[str, ...]
    folder: Path = Path()
    timeout: float = 180.0

    async def run(self, group: str) -> None:
        """Move the group. Raises `TargetError` if the command fails."""
        arguments = tuple(word.replace(GROUP_PLACE, group) for word in self.arguments)
        await run_command(name_command("move", arguments), arguments, self.folder, self.timeout)


# --- Measures the CPU time and the output of a target while the kit sends it no request.

Windows = tuple[tuple[float, float], ...]
"""Pauses before each look at an idle target, and how long it takes, in seconds; each look follows if the one before was
striking."""
CALM_WINDOWS: Windows = ((0.5, 1.0), (0.0, 2.0))
BRIEF_WINDOWS: Windows = ((0.0, 0.3), (0.0, 1.0))
"""For a look while members wait, whose sessions would run out."""
MAX_NAMED_GROUPS = 3

NameGroups = Callable[[], Awaitable[Sequence[str]]]
"""Asks for the groups of the kit that rebalance at present."""


class IdleWatch:
    """Measures an idle target that the kit starts and kills. Any other target may serve other clients, and is not
    watched."""

    def __init__(self, process_control: ProcessControl | None) -> None:
        self._process_control = process_control
        self._was_seen = False
        self._was_missed = False
        self.findings: tuple[str, ...] = ()
        """What it used that was too much, and when."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the report has to say of a target that could not be watched."""
        if self._was_seen or not self._was_missed:
            return ()
        return ("CPU time and output while idle were not watched: no process of this machine listens at the address",)

    async def look(
        self, when: str, addresses: Sequence[Address], name_groups: NameGroups, windows: Windows = CALM_WINDOWS
    ) -> None:
        """Look at the target, which listens at the addresses, and note it if it uses too much in every window. `when`
        is a phrase such as "after the scenarios"."""
        if self._process_control is None:
            return
        excess = ""
        groups: Sequence[str] = ()
        for pause, window in windows:
            await asyncio.sleep(pause)
            use = await self._process_control.measure_use(window, addresses)
            self._was_seen |= use is not None
            self._was_missed |= use is None
            excess = use.describe_excess() if use is not None else ""
            if not excess:
                return
            groups = groups or await name_groups()  # of the first time: a group may come to rest meanwhile
        self.findings = (*self.findings, f"the target {excess}, {when}{name_some(groups)}")


def name_some(groups: Sequence[str]) -> str:
    """The groups that rebalance in words, "" if there are none."""
    if not groups:
        return ""
    more = f" and {len(groups) - MAX_NAMED_GROUPS} more" if len(groups) > MAX_NAMED_GROUPS else ""
    return f"; rebalancing at that time: {', '.join(groups[:MAX_NAMED_GROUPS])}{more}"
