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

from fencepost.adapters.address import Address, format_url
from fencepost.adapters.record.proxy import Proxy
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.cluster import Cluster
from fencepost.adapters.wire.pool import ConnectionPool
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import RotatingTraceWriter
from fencepost.traces.frames import WireTrace

DEFAULT_GRACE_MS = 1_000
"""How late timers may fire: a broker's own delay, and how long messages take through the proxy."""
MAX_CONNECTIONS = 8
REQUEST_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What to record. `sync_interval_s` is after how many seconds at most an event is on the disk; `max_file_bytes`
    after how many bytes
    a file ends; `duration_s` when to stop, None for never; `settings` come before what the cluster tells."""

    listen: Address
    upstream: Address
    path: Path
    max_file_bytes: int | None = None
    sync_interval_s: float = 1.0
    duration_s: float | None = None
    grace_ms: int = DEFAULT_GRACE_MS
    settings: Mapping[str, int] | None = None
    keep_all_bytes: bool = False


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """What came of it. `write_error` is why the file ended before the recording did, if it did."""

    events: int
    undecoded: int
    files: tuple[Path, ...]
    write_error: str = ""


async def learn_cluster(upstream: Address, overrides: Mapping[str, int]) -> tuple[Settings | None, str]:
    """The settings of a cluster, None if it does not tell them, and its name. Raises `TargetError` if it cannot be
    reached."""
    pool = ConnectionPool(MAX_CONNECTIONS, REQUEST_TIMEOUT_S)
    client = AdminClient(pool, REQUEST_TIMEOUT_S)
    try:
        client.versions = await discovery.learn_versions(client, upstream)
        brokers, name = await discovery.learn_brokers(client, upstream)
        cluster = Cluster(client, REQUEST_TIMEOUT_S)
        cluster.replace_brokers(brokers)
        if "DescribeConfigs" not in client.versions and not overrides:
            return None, name
        return await discovery.learn_settings(client, cluster, overrides), name
    finally:
        await pool.close()


class Recorder:
    """One recording. `show` gets lines for whoever runs it."""

    def __init__(
        self, job: RecordingOptions, settings: Settings | None, cluster: str, show: Callable[[str], None]
    ) -> None:
        told = {"recorder": "fencepost record", "recording": str(uuid.uuid4())}
        told |= {"began": datetime.now(UTC).isoformat(timespec="milliseconds")} | (
            {"cluster": cluster} if cluster else {}
        )
        told |= {} if settings else {"settings": "assumed"}
        header = Header(format_url(job.upstream), Order.INTERVALS, "wall", settings or Settings(), job.grace_ms, told)
        begun = time.monotonic()
        self.write_error = ""
        self._job = job
        self._show = show
        self._trace = WireTrace(
            self._write, lambda: int((time.monotonic() - begun) * 1000), keep_all_bytes=job.keep_all_bytes
        )
        self._recording = RotatingTraceWriter(job.path, header, job.max_file_bytes)
        self._proxy = Proxy(self._trace, job.listen[0], show)
        self._trace.mark_gap("the recording begins")

    async def run(self, announce: Callable[[str, int], None], stop: asyncio.Event) -> RecordingResult:
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
            writing = asyncio.create_task(self._sync_periodically())
            with suppress(TimeoutError):
                async with asyncio.timeout(self._job.duration_s):
                    await stop.wait()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        finally:
            await self._proxy.close()
            self._write_safely(self._recording.close)
        return RecordingResult(
            self._trace.events, self._trace.undecoded, tuple(self._recording.files), self.write_error
        )

    async def _sync_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._job.sync_interval_s)
            self._write_safely(self._rotate if self._recording.is_part_full else self._recording.flush)
            try:
                await asyncio.to_thread(self._recording.sync)
            except OSError as error:
                self._stop_writing(error)

    def _rotate(self) -> None:
        self._recording.rotate(self._trace.requests_in_flight())
        self._trace.record_event(Kind.INTERNAL, "continued", 0, {"part": self._recording.part}, 0, "")

    def _write(self, event: Event) -> None:
        self._write_safely(lambda: self._recording.append(event))

    def _write_safely(self, step: Callable[[], None]) -> None:
        """Work on the file, as long as that goes well."""
        if not self.write_error:
            try:
                step()
            except OSError as error:
                self._stop_writing(error)

    def _stop_writing(self, error: OSError) -> None:
        """The recording is over, but the clients' bytes still pass."""
        if not self.write_error:
            self.write_error = f"{self._job.path}: {error.strerror or error}"
            self._show(f"{self.write_error}; nothing more is recorded, bytes still pass")


async def record_traffic(
    job: RecordingOptions, announce: Callable[[str, int], None], show: Callable[[str], None], stop: asyncio.Event
) -> RecordingResult:
    """Record as asked. Raises `TargetError` if the cluster cannot be reached, OSError if the address or the file cannot
    be had."""
    settings, cluster = await learn_cluster(job.upstream, job.settings or {})
    return await Recorder(job, settings, cluster, show).run(announce, stop)
