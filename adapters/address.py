"""Network addresses: host:port, with the brackets of IPv6, and the bootstrap addresses of a cluster.

A cluster is written `host:port`, `kafka://host:port` or `kafka+ssl://host:port`, with commas between several addresses
(`kafka://a:9092,b:9092`). Secrets are never part of an address.
"""

import os
import re
import socket
from dataclasses import dataclass
from typing import TypeAlias

from fencepost.model.errors import FencepostError

Address: TypeAlias = tuple[str, int]
"""Host and port; the host of IPv6 without brackets."""

URL_SCHEME, TLS_SCHEME = "kafka://", "kafka+ssl://"
ADDRESS_FORMS = "host:port, kafka://host:port or kafka+ssl://host:port"
"""How an address is written."""
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:/\[\]@?#,]+)):([0-9]{1,5})")


class TargetError(FencepostError):
    """The target cannot be used. The message is one line: the problem, its place and the remedy."""


class CredentialsError(TargetError):
    """The text holds a user or a password beside an address; the message does not repeat it."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Addresses at which a cluster is asked, one after the other; `wants_tls` if they were written with kafka+ssl://."""

    addresses: tuple[Address, ...]
    wants_tls: bool = False


def parse_address(text: str) -> Address | None:
    """The address that `text` writes as host:port, or None if it is not one. White space around it is ignored."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or not 0 < int(found[3]) < 65_536:
        return None
    return (found[1] or found[2], int(found[3]))


def parse_bootstrap(text: str) -> Bootstrap | None:
    """The bootstrap addresses that `text` writes, with or without a scheme, or None if it writes none. Raises
    `CredentialsError`."""
    if "@" in text:
        raise CredentialsError(
            "an address holds no user and no password: leave out all before the @, "
            "and put user and password_env into [security] of a profile"
        )
    scheme, mark, hosts = text.strip().rpartition("://")
    if (scheme + mark).lower() not in ("", URL_SCHEME, TLS_SCHEME):
        return None
    addresses = [parse_address(part) for part in hosts.split(",")]
    found = tuple(each for each in addresses if each is not None)
    return Bootstrap(found, (scheme + mark).lower() == TLS_SCHEME) if len(found) == len(addresses) else None


def parse_target(text: str) -> Bootstrap:
    """The bootstrap addresses of a target that is not bundled. Raises `TargetError`."""
    found = parse_bootstrap(text)
    if found is not None:
        return found
    from difflib import get_close_matches

    if get_close_matches(text.lower(), ["bundled"], cutoff=0.7):
        raise TargetError(f"{text!r} is no target; did you mean 'bundled'?")
    raise TargetError(f"{text!r} is no target: {describe_bad_port(text) or f'write bundled, {ADDRESS_FORMS}'}")


def describe_bad_port(text: str) -> str:
    """What is wrong with the port of an address, "" if nothing is or it has none."""
    ports = re.findall(r":([0-9]+)(?=,|\s*$)", text)
    wrong = next((port for port in ports if len(port) > 5 or not 0 < int(port) < 65_536), "")
    return f"its port is {wrong}, which is not from 1 to 65535" if wrong else ""


def format_address(host: str, port: int) -> str:
    """host:port, the host in brackets if it is IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def describe_listen_error(host: str, port: int, error: OSError | UnicodeError) -> str:
    """The reason for a failure to listen on host:port, and the remedy."""
    if isinstance(error, UnicodeError | socket.gaierror):
        return f"{format_address(host, port)}: no such host; choose an address of this machine"
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"{format_address(host, port)}: cannot listen: {reason}; choose another port, 0 for any, or another host"


def format_url(address: Address, *, uses_tls: bool = False) -> str:
    """kafka://host:port of `address`, kafka+ssl://host:port if it `uses_tls`."""
    return (TLS_SCHEME if uses_tls else URL_SCHEME) + format_address(*address)
