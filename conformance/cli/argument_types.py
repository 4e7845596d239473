"""The types of command-line arguments: each returns the value of a text, or raises `ArgumentTypeError`.

And arguments that several commands have.
"""

import re
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from fencepost.adapters.address import Bootstrap

MAX_NODES = 9
_MAX_PORT = 65_535
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_patterns(parser: ArgumentParser, option: str, help: str) -> None:
    """Add an option that takes patterns, and may be given several times."""
    parser.add_argument(option, metavar="PATTERN", nargs="+", action="extend", default=[], help=help)


def location(text: str) -> Path | str:
    """A path, which may be given as a `file:` URI; other URIs stay as they are."""
    scheme, separator, _ = text.partition("://")
    if scheme == "file" and separator:
        return Path(unquote(urlsplit(text).path))
    return text if separator else Path(text)


def count(text: str) -> int:
    """An integer of at least 1."""
    if not _is_number(text) or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def node_count(text: str) -> int:
    """The number of nodes of a cluster."""
    if not _is_number(text) or not 1 <= int(text) <= MAX_NODES:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_NODES}")
    return int(text)


def topic_partitions(text: str) -> tuple[str, int]:
    """The name of a topic and the number of its partitions."""
    name, _, number = text.rpartition("=")
    if not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=N, such as orders=6")
    return name, count(number)


def whole(text: str) -> int:
    """An integer of at least 0."""
    if not _is_number(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def port(text: str) -> int:
    """The port of a peer, 1 to 65535."""
    if not _is_number(text) or not 0 < int(text) <= _MAX_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def listening_port(text: str) -> int:
    """A port to listen on, 0 for any free one."""
    return 0 if text == "0" else port(text)


def address(text: str) -> tuple[str, int]:
    """The host and the port of host:port, or of kafka://host:port."""
    found = bootstrap(text)
    if len(found.addresses) > 1 or found.wants_tls:
        raise ArgumentTypeError(f"{text!r} is not host:port")
    return found.addresses[0]


def bootstrap(text: str) -> "Bootstrap":
    """The addresses of a cluster, which may be URLs."""
    from fencepost.adapters.address import CredentialsError, parse_bootstrap

    try:
        found = parse_bootstrap(text)
    except CredentialsError as error:
        raise ArgumentTypeError(str(error)) from None
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not host:port")
    return found


def listening_address(text: str) -> tuple[str, int]:
    """The host and the port of host:port, port 0 for any free one."""
    host, _, end = text.rpartition(":")
    return (address(f"{host}:1")[0], 0) if end == "0" else address(text)


def size(text: str) -> int:
    """The bytes of a size such as 500k, 50M or 1G."""
    found = re.fullmatch(r"([1-9][0-9]*)([kKmMgG]?)", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a size such as 50M")
    return int(found[1]) * _UNITS[found[2].lower()]


def seconds(text: str) -> float:
    """A duration of 10 ms or more, in seconds."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not 0.01 <= float(text) <= 1e9:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def duration(text: str) -> float:
    """A duration from 0 up, in seconds."""
    return 0.0 if text == "0" else seconds(text)


def setting(text: str) -> tuple[str, str]:
    """The key and the value of KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
