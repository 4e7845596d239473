"""Start and kill the bundled coordinator as a server, with bounds, delays and limits that a test can reach.

start              print the bootstrap address, the only line on stdout, once it answers
kill               kill it without warning; the next start has the same storage and the same port
host PORT          serve until killed; what `start` runs
"""

import argparse
import asyncio
import sys
from pathlib import Path

from fencepost.adapters.serve.server import serve_forever
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from tests.targets.background import start_on_port
from tests.targets.process import ProcessFolder, print_address, run_folder

HOST_MODULE = "tests.targets.serve.broker"
"""What serves."""


def start(folder: ProcessFolder) -> str:
    """Start the server that lives in `folder`, unless it runs already, and return its address once it answers."""
    data = ["--data", str(folder.path)]
    return start_on_port(folder, lambda port: [sys.executable, "-m", HOST_MODULE, "host", str(port), *data])


def main(arguments: list[str] | None = None) -> int:
    """`start`, `kill` or `host`; 0 on success, 1 if the start failed."""
    parser = argparse.ArgumentParser(prog="broker", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill", "host"])
    parser.add_argument("port", type=int, nargs="?", default=0)
    parser.add_argument("--data", type=Path, help="the server's folder (default: serve in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / "serve").absolute())
    if given.action == "host":
        asyncio.run(
            serve_forever("127.0.0.1", given.port, BUNDLED_SETTINGS, folder.path / "data", lambda host, port: None)
        )
    elif given.action == "kill":
        folder.kill()
    else:
        return print_address(lambda: start(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
