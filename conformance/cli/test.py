"""`fencepost test`: a target in, a report out."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.argument_types import whole
from fencepost.conformance.cli.console import Console, write_reports

TARGET_HELP = "bundled, or kafka://host:port; without one, the profile starts it"
PROFILE_HELP = "description of the target, in TOML"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost test`."""
    parser.usage = "%(prog)s [TARGET] [options]"  # a TARGET right after --only would be taken for a pattern
    parser.add_argument("target", metavar="TARGET", nargs="?", default="", help=TARGET_HELP)
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        default=[],
        help="requirements to test, such as JOIN-29 or 'JOIN-*' (default: all)",
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--smoke", action="store_true", help="run only the smoke scenarios")
    extent.add_argument("--slow", action="store_true", help="also wait out the fixed timer of 300 s")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the random schedules (default: 0)")
    parser.add_argument(
        "--schedules",
        metavar="N",
        type=whole,
        default=0,
        help="also run N random schedules, judged by the requirements of --only (default: 0)",
    )
    parser.add_argument(
        "--tours",
        metavar="N",
        type=whole,
        default=0,
        help="also run N transition tours of a small group (default: 0)",
    )
    parser.add_argument(
        "--intrusive",
        action="store_true",
        help="also send requests that a faulty broker may carry out on groups of others",
    )
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE_HELP)
    parser.add_argument("--json", metavar="F", type=Path, help="write the report as JSON")
    parser.add_argument("--junit", metavar="F", type=Path, help="write the report as JUnit XML")
    parser.add_argument(
        "--save", metavar="DIR", type=Path, help="save the traces of failures, those of random schedules shrunk"
    )
    parser.add_argument("--traces", metavar="DIR", type=Path, help="save every trace")


def run(options: argparse.Namespace, console: Console) -> int:
    """Test the target, print the report and write it to files."""
    if not options.target and options.profile is None:
        return console.fail("name a TARGET, or a --profile that starts it (see fencepost test --help)")

    import asyncio

    from fencepost.conformance.plan import Plan
    from fencepost.conformance.reports.text import render_report
    from fencepost.conformance.run import runner
    from fencepost.model.catalogue.classic import matching_requirements

    for pattern in options.only:
        matching_requirements(pattern)
    for folder in filter(None, (options.save, options.traces)):
        folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        target=options.target,
        patterns=tuple(options.only),
        smoke=options.smoke,
        slow=options.slow,
        seed=options.seed,
        schedules=options.schedules,
        tours=options.tours,
        profile=options.profile,
        save=options.save,
        traces=options.traces,
        intrusive=options.intrusive,
    )
    with console.progress() as progress:
        report = asyncio.run((options.runner or runner).run(plan, progress))
    console.print(render_report(report, colour=console.has_colour()))
    return write_reports(options, report, console)
