"""`fencepost replay`: a recorded failure in, its outcome on a target or with a client out."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.test import NO_TARGET, PROFILE_HELP, TARGET_HELP
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fencepost.conformance.plan import ReplayResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost replay`."""
    parser.usage = "%(prog)s [options] TRACE (TARGET | -- CMD [ARG ...])"
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a saved trace")
    parser.add_argument("target", metavar="TARGET", nargs="?", default="", help=TARGET_HELP)
    parser.add_argument("command", metavar="CMD", nargs="*", help="the client and its arguments, for a client's trace")
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE_HELP)
    parser.add_argument(
        "--as-test", action="store_true", help="write the schedule as a test for pytest, which needs no TARGET here"
    )
    parser.add_argument("-o", "--output", metavar="F", type=Path, help="the file for the test (default: print it)")


def run(options: argparse.Namespace, console: Console) -> int:
    """Replay the trace against the target and print the outcome."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.plan import ReplayOutcome
    from fencepost.conformance.reports.text import render_replay
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner

    if options.as_test:
        return write_test(options.trace, options.output, console)
    if options.output is not None:
        raise UsageError("replay", "-o is for --as-test")
    is_of_client = is_readable_client_trace(options.trace)
    if is_of_client and (not options.target or options.profile is not None):
        raise UsageError("replay", "the trace of a client; name the command of a client behind --, and no profile")
    if options.command and not is_of_client:
        raise UsageError("replay", "the trace of a coordinator; name a TARGET, not a command")
    if not options.target and options.profile is None:
        raise UsageError("replay", NO_TARGET)
    exit_codes = {
        ReplayOutcome.FIXED: ExitCode.CONFORMANT,
        ReplayOutcome.STILL_FAILS: ExitCode.VIOLATION,
        ReplayOutcome.DIFFERENT: ExitCode.VIOLATION,
        ReplayOutcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    }
    if is_of_client:
        replaying = replay_with(options.trace, (options.target, *options.command))
    else:
        replaying = (options.runner or runner).replay(options.trace, options.target, options.profile)
    result = run_interruptible(replaying)
    for each in result.stays:
        console.log(each)
    console.print(render_replay(result, colour=console.has_colour(), width=console.width()))
    return exit_codes[result.outcome]


def is_readable_client_trace(path: Path) -> bool:
    """Whether a file is the trace of a client; what cannot be read is told where it is read."""
    from fencepost.conformance.clients.judging import find_client_traces

    return bool(find_client_traces([path]))


def replay_with(trace: Path, command: tuple[str, ...]) -> "Coroutine[Any, Any, ReplayResult]":
    """Play the schedule of a client's trace with the client of a command."""
    from fencepost.conformance.cli.clients import START_S, make_play
    from fencepost.conformance.clients.judging import find_client_traces
    from fencepost.conformance.clients.replay import replay_client

    playing, protocol = make_play(command, find_client_traces([trace])[trace], START_S)
    return replay_client(trace, playing, protocol)


def write_test(trace: Path, output: Path | None, console: Console) -> int:
    """Write the schedule of a trace as a test, and return the exit code."""
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.testing.regression_test import write_regression_test
    from fencepost.traces.files.trace_files import open_trace

    header, events = open_trace(trace)
    text = write_regression_test(header, tuple(events))
    if output is None:
        console.print(text)
    else:
        output.write_text(text, encoding="utf-8")
    return ExitCode.CONFORMANT
