"""`fencepost badge`: a saved report in; a badge out, or a check that a badge follows from it."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.conformance.badges.badge import Badge

TIERS = ("core", "limits", "transactions", "durability", "cluster")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost badge`."""
    parser.add_argument("report", metavar="REPORT", type=Path, help="a saved report: JSON, or the page made of one")
    places = parser.add_mutually_exclusive_group(required=True)
    places.add_argument("-o", "--output", metavar="DIR", type=Path, help="write fencepost.svg, .json and .md there")
    places.add_argument("--check", metavar="DIR", type=Path, help="check that the files there follow from the report")
    parser.add_argument("--tier", choices=TIERS, default="core", help="the requirements to count (default: core)")
    parser.add_argument("--max-age", metavar="D", type=max_age, help="an older report is outdated: 90d (default: none)")
    parser.add_argument("--link", metavar="URL", help="address of the report (default: its file name)")
    parser.epilog = (
        "A badge is green only for a finished run of the whole catalogue of this release without violations, "
        "open questions and declared deviations. With --check the exit code is 1 if a file differs. "
        "A report that is forged as a whole is not detected."
    )


def max_age(text: str) -> int:
    """The days of an age such as 90d."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})d", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days such as 90d")
    return int(found[1])


def run(options: argparse.Namespace, console: Console) -> int:
    """Write the files of a badge, or compare them."""
    from fencepost.conformance.badges.drawing import badge_files
    from fencepost.conformance.results import ExitCode

    badge = badge_of(options)
    texts = badge_files(badge, options.link or options.report.name)
    console.print_line(f"{badge.colour}: {badge.message}")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (options.output / name).write_text(text, encoding="utf-8")
        return ExitCode.CONFORMANT
    wrong = [name for name, text in texts.items() if read_text(options.check / name) != text]
    for name in wrong:
        console.print_line(f"{options.check / name} does not follow from {options.report}")
    return ExitCode.VIOLATION if wrong else ExitCode.CONFORMANT


def badge_of(options: argparse.Namespace) -> "Badge":
    """The badge that the options ask for. Raises `ReportError`, `UsageError` and `OSError`."""
    from datetime import UTC, datetime, timedelta

    from fencepost.conformance.badges.badge import make_badge
    from fencepost.conformance.cli.report import read_report
    from fencepost.conformance.cli.report_sources import SourceKind, kind_of
    from fencepost.model.catalogue.requirement import Tier

    if kind_of(options.report) is SourceKind.TRACE:
        raise UsageError("badge", "a trace makes no badge: it shows a part of the protocol; name a saved report")
    age = timedelta(days=options.max_age) if options.max_age is not None else None
    return make_badge(read_report(options.report), Tier(options.tier), datetime.now(UTC), age)


def read_text(path: Path) -> str | None:
    """The text of a file; None if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
