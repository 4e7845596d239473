"""The command line: parses arguments, calls the runner of a command, and prints its report."""

import argparse
import asyncio
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from fencepost.adapters.target import TargetError
from fencepost.conformance.cli import importing, record_options
from fencepost.conformance.cli.pipeline_options import add_commands
from fencepost.conformance.cli.zoo_options import add_arguments
from fencepost.conformance.plan import Plan, ReplayOutcome, Runner
from fencepost.conformance.profile import ProfileError
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.reports.text import render_replay, render_report
from fencepost.conformance.results import ExitCode, Report
from fencepost.model.catalogue.classic import UnknownRequirement, matching_requirements
from fencepost.traces.files.trace_files import TraceError

_USER_ERRORS = (TargetError, TraceError, ProfileError, UnknownRequirement, OSError)
"""What a person can mend: reported in one line."""

_REPLAY_EXIT_CODES = {
    ReplayOutcome.FIXED: ExitCode.CONFORMANT,
    ReplayOutcome.STILL_FAILS: ExitCode.VIOLATION,
    ReplayOutcome.DIFFERENT: ExitCode.VIOLATION,
    ReplayOutcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}
_TARGET_HELP = "bundled, or kafka://host:port"


def main(arguments: Sequence[str] | None = None, runner: Runner | None = None) -> int:
    """Run one command and return its exit code. `runner` does the work; by default the kit's own."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as leave:  # argparse has printed its one line, or the help
        return ExitCode.COULD_NOT_RUN if leave.code else ExitCode.CONFORMANT
    command: Callable[[argparse.Namespace, Runner], int] = options.command
    try:
        return command(options, runner or _default_runner())
    except _USER_ERRORS as error:
        return _report_mistake(_error_text(error))
    except KeyboardInterrupt:
        _print_error("interrupted before anything was judged")
        return ExitCode.INCONCLUSIVE
    except Exception:  # a bug of ours must not pass for a violation, which is what Python's own exit code 1 says
        traceback.print_exc()
        return _report_mistake("this is an error in Fencepost itself; please report it with the lines above")


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints take one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.COULD_NOT_RUN, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fencepost",
        description="Judge implementations of the Kafka consumer-group protocol by a model of it.",
        epilog="Exit codes: 0 conformant, 1 violation, 2 could not run, 3 cut short or inconclusive.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_test(commands.add_parser("test", help="test a target and report", allow_abbrev=False))
    _add_replay(commands.add_parser("replay", help="run a recorded failure again", allow_abbrev=False))
    _add_judge(commands.add_parser("judge", help="judge recorded traces, without a target", allow_abbrev=False))
    _add_record(commands.add_parser("record", help="record real clients on a real cluster", allow_abbrev=False))
    _add_import(commands.add_parser("import", help="make traces of logs and captures", allow_abbrev=False))
    _add_serve(commands.add_parser("serve", help="serve the bundled coordinator to Kafka clients", allow_abbrev=False))
    _add_zoo(commands.add_parser("zoo", help="hunt known bugs, put back into the bundled one", allow_abbrev=False))
    _add_prove(commands.add_parser("prove", help="prove the model that judges", allow_abbrev=False))
    _add_explore(commands.add_parser("explore", help="search through small groups in full", allow_abbrev=False))
    _add_pipeline(commands.add_parser("pipeline", help="traces by the million, on Spark", allow_abbrev=False))
    return parser


def _add_test(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s TARGET [options]"  # a TARGET right after --only would be taken for a pattern
    parser.set_defaults(command=_test)
    parser.add_argument("target", metavar="TARGET", help=_TARGET_HELP)
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        default=[],
        help="requirements to test, such as JOIN-29 or 'JOIN-*' (default: all)",
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--smoke", action="store_true", help="the quickest run that means something")
    extent.add_argument("--slow", action="store_true", help="also wait out the fixed timer of 300 s")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the random schedules (default: 0)")
    parser.add_argument(
        "--schedules",
        metavar="N",
        type=_whole_number,
        default=0,
        help="play N random schedules after the scenarios; --only then limits what they are judged by (default: 0)",
    )
    parser.add_argument(
        "--tours",
        metavar="N",
        type=_whole_number,
        default=0,
        help="play N schedules that take the transitions of a small group one by one (default: 0)",
    )
    parser.add_argument("--profile", metavar="F", type=Path, help="what to know about the target, in TOML")
    parser.add_argument("--json", metavar="F", type=Path, help="write the report as JSON")
    parser.add_argument("--junit", metavar="F", type=Path, help="write the report as JUnit XML")
    parser.add_argument(
        "--save", metavar="DIR", type=Path, help="save the traces of failures, made short where schedules are random"
    )
    parser.add_argument("--traces", metavar="DIR", type=Path, help="save every trace")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_replay)
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a saved trace")
    parser.add_argument("target", metavar="TARGET", help=_TARGET_HELP)
    parser.add_argument("--profile", metavar="F", type=Path, help="what to know about the target, in TOML")


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_judge)
    parser.add_argument("traces", metavar="TRACE", nargs="+", type=Path, help="a recorded trace")


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_record)
    record_options.add_arguments(parser)


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_import)
    importing.add_arguments(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_serve)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port_number, default=9092, help="port to listen on, 0 for any (default: 9092)")
    parser.add_argument("--storage", metavar="DIR", type=Path, help="keep groups and offsets here (default: in memory)")
    parser.add_argument(
        "--slow-storage",
        metavar="MS",
        type=_whole_number,
        default=0,
        help="let whatever is stored take so many milliseconds longer (default: 0)",
    )


def _add_prove(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_prove)
    parser.add_argument(
        "--slots", metavar="N", type=_positive_number, default=3, help="places for members (default: 3)"
    )
    parser.add_argument("--partitions", metavar="N", type=_positive_number, default=3, help="partitions (default: 3)")
    parser.add_argument(
        "--protocols", metavar="N", type=_positive_number, default=2, help="protocols a member may offer (default: 2)"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the solver (default: 0)")
    parser.add_argument(
        "--states",
        metavar="N",
        type=_positive_number,
        default=100_000,
        help="where something is refuted: states to search for a real trace, in each instance (default: 100000)",
    )
    parser.add_argument("--json", metavar="F", type=Path, help="write the results as JSON")


def _add_zoo(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_zoo)
    add_arguments(parser, _positive_number)


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_pipeline)
    add_commands(parser, _positive_number)


def _add_explore(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_explore)
    sizes = (
        ("members", 2, "processes that want to be members"),
        ("partitions", 1, "partitions"),
        ("ids", 2, "member ids that are given out"),
        ("generations", 2, "generations of the group"),
        ("requests", 3, "JoinGroups and SyncGroups of each process"),
        ("slots", 2, "places for members and pending ids"),
    )
    for name, default, text in sizes:
        parser.add_argument(
            f"--{name}", metavar="N", type=_positive_number, default=default, help=f"{text} (default: {default})"
        )
    parser.add_argument(
        "--static", metavar="N", type=_positive_number, default=0, help="how many members are static (default: 0)"
    )
    parser.add_argument("--eager", action="store_true", help="members give up everything before they rejoin")
    parser.add_argument("--no-heartbeats", action="store_true", help="members send no heartbeats")
    parser.add_argument("--full", action="store_true", help="without the reductions: every state by itself")
    parser.add_argument("--limit", metavar="N", type=_positive_number, help="end the search after so many states")
    liveness = parser.add_mutually_exclusive_group()
    liveness.add_argument(
        "--settle",
        metavar="N",
        type=_positive_number,
        default=1,
        help="liveness: members stop changing after so many requests of each (default: 1)",
    )
    liveness.add_argument("--no-liveness", action="store_true", help="look at safety alone")
    parser.add_argument("--json", metavar="F", type=Path, help="write the results as JSON")
    parser.add_argument("--dot", metavar="F", type=Path, help="write the explored graph for Graphviz")
    parser.add_argument("--graphml", metavar="F", type=Path, help="write the explored graph as GraphML")
    parser.add_argument("--picture", metavar="F", type=Path, help="write what leads from phase to phase, as Markdown")


def _positive_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def _port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _test(options: argparse.Namespace, runner: Runner) -> int:
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
    )
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        report = asyncio.run(runner.run(plan, display))
    finally:
        display.close()
    _print(render_report(report, colour=_wants_colour(sys.stdout)))
    return _write_files(report, options.json, options.junit)


def _replay(options: argparse.Namespace, runner: Runner) -> int:
    replay = asyncio.run(runner.replay(options.trace, options.target, options.profile))
    _print(render_replay(replay, colour=_wants_colour(sys.stdout)))
    return _REPLAY_EXIT_CODES[replay.outcome]


def _judge(options: argparse.Namespace, runner: Runner) -> int:
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        report = runner.judge_files(options.traces, display)
    finally:
        display.close()
    _print(render_report(report, colour=_wants_colour(sys.stdout)))
    return report.exit_code()


def _record(options: argparse.Namespace, _: Runner) -> int:
    from fencepost.conformance.cli.record import run

    return run(options, _announce, _print_error)


def _import(options: argparse.Namespace, _: Runner) -> int:
    return importing.run(options, _print_error)


def _serve(options: argparse.Namespace, runner: Runner) -> int:
    try:
        asyncio.run(runner.serve(options.host, options.port, options.storage, _announce, options.slow_storage))
    except KeyboardInterrupt:
        _print_error("stopped")
    return ExitCode.CONFORMANT


def _prove(options: argparse.Namespace, _: Runner) -> int:
    # Imported late: nobody else needs the solver.
    from fencepost.conformance.reports import proofs
    from fencepost.model.proofs.classic.induction import ProofSize

    live = sys.stderr.isatty()
    clear = "\r\x1b[K" if live else ""

    def progress(doing: str, number: int, total: int) -> None:
        print(f"{clear}{doing} ({number} of {total})", end="" if live else "\n", file=sys.stderr, flush=True)

    size = ProofSize(options.slots, options.partitions, options.protocols)
    proof = proofs.prove(size, options.seed, options.states, progress, lambda line: _print(f"{clear}{line}\n"))
    _print(f"{proofs.summary(proof)}\n")
    if options.json is not None:
        options.json.write_text(proofs.to_json(proof), encoding="utf-8")
    return proof.exit_code()


def _zoo(options: argparse.Namespace, _: Runner) -> int:
    from fencepost.conformance.cli import zoo
    from fencepost.conformance.zoo.faulty import UnknownFaultyCoordinator

    try:
        return zoo.run(options, _print)
    except UnknownFaultyCoordinator as mistake:
        return _report_mistake(str(mistake))


def _pipeline(options: argparse.Namespace, _: Runner) -> int:
    try:
        # Imported late: Spark is an extra.
        from fencepost.conformance.cli import pipeline
    except ImportError as missing:
        if (missing.name or "").startswith("fencepost"):
            raise
        return _report_mistake(f"the pipeline needs {missing.name}: pip install 'fencepost[spark]'")
    try:
        return pipeline.run(options, _print)
    except pipeline.PipelineError as mistake:
        return _report_mistake(_error_text(mistake))


def _explore(options: argparse.Namespace, _: Runner) -> int:
    # Imported late: nobody else needs the explorer.
    from fencepost.conformance.cli.explore import UnusableSizes, run

    try:
        return run(options, _print)
    except UnusableSizes as error:
        return _report_mistake(_error_text(error))


def _announce(bootstrap: str) -> None:
    _print(f"{bootstrap}\n")


def _write_files(report: Report, json: Path | None, junit: Path | None) -> int:
    """Write what was asked for, the second file also if the first fails; return the exit code of the command."""
    exit_code = report.exit_code()
    for path, content in ((json, to_json), (junit, to_junit)):
        if path is None:
            continue
        try:
            path.write_text(content(report), encoding="utf-8")
        except OSError as error:
            exit_code = _report_mistake(f"cannot write the report: {_error_text(error)}")
    return exit_code


def _default_runner() -> Runner:
    # Imported late: help and usage errors should not wait for the whole kit.
    from fencepost.conformance.run import runner

    return runner


def _error_text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _report_mistake(reason: str) -> ExitCode:
    _print_error(reason)
    return ExitCode.COULD_NOT_RUN


def _print_error(line: str) -> None:
    print(f"fencepost: {line}", file=sys.stderr)


def _print(text: str) -> None:
    """Write to standard output at once; a reader that has gone away (`| head`) is no reason to lose the files."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = io.StringIO()


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
