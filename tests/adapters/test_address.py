"""Addresses: how they are read and written, and what is refused."""

import pytest

from fencepost.adapters.address import (
    Bootstrap,
    TargetError,
    format_address,
    format_url,
    parse_address,
    parse_bootstrap,
    parse_target,
)


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
