"""`fencepost explore`: the sizes of a small group in, the verdict on each property and the explored graph out."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import count, whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import add_protocol, run_protocol

if TYPE_CHECKING:
    from fencepost.conformance.run.classic.exploration import Instance

_SIZES = (
    ("members", 2, "processes that want to be members"),
    ("partitions", 1, "partitions"),
    ("ids", 2, "member ids that are given out"),
    ("generations", 2, "generations of the group"),
    ("requests", 4, "JoinGroups and SyncGroups of each process"),
    ("slots", 2, "places for members and pending ids"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost explore`."""
    for name, default, text in _SIZES:
        parser.add_argument(f"--{name}", metavar="N", type=count, default=default, help=f"{text} (default: {default})")
    parser.add_argument("--static", metavar="N", type=count, default=0, help="number of static members (default: 0)")
    parser.add_argument(
        "--direct",
        metavar="N",
        type=whole,
        help="number of members that need no member id for their first JoinGroup, as before version 4 (default: half)",
    )
    parser.add_argument("--eager", action="store_true", help="members revoke all partitions before they rejoin")
    parser.add_argument("--no-heartbeats", action="store_true", help="members send no heartbeats")
    parser.add_argument(
        "--failovers",
        metavar="N",
        type=whole,
        default=0,
        help="how often the coordinator is lost, and another one loads the group from its log (default: 0)",
    )
    parser.add_argument(
        "--stores-early",
        action="store_true",
        help="with --failovers: a generation is stored before JoinGroup is answered, which Kafka does not do",
    )
    parser.add_argument("--full", action="store_true", help="search every state, without the reductions")
    parser.add_argument("--limit", metavar="N", type=count, help="end the search after N states")
    liveness = parser.add_mutually_exclusive_group()
    liveness.add_argument(
        "--settle",
        metavar="N",
        type=count,
        default=1,
        help="liveness: members stop changing after N requests each (default: 1)",
    )
    liveness.add_argument("--no-liveness", action="store_true", help="check safety only")
    parser.add_argument("--json", metavar="F", type=Path, help="write the results as JSON")
    parser.add_argument("--dot", metavar="F", type=Path, help="write the explored graph for Graphviz")
    parser.add_argument("--graphml", metavar="F", type=Path, help="write the explored graph as GraphML")
    parser.add_argument("--picture", metavar="F", type=Path, help="write the state diagram, as Markdown")
    add_protocol(parser, "explore")


def run(options: argparse.Namespace, console: Console) -> int:
    """Search the protocol that the options name."""
    return run_protocol(options, console, "explore")


def run_classic(options: argparse.Namespace, console: Console) -> int:
    """Search the instance of the options, print each result as it comes, and write the files."""
    from fencepost.conformance.run.classic.exploration import UnusableSizes

    try:
        return explore(options, console)
    except UnusableSizes as error:
        return console.fail(error)


def explore(options: argparse.Namespace, console: Console) -> int:
    """Do the work of `run_classic`. Raises `UnusableSizes`, and `OSError` for a file that is not writable."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.classic.exploration import SearchDisplay, heading, result_line, summary, to_json
    from fencepost.conformance.run.classic.exploration import OutputFiles, run_exploration

    instance = instance_of(options)
    instance.setting()
    files = OutputFiles(options.dot, options.graphml, options.picture)
    check_outputs({"--json": options.json, "--dot": files.dot, "--graphml": files.graphml, "--picture": files.picture})
    stderr = console.stderr()
    display = SearchDisplay(stderr, live=stderr.isatty(), limit=instance.limit)

    def show(text: str) -> None:
        display.clear()
        console.print_line(text)

    show(heading(instance))
    result = run_exploration(instance, display, display.show_status, lambda finding: show(result_line(finding)))
    show(summary(result))
    if options.json is not None:
        options.json.write_text(to_json(result), encoding="utf-8")
    omission = files.write(result.exploration, display.show_status)
    if omission:
        show(omission)
    display.clear()
    return result.exit_code()


def instance_of(options: argparse.Namespace) -> "Instance":
    """The instance with the sizes and the behaviour of the options."""
    from fencepost.conformance.run.classic.exploration import Instance
    from fencepost.model.explore.search import NO_LIMIT

    return Instance(
        members=options.members,
        static=options.static,
        direct=options.direct,
        eager=options.eager,
        heartbeats=not options.no_heartbeats,
        partitions=options.partitions,
        ids=options.ids,
        generations=options.generations,
        requests=options.requests,
        slots=options.slots,
        reduced=not options.full and options.failovers == 0,
        failovers=options.failovers,
        stores_early=options.stores_early,
        limit=NO_LIMIT if options.limit is None else options.limit,
        settle=0 if options.no_liveness else options.settle,
    )
