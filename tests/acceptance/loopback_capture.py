"""A packet capture of loopback, by a raw socket: Linux, and the right to open one."""

import ctypes
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dpkt

DLT_EN10MB, ETH_P_ALL, PACKET_OUTGOING = 1, 0x0003, 4
SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33
MAX_PACKET_BYTES = 1 << 17
RECEIVE_BUFFER_BYTES = 64 * 1024 * 1024
POLL_S = 0.1


class RawSocketRefused(Exception):
    """There is no raw socket to be had; the message says why."""


@contextmanager
def capture_loopback(port: int, path: Path) -> Iterator[None]:
    """Writes every packet of a port that crosses loopback, until the end of the block."""
    try:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        attach_filter(raw, port)
        raw.bind(("lo", 0))
    except (AttributeError, OSError) as reason:
        raise RawSocketRefused(f"no raw socket: {reason}") from None
    raw.settimeout(POLL_S)
    over = threading.Event()
    thread = threading.Thread(target=write_packets, args=(raw, port, path, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        raw.close()


def attach_filter(raw: socket.socket, port: int) -> None:
    """Have the kernel leave out all but TCP over IPv4 of this port: others may be busy on loopback too."""
    load_half, load_byte, load_half_behind, header_length, equal, end = 0x28, 0x30, 0x48, 0xB1, 0x15, 0x06
    program = (
        (load_half, 0, 0, 12),
        (equal, 0, 8, 0x0800),
        (load_byte, 0, 0, 23),
        (equal, 0, 6, 6),
        (header_length, 0, 0, 14),
        (load_half_behind, 0, 0, 14),
        (equal, 2, 0, port),
        (load_half_behind, 0, 0, 16),
        (equal, 0, 1, port),
        (end, 0, 0, MAX_PACKET_BYTES),
        (end, 0, 0, 0),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    raw.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(program), ctypes.addressof(code)))


def write_packets(raw: socket.socket, port: int, path: Path, over: threading.Event) -> None:
    """Write packets until it is over and nothing is left."""
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=DLT_EN10MB, snaplen=MAX_PACKET_BYTES)
        while True:
            try:
                data, where = raw.recvfrom(MAX_PACKET_BYTES)
            except TimeoutError:
                if over.is_set():
                    return
                continue
            # Loopback shows every packet twice: when it leaves and when it arrives.
            if where[2] == PACKET_OUTGOING and is_for_port(data, port):
                writer.writepkt(data, time.time())


def is_for_port(data: bytes, port: int) -> bool:
    """The packet is TCP from or to this port."""
    tcp = getattr(dpkt.ethernet.Ethernet(data).data, "data", None)
    return isinstance(tcp, dpkt.tcp.TCP) and port in (tcp.sport, tcp.dport)
