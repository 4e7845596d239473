"""The recorder: a proxy, a tape and a file brought together.

A trace that it writes is one of intervals (`Order.INTERVALS`): a request was seen before its broker could handle it, an
answer after it was given. It begins with the remark that what was before is not known, for groups are older than
recordings.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fencepost.adapters.record.address_rewriting import Address
from fencepost.adapters.record.proxy import Proxy
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.admin_client import Client
from fencepost.adapters.wire.cluster import Cluster
from fencepost.adapters.wire.pool import Pool
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import Recording
from fencepost.traces.frames import Tape

GRACE_MS = 1_000
"""How late timers may fire: a broker's own delay, and how long messages take through the proxy."""
CONNECTIONS = 8
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Job:
    """What to record. `sync` is after how many seconds at most an event is on the disk; `rotate` after how many bytes
    a file ends; `seconds` when to stop, None for never; `settings` come before what the cluster tells."""

    listen: Address
    upstream: Address
    path: Path
    rotate: int | None = None
    sync: float = 1.0
    seconds: float | None = None
    grace: int = GRACE_MS
    settings: Mapping[str, int] | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of it. `lost` is why the file ended before the recording did, if it did."""

    events: int
    undecoded: int
    files: tuple[Path, ...]
    lost: str = ""


async def learn(upstream: Address, overrides: Mapping[str, int]) -> tuple[Settings | None, str]:
    """The settings of a cluster, None if it does not tell them, and its name. Raises `TargetError` if it cannot be
    reached."""
    pool = Pool(CONNECTIONS, TIMEOUT_S)
    client = Client(pool, TIMEOUT_S)
    try:
        client.versions = await discovery.learn_versions(client, upstream)
        brokers, name = await discovery.learn_brokers(client, upstream)
        cluster = Cluster(client, TIMEOUT_S)
        cluster.reset(brokers)
        if "DescribeConfigs" not in client.versions and not overrides:
            return None, name
        return await discovery.learn_settings(client, cluster, overrides), name
    finally:
        await pool.close()


class Recorder:
    """One recording. `tell` gets lines for whoever runs it."""

    def __init__(self, job: Job, settings: Settings | None, cluster: str, tell: Callable[[str], None]) -> None:
        host, port = job.upstream
        source = f"kafka://{host}:{port}"
        told = {"recorder": "fencepost record", "recording": str(uuid.uuid4())}
        told |= {"began": datetime.now(UTC).isoformat(timespec="milliseconds")} | (
            {"cluster": cluster} if cluster else {}
        )
        told |= {} if settings else {"settings": "assumed"}
        header = Header(source, Order.INTERVALS, "wall", settings or Settings(), job.grace, told)
        begun = time.monotonic()
        self.lost = ""
        self._job = job
        self._tell = tell
        self._tape = Tape(self._write, lambda: int((time.monotonic() - begun) * 1000), everything=job.everything)
        self._recording = Recording(job.path, header, job.rotate)
        self._proxy = Proxy(self._tape, job.listen[0], tell)
        self._tape.unknown("the recording begins")

    async def run(self, announce: Callable[[str, int], None], stop: asyncio.Event) -> Recorded:
        """Record until told to stop or for as long as was asked. `announce` is told where clients find the proxy."""
        host, port = self._job.listen
        try:
            port = await self._proxy.listen(self._job.upstream, port)
        except OSError:
            self._recording.close()
            self._recording.files[0].unlink()
            raise
        try:
            announce(host, port)
            writing = asyncio.create_task(self._keep_writing())
            with suppress(TimeoutError):
                async with asyncio.timeout(self._job.seconds):
                    await stop.wait()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        finally:
            await self._proxy.close()
            self._safely(self._recording.close)
        return Recorded(self._tape.events, self._tape.undecoded, tuple(self._recording.files), self.lost)

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(self._job.sync)
            self._safely(self._turned_over if self._recording.is_full else self._recording.flush)
            try:
                await asyncio.to_thread(self._recording.sync)
            except OSError as error:
                self._lose(error)

    def _turned_over(self) -> None:
        self._recording.turn_over(self._tape.open())
        self._tape.record(Kind.INTERNAL, "continued", 0, {"part": self._recording.part}, 0, "")

    def _write(self, event: Event) -> None:
        self._safely(lambda: self._recording.append(event))

    def _safely(self, step: Callable[[], None]) -> None:
        """Work on the file, as long as that goes well."""
        if not self.lost:
            try:
                step()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        """The recording is over, but the clients' bytes still pass."""
        if not self.lost:
            self.lost = f"{self._job.path}: {error.strerror or error}"
            self._tell(f"{self.lost}; nothing more is recorded, bytes still pass")


async def record(
    job: Job, announce: Callable[[str, int], None], tell: Callable[[str], None], stop: asyncio.Event
) -> Recorded:
    """Record as asked. Raises `TargetError` if the cluster cannot be reached, OSError if the address or the file cannot
    be had."""
    settings, cluster = await learn(job.upstream, job.settings or {})
    return await Recorder(job, settings, cluster, tell).run(announce, stop)
