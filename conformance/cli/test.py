"""`fencepost test`: a target in, a report out."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import add_patterns, count, duration, whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.report_options import BADGE, add_report_options, report_paths
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.conformance.events import RunEvent
    from fencepost.conformance.plan import Plan

TARGET_HELP = (
    "bundled, host:port, or kafka+ssl://host:port for TLS; with commas, several addresses; another scheme names "
    "another protocol; "
    "without one, the profile starts it"
)
NO_TARGET = "name a TARGET, or a --profile that starts it"
PROFILE_HELP = "description of the target, in TOML; its [security] has the keys of TLS and SASL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost test`."""
    parser.usage = "%(prog)s [TARGET] [options]"
    # Behind a list of patterns the target is taken for one of them.
    parser.add_argument("target", metavar="TARGET", nargs="?", help=TARGET_HELP)
    add_selection(parser)
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--smoke", action="store_true", help="run only the smoke scenarios")
    extent.add_argument("--slow", action="store_true", help="also wait out the fixed timer of 300 s")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the random schedules (default: 0)")
    parser.add_argument(
        "--schedules",
        metavar="N",
        type=whole,
        help="run N random schedules, judged by the requirements of --only (default: 60 in this process, 20 over the "
        "network, none with --smoke or --only)",
    )
    parser.add_argument(
        "--tours",
        metavar="N",
        type=whole,
        default=0,
        help="also run N transition tours of a small group (default: 0)",
    )
    add_limits(parser)
    parser.add_argument(
        "--intrusive",
        action="store_true",
        help="also send requests that a faulty broker may carry out on groups of others",
    )
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE_HELP)
    add_report_options(parser)
    parser.add_argument(
        BADGE, metavar="F", type=Path, help="write a badge of the core tier as SVG; see fencepost badge"
    )
    parser.add_argument(
        "--save", metavar="DIR", type=Path, help="save the traces of failures, those of random schedules shrunk"
    )
    parser.add_argument("--traces", metavar="DIR", type=Path, help="save every trace")
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("-v", "--verbose", action="store_true", help="a line for each scenario on standard error")
    loudness.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, and only the last line of the report"
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that select requirements."""
    add_patterns(parser, "--only", "requirements to test, such as JOIN-29 or 'JOIN-*' (default: all)")
    add_patterns(
        parser, "--exclude", "requirements to leave out; scenarios that show others as well are played all the same"
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that end a run early."""
    failures = parser.add_mutually_exclusive_group()
    failures.add_argument(
        "-x", dest="max_failures", action="store_const", const=1, help="end the run at the first failed requirement"
    )
    failures.add_argument(
        "--max-failures", metavar="N", type=count, help="end the run once N requirements have failed (default: never)"
    )
    parser.add_argument("--seconds", metavar="S", type=duration, help="end the run after S seconds, with exit code 3")
    parser.add_argument(
        "--shrink-seconds",
        metavar="S",
        type=duration,
        default=60.0,
        help="shrink failing random schedules for S seconds in all (default: 60)",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Test the target; its report is printed and written as soon as it is there, whatever ended the run."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.cli.outputs import ReportFiles, check_outputs, ending_of
    from fencepost.conformance.events import RunFinished
    from fencepost.conformance.reports.progress import VerboseDisplay
    from fencepost.conformance.reports.text import outcome_line, render_report
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner
    from fencepost.conformance.run.stream import progress_consumer

    plan = plan_of(options)
    requirements = runner.requirements_of(plan)
    require_libraries(plan)
    check_outputs(report_paths(options), {"--save": options.save, "--traces": options.traces}, [options.profile])
    files = ReportFiles(console, report_paths(options))

    def print_report(event: "RunEvent") -> None:
        if isinstance(event, RunFinished):
            progress.close()
            text = (
                f"{outcome_line(event.report)}\n"
                if options.quiet
                else render_report(event.report, colour=colour, width=console.width())
            )
            (console.print_error if files.takes_stdout else console.print)(text)
            if event.report.ended is not None and event.report.ended.detail:
                console.print_error(event.report.ended.detail)
                console.log("this is an error in Fencepost itself; please report it with the lines above")

    colour = console.has_colour() and not files.takes_stdout
    with console.progress() as progress:
        consumers: list[Callable[[RunEvent], None]] = [files, print_report]
        if options.verbose:
            consumers.insert(0, VerboseDisplay(console.stderr()))
        elif not options.quiet:
            consumers.insert(0, progress_consumer(progress))
        try:
            report = run_interruptible((options.runner or runner).run(plan, *consumers))
        except BaseException as error:
            files.write_failure(plan.target, [each.id for each in requirements], ending_of(error))
            raise
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()


def plan_of(options: argparse.Namespace) -> "Plan":
    """The plan that the options describe. Raises `UsageError` without a target."""
    from fencepost.conformance.plan import Plan

    plan = Plan(
        target=take_target(options),
        patterns=tuple(options.only),
        smoke=options.smoke,
        slow=options.slow,
        seed=options.seed,
        schedules=options.schedules or 0,
        tours=options.tours,
        profile=options.profile,
        save=options.save,
        traces=options.traces,
        excluded=tuple(options.exclude),
        max_failures=options.max_failures,
        seconds=options.seconds,
        shrink_seconds=options.shrink_seconds,
        intrusive=options.intrusive,
    )
    return plan if options.schedules is not None else replace(plan, schedules=plan.default_schedules)


def take_target(options: argparse.Namespace) -> str:
    """The target, taken out of the patterns if it was written behind them, "" for that of the profile. Raises
    `UsageError` without either."""
    if options.target is not None:
        return str(options.target)
    for patterns in (options.only, options.exclude):
        if patterns and is_target(patterns[-1]):
            return str(patterns.pop())
    if options.profile is not None:
        return ""
    raise UsageError("test", NO_TARGET)


def is_target(word: str) -> bool:
    """Whether a word is a target and no pattern of requirements."""
    return word == "bundled" or "://" in word


def require_libraries(plan: "Plan") -> None:
    """Raises `ModuleNotFoundError` now if the plan needs a library that is not installed."""
    if plan.tours and find_spec("networkx") is None:
        raise ModuleNotFoundError(name="networkx")
