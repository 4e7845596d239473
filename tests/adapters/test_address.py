"""Addresses of targets, and where servers listen."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.adapters.address import (
    Address,
    Bootstrap,
    TargetError,
    format_address,
    format_url,
    parse_address,
    parse_bootstrap,
    parse_target,
)
from fencepost.adapters.wire.process_control import PROC, find_listeners, with_descendants

# --- Addresses: how they are read and written, and what is refused.


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka://localhost:9092", ("localhost", 9092)),
        ("kafka://127.0.0.1:1", ("127.0.0.1", 1)),
        ("kafka://[::1]:9092", ("::1", 9092)),
        ("kafka://broker-1.example.org:65535", ("broker-1.example.org", 65535)),
        ("KAFKA://localhost:9092", ("localhost", 9092)),
        ("localhost:9092", ("localhost", 9092)),
        ("[::1]:9092", ("::1", 9092)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_target(text) == Bootstrap((address,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kafka://",
        "kafka://host",
        "kafka://host:",
        "kafka://host:9092/x",
        "kafka://a:1,b",
        "kafka://a:1,",
        "kafka://::1:9092",
        "http://host:9092",
        "kafka+tls://host:9092",
        "kafka://kafka://host:9092",
        "host",
        "kafka://h:٣",
    ],
)
def test_a_bad_address_is_named(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert (
        str(caught.value)
        == f"{text!r} is no target: write bundled, host:port, kafka://host:port or kafka+ssl://host:port"
    )


@pytest.mark.parametrize(("text", "port"), [("kafka://h:0", "0"), ("h:65536", "65536"), ("a:1,b:123456,c", "123456")])
def test_a_bad_port_is_named(text: str, port: str) -> None:
    with pytest.raises(TargetError, match=f"is no target: its port is {port}, which is not from 1 to 65535"):
        parse_target(text)


@pytest.mark.parametrize(
    "text", ["kafka://user@host:1", "user:geheim@h:1", "kafka+ssl://u:gehe@im@h:1", "ftp://u:geheim@h"]
)
def test_a_password_in_an_address_is_not_repeated(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert str(caught.value) == (
        "an address holds no user and no password: leave out all before the @, "
        "and put user and password_env into [security] of a profile"
    )


def test_several_addresses_and_tls() -> None:
    addresses = (("a", 1), ("::1", 2), ("c", 3))
    assert parse_target("a:1,[::1]:2, c:3") == Bootstrap(addresses)
    assert parse_target("kafka://a:1,[::1]:2,c:3") == Bootstrap(addresses)
    assert parse_target(" Kafka+SSL://a:1,[::1]:2,c:3") == Bootstrap(addresses, wants_tls=True)


def test_addresses_that_a_start_command_may_print() -> None:
    assert parse_address("127.0.0.1:9092\n") == ("127.0.0.1", 9092)
    assert parse_address("[::1]:9092\n") == ("::1", 9092)
    assert parse_address("PLAINTEXT://host:9092\n") is None


@pytest.mark.parametrize("address", [("127.0.0.1", 9092), ("::1", 1), ("fe80::1%eth0", 65_535), ("broker-1.local", 80)])
def test_addresses_are_written_as_they_are_read(address: tuple[str, int]) -> None:
    assert parse_address(format_address(*address)) == address
    assert parse_bootstrap(format_url(address)) == Bootstrap((address,))
    assert parse_bootstrap(format_url(address, uses_tls=True)) == Bootstrap((address,), wants_tls=True)


# --- Finding the processes that listen at an address, in /proc and in an imitation of it.

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
