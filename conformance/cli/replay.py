"""`fencepost replay`: a recorded failure in, its outcome on a target out."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.test import PROFILE_HELP, TARGET_HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost replay`."""
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a saved trace")
    parser.add_argument("target", metavar="TARGET", nargs="?", default="", help=TARGET_HELP)
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE_HELP)


def run(options: argparse.Namespace, console: Console) -> int:
    """Replay the trace against the target and print the outcome."""
    if not options.target and options.profile is None:
        return console.fail("name a TARGET, or a --profile that starts it (see fencepost replay --help)")

    import asyncio

    from fencepost.conformance.plan import ReplayOutcome
    from fencepost.conformance.reports.text import render_replay
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner

    exit_codes = {
        ReplayOutcome.FIXED: ExitCode.CONFORMANT,
        ReplayOutcome.STILL_FAILS: ExitCode.VIOLATION,
        ReplayOutcome.DIFFERENT: ExitCode.VIOLATION,
        ReplayOutcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    }
    result = asyncio.run((options.runner or runner).replay(options.trace, options.target, options.profile))
    console.print(render_replay(result, colour=console.has_colour()))
    return exit_codes[result.outcome]
