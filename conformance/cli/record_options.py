"""The options of `fencepost record`, apart from its work: help should not wait for that."""

import argparse
import re
from pathlib import Path

from fencepost.adapters.wire.pool import Address
from fencepost.adapters.wire.process_control import parse_address

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be said on the command line."""
    parser.add_argument("--listen", metavar="H:P", type=_listener, default=("127.0.0.1", 0), help=_LISTEN)
    parser.add_argument("--upstream", metavar="H:P", type=_address, required=True, help="a broker of the cluster")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the trace to write (.gz: gzip)"
    )
    parser.add_argument("--rotate", metavar="SIZE", type=_size, help="begin a new file after so many bytes (50M, 1G)")
    parser.add_argument("--sync", metavar="S", type=_seconds, default=1.0, help=_SYNC)
    parser.add_argument("--seconds", metavar="S", type=_seconds, help="stop by itself (default: at Ctrl-C)")
    parser.add_argument("--profile", metavar="F", type=Path, help="settings and grace of the cluster, in TOML")
    parser.add_argument(
        "--everything", action="store_true", help="keep also bytes that may hold records or credentials"
    )


_LISTEN = "where clients come; other brokers of the cluster get free ports (default: 127.0.0.1 and a free port)"
_SYNC = "seconds after which an event is on the disk at the latest (default: 1)"


def _address(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port")
    return address


def _listener(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return (_address(f"{host}:1")[0], 0) if port == "0" else _address(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]*)([kKmMgG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 50M")
    return int(found[1]) * _UNITS[found[2].lower()]


def _seconds(text: str) -> float:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not 0.01 <= float(text) <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)
