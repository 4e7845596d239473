"""Packet captures as traces: the Kafka messages on the wire, as a recorder between clients and brokers would see them.

Packets are decoded with dpkt, from the extra `capture`. Where bytes are missing, the trace has an event `unknown`:
the state of groups is unknown. A connection that began before the capture is read from the first packet that looks like
the beginning of a request.
"""

import heapq
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_NAMES
from fencepost.traces.events import Header, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer
from fencepost.traces.frames import ConnectionDecoder, FrameSplitter, WireTrace
from fencepost.traces.importers.log_layout import open_bytes

# --- Reassembly of TCP streams from segments that come twice, out of order, or not at all.

Address: TypeAlias = tuple[bytes, int]
"""IP address and port."""
MAX_WAITING_SEGMENTS = 256
"""A gap is final once this many segments wait behind it."""
MAX_GAP_WAIT_MS = 200
"""A gap is final this many milliseconds after the other side acknowledged its bytes."""
SEQUENCE_MODULUS = 1 << 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment. `missing` is the number of its bytes that were not captured; `time` is in milliseconds."""

    time: int
    source: Address
    target: Address
    sequence: int
    acknowledged: int | None
    syn: bool
    fin: bool
    rst: bool
    data: bytes
    missing: int = 0


class Gap:
    """Bytes that are not in the capture."""


GAP = Gap()


def sequence_distance(one: int, other: int) -> int:
    """The distance from sequence number `one` forward to `other`, negative if `other` is before it (RFC 1982)."""
    return (other - one + SEQUENCE_MODULUS // 2) % SEQUENCE_MODULUS - SEQUENCE_MODULUS // 2


def sequence_length(segment: Segment) -> int:
    """The number of sequence numbers that a segment takes; FIN takes one."""
    return len(segment.data) + segment.missing + segment.fin


@dataclass(slots=True)
class TcpStream:
    """One direction of a connection."""

    next_sequence: int | None = None
    first_sequence: int | None = None
    """The sequence number of the SYN, if it was captured."""
    waiting: dict[int, Segment] = field(default_factory=dict)
    gap_since: int | None = None
    """Time of the first acknowledgement of bytes that are missing here, in milliseconds."""

    def feed(self, segment: Segment) -> Iterator[bytes | Gap]:
        """Add a segment; yield the bytes that can be read now, in order, and `GAP` where bytes are missing."""
        if segment.syn:
            if segment.sequence != self.first_sequence:
                self.first_sequence, self.next_sequence = segment.sequence, (segment.sequence + 1) % SEQUENCE_MODULUS
                self.waiting, self.gap_since = {}, None
            return
        if self.next_sequence is None:
            self.next_sequence = segment.sequence
        if not sequence_length(segment):
            return
        if sequence_distance(self.next_sequence, segment.sequence) > 0:
            known = self.waiting.get(segment.sequence)
            if known is None or len(known.data) < len(segment.data):
                self.waiting[segment.sequence] = segment
            if len(self.waiting) > MAX_WAITING_SEGMENTS:
                yield from self.skip_gap()
            return
        yield from self.consume_segment(segment)
        yield from self.drain_waiting()

    def on_acknowledgement(self, acknowledged: int, time: int) -> Iterator[bytes | Gap]:
        """Yield the bytes behind a gap that the other side acknowledged more than `MAX_GAP_WAIT_MS` ago."""
        if self.next_sequence is None or sequence_distance(self.next_sequence, acknowledged) <= 0:
            self.gap_since = None
        elif self.gap_since is None:
            self.gap_since = time
        elif time - self.gap_since > MAX_GAP_WAIT_MS:
            if self.waiting:
                yield from self.skip_gap()
            else:
                self.next_sequence = acknowledged
                yield GAP
            self.gap_since = None

    def skip_gap(self) -> Iterator[bytes | Gap]:
        """Yield `GAP` and the bytes behind the gap."""
        assert self.next_sequence is not None
        self.next_sequence = min(self.waiting, key=lambda each: sequence_distance(self.next_sequence or 0, each))
        yield GAP
        yield from self.drain_waiting()

    def drain_waiting(self) -> Iterator[bytes | Gap]:
        """Yield the bytes of waiting segments that follow without a gap."""
        while self.waiting:
            assert self.next_sequence is not None
            first = min(self.waiting, key=lambda each: sequence_distance(self.next_sequence or 0, each))
            if sequence_distance(self.next_sequence, first) > 0:
                return
            yield from self.consume_segment(self.waiting.pop(first))

    def consume_segment(self, segment: Segment) -> Iterator[bytes | Gap]:
        """Yield the new bytes of a segment that begins at or before the next sequence number."""
        assert self.next_sequence is not None
        old = -sequence_distance(self.next_sequence, segment.sequence)
        if old < len(segment.data):
            yield segment.data[old:]
        if old < sequence_length(segment):
            self.next_sequence = (segment.sequence + sequence_length(segment)) % SEQUENCE_MODULUS
            if segment.missing:
                yield GAP


DEFAULT_PORT = 9092
DEFAULT_GRACE_MS = 1_000
MAX_PACKET_BYTES = 16 * 1024 * 1024
MAX_FRAME_BYTES = 128 * 1024 * 1024
KNOWN_KEYS = range(100)
KNOWN_VERSIONS = range(24)
ETHERNET, NULL, LOOP, SLL, SLL2 = 1, 0, 108, 113, 276


@dataclass(frozen=True, slots=True)
class CaptureSource:
    """The files of a capture, and facts about the cluster. `ports` are the brokers'; `grace` is in milliseconds."""

    paths: Sequence[Path]
    ports: frozenset[int]
    settings: Settings | None = None
    """None if unknown: Kafka's defaults are assumed then, and responses that contradict only them are inconclusive."""
    grace: int = DEFAULT_GRACE_MS
    keep_all_bytes: bool = False


@dataclass(slots=True)
class CaptureImportResult:
    """Counts of an import: events written, packets read, connections, gaps, and messages that were not decoded."""

    events: int = 0
    packets: int = 0
    connections: int = 0
    gaps: int = 0
    undecoded: int = 0
    cut: int = 0
    cut_at: int = 0
    """How many packets have not all their bytes, and how many bytes the longest of them has."""
    seen_ports: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class CapturedConnection:
    """One connection: the TCP streams and frames of its two directions, and the decoder of its messages."""

    decoder: ConnectionDecoder
    client_stream: TcpStream = field(default_factory=TcpStream)
    broker_stream: TcpStream = field(default_factory=TcpStream)
    request_frames: FrameSplitter = field(default_factory=lambda: FrameSplitter(MAX_FRAME_BYTES))
    response_frames: FrameSplitter = field(default_factory=lambda: FrameSplitter(MAX_FRAME_BYTES))
    knows_request_start: bool = False
    """Whether the reader knows where in the stream a request begins."""
    knows_response_start: bool = False
    closed_by: list[str] = field(default_factory=list)


class CaptureReader:
    """Turns TCP segments into events of a trace."""

    def __init__(self, trace: WireTrace, ports: frozenset[int], result: CaptureImportResult) -> None:
        self.trace = trace
        self.ports = ports
        self.result = result
        self.connections: dict[tuple[Address, Address], CapturedConnection] = {}

    def on_segment(self, segment: Segment) -> None:
        """Read one segment, and the messages that it completes."""
        from_client = segment.target[1] in self.ports
        ends = (segment.source, segment.target) if from_client else (segment.target, segment.source)
        flow = self.connections.get(ends)
        if flow is not None and segment.syn and from_client and is_new_connection(flow.client_stream, segment):
            self.on_closed(ends, flow)
            flow = None
        if flow is None:
            if segment.rst or (segment.fin and not segment.data):
                return
            flow = self.connections[ends] = CapturedConnection(self.trace.open_connection())
            self.result.connections += 1
        if segment.syn and from_client:
            flow.knows_request_start = True
        elif segment.syn:
            flow.knows_response_start = True
        mine, other = (
            (flow.client_stream, flow.broker_stream) if from_client else (flow.broker_stream, flow.client_stream)
        )
        read, read_other = (
            (self.on_client_bytes, self.on_broker_bytes)
            if from_client
            else (self.on_broker_bytes, self.on_client_bytes)
        )
        for piece in mine.feed(segment):
            read(flow, piece)
        if segment.acknowledged is not None:
            for piece in other.on_acknowledgement(segment.acknowledged, segment.time):
                read_other(flow, piece)
        if segment.fin or segment.rst:
            flow.closed_by.append("client" if from_client else "broker")
            if segment.rst or len(set(flow.closed_by)) == 2:
                self.on_closed(ends, flow)

    def finish(self) -> None:
        """Read the segments that still wait behind a gap, at the end of the capture."""
        for flow in self.connections.values():
            for stream, read in (
                (flow.client_stream, self.on_client_bytes),
                (flow.broker_stream, self.on_broker_bytes),
            ):
                while stream.waiting:
                    for piece in stream.skip_gap():
                        read(flow, piece)

    def on_closed(self, ends: tuple[Address, Address], flow: CapturedConnection) -> None:
        """Record the end of a connection, and the side that closed it first."""
        first = next(iter(flow.closed_by), "client")
        flow.decoder.on_closed("lost" if first == "broker" else "drop", f"the {first} closed the connection")
        del self.connections[ends]

    def on_client_bytes(self, flow: CapturedConnection, piece: bytes | Gap) -> None:
        """Decode the requests that bytes of the client complete."""
        if isinstance(piece, Gap):
            self.on_gap(flow)
        elif flow.knows_request_start or begins_request(piece):
            flow.knows_request_start = True
            for frame in flow.request_frames.feed(piece):
                flow.decoder.on_request(frame)
            if flow.request_frames.is_broken:
                self.on_gap(flow)

    def on_broker_bytes(self, flow: CapturedConnection, piece: bytes | Gap) -> None:
        """Decode the responses that bytes of the broker complete."""
        if isinstance(piece, Gap):
            self.on_gap(flow)
        elif flow.knows_response_start or begins_response(piece, flow.decoder):
            flow.knows_response_start = True
            for frame in flow.response_frames.feed(piece):
                flow.decoder.on_response(frame)
            if flow.response_frames.is_broken:
                self.on_gap(flow)

    def on_gap(self, flow: CapturedConnection) -> None:
        """Drop the requests in flight, and look for the beginning of a message anew."""
        self.result.gaps += 1
        concerned = flow.decoder.may_change_groups
        flow.decoder.on_closed("drop", "bytes are missing in the capture")
        if concerned:
            self.trace.mark_gap(f"connection {flow.decoder.number}: bytes are missing in the capture")
        flow.decoder = self.trace.open_connection()
        flow.request_frames, flow.response_frames = FrameSplitter(MAX_FRAME_BYTES), FrameSplitter(MAX_FRAME_BYTES)
        flow.knows_request_start = flow.knows_response_start = False


def is_new_connection(stream: TcpStream, syn: Segment) -> bool:
    """Whether `syn` opens another connection between the same ends, and is no retransmission."""
    return stream.next_sequence is not None and stream.first_sequence != syn.sequence


def begins_request(data: bytes) -> bool:
    """Whether `data` looks like the beginning of a request; clients nearly always send one in a packet of its own."""
    if len(data) < 14:
        return False
    size, key, version = (int.from_bytes(data[i : i + n], signed=True) for i, n in ((0, 4), (4, 2), (6, 2)))
    client = int.from_bytes(data[12:14], signed=True)
    fits = size == len(data) - 4 or (size > len(data) - 4 and API_NAMES.get(key) == "Produce")
    return fits and key in KNOWN_KEYS and version in KNOWN_VERSIONS and -1 <= client <= size


def begins_response(data: bytes, decoder: ConnectionDecoder) -> bool:
    """Whether `data` looks like the beginning of a response to a request in flight."""
    if len(data) < 8:
        return False
    size, correlation = (int.from_bytes(data[i : i + 4], signed=True) for i in (0, 4))
    return size >= 4 and any(flight.correlation == correlation for flight in decoder.pending)


def import_capture(source: CaptureSource, output: Path) -> CaptureImportResult:
    """Write the Kafka messages in these captures as a trace.

    Raises `TraceError` if a file cannot be read or has no segment of the ports, and `OSError` if the trace cannot be
    written.
    """
    imported, begun, clock = CaptureImportResult(), 0, 0
    found = heapq.merge(
        *(read_segments(path, source.ports, imported) for path in source.paths), key=lambda each: each.time
    )
    first = next(found, None)
    files = ", ".join(map(str, source.paths))
    if first is None:
        raise TraceError(files, 0, describe_no_segment(source, imported))
    begun = first.time
    told = {"recorder": "fencepost import capture"}
    told["began"] = datetime.fromtimestamp(begun / 1_000, UTC).isoformat(timespec="milliseconds")
    told |= {} if source.settings else {"settings": "assumed"}
    header = Header(files, Order.INTERVALS, "wall", source.settings or Settings(), source.grace, told)
    with trace_writer(output, header) as write:
        tape = WireTrace(write, lambda: clock, keep_all_bytes=source.keep_all_bytes)
        tape.mark_gap("the capture begins")
        reader = CaptureReader(tape, source.ports, imported)
        for segment in chain((first,), found):
            clock = max(clock, segment.time - begun)
            reader.on_segment(segment)
        reader.finish()
    imported.events, imported.undecoded = tape.events, tape.undecoded
    return imported


def describe_no_segment(source: CaptureSource, imported: CaptureImportResult) -> str:
    """Why there is nothing to import."""
    ports = ", ".join(map(str, sorted(source.ports)))
    busiest = ", ".join(str(port) for port, _ in imported.seen_ports.most_common(3))
    others = f" (most is of {busiest})" if busiest else ""
    return f"no TCP to or from port {ports} in {imported.packets} packets; name it with --port{others}"


# --- The packets of a file. Each interface of a pcapng has a clock and a link type of its own.

PCAP_RESOLUTIONS = {
    b"\xd4\xc3\xb2\xa1": ("<", 6),
    b"\xa1\xb2\xc3\xd4": (">", 6),
    b"M<\xb2\xa1": ("<", 9),
    b"\xa1\xb2<M": (">", 9),
}
"""Byte order and digits of a second, by the first bytes of a pcap."""
PCAPNG = b"\n\r\r\n"
BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
INTERFACE_BLOCK, SIMPLE_PACKET_BLOCK, PACKET_BLOCK, ENHANCED_PACKET_BLOCK = 1, 3, 2, 6
RESOLUTION_OPTION, OFFSET_OPTION = 9, 14
LATEST_MS = 253_402_300_799_000
"""The end of the year 9999; a later packet is damage."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A captured packet: milliseconds since 1970, the link type, the bytes, and how many the wire had."""

    time: int
    link: int
    data: bytes
    length: int


@dataclass(frozen=True, slots=True)
class CaptureInterface:
    """An interface of a pcapng: its link type, the ticks of its clock in a second, and the second where they begin."""

    link: int
    ticks: int = 1_000_000
    offset: int = 0

    def milliseconds(self, ticks: int) -> int:
        """The time after so many ticks."""
        return self.offset * 1_000 + (ticks * 1_000 + self.ticks // 2) // self.ticks


def read_segments(path: Path, ports: frozenset[int], result: CaptureImportResult) -> Iterator[Segment]:
    """Yield the TCP segments from and to `ports` in one file, and count packets in `result`. Raises `TraceError`."""
    try:
        import dpkt
    except ImportError:
        raise TraceError(str(path), 0, "captures need dpkt: pip install 'fencepost[capture]'") from None
    number = 0
    try:
        with open_bytes(path) as file:
            for packet in read_packets(path, file):
                number += 1
                result.packets += 1
                if not 0 <= packet.time <= LATEST_MS:
                    raise ValueError(f"a packet with the time {packet.time / 1_000:g} s")
                if len(packet.data) < packet.length:
                    result.cut += 1
                    result.cut_at = max(result.cut_at, len(packet.data))
                found = parse_segment(dpkt, packet.link, packet.time, packet.data)
                if found is None:
                    continue
                result.seen_ports.update((found.source[1], found.target[1]))
                if (found.source[1] in ports) != (found.target[1] in ports):
                    yield found
    except OSError as error:
        raise TraceError(str(path), 0, f"cannot be read: {error.strerror or error}") from None
    except TraceError:
        raise
    except (EOFError, ValueError, struct.error, zlib.error) as error:
        raise TraceError(str(path), 0, f"damaged after packet {number}: {error or type(error).__name__}") from None


def read_packets(path: Path, file: IO[bytes]) -> Iterator[Packet]:
    """The packets of a pcap or pcapng. Raises `TraceError` for any other file, `ValueError` and `EOFError` for a
    damaged one."""
    magic = file.read(4)
    if magic == PCAPNG:
        yield from read_pcapng(file)
    elif magic in PCAP_RESOLUTIONS:
        yield from read_pcap(file, *PCAP_RESOLUTIONS[magic])
    else:
        raise TraceError(str(path), 0, "not a packet capture (pcap or pcapng)")


def read_pcap(file: IO[bytes], order: str, digits: int) -> Iterator[Packet]:
    """The packets of a pcap after its first four bytes."""
    link = struct.unpack(order + "HHiIII", read_exactly(file, 20))[5] & 0xFFFF
    clock = CaptureInterface(link, 10**digits)
    while head := file.read(16):
        second, fraction, kept, length = struct.unpack(order + "IIII", head)
        yield Packet(clock.milliseconds(second * clock.ticks + fraction), link, read_exactly(file, kept), length)


def read_pcapng(file: IO[bytes]) -> Iterator[Packet]:
    """The packets of a pcapng after its first four bytes: a block has its type and its length before and after it."""
    order, kind, interfaces = "", PCAPNG, list[CaptureInterface]()
    while kind:
        raw_length = read_exactly(file, 4)
        mark = read_exactly(file, 4) if kind == PCAPNG else b""
        if mark:
            if mark not in BYTE_ORDERS:
                raise ValueError("a section of no known byte order")
            order, interfaces = BYTE_ORDERS[mark], []
        length = struct.unpack(order + "I", raw_length)[0]
        body = read_exactly(file, length - 12 - len(mark))
        read_exactly(file, 4)
        number = struct.unpack(order + "I", kind)[0] if kind != PCAPNG else 0
        if number == INTERFACE_BLOCK:
            interfaces.append(read_interface(order, body))
        elif number in (ENHANCED_PACKET_BLOCK, PACKET_BLOCK):
            yield read_packet_block(order, number, body, interfaces)
        elif number == SIMPLE_PACKET_BLOCK:
            raise ValueError("packets without times (simple packet blocks)")
        kind = file.read(4)


def read_interface(order: str, body: bytes) -> CaptureInterface:
    """The interface that a block describes."""
    link, ticks, offset, place = struct.unpack_from(order + "H", body)[0], 1_000_000, 0, 8
    while place + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, place)
        value, place = body[place + 4 : place + 4 + size], place + 4 + (size + 3) // 4 * 4
        if code == 0:
            break
        if code == RESOLUTION_OPTION and size:
            ticks = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == OFFSET_OPTION and size == 8:
            offset = struct.unpack(order + "q", value)[0]
    return CaptureInterface(link, ticks, offset)


def read_packet_block(order: str, kind: int, body: bytes, interfaces: Sequence[CaptureInterface]) -> Packet:
    """The packet in a block. Raises `ValueError` if no block describes its interface."""
    form = "IIIII" if kind == ENHANCED_PACKET_BLOCK else "HxxIIII"
    number, high, low, kept, length = struct.unpack_from(order + form, body)
    if number >= len(interfaces):
        raise ValueError(f"a packet of interface {number}, which nothing describes")
    clock = interfaces[number]
    if kept > len(body) - 20:
        raise ValueError(f"a packet of {kept} bytes")
    return Packet(clock.milliseconds(high << 32 | low), clock.link, body[20 : 20 + kept], length)


def read_exactly(file: IO[bytes], count: int) -> bytes:
    """So many bytes. Raises `ValueError` for a length that no packet has, and `EOFError` at the end of the file."""
    if not 0 <= count <= MAX_PACKET_BYTES:
        raise ValueError(f"a packet of {count} bytes")
    data = file.read(count)
    if len(data) < count:
        raise EOFError("the file ends in the middle of a packet")
    return data


def parse_segment(dpkt: Any, link: int, time: int, data: bytes) -> Segment | None:
    """The TCP segment in a packet; None if there is none."""
    try:
        packet = parse_network_packet(dpkt, link, data)
    except dpkt.Error:
        return None
    tcp = getattr(packet, "data", None)
    if not isinstance(tcp, dpkt.tcp.TCP):
        return None
    missing = segment_length(dpkt, packet) - tcp.off * 4 - len(tcp.data)
    return Segment(
        time=time,
        source=(packet.src, tcp.sport),
        target=(packet.dst, tcp.dport),
        sequence=tcp.seq,
        acknowledged=tcp.ack if tcp.flags & dpkt.tcp.TH_ACK else None,
        syn=bool(tcp.flags & dpkt.tcp.TH_SYN),
        fin=bool(tcp.flags & dpkt.tcp.TH_FIN),
        rst=bool(tcp.flags & dpkt.tcp.TH_RST),
        data=bytes(tcp.data),
        missing=max(missing, 0),
    )


def parse_network_packet(dpkt: Any, link: int, data: bytes) -> Any:
    """The IP packet in a frame of the link type `link`."""
    if link == ETHERNET:
        return dpkt.ethernet.Ethernet(data).data
    if link in (NULL, LOOP):
        return dpkt.loopback.Loopback(data).data
    if link == SLL:
        return dpkt.sll.SLL(data).data
    if link == SLL2:
        return dpkt.sll2.SLL2(data).data
    return dpkt.ip6.IP6(data) if data[:1] and data[0] >> 4 == 6 else dpkt.ip.IP(data)


def segment_length(dpkt: Any, packet: Any) -> int:
    """The length of the TCP segment by its IP header in bytes; without one in the header (segmentation by the network
    card), the captured length."""
    if isinstance(packet, dpkt.ip6.IP6):
        return int(packet.plen) or len(packet.data)
    return int(packet.len) - packet.hl * 4 if packet.len else len(packet.data)
