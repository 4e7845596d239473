"""`fencepost test-assignor`: a program with an assignor in, a report out."""

import argparse

from fencepost.conformance.cli.argument_types import whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.report_options import add_report_options, report_paths
from fencepost.conformance.cli.usage import UsageError

EPILOG = (
    "CMD reads groups from standard input and writes their assignments to standard output, a JSON object a line. NAME "
    "is that of the assignor on the wire: range, roundrobin, sticky and cooperative-sticky are held against their "
    "rules, others against what every assignor promises."
)
DEFAULT_GROUPS = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost test-assignor`."""
    parser.usage = "%(prog)s [options] NAME -- CMD [ARG ...]"
    parser.epilog = EPILOG
    parser.add_argument("name", metavar="NAME", help="the name of the assignor")
    parser.add_argument("command", metavar="CMD", nargs="*", help="the program and its arguments")
    parser.add_argument(
        "--groups",
        metavar="N",
        type=whole,
        default=DEFAULT_GROUPS,
        help=f"ask for N random groups (default: {DEFAULT_GROUPS})",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the random groups (default: 0)")
    add_report_options(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Test the assignor, print the report, and write it to files."""
    from fencepost.adapters.assignor import AssignorProgram
    from fencepost.conformance.assignors.run import AssignorTest
    from fencepost.conformance.cli.outputs import ReportFiles, check_outputs, ending_of
    from fencepost.conformance.reports.text import render_report
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.specification import CLIENT_SPECIFICATION

    if not options.command:
        raise UsageError("test-assignor", "name the command of an assignor behind --")
    check_outputs(report_paths(options))
    files = ReportFiles(console, report_paths(options))
    program, target = AssignorProgram(options.command), " ".join(options.command)
    try:
        report = AssignorTest(options.name, program.assign, options.groups, options.seed, target).run()
    except BaseException as error:
        files.write_failure(target, (), ending_of(error), CLIENT_SPECIFICATION)
        raise
    finally:
        program.close()
    files.write(report)
    colour = console.has_colour() and not files.takes_stdout
    text = render_report(report, colour=colour, width=console.width())
    (console.print_error if files.takes_stdout else console.print)(text)
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()
