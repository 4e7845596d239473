"""The recorder: a proxy whose frames are decoded and written to a trace file.

Its traces are of intervals (`Order.INTERVALS`): a request is recorded before its broker can handle it, a response after
the broker sent it. A trace begins with an event that says that earlier state is unknown, because groups are older than
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

from fencepost.adapters.address import Address, Bootstrap, describe_listen_error, format_url
from fencepost.adapters.record.proxy import Proxy
from fencepost.adapters.security.loading import PLAINTEXT, Security
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.cluster import Cluster
from fencepost.adapters.wire.cluster_settings import SettingClaims, ask_settings
from fencepost.adapters.wire.pool import ConnectionPool
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import RotatingTraceWriter
from fencepost.traces.frames import WireTrace

DEFAULT_GRACE_MS = 1_000
"""Grace for timers: the broker's own delay, and the transit through the proxy."""
MAX_CONNECTIONS = 8
REQUEST_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """The options of a recording. An event is on the disk after `sync_interval_s` seconds at the latest; a file ends
    after `max_file_bytes`, the recording after `duration_s` (None: never); `settings` are told by
    the user, and with `overrides_broker` the cluster may say otherwise. `upstream` may be several addresses, `security`
    is that of the connections to the cluster."""

    listen: Address
    upstream: Address | Bootstrap
    path: Path
    max_file_bytes: int | None = None
    sync_interval_s: float = 1.0
    duration_s: float | None = None
    grace_ms: int = DEFAULT_GRACE_MS
    settings: Mapping[str, int] | None = None
    overrides_broker: bool = False
    keep_all_bytes: bool = False
    may_overwrite: bool = False
    security: Security = PLAINTEXT


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """The result of a recording. `write_error` is why the file ended before the recording, if it did."""

    events: int
    undecoded: int
    files: tuple[Path, ...]
    write_error: str = ""


async def learn_cluster(
    upstream: Address | Bootstrap, claims: SettingClaims, security: Security = PLAINTEXT
) -> tuple[Address, Settings | None, str]:
    """The first address of a cluster that answers, its settings, None if it does not support DescribeConfigs, and its
    name. Raises `TargetError` if it cannot be reached."""
    addresses = upstream.addresses if isinstance(upstream, Bootstrap) else (upstream,)
    pool = ConnectionPool(MAX_CONNECTIONS, REQUEST_TIMEOUT_S, security)
    client = AdminClient(pool, REQUEST_TIMEOUT_S)
    try:
        address, client.versions = await discovery.learn_first(client, addresses)
        brokers, name = await discovery.learn_brokers(client, address)
        cluster = Cluster(client, REQUEST_TIMEOUT_S)
        cluster.replace_brokers(brokers)
        if "DescribeConfigs" not in client.versions and not claims.values:
            return address, None, name
        return address, (await ask_settings(client, cluster, claims)).settings(), name
    finally:
        await pool.close()


class Recorder:
    """One recording of the cluster at `upstream`. `show` gets lines for the operator."""

    def __init__(
        self,
        job: RecordingOptions,
        upstream: Address,
        settings: Settings | None,
        cluster: str,
        show: Callable[[str], None],
    ) -> None:
        told = {"recorder": "fencepost record", "recording": str(uuid.uuid4())}
        told |= {"began": datetime.now(UTC).isoformat(timespec="milliseconds")} | (
            {"cluster": cluster} if cluster else {}
        )
        told |= {} if settings else {"settings": "assumed"}
        source = format_url(upstream, uses_tls=job.security.uses_tls)
        header = Header(source, Order.INTERVALS, "wall", settings or Settings(), job.grace_ms, told)
        begun = time.monotonic()
        self.write_error = ""
        self._job = job
        self._upstream = upstream
        self._show = show
        self._trace = WireTrace(
            self._write, lambda: int((time.monotonic() - begun) * 1000), keep_all_bytes=job.keep_all_bytes
        )
        self._recording = RotatingTraceWriter(job.path, header, job.max_file_bytes, may_overwrite=job.may_overwrite)
        self._proxy = Proxy(self._trace, job.listen[0], show, job.security)
        self._trace.mark_gap("the recording begins")

    async def run(self, announce: Callable[[str, int], None], stop: asyncio.Event) -> RecordingResult:
        """Record until `stop` or the duration's end. `announce` gets the proxy's host and port."""
        host, port = self._job.listen
        try:
            port = await self._proxy.listen(self._upstream, port)
        except (OSError, UnicodeError) as error:
            self._recording.close()
            self._recording.files[0].unlink()
            raise TargetError(describe_listen_error(host, port, error)) from None
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
        """Call `step`, which writes to the file, unless a write has failed before."""
        if not self.write_error:
            try:
                step()
            except OSError as error:
                self._stop_writing(error)

    def _stop_writing(self, error: OSError) -> None:
        """Stop writing after a failure; the clients' bytes are still forwarded."""
        if not self.write_error:
            self.write_error = f"{self._job.path}: {error.strerror or error}"
            self._show(f"{self.write_error}; nothing more is recorded, bytes still pass")


async def record_traffic(
    job: RecordingOptions, announce: Callable[[str, int], None], show: Callable[[str], None], stop: asyncio.Event
) -> RecordingResult:
    """Record the traffic of a cluster's clients until `stop`. Raises `TargetError` if the cluster cannot be reached,
    and `OSError` if the address or the file cannot be used."""
    claims = SettingClaims(job.settings or {}, job.overrides_broker)
    upstream, settings, cluster = await learn_cluster(job.upstream, claims, job.security)
    return await Recorder(job, upstream, settings, cluster, show).run(announce, stop)
