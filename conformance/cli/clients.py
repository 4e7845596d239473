"""`fencepost test-client`: a command that runs a client in, a report out."""

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import bootstrap, count, duration, whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.report_options import BADGE, add_report_options, report_paths
from fencepost.conformance.cli.test import add_selection
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.adapters.address import Bootstrap
    from fencepost.adapters.serve.server import ServeConnection
    from fencepost.conformance.clients.play import ClientPlay
    from fencepost.conformance.clients.protocol import ClientProtocol
    from fencepost.conformance.clients.run import ClientRun
    from fencepost.conformance.profile import Profile

EPILOG = (
    "CMD runs one consumer: {bootstrap}, {group} and {topic} in its arguments, and FENCEPOST_BOOTSTRAP, "
    "FENCEPOST_GROUP and FENCEPOST_TOPIC in its environment, say where. It polls until SIGTERM, and closes its "
    "consumer then."
)
PROFILE_HELP = "what the client is ([about]), its deviations ([known]), and the [security] of --upstream, in TOML"
UPSTREAM_HELP = (
    "play the script before a real cluster in the place of the bundled one; kafka+ssl://H:P for TLS, a,b for several "
    "addresses"
)
START_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost test-client`."""
    parser.usage = "%(prog)s [options] -- CMD [ARG ...]"
    parser.epilog = EPILOG
    parser.add_argument("command", metavar="CMD", nargs="*", help="the client and its arguments")
    add_selection(parser)
    parser.add_argument(
        "--driven", action="store_true", help="CMD is a driver: it takes commands and tells of callbacks and records"
    )
    parser.add_argument(
        "--startup-seconds",
        metavar="S",
        type=duration,
        default=START_S,
        help=f"what CMD may take to its first JoinGroup (default: {START_S:g})",
    )
    parser.add_argument(
        "--at-once", metavar="N", type=count, default=4, help="play N scenarios at once, each with a CMD (default: 4)"
    )
    parser.add_argument("--upstream", metavar="H:P", type=bootstrap, help=UPSTREAM_HELP)
    parser.add_argument("--schedules", metavar="N", type=whole, default=0, help="play N random schedules as well")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the seed of random schedules (default: 0)")
    parser.add_argument(
        "--shrink-seconds", metavar="S", type=duration, help="how long the schedule of one violation is shrunk"
    )
    parser.add_argument("--seconds", metavar="S", type=duration, help="end the run after S seconds, with exit code 3")
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE_HELP)
    add_report_options(parser)
    parser.add_argument(BADGE, metavar="F", type=Path, help="write a badge as SVG; see fencepost badge")
    parser.add_argument("--save", metavar="DIR", type=Path, help="save the traces of failures")
    parser.add_argument("--traces", metavar="DIR", type=Path, help="save every trace")
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("-v", "--verbose", action="store_true", help="a line for each scenario on standard error")
    loudness.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, and only the last line of the report"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Test the client; its report is printed and written, whatever ended the run."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.cli.outputs import ReportFiles, check_outputs, ending_of
    from fencepost.conformance.reports.text import outcome_line, render_report
    from fencepost.conformance.results import ExitCode

    if not options.command:
        raise UsageError("test-client", "name the command of a client behind --")
    if options.upstream is not None and options.schedules:
        raise UsageError("test-client", "--schedules moves groups, which a real cluster does not: leave out --upstream")
    job = make_run(options)
    requirements = job.requirements()
    check_outputs(report_paths(options), {"--save": options.save, "--traces": options.traces}, [options.profile])
    files = ReportFiles(console, report_paths(options))
    try:
        with console.progress() as progress:
            if options.verbose:
                job.tell = console.log
            elif not options.quiet:
                job.show = progress
            report = run_interruptible(job.run())
    except BaseException as error:
        asked, specification = [each.id for each in requirements], job.protocol.specification
        files.write_failure(" ".join(options.command), asked, ending_of(error), specification)
        raise
    files.write(report)
    colour = console.has_colour() and not files.takes_stdout
    text = f"{outcome_line(report)}\n" if options.quiet else render_report(report, colour=colour, width=console.width())
    (console.print_error if files.takes_stdout else console.print)(text)
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()


def make_run(options: argparse.Namespace) -> "ClientRun":
    """The run that the options describe."""
    from fencepost.conformance.clients.run import ClientPlan, ClientRun
    from fencepost.conformance.profile import CLIENT_SECTIONS, Profile, load_profile

    command = tuple(options.command)
    plan = ClientPlan(
        command=command,
        patterns=tuple(options.only),
        excluded=tuple(options.exclude),
        at_once=options.at_once,
        seconds=options.seconds,
        save=options.save,
        traces=options.traces,
        profile=options.profile,
        is_driven=options.driven,
        schedules=options.schedules,
        seed=options.seed,
        shrink_seconds=options.shrink_seconds,
    )
    profile = load_profile(options.profile, CLIENT_SECTIONS) if options.profile is not None else Profile()
    playing, protocol = make_play(command, options.driven, options.startup_seconds)
    if options.upstream is not None:
        playing = play_upstream(playing, options.upstream, profile)
    return ClientRun(plan, protocol, playing, profile)


def play_upstream(playing: "ClientPlay", upstream: "Bootstrap", profile: "Profile") -> "ClientPlay":
    """The same before a real cluster."""
    from functools import partial

    from fencepost.adapters.client.cluster import start_cluster
    from fencepost.adapters.client.upstream_brokers import UpstreamBrokers
    from fencepost.adapters.security.loading import load_security
    from fencepost.model.settings import Settings

    security = load_security(profile.security, wants_tls=upstream.wants_tls)

    def make_brokers(settings: Settings, serve: "ServeConnection") -> UpstreamBrokers:
        return UpstreamBrokers(upstream, serve, security)

    return replace(playing, start_cluster=partial(start_cluster, make_brokers=make_brokers))


def make_play(command: tuple[str, ...], is_driven: bool, startup_seconds: float) -> "tuple[ClientPlay, ClientProtocol]":
    """How the client of a command, or its driver, is played with; and the protocol."""
    from fencepost.adapters.client.cluster import start_cluster
    from fencepost.adapters.client.driven import DrivenProgram
    from fencepost.adapters.client.program import ClientProgram
    from fencepost.conformance.clients.classic import CLASSIC_CLIENTS, DRIVEN_CLIENTS
    from fencepost.conformance.clients.play import ClientPlay

    # Whatever a client does to its connections is judged, and no news for the operator.
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)
    protocol = DRIVEN_CLIENTS if is_driven else CLASSIC_CLIENTS
    subject = DrivenProgram(command) if is_driven else ClientProgram(command)
    name = " ".join(command)
    playing = ClientPlay(subject, name, protocol.follow, start_cluster, startup_seconds, is_driven=is_driven)
    return playing, protocol
