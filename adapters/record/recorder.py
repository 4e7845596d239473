"""The recorder: a proxy whose frames are decoded and written to a trace file.

Its traces are of intervals (`Order.INTERVALS`): a request is recorded before its broker can handle it, a response after
the broker sent it. A trace begins with an event that says that earlier state is unknown, because groups are older than
recordings.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from fencepost.adapters.address import Address, Bootstrap, TargetError, describe_listen_error, format_url
from fencepost.adapters.security.authentication import PLAINTEXT, SaslSession, Security, describe_tls_failure
from fencepost.adapters.security.settings import SaslError
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.cluster import AdminClient, Cluster, SettingClaims, ask_settings
from fencepost.adapters.wire.connection import ConnectionPool
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_response
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import RotatingTraceWriter
from fencepost.traces.frames import ConnectionDecoder, FrameSplitter, WireTrace

# --- The addresses in responses to Metadata and FindCoordinator, the only bytes that the proxy changes.

REWRITTEN_APIS = frozenset({"Metadata", "FindCoordinator"})


def is_known(api: str, version: int) -> bool:
    """Whether the kit can decode responses of this version, and so rewrite their addresses."""
    low, high = VERSIONS[api]
    return low <= version <= high


def read_addresses(api: str, version: int, frame: bytes) -> list[Address]:
    """The distinct broker addresses in a response."""
    return list(
        dict.fromkeys((row["host"], row["port"]) for row in _address_rows(decode_response(api, version, frame).body))
    )


def rewrite_addresses(api: str, version: int, frame: bytes, new_addresses: Mapping[Address, Address]) -> bytes:
    """Return the response with other addresses; all other bytes stay, also those that the kit cannot decode."""
    response = decode_response(api, version, frame)
    plain = encode_response(api, version, response.correlation_id, response.body)
    if not frame.startswith(plain):
        return _replace_bytes(frame, new_addresses)
    for row in _address_rows(response.body):
        row["host"], row["port"] = new_addresses.get((row["host"], row["port"]), (row["host"], row["port"]))
    return encode_response(api, version, response.correlation_id, response.body) + frame[len(plain) :]


def _address_rows(body: Mapping[str, Any]) -> Iterator[Any]:
    """The parts of a response that have an address."""
    for row in (*(body.get("brokers") or ()), *(body.get("coordinators") or ()), body):
        if isinstance(row, dict) and row.get("host") and row.get("port", -1) > 0:
            yield row


def _replace_bytes(frame: bytes, new_addresses: Mapping[Address, Address]) -> bytes:
    """Replace the encoded addresses in a response that the kit would encode differently."""
    for old, new in new_addresses.items():
        for encode in (_encode_address, _encode_compact_address):
            frame = frame.replace(encode(*old), encode(*new))
    return frame


def _encode_address(host: str, port: int) -> bytes:
    text = host.encode()
    return len(text).to_bytes(2) + text + port.to_bytes(4)


def _encode_compact_address(host: str, port: int) -> bytes:
    text, length = host.encode(), len(host.encode()) + 1
    size = bytes((length,)) if length < 128 else bytes((length & 127 | 128, length >> 7))
    return size + text + port.to_bytes(4)


# --- The proxy's own connections to brokers: encrypted and authenticated as the recording says, for plaintext
# clients.

CONNECT_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
"""Longest response to a request of an authentication, in bytes."""
FIRST_RENEWAL_ID = -(1 << 31)
"""Clients count their requests from 0 up."""


class UpstreamError(Exception):
    """There is no connection to a broker; the message says why, in one line."""


class Upstream:
    """A connection to a broker. Where its session ends (KIP-368), the proxy renews it between two requests of the
    client; `take_own` keeps the responses to that from the client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, security: Security, session: SaslSession
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._security = security
        self._session = session
        self._renew_at = _now() + session.renew_after_s
        self._ids = count(FIRST_RENEWAL_ID)
        self._awaited: dict[bytes, asyncio.Future[bytes]] = {}

    @property
    def has_renewals(self) -> bool:
        """Whether the session ends some time."""
        return self._renew_at != float("inf")

    @property
    def must_renew(self) -> bool:
        """Whether the session ends soon, or has ended."""
        return _now() >= self._renew_at

    async def renew(self) -> None:
        """Authenticate again. No request may be written meanwhile, and responses go to `take_own`. Raises
        `UpstreamError`."""
        try:
            self._session = await self._security.authenticate(
                self._exchange_among_others, ids=self._ids, version=self._session.version
            )
        except SaslError as error:
            raise UpstreamError(f"{error.reason}; {error.advice}") from None
        self._renew_at = _now() + self._session.renew_after_s

    def take_own(self, frame: bytes) -> bool:
        """Take a response if it belongs to a renewal; returns whether it does."""
        awaited = self._awaited.pop(frame[:4], None)
        if awaited is not None and not awaited.done():
            awaited.set_result(frame)
        return awaited is not None

    async def _exchange_among_others(self, frame: bytes) -> bytes:
        response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[frame[4:8]] = response
        self.writer.write(len(frame).to_bytes(4) + frame)
        return await response


async def connect_upstream(address: Address, security: Security, limit: int) -> Upstream:
    """Connect to a broker and authenticate; `limit` is that of the reader's buffer. Raises `UpstreamError`."""
    url = format_url(address, uses_tls=security.uses_tls)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            options = security.connection_options(address)
            reader, writer = await asyncio.open_connection(*address, limit=limit, **options)
            session = await security.authenticate(lambda frame: _exchange(reader, writer, frame))
            return Upstream(reader, writer, security, session)
    except TimeoutError:
        reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
    except UnicodeError:  # a label that is empty or too long
        reason = "no such host"
    except OSError as error:
        failure = describe_tls_failure(security, address[0], error) if security.uses_tls else None
        reason = "; ".join(failure) if failure else error.strerror or str(error)
    except SaslError as error:
        reason = f"{error.reason}; {error.advice}"
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        reason = "the broker closed the connection during authentication"
    if writer is not None:
        writer.transport.abort()
    raise UpstreamError(f"{url}: {reason}")


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, frame: bytes) -> bytes:
    assert writer is not None
    writer.write(len(frame).to_bytes(4) + frame)
    size = int.from_bytes(await reader.readexactly(4), signed=True)
    if not 0 <= size <= MAX_ANSWER_BYTES:
        raise SaslError("the answer is not Kafka's", "check the address, and whether the port wants TLS")
    return await reader.readexactly(size)


def _now() -> float:
    return asyncio.get_running_loop().time()


# --- The proxy: a listener for every broker of the cluster, and the bytes between each client and its broker.

MAX_FRAME_BYTES = 128 * 1024 * 1024
"""Longest frame of Kafka, in bytes: its brokers refuse requests above 100 MiB."""
READ_CHUNK_BYTES = 256 * 1024
MAX_WARNINGS = 100

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Proxy:
    """Listens on `host` for the clients of a cluster. A broker that a response names gets a listener of its own. `show`
    gets lines for the operator; `security` is that of the connections to brokers."""

    def __init__(
        self, trace: WireTrace, host: str, show: Callable[[str], None], security: Security = PLAINTEXT
    ) -> None:
        self._security = security
        self._trace = trace
        self._host = host
        self._show = show
        self._ports: dict[Address, int] = {}
        self._opening = asyncio.Lock()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._warned: set[str] = set()

    async def listen(self, upstream: Address, port: int = 0) -> int:
        """Listen for a broker's clients on `port` (0: any) and return the port. Raises `OSError` if it is taken."""
        async with self._opening:  # two answers may name a broker at the same time
            if upstream not in self._ports:
                self._ports[upstream] = await self._listen(upstream, port)
        return self._ports[upstream]

    async def _listen(self, upstream: Address, port: int) -> int:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.add(writer)
            task = asyncio.create_task(self._relay_connection(reader, writer, upstream))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        server = await asyncio.start_server(accept, self._host, port, limit=READ_CHUNK_BYTES)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Close every listener and every connection."""
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # the transports let go of their sockets in the loop's next turn

    async def _relay_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Address
    ) -> None:
        """Relay one client's connection until it ends."""
        talk = self._trace.open_connection()
        try:
            broker = await connect_upstream(upstream, self._security, READ_CHUNK_BYTES)
        except UpstreamError as error:
            self._warn_once(f"{error}; its clients are turned away")
            self._record_safely(lambda: talk.on_closed("lost", "no connection to the broker"))
            writer.close()
            return
        self._writers.add(broker.writer)
        gone: list[str] = []
        asking = asyncio.create_task(self._relay_requests(reader, broker, talk, gone))
        answering = asyncio.create_task(self._relay_responses(broker, writer, talk, gone))
        try:
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and asking.exception() is None and broker.writer.can_write_eof():
                await asyncio.wait((answering,))  # the client has said all that it will, and may still be answered
        finally:
            for task in (asking, answering):
                task.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            first = next(iter(gone), "recorder")
            self._record_safely(
                lambda: talk.on_closed("lost" if first == "broker" else "drop", f"the {first} closed the connection")
            )
            broker.writer.close()
            writer.close()

    async def _relay_requests(
        self, reader: asyncio.StreamReader, broker: Upstream, decoder: ConnectionDecoder, closed_by: list[str]
    ) -> None:
        """Forward bytes from the client. A request is recorded before its last byte is forwarded."""
        splitter = FrameSplitter(MAX_FRAME_BYTES)
        back = broker.writer
        while data := await read_chunk(reader, "client", closed_by):
            if splitter.is_broken:
                back.write(data)
            elif broker.has_renewals:
                await self._relay_between_renewals(splitter.feed(data), broker, decoder)
                self._check_decodable(splitter, decoder)
                back.write(splitter.take_rest() if splitter.is_broken else b"")
            else:
                for frame in splitter.feed(data):
                    self._record_safely(partial(decoder.on_request, frame))
                self._check_decodable(splitter, decoder)
                back.write(data)
            await back.drain()
        if back.can_write_eof():
            back.write_eof()

    async def _relay_between_renewals(
        self, frames: Iterator[bytes], broker: Upstream, decoder: ConnectionDecoder
    ) -> None:
        """Record and forward whole requests; between two of them the session may be renewed."""
        for frame in frames:
            if broker.must_renew:
                try:
                    await broker.renew()
                except UpstreamError as error:
                    self._warn_once(f"a session could not be renewed: {error}; its client is turned away")
                    raise ConnectionAbortedError from None
            self._record_safely(partial(decoder.on_request, frame))
            broker.writer.write(len(frame).to_bytes(4) + frame)

    async def _relay_responses(
        self,
        broker: Upstream,
        writer: asyncio.StreamWriter,
        decoder: ConnectionDecoder,
        closed_by: list[str],
    ) -> None:
        """Forward bytes from the broker. A response is recorded before its first byte is forwarded."""
        splitter = FrameSplitter(MAX_FRAME_BYTES)
        here = writer.get_extra_info("sockname")[0]
        try:
            while data := await read_chunk(broker.reader, "broker", closed_by):
                if splitter.is_broken:
                    writer.write(data)
                else:
                    for frame in splitter.feed(data):
                        if broker.take_own(frame):
                            continue
                        passed = await self._rewrite_response(frame, decoder, here)
                        writer.write(len(passed).to_bytes(4) + passed)
                    self._check_decodable(splitter, decoder)
                    if splitter.is_broken:
                        writer.write(splitter.take_rest())
                await writer.drain()
        finally:
            writer.write(splitter.take_rest())

    async def _rewrite_response(self, frame: bytes, decoder: ConnectionDecoder, here: str) -> bytes:
        """Record a response, and return it with the proxy's addresses."""
        flight = self._record_safely(partial(decoder.on_response, frame))
        if flight is None or flight.request.api not in REWRITTEN_APIS:
            return frame
        api, version = flight.request.api, flight.request.version
        if not is_known(api, version):
            self._warn_once(
                f"{api} version {version} is not known: its answers pass as they are, and clients may go past"
            )
            return frame
        try:
            places = {each: (here, await self.listen(each)) for each in read_addresses(api, version, frame)}
            return rewrite_addresses(api, version, frame, places)
        except (OSError, ValueError) as error:
            self._warn_once(f"an answer to {api} passes as it is, and clients may go past the recorder: {error}")
            return frame

    def _check_decodable(self, splitter: FrameSplitter, decoder: ConnectionDecoder) -> None:
        if splitter.is_broken:
            self._warn_once("a connection does not speak Kafka in the clear (is it TLS?): its bytes pass unrecorded")
            self._record_safely(lambda: self._trace.mark_gap(f"connection {decoder.number} cannot be read"))

    def _record_safely(self, step: Callable[[], T]) -> T | None:
        """Call `step`, which records; a failure is logged, and bytes are still forwarded."""
        try:
            return step()
        except Exception as error:
            _log.exception("not recorded")
            self._warn_once(f"something could not be recorded ({error}); bytes pass all the same")
            return None

    def _warn_once(self, line: str) -> None:
        """Show a line to the operator, unless it was shown before."""
        if line not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(line)
            self._show(line)


async def read_chunk(reader: asyncio.StreamReader, side: str, closed_by: list[str]) -> bytes:
    """Read some bytes, b"" at the end; `closed_by` then gets the name of the side. Raises `ConnectionError`."""
    data = b""
    try:
        data = await reader.read(READ_CHUNK_BYTES)
    finally:
        if (not data and reader.at_eof()) or reader.exception() is not None:
            closed_by.append(side)
    return data


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
