"""`fencepost swarm`: a broker in; many members in one group, what they break together, and owners' absence out."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import count, duration
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.conformance.swarm.plan import SwarmPlan
    from fencepost.conformance.swarm.run import SwarmOutcome

KINDS = ("eager", "cooperative", "mixed", "upgrade")
TARGET_HELP = "bundled, or the bootstrap address of a broker such as kafka://host:port"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost swarm`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("--members", metavar="N", type=count, default=30, help="reference members (default: 30)")
    parser.add_argument("--kind", choices=KINDS, default="eager", help="how they rebalance (default: eager)")
    parser.add_argument("--partitions", metavar="N", type=count, default=30, help="of their topic (default: 30)")
    parser.add_argument(
        "--lasts", metavar="S", type=duration, default=60.0, help="how long things happen (default: 60)"
    )
    parser.add_argument(
        "--settle-seconds", metavar="S", type=duration, default=60.0, help="what the group may take after (default: 60)"
    )
    parser.add_argument("--events", metavar="N", type=int, default=12, help="crashes and the like (default: 12)")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="what happens to whom (default: 0)")
    parser.add_argument("--json", metavar="F", type=Path, help="write the outcome as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each event on standard error")
    parser.epilog = (
        "Members of the group are clients of this process. The exit code is 1 if a partition had two owners in the "
        "present generation, a commit of a fenced member was accepted, or one went beyond what was returned; 3 if the "
        "group did not settle, or records were not returned, in time."
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Run a swarm, print what it has shown, and write it."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.swarm import outcome_as_json, render_outcome
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.swarm.plan import SwarmKind, SwarmPlan

    check_outputs({"--json": options.json})
    plan = SwarmPlan(
        options.members,
        SwarmKind(options.kind),
        options.partitions,
        options.lasts,
        options.events,
        seed=options.seed,
        settle_seconds=options.settle_seconds,
    )
    outcome = run_interruptible(start_swarm(options.target, plan, console, options.verbose))
    console.print(render_outcome(outcome))
    if options.json is not None:
        options.json.write_text(json.dumps(outcome_as_json(outcome), indent=1) + "\n", encoding="utf-8")
    if outcome.watch.violations:
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if outcome.unsettled else ExitCode.CONFORMANT


async def start_swarm(target: str, plan: "SwarmPlan", console: Console, is_verbose: bool) -> "SwarmOutcome":
    """Run a swarm on a target: the bundled coordinator on virtual time, or a broker. Raises `TargetError`."""
    from fencepost.adapters.address import parse_bootstrap
    from fencepost.adapters.client.reference.links import TcpNetwork
    from fencepost.adapters.virtual_clock import run_virtual_in_thread
    from fencepost.conformance.plan import BUNDLED
    from fencepost.conformance.swarm.bundled import run_bundled
    from fencepost.conformance.swarm.run import make_run

    def tell(line: str) -> None:
        if is_verbose:
            console.log(line)

    if target == BUNDLED:
        return await run_virtual_in_thread(run_bundled(plan, tell))
    bootstrap = parse_bootstrap(target)
    if bootstrap is None:
        raise UsageError("swarm", f"{target!r} is no target: {TARGET_HELP}")
    if bootstrap.wants_tls:
        raise UsageError("swarm", "the members of a swarm speak no TLS; name an address without it")
    return await make_run(plan, TcpNetwork(bootstrap.addresses[0]), tell).run()
