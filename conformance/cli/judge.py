"""The commands that take recorded traces: `judge` without a target, and `replay` with one."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.conformance.cli.console import Console, UsageError, command_to_type, run_interruptible
from fencepost.conformance.cli.options import (
    JOBS,
    LOUDNESS,
    NO_TARGET,
    PROFILE,
    REPORT_FILES,
    TARGET_HELP,
    Command,
    Option,
    report_paths,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fencepost.conformance.events import Progress
    from fencepost.conformance.plan import ReplayResult, Runner
    from fencepost.conformance.results import Report

_ENDINGS = ("*.jsonl", "*.jsonl.gz")


# --- judge


def run_judge(options: argparse.Namespace, console: Console) -> int:
    """Judge the traces, print the report, and write it to files."""
    from fencepost.conformance.cli.files import ReportFiles, check_outputs
    from fencepost.conformance.run import runner
    from fencepost.traces.events import collect_rarely

    paths = tuple(find_traces(options.traces))
    refuse_reports(paths)
    check_outputs(report_paths(options), inputs=paths)
    files = ReportFiles(console, report_paths(options))
    with files.write_failure("recorded traces"), console.progress() as progress, collect_rarely():
        report = judge_traces(paths, progress, options.runner or runner, options.jobs)
    files.write(report)
    files.show(report)
    return files.exit_code(report.exit_code())


def refuse_reports(paths: Sequence[Path]) -> None:
    """Raises `SourceError` for a report or its page, which a command of its own shows, and for a log or a capture, of
    which another one makes a trace. What is wrong with anything else, reading it says."""
    from fencepost.conformance.cli.files import SourceError, describe_log_or_capture, is_report, read_head

    for path in paths:
        if path.name.endswith((".jsonl", ".jsonl.gz")) or not path.is_file():
            continue
        head = read_head(path)
        shown = f"a report, not a trace; to see it: {command_to_type('report', str(path))}"
        if other := shown if is_report(head) else describe_log_or_capture(head, path):
            raise SourceError(f"{path}: {other}")


def judge_traces(
    paths: Sequence[Path], progress: "Callable[[Progress], None]", runner: "Runner", jobs: int = 1
) -> "Report":
    """The report on traces of coordinators, or on those of clients. Raises `TraceError`, and `UsageError` for both at
    once."""
    from fencepost.conformance.clients.protocol import client_protocol
    from fencepost.conformance.clients.run import find_client_traces, judge_client_files

    clients = find_client_traces(paths)
    if not clients:
        return runner.judge_files(paths, progress)
    if len(clients) < len(paths):
        other = next(path for path in paths if path not in clients)
        raise UsageError("judge", f"{min(clients)} is the trace of a client, and {other} is none; judge them apart")
    return judge_client_files(tuple(clients), progress, client_protocol(is_driven=any(clients.values())))


def find_traces(paths: Sequence[Path]) -> Iterator[Path]:
    """The traces that the paths name: those in a folder for the folder, by name. Raises `TraceError` for a folder
    without any."""
    from fencepost.traces.files.trace_files import TraceError

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(trace for ending in _ENDINGS for trace in path.rglob(ending))
        if not found:
            raise TraceError(str(path), 0, "no trace in this folder: their names end in .jsonl or .jsonl.gz")
        yield from found


# --- replay


def run_replay(options: argparse.Namespace, console: Console) -> int:
    """Replay the trace against the target and print the outcome."""
    from fencepost.conformance.clients.run import find_client_traces
    from fencepost.conformance.plan import ReplayOutcome
    from fencepost.conformance.reports.report import render_replay
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner

    if options.as_test:
        return write_test(options.trace, options.output, console)
    if options.output is not None:
        raise UsageError("replay", "-o is for --as-test")
    is_of_client = bool(find_client_traces([options.trace]))  # what cannot be read is told where it is read
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
    console.print_line(render_replay(result, colour=console.has_colour(), width=console.width()).rstrip("\n"))
    return exit_codes[result.outcome]


def replay_with(trace: Path, command: tuple[str, ...]) -> "Coroutine[Any, Any, ReplayResult]":
    """Play the schedule of a client's trace with the client of a command."""
    from fencepost.conformance.cli.test import START_S, make_player
    from fencepost.conformance.clients.run import find_client_traces, replay_client

    playing, protocol = make_player(command, find_client_traces([trace])[trace], START_S)
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


# --- the commands

COMMANDS = {
    "judge": Command(
        run_judge,
        (
            Option(
                "traces",
                "TRACE",
                "a recorded trace, a folder of them (.jsonl, .jsonl.gz), or - for standard input",
                Path,
                nargs="+",
            ),
            JOBS,
            *REPORT_FILES,
            LOUDNESS,
        ),
        epilog="A trace that cannot be read is reported, and the others are judged: exit code 1 if one of them has a "
        "violation, else 2. Exit code 3 if nothing was checked.",
    ),
    "replay": Command(
        run_replay,
        (
            Option("trace", "TRACE", "a saved trace", Path),
            Option("target", "TARGET", TARGET_HELP, nargs="?", default="", tells_default=False),
            Option("command", "CMD", "the client and its arguments, for a client's trace", nargs="*"),
            PROFILE,
            Option("--as-test", help="write the schedule as a test for pytest, which needs no TARGET here"),
            Option("-o --output", "F", "the file for the test (default: print it)", Path),
            LOUDNESS,
        ),
        usage="%(prog)s [options] TRACE (TARGET | -- CMD [ARG ...])",
    ),
}
