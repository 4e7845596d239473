"""`fencepost serve`: a bundled coordinator as a server."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.argument_types import address, listening_port, node_count, topic_partitions, whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import protocols_for, run_protocol
from fencepost.model.protocols import protocols_with


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost serve`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=listening_port, default=9092, help="port to listen on, 0 for any (default: 9092)"
    )
    parser.add_argument("--storage", metavar="DIR", type=Path, help="keep groups and offsets here (default: in memory)")
    parser.add_argument(
        "--slow-storage", metavar="MS", type=whole, default=0, help="delay every write by MS milliseconds (default: 0)"
    )
    parser.add_argument(
        "--dialect",
        choices=("kafka", *protocols_with(lambda entry: entry.coordinator)),
        default="kafka",
        help="as Kafka's coordinator, or as the proposal of client-side assignment has it (default: kafka)",
    )
    parser.add_argument(
        "--nodes",
        type=node_count,
        default=1,
        metavar="N",
        help="serve N nodes, all but the first at free ports; SIGUSR1 has the next one coordinate all groups",
    )
    parser.add_argument(
        "--topic",
        metavar="NAME=N",
        type=topic_partitions,
        action="append",
        default=[],
        help="push: a topic with N partitions; may be given several times",
    )
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT",
        type=address,
        help="push: keep paths and sessions in this ZooKeeper (default: in memory)",
    )
    parser.add_argument("--protocol", choices=protocols_for("serve"), default="classic", help="(default: classic)")
    parser.set_defaults(default_of=parser.get_default)


def run(options: argparse.Namespace, console: Console) -> int:
    """Serve the protocol that the options name."""
    return run_protocol(options, console, "serve")


def run_classic(options: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C; the bootstrap address is printed once the server listens."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.cli.usage import UsageError
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner

    for name in ("topic", "zookeeper"):
        if getattr(options, name):
            raise UsageError("serve", f"--{name} says nothing about {options.protocol}")
    serve = (options.runner or runner).serve
    try:
        serving = serve(
            options.host,
            options.port,
            options.storage,
            console.print_line,
            options.slow_storage,
            options.nodes,
            options.dialect,
        )
        run_interruptible(serving)
    except KeyboardInterrupt:
        console.log("stopped")
    return ExitCode.CONFORMANT
