"""Packet captures made of the bytes of connections, written as a pcap file."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt

from fencepost.model.wire.codec import encode_request, encode_response

CLIENT, BROKER = b"\x0a\0\0\1", b"\x0a\0\0\2"
PORT = 9092
BEATS = 12
"""How many heartbeats `write_heartbeats` writes on each connection."""
START_TIME = 1_800_000_000
SYN, ACK, FIN, RST = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN, dpkt.tcp.TH_RST
NEAR_THE_END = (1 << 32) - 100
"""A first sequence number that soon wraps around."""


@dataclass(slots=True)
class SequenceNumbers:
    """The next sequence numbers of both sides of a connection."""

    client: int = NEAR_THE_END
    broker: int = 5_000


@dataclass(slots=True)
class PcapWriter:
    """Collects packets: (seconds since the start, IP packet). `max_piece` is the longest piece of a message."""

    max_piece: int = 1_400
    packets: list[tuple[float, bytes]] = field(default_factory=list)
    sequences: dict[int, SequenceNumbers] = field(default_factory=dict)

    def open(self, number: int, time: float) -> None:
        """A connection is made."""
        self.add_packet(number, time, True, b"", SYN)
        self.add_packet(number, time, False, b"", SYN | ACK)

    def send(self, number: int, time: float, from_client: bool, data: bytes) -> None:
        """Some bytes, cut into pieces; a side that was not heard of before has a connection from before."""
        self.sequences.setdefault(number, SequenceNumbers())
        for start in range(0, len(data), self.max_piece):
            self.add_packet(number, time, from_client, data[start : start + self.max_piece], ACK)

    def close(self, number: int, time: float, from_client: bool, flag: int = FIN) -> None:
        """One side closes the connection."""
        self.add_packet(number, time, from_client, b"", flag | ACK)

    def add_packet(self, number: int, time: float, from_client: bool, data: bytes, flags: int) -> None:
        """One packet."""
        ends = self.sequences.setdefault(number, SequenceNumbers())
        mine, other = (ends.client, ends.broker) if from_client else (ends.broker, ends.client)
        ports = (40_000 + number, PORT) if from_client else (PORT, 40_000 + number)
        tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=mine, ack=other, flags=flags, data=data)
        source, target = (CLIENT, BROKER) if from_client else (BROKER, CLIENT)
        ip = dpkt.ip.IP(src=source, dst=target, p=dpkt.ip.IP_PROTO_TCP, data=tcp)
        ip.len = len(ip)
        self.packets.append((time, bytes(ip)))
        length = len(data) + bool(flags & (SYN | FIN))
        if from_client:
            ends.client = (mine + length) % (1 << 32)
        else:
            ends.broker = (mine + length) % (1 << 32)

    def write(self, path: Path, packets: Iterable[tuple[float, bytes]] | None = None, link: str = "raw") -> None:
        """The capture as a file, all packets or those given."""
        wrap, number = LINK_TYPES[link]
        with path.open("wb") as file:
            make = dpkt.pcapng.Writer if path.suffix == ".pcapng" else dpkt.pcap.Writer
            writer: Any = make(file, linktype=number)
            for time, data in self.packets if packets is None else packets:
                writer.writepkt(wrap(data), START_TIME + time)

    def write_interfaces(self, path: Path, interfaces: Sequence[tuple[str, int]], most: int = 1 << 16) -> None:
        """The capture as a pcapng, its packets in turn from interfaces of these link types and digits of a second; at
        most so many bytes of each are kept."""
        blocks = [pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
        for link, digits in interfaces:
            options = struct.pack("<HHB3xHH", 9, 1, digits, 0, 0)
            blocks.append(pcapng_block(1, struct.pack("<HHI", LINK_TYPES[link][1], 0, 0) + options))
        for number, (time, data) in enumerate(self.packets):
            link, digits = interfaces[number % len(interfaces)]
            frame, ticks = LINK_TYPES[link][0](data), round((START_TIME + time) * 10**digits)
            kept, place = frame[:most], number % len(interfaces)
            head = struct.pack("<IIIII", place, ticks >> 32, ticks & 0xFFFFFFFF, len(kept), len(frame))
            blocks.append(pcapng_block(6, head + kept + b"\0" * (-len(kept) % 4)))
        path.write_bytes(b"".join(blocks))


def pcapng_block(kind: int, body: bytes) -> bytes:
    """A block of a pcapng, little-endian."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


LINK_TYPES: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "raw": (lambda data: data, 101),
    "ethernet": (lambda data: b"\2" * 6 + b"\4" * 6 + b"\x08\0" + data + b"\0" * max(0, 46 - len(data)), 1),
    "null": (lambda data: b"\2\0\0\0" + data, 0),
    "sll": (lambda data: b"\0\0\3\4\0\6" + b"\0" * 8 + b"\x08\0" + data, 113),
}


def with_length(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


def heartbeat_request(number: int) -> bytes:
    body = {"group_id": "g", "generation_id": number, "member_id": "m" * 40}
    return with_length(encode_request("Heartbeat", 3, number, "client", body))


def heartbeat_response(number: int) -> bytes:
    return with_length(encode_response("Heartbeat", 3, number, {"error_code": 0, "throttle_time_ms": number}))


def write_heartbeats(wire: PcapWriter, *, opened: bool = True) -> PcapWriter:
    """Two connections, a heartbeat every 10 ms on each."""
    for number in (1, 2):
        if opened:
            wire.open(number, 0)
    for beat in range(1, BEATS + 1):
        for number in (1, 2):
            wire.send(number, beat / 100, True, heartbeat_request(beat))
            wire.send(number, beat / 100 + 0.002, False, heartbeat_response(beat))
    return wire
