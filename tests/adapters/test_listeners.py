"""Finding the processes that listen at an address, in /proc and in an imitation of it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.adapters.address import Address
from fencepost.adapters.wire.process_control import PROC, find_listeners, with_descendants

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
NUMBER_OF_LISTENER = 10


def write_process(proc: Path, number: int, parent: int, *sockets: int) -> None:
    """A process with these sockets open."""
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{number} (a) name) S {parent} {number} {number} 0")
    for place, inode in enumerate(sockets):
        (folder / "fd" / str(place)).symlink_to(f"socket:[{inode}]")


def write_socket(proc: Path, table: str, ip: str, inode: int, state: str = "0A", port: int = 9092) -> None:
    """A socket with this IP address, as /proc/net writes it on a machine of this byte order."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    raw = socket.inet_pton(family, ip)
    words = (raw[begin : begin + 4] for begin in range(0, len(raw), 4))
    written = "".join(f"{socket.htonl(int.from_bytes(word, 'big')):08X}" for word in words)
    file = proc / "net" / table
    file.parent.mkdir(parents=True, exist_ok=True)
    nobody, rest = f"{'0' * len(written)}:0000", "00000000:00000000 00:00000000 00000000 0 0"
    line = f"   0: {written}:{port:04X} {nobody} {state} {rest} {inode}\n"
    file.write_text((file.read_text() if file.exists() else HEADER) + line)


@pytest.mark.parametrize(
    ("table", "ip"),
    [("tcp", "127.0.0.1"), ("tcp", "0.0.0.0"), ("tcp6", "::ffff:127.0.0.1"), ("tcp6", "::")],
)
def test_who_listens_at_the_address_is_found_with_what_it_started(tmp_path: Path, table: str, ip: str) -> None:
    write_socket(tmp_path, table, ip, 77)
    write_process(tmp_path, NUMBER_OF_LISTENER, 1, 5, 77)
    write_process(tmp_path, 11, NUMBER_OF_LISTENER)
    write_process(tmp_path, 12, 11)
    write_process(tmp_path, 13, 1, 78)
    assert find_listeners(tmp_path, [("127.0.0.1", 9092)]) == {NUMBER_OF_LISTENER, 11, 12}


@pytest.mark.parametrize(
    ("ip", "state", "asked"),
    [
        ("127.0.0.1", "01", ("127.0.0.1", 9092)),
        ("127.0.0.1", "0A", ("127.0.0.1", 9093)),
        ("127.0.0.2", "0A", ("127.0.0.1", 9092)),
        ("0.0.0.0", "0A", ("192.0.2.1", 9092)),
    ],
    ids=["does not listen", "another port", "another address", "another machine"],
)
def test_nobody_else_is_taken_for_the_target(tmp_path: Path, ip: str, state: str, asked: Address) -> None:
    write_socket(tmp_path, "tcp", ip, 77, state)
    write_process(tmp_path, NUMBER_OF_LISTENER, 1, 77)
    assert find_listeners(tmp_path, [asked]) == frozenset()


def test_nothing_is_found_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert find_listeners(tmp_path / "proc", [("127.0.0.1", 9092)]) == frozenset()


def test_a_process_that_has_ended_has_no_descendants(tmp_path: Path) -> None:
    write_process(tmp_path, 5, 1)
    (tmp_path / "6" / "fd").mkdir(parents=True)
    assert with_descendants(tmp_path, [5, 6]) == {5, 6}


@pytest.mark.skipif(not PROC.is_dir(), reason="sockets are read from /proc")
def test_this_process_and_its_child_are_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child,
    ):
        found = find_listeners(PROC, [("localhost", server.getsockname()[1])])
    assert {os.getpid(), child.pid} <= found
