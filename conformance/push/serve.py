"""`fencepost serve --protocol push`: the repaired push coordinator of the 0.9 draft, ZooKeeper real or in memory."""

import argparse
from collections.abc import Callable

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import refuse_options


def run(options: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C; the bootstrap addresses are printed once the brokers listen."""
    from fencepost.conformance.cli.console import run_interruptible
    from fencepost.conformance.results import ExitCode

    refuse_options(options, "serve", frozenset({"host", "port", "nodes", "topic", "zookeeper"}))
    topics = dict(options.topic)
    try:
        run_interruptible(
            serve(options.host, options.port, options.nodes, topics, console.print_line, options.zookeeper)
        )
    except KeyboardInterrupt:
        console.log("stopped")
    return ExitCode.CONFORMANT


async def serve(
    host: str,
    port: int,
    nodes: int,
    topics: dict[str, int],
    announce: Callable[[str], None],
    zookeeper: tuple[str, int] | None = None,
) -> None:
    """Serve brokers until cancelled, the first at this port, the others at free ones; partitions lie on them in turn.

    With the address of a ZooKeeper, each broker has a session of its own there, and topics that are missing are made.
    Raises `TargetError` if the port cannot be listened on, or ZooKeeper cannot be reached.
    """
    import asyncio

    from fencepost.adapters.address import TargetError, describe_listen_error, format_address
    from fencepost.adapters.push.broker import PushBroker
    from fencepost.adapters.push.zookeeper import MemoryZookeeper

    partitions = {name: [f"{number % nodes}-{number}" for number in range(count)] for name, count in topics.items()}
    if zookeeper is None:
        memory = MemoryZookeeper(partitions)
        brokers = [PushBroker(number, memory) for number in range(nodes)]
    else:
        try:
            from fencepost.adapters.push.network_zookeeper import NetworkZookeeper, add_topics

            await add_topics(zookeeper, partitions)
        except ImportError:
            raise TargetError("a real ZooKeeper needs kazoo: pip install 'fencepost[zookeeper]'") from None
        except (OSError, TimeoutError) as error:
            raise TargetError(f"no ZooKeeper at {format_address(*zookeeper)}: {error or 'no answer'}") from None
        brokers = [PushBroker(number, NetworkZookeeper(zookeeper)) for number in range(nodes)]
    try:
        addresses = [await broker.start(host, 0 if broker.id else port) for broker in brokers]
        announce(",".join(format_address(*address) for address in addresses))
        await asyncio.Event().wait()
    except (OSError, UnicodeError) as error:
        raise TargetError(describe_listen_error(host, port, error)) from None
    finally:
        for broker in reversed(brokers):
            await broker.close()
