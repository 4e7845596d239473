"""The options of `fencepost zoo`, apart from what does the work: help and usage errors should not wait for it."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from fencepost.conformance.zoo.strategies import STRATEGIES


def add_arguments(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """The options of the command."""
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        default=[],
        help="bugs such as BUG-35 or 'BUG-0*', or mutants such as 'rounds.*' (default: all bugs)",
    )
    parser.add_argument(
        "--by",
        choices=STRATEGIES,
        nargs="+",
        default=list(STRATEGIES),
        help="how to look (default: all ways); what the record says of the others is kept",
    )
    parser.add_argument("--seeds", metavar="N", type=count, default=3, help="hunts of each by schedules (default: 3)")
    parser.add_argument(
        "--baseline-seeds", metavar="N", type=int, default=0, help="hunts of each by either baseline (default: 0)"
    )
    parser.add_argument("--seconds", metavar="S", type=count, default=60, help="longest hunt in seconds (default: 60)")
    parser.add_argument("--jobs", metavar="N", type=count, default=os.cpu_count() or 1, help="hunts at a time")
    parser.add_argument("--json", metavar="F", type=Path, help="write the table as JSON")
    parser.add_argument("--record", action="store_true", help="make what was found the record")
