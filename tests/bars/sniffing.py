"""A packet capture of loopback, by a raw socket: Linux, and the right to open one."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dpkt

ETHERNET, EVERYTHING, OUTGOING = 1, 0x0003, 4
LONGEST = 1 << 17
BUFFER = 64 * 1024 * 1024
TURN_S = 0.1


class RawSocketRefused(Exception):
    """There is no raw socket to be had; the message says why."""


@contextmanager
def sniffed(port: int, path: Path) -> Iterator[None]:
    """Writes every packet of a port that crosses loopback, until the end of the block."""
    try:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        raw.bind(("lo", 0))
    except (AttributeError, OSError) as reason:
        raise RawSocketRefused(f"no raw socket: {reason}") from None
    raw.settimeout(TURN_S)
    over = threading.Event()
    thread = threading.Thread(target=listen, args=(raw, port, path, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        raw.close()


def listen(raw: socket.socket, port: int, path: Path, over: threading.Event) -> None:
    """Write packets until it is over and nothing is left."""
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=ETHERNET, snaplen=LONGEST)
        while True:
            try:
                data, where = raw.recvfrom(LONGEST)
            except TimeoutError:
                if over.is_set():
                    return
                continue
            # Loopback shows every packet twice: when it leaves and when it arrives.
            if where[2] == OUTGOING and concerns(data, port):
                writer.writepkt(data, time.time())


def concerns(data: bytes, port: int) -> bool:
    """The packet is TCP from or to this port."""
    tcp = getattr(dpkt.ethernet.Ethernet(data).data, "data", None)
    return isinstance(tcp, dpkt.tcp.TCP) and port in (tcp.sport, tcp.dport)
