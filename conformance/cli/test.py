"""The commands that test something that runs: `test` a coordinator, `test-client`, `test-assignor`, and `swarm`."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console, UsageError, run_interruptible, typed_program
from fencepost.conformance.cli.options import (
    BADGE,
    LOUDNESS,
    NO_TARGET,
    PROFILE,
    REPORT_FILES,
    SECONDS,
    SELECTION,
    TARGET_HELP,
    TRACES,
    Command,
    OneOf,
    Option,
    bootstrap,
    count,
    duration,
    report_paths,
    run_protocol,
    whole,
)

if TYPE_CHECKING:
    from fencepost.adapters.address import Bootstrap
    from fencepost.adapters.serve.server import ServeConnection
    from fencepost.conformance.clients.protocol import ClientProtocol
    from fencepost.conformance.clients.run import ClientRun
    from fencepost.conformance.clients.stage import ClientPlayer
    from fencepost.conformance.events import Progress, RunEvent
    from fencepost.conformance.plan import Plan
    from fencepost.conformance.profile import Profile

START_S = 30.0
"""How long a client may take to its first JoinGroup."""
KINDS = ("eager", "cooperative", "mixed", "upgrade")


# --- test


def run_test(options: argparse.Namespace, console: Console) -> int:
    """Test the target; its report is printed and written as soon as it is there, whatever ended the run."""
    options.target = take_target(options)
    from fencepost.conformance.cli.files import ReportFiles, check_outputs
    from fencepost.conformance.events import RunFinished
    from fencepost.conformance.run import runner

    plan = plan_of(options, options.target)
    requirements = runner.requirements_of(plan)
    if plan.tours and find_spec("networkx") is None:
        raise ModuleNotFoundError(name="networkx")
    check_outputs(report_paths(options), {"--save": options.save, "--traces": options.traces}, [options.profile])
    files = ReportFiles(console, report_paths(options))

    def print_report(event: "RunEvent") -> None:
        if isinstance(event, RunFinished):
            progress.close()
            files.show(event.report)
            if event.report.ended is not None and event.report.ended.detail:
                console.print_error(event.report.ended.detail)
                console.log("this is an error in Fencepost itself; please report it with the lines above")

    with files.write_failure(plan.target, [each.id for each in requirements]), console.progress() as progress:
        consumers = (*displays(options, console, progress), files, print_report)
        report = run_interruptible((options.runner or runner).run(plan, *consumers))
    return files.exit_code(report.exit_code())


def displays(
    options: argparse.Namespace, console: Console, progress: "Callable[[Progress], None]"
) -> "list[Callable[[RunEvent], None]]":
    """What shows how far a run has come: a line for each step, a status line, or nothing."""
    from fencepost.conformance.reports.progress import VerboseDisplay
    from fencepost.conformance.run.stream import progress_consumer

    if options.verbose:
        return [VerboseDisplay(console.stderr())]
    return [progress_consumer(progress)]


def plan_of(options: argparse.Namespace, target: str) -> "Plan":
    """The plan that the options describe: its fields are options of the same names, or keep their defaults."""
    from fencepost.conformance.plan import Plan

    told = {
        **vars(options),
        "target": target,
        "patterns": tuple(options.only),
        "excluded": tuple(options.exclude),
        "schedules": options.schedules or 0,
        "program": typed_program(sys.argv[0]),
    }
    plan = Plan(**{each.name: told[each.name] for each in fields(Plan) if each.name in told})
    return plan if options.schedules is not None else replace(plan, schedules=plan.default_schedules)


OWN_PROFILE = Path("fencepost.toml")
"""The profile of a folder, which is meant where neither a target nor a profile is named."""


def take_target(options: argparse.Namespace) -> str:
    """The target, taken out of the patterns if it was written behind them, "" for that of the profile.

    Raises `UsageError` without either, and at once `TargetError` for a word that cannot be a target.
    """
    if options.target is not None:
        if not is_target(options.target):  # whether there is such a scheme is known to the protocols
            from fencepost.adapters.address import parse_target

            parse_target(options.target)
        return str(options.target)
    for patterns in (options.only, options.exclude):
        if patterns and is_target(patterns[-1]):
            return str(patterns.pop())
    if options.profile is None and OWN_PROFILE.is_file():
        options.profile = OWN_PROFILE
    if options.profile is not None:
        return ""
    raise UsageError("test", NO_TARGET)


def is_target(word: str) -> bool:
    """Whether a word is a target and no pattern of requirements."""
    return word == "bundled" or "://" in word


# --- compare


def run_compare(options: argparse.Namespace, console: Console) -> int:
    """Test two targets by the same schedules, and print what they do differently."""
    from fencepost.conformance.cli.console import terminal_columns
    from fencepost.conformance.cli.files import check_outputs, write_output
    from fencepost.conformance.reports.comparison import comparison_to_json, render_comparison
    from fencepost.conformance.run.comparing import compare_targets
    from fencepost.conformance.run.stream import progress_consumer

    one, other = (plan_for(options, word) for word in (options.one, options.other))
    check_outputs({"--json": options.json}, inputs=[one.profile, other.profile])
    with console.progress() as progress:
        comparison = run_interruptible(compare_targets(one, other, progress_consumer(progress)))
    console.print_line(render_comparison(comparison, width=terminal_columns(sys.stdout)).rstrip("\n"))
    if options.json is not None and not write_output(options.json, comparison_to_json(comparison), console):
        return 2
    return comparison.exit_code()


def plan_for(options: argparse.Namespace, word: str) -> "Plan":
    """The plan that the options describe, for the target or the profile that a word stands for. Raises `TargetError`
    for what is neither."""
    if word.endswith(".toml"):
        return replace(plan_of(options, ""), profile=Path(word))
    if not is_target(word):
        from fencepost.adapters.address import parse_target

        parse_target(word)
    return plan_of(options, word)


# --- test-client


def run_test_client(options: argparse.Namespace, console: Console) -> int:
    """Test the client; its report is printed and written, whatever ended the run."""
    from fencepost.conformance.cli.files import ReportFiles, check_outputs

    if not options.command:
        raise UsageError("test-client", "name the command of a client behind --")
    if options.upstream is not None and options.schedules:
        raise UsageError("test-client", "--schedules moves groups, which a real cluster does not: leave out --upstream")
    job = make_run(options)
    requirements = [each.id for each in job.requirements()]
    check_outputs(report_paths(options), {"--save": options.save, "--traces": options.traces}, [options.profile])
    files = ReportFiles(console, report_paths(options))
    target, specification = " ".join(options.command), job.protocol.specification
    with files.write_failure(target, requirements, specification), console.progress() as progress:
        report = run_interruptible(job.run(*displays(options, console, progress)))
    files.write(report)
    files.show(report)
    return files.exit_code(report.exit_code())


def make_run(options: argparse.Namespace) -> "ClientRun":
    """The run that the options describe."""
    from fencepost.conformance.clients.run import ClientRun
    from fencepost.conformance.plan import BUNDLED
    from fencepost.conformance.profile import CLIENT_SECTIONS, load_profile

    command = tuple(options.command)
    plan = plan_of(options, " ".join(command))
    profile = load_profile(options.profile, CLIENT_SECTIONS)
    if command == (BUNDLED,):
        options.driven, options.at_once = True, 1  # it takes the time that it computes
    player, protocol = make_player(command, options.driven, options.startup_seconds)
    if options.upstream is not None:
        player = play_upstream(player, options.upstream, profile)
    return ClientRun(plan, command, protocol, player, profile, options.at_once, options.driven)


def play_upstream(player: "ClientPlayer", upstream: "Bootstrap", profile: "Profile") -> "ClientPlayer":
    """The player with a client whose brokers are those of a real cluster."""
    from functools import partial

    from fencepost.adapters.client.cluster import start_cluster
    from fencepost.adapters.client.upstream_brokers import UpstreamBrokers
    from fencepost.adapters.security.authentication import load_security
    from fencepost.model.settings import Settings

    security = load_security(profile.security, wants_tls=upstream.wants_tls)

    def make_brokers(settings: Settings, serve: "ServeConnection") -> UpstreamBrokers:
        return UpstreamBrokers(upstream, serve, security)

    return replace(player, start_cluster=partial(start_cluster, make_brokers=make_brokers))


def make_player(
    command: tuple[str, ...], is_driven: bool, startup_seconds: float
) -> "tuple[ClientPlayer, ClientProtocol]":
    """How the client of a command, or its driver, is played with; and the protocol."""
    import logging

    from fencepost.adapters.client.cluster import start_cluster
    from fencepost.adapters.client.program import ClientProgram, DrivenProgram
    from fencepost.adapters.virtual_clock import run_virtual_in_thread
    from fencepost.conformance.clients.protocol import client_protocol
    from fencepost.conformance.clients.stage import ClientPlayer
    from fencepost.conformance.plan import BUNDLED

    # Whatever a client does to its connections is judged, and no news for the operator.
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)
    protocol = client_protocol(is_driven=is_driven)
    if command == (BUNDLED,) and protocol.bundled is not None:
        client = protocol.bundled()
        player = ClientPlayer(client, BUNDLED, protocol.judge, client.start_cluster, startup_seconds, "virtual")
        return replace(player, is_driven=is_driven, run=run_virtual_in_thread), protocol
    subject = DrivenProgram(command) if is_driven else ClientProgram(command)
    name = " ".join(command)
    player = ClientPlayer(subject, name, protocol.judge, start_cluster, startup_seconds, is_driven=is_driven)
    return player, protocol


# --- test-assignor


def run_test_assignor(options: argparse.Namespace, console: Console) -> int:
    """Test the assignor, print the report, and write it to files."""
    from fencepost.adapters.assignor import AssignorProgram
    from fencepost.conformance.assignors.run import AssignorTest
    from fencepost.conformance.cli.files import ReportFiles, check_outputs
    from fencepost.conformance.specification import CLIENT_SPECIFICATION

    if not options.command:
        raise UsageError("test-assignor", "name the command of an assignor behind --")
    check_outputs(report_paths(options))
    files = ReportFiles(console, report_paths(options))
    program, target = AssignorProgram(options.command), " ".join(options.command)
    with closing(program), files.write_failure(target, (), CLIENT_SPECIFICATION):
        report = AssignorTest(options.name, program.assign, options.groups, options.seed, target).run()
    files.write(report)
    files.show(report)
    return files.exit_code(report.exit_code())


# --- the commands

COMMANDS = {
    "test": Command(
        run_test,
        (
            # Behind a list of patterns the target is taken for one of them.
            Option("target", "TARGET", TARGET_HELP, nargs="?"),
            *SELECTION,
            OneOf(
                (
                    Option("--smoke", help="run only the smoke scenarios"),
                    Option("--slow", help="also wait out the fixed timer of 300 s"),
                )
            ),
            Option("--seed", "S", "seed of the random schedules", int, 0),
            Option(
                "--schedules",
                "N",
                "run N random schedules, judged by the requirements of --only (default: 60 in this process, 20 over "
                "the network, none with --smoke or --only)",
                whole,
            ),
            Option("--tours", "N", "also run N transition tours of a small group", whole, 0),
            OneOf(
                (
                    Option("-x", help="end the run at the first failed requirement", dest="max_failures", sets=1),
                    Option(
                        "--max-failures", "N", "end the run once N requirements have failed (default: never)", count
                    ),
                )
            ),
            SECONDS,
            Option("--shrink-seconds", "S", "shrink failing random schedules for S seconds in all", duration, 60.0),
            Option("--intrusive", help="also send requests that a faulty broker may carry out on groups of others"),
            PROFILE,
            *REPORT_FILES,
            Option(BADGE, "F", "write a badge of the core tier as SVG; see fencepost badge", Path),
            Option("--save", "DIR", "save the traces of failures, those of random schedules shrunk", Path),
            TRACES,
            LOUDNESS,
        ),
        usage="%(prog)s [TARGET] [options]",
    ),
    "compare": Command(
        run_compare,
        (
            Option("one", "A", "a target: bundled, an address, or a profile that starts one (.toml)"),
            Option("other", "B", "another target"),
            *SELECTION,
            Option("--smoke", help="play only the smoke scenarios"),
            Option("--seed", "S", "seed of the random schedules", int, 0),
            Option("--schedules", "N", "play N random schedules as well", whole, 0, tells_default=False),
            Option("--seconds", "S", "end the run on each after S seconds, with exit code 3", duration),
            Option("--shrink-seconds", "S", "shrink failing random schedules for S seconds in all", duration, 20.0),
            Option("--json", "F", "write the differences as JSON", Path),
            LOUDNESS,
        ),
        usage="%(prog)s A B [options]",
    ),
    "test-client": Command(
        run_test_client,
        (
            Option("command", "CMD", "the client and its arguments, or bundled for the kit's own", nargs="*"),
            *SELECTION,
            Option("--driven", help="CMD is a driver: it takes commands and tells of callbacks and records"),
            Option("--startup-seconds", "S", "what CMD may take to its first JoinGroup", duration, START_S),
            Option("--at-once", "N", "play N scenarios at once, each with a CMD", count, 4),
            Option(
                "--upstream",
                "H:P",
                "play the script before a real cluster in the place of the bundled one; kafka+ssl://H:P for TLS, a,b "
                "for several addresses",
                bootstrap,
            ),
            Option("--schedules", "N", "play N random schedules as well", whole, 0, tells_default=False),
            Option("--seed", "S", "the seed of random schedules", int, 0),
            Option("--shrink-seconds", "S", "how long the schedule of one violation is shrunk", duration),
            SECONDS,
            Option(
                "--profile",
                "F",
                "what the client is ([about]), its deviations ([known]), and the [security] of --upstream, in TOML",
                Path,
            ),
            *REPORT_FILES,
            Option(BADGE, "F", "write a badge as SVG; see fencepost badge", Path),
            Option("--save", "DIR", "save the traces of failures", Path),
            TRACES,
            LOUDNESS,
        ),
        usage="%(prog)s [options] -- CMD [ARG ...]",
        epilog="CMD runs one consumer: {bootstrap}, {group} and {topic} in its arguments, and FENCEPOST_BOOTSTRAP, "
        "FENCEPOST_GROUP and FENCEPOST_TOPIC in its environment, say where. It polls until SIGTERM, and closes its "
        "consumer then.",
    ),
    "test-assignor": Command(
        run_test_assignor,
        (
            Option("name", "NAME", "the name of the assignor"),
            Option("command", "CMD", "the program and its arguments", nargs="*"),
            Option("--groups", "N", "ask for N random groups", whole, 500),
            Option("--seed", "S", "seed of the random groups", int, 0),
            *REPORT_FILES,
            LOUDNESS,
        ),
        usage="%(prog)s [options] NAME -- CMD [ARG ...]",
        epilog="CMD reads groups from standard input and writes their assignments to standard output, a JSON object a "
        "line. NAME is that of the assignor on the wire: range, roundrobin, sticky and cooperative-sticky are held "
        "against their rules, others against what every assignor promises.",
    ),
    "swarm": Command(
        partial(run_protocol, "swarm"),
        (
            Option("target", "TARGET", "bundled, or the bootstrap address of a broker such as kafka://host:port"),
            Option("--members", "N", "reference members", count, 30),
            Option("--kind", help="how they rebalance", choices=KINDS),
            Option("--partitions", "N", "of their topic", count, 30),
            Option("--lasts", "S", "how long things happen", duration, 60.0),
            Option("--settle-seconds", "S", "what the group may take after", duration, 60.0),
            Option("--events", "N", "crashes and the like", int, 12),
            Option("--seed", "S", "what happens to whom", int, 0),
            Option("--restart", "CMD", "halfway, have the shell run CMD, which kills and restarts the broker"),
            Option("--json", "F", "write the outcome as JSON", Path),
            LOUDNESS,
        ),
        epilog="Members of the group are clients of this process. The exit code is 1 if a partition had two owners in "
        "the present generation, a commit of a fenced member was accepted, or one went beyond what was returned; 3 if "
        "the group did not settle, or records were not returned, in time.",
    ),
}
