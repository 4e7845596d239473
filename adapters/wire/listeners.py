"""The processes of this machine that listen at an address, from /proc of Linux; none elsewhere."""

import os
import socket
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from fencepost.adapters.address import Address
from fencepost.adapters.wire.process_use import process_folders, stat_fields

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
