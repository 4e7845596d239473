"""Start and kill the bundled coordinator as a server, with bounds, delays and limits that a test can reach.

start              print the bootstrap address, the only line on stdout, once it answers
kill               kill it without warning; the next start has the same storage and the same port
move GROUP         have the next of several nodes coordinate all groups
host PORT          serve until killed; what `start` runs

With --nodes 2 it is another server, of two nodes.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from fencepost.adapters.serve.server import serve_forever
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from tests.targets import probe
from tests.targets.background import START_TIMEOUT_S, start_on_port
from tests.targets.process import ProcessFolder, chosen_ports, print_address, run_folder

HOST_MODULE = "tests.targets.serve.broker"
"""What serves."""


def start(folder: ProcessFolder, nodes: int) -> str:
    """Start the server that lives in `folder`, unless it runs already, and return its address once it answers."""
    data = ["--data", str(folder.path), "--nodes", str(nodes)]
    return start_on_port(folder, lambda port: [sys.executable, "-m", HOST_MODULE, "host", str(port), *data])


def move(folder: ProcessFolder, group: str) -> None:
    """Have the other node coordinate all groups, and return once it does."""
    [port] = chosen_ports(folder.path, 1)
    before = probe.heartbeat_error(port, group)
    os.kill(int((folder.path / "pid").read_text()), signal.SIGUSR1)
    folder.wait_until_serving(None, lambda: probe.heartbeat_error(port, group) != before, START_TIMEOUT_S)


def serve(folder: Path, port: int, nodes: int) -> None:
    """Serve until killed."""
    serving = serve_forever("127.0.0.1", port, BUNDLED_SETTINGS, folder / "data", lambda host, port: None, nodes=nodes)
    asyncio.run(serving)


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; 0 on success, 1 if the start failed."""
    parser = argparse.ArgumentParser(prog="broker", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill", "move", "host"])
    parser.add_argument("what", nargs="?", default="0", help="the port for host, a group for move")
    parser.add_argument("--data", type=Path, help="the server's folder (default: serve in $FENCEPOST_RUN)")
    parser.add_argument("--nodes", type=int, default=1)
    given = parser.parse_args(arguments)
    name = "serve" if given.nodes == 1 else f"serve-{given.nodes}"
    folder = ProcessFolder((given.data or run_folder() / name).absolute())
    if given.action == "host":
        serve(folder.path, int(given.what), given.nodes)
    elif given.action == "kill":
        folder.kill()
    elif given.action == "move":
        move(folder, given.what)
    else:
        return print_address(lambda: start(folder, given.nodes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
