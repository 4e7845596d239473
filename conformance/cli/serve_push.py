"""`fencepost serve --protocol push`: the push coordinator of the 0.9 draft, repaired, with ZooKeeper in memory."""

import argparse
from collections.abc import Callable

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import refuse_options


def run(options: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C; the bootstrap addresses are printed once the brokers listen."""
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.results import ExitCode

    refuse_options(options, "serve", frozenset({"host", "port", "nodes", "topic"}))
    topics = dict(options.topic)
    try:
        run_interruptible(serve(options.host, options.port, options.nodes, topics, console.print_line))
    except KeyboardInterrupt:
        console.log("stopped")
    return ExitCode.CONFORMANT


async def serve(host: str, port: int, nodes: int, topics: dict[str, int], announce: Callable[[str], None]) -> None:
    """Serve brokers until cancelled, the first at this port, the others at free ones; partitions lie on them in turn.

    Raises `TargetError` if the port cannot be listened on.
    """
    import asyncio

    from fencepost.adapters.address import describe_listen_error, format_address
    from fencepost.adapters.bundled.push.broker import PushBroker
    from fencepost.adapters.bundled.push.zookeeper import MemoryZookeeper
    from fencepost.adapters.target import TargetError

    partitions = {name: [f"{number % nodes}-{number}" for number in range(count)] for name, count in topics.items()}
    zookeeper = MemoryZookeeper(partitions)
    brokers = [PushBroker(number, zookeeper) for number in range(nodes)]
    try:
        addresses = [await broker.start(host, 0 if broker.id else port) for broker in brokers]
        announce(",".join(format_address(*address) for address in addresses))
        await asyncio.Event().wait()
    except (OSError, UnicodeError) as error:
        raise TargetError(describe_listen_error(host, port, error)) from None
    finally:
        for broker in reversed(brokers):
            await broker.close()
