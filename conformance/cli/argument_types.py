"""The former place of what options take."""

from argparse import ArgumentParser

from fencepost.conformance.cli.options import (
    address,
    count,
    listening_port,
    location,
    node_count,
    port,
    setting,
    topic_partitions,
    whole,
)

__all__ = [
    "address",
    "count",
    "listening_port",
    "location",
    "node_count",
    "port",
    "setting",
    "topic_partitions",
    "whole",
]


def add_patterns(parser: ArgumentParser, option: str, help: str) -> None:
    """Add an option that takes patterns, and may be given several times."""
    parser.add_argument(option, metavar="PATTERN", nargs="+", action="extend", default=[], help=help)
