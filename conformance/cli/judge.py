"""`fencepost judge`: recorded traces in, a report out."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost judge`."""
    parser.add_argument("traces", metavar="TRACE", nargs="+", type=Path, help="a recorded trace")


def run(options: argparse.Namespace, console: Console) -> int:
    """Judge the traces and print the report."""
    from fencepost.conformance.reports.text import render_report
    from fencepost.conformance.run import runner

    with console.progress() as progress:
        report = (options.runner or runner).judge_files(options.traces, progress)
    console.print(render_report(report, colour=console.has_colour()))
    exit_code: int = report.exit_code()
    return exit_code
