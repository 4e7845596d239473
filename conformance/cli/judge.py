"""`fencepost judge`: recorded traces in, a report out."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.report_options import add_report_options, report_paths
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.conformance.events import Progress
    from fencepost.conformance.plan import Runner
    from fencepost.conformance.results import Report

_ENDINGS = ("*.jsonl", "*.jsonl.gz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost judge`."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="+",
        type=Path,
        help="a recorded trace, a folder of them (.jsonl, .jsonl.gz), or - for standard input",
    )
    add_report_options(parser)
    parser.epilog = (
        "A trace that cannot be read is reported, and the others are judged: exit code 1 if one of them has a "
        "violation, else 2. Exit code 3 if nothing was checked."
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Judge the traces, print the report, and write it to files."""
    from fencepost.conformance.cli.outputs import ReportFiles, check_outputs, ending_of
    from fencepost.conformance.reports.text import render_report
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner
    from fencepost.traces.garbage_collection import collect_rarely

    paths = tuple(find_traces(options.traces))
    check_outputs(report_paths(options), inputs=paths)
    files = ReportFiles(console, report_paths(options))
    try:
        with console.progress() as progress, collect_rarely():
            report = judge_traces(paths, progress, options.runner or runner)
    except BaseException as error:
        files.write_failure("recorded traces", (), ending_of(error))
        raise
    files.write(report)
    colour = console.has_colour() and not files.takes_stdout
    (console.print_error if files.takes_stdout else console.print)(
        render_report(report, colour=colour, width=console.width())
    )
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()


def judge_traces(paths: Sequence[Path], progress: "Callable[[Progress], None]", runner: "Runner") -> "Report":
    """The report on traces of coordinators, or on those of clients. Raises `TraceError`, and `UsageError` for both at
    once."""
    from fencepost.conformance.clients.classic import CLASSIC_CLIENTS, DRIVEN_CLIENTS
    from fencepost.conformance.clients.judging import find_client_traces, judge_client_files

    clients = find_client_traces(paths)
    if not clients:
        return runner.judge_files(paths, progress)
    if len(clients) < len(paths):
        other = next(path for path in paths if path not in clients)
        raise UsageError("judge", f"{min(clients)} is the trace of a client, and {other} is none; judge them apart")
    return judge_client_files(tuple(clients), progress, DRIVEN_CLIENTS if any(clients.values()) else CLASSIC_CLIENTS)


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
