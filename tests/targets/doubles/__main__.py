"""`python -m tests.targets.doubles NAME`: serve a double in the foreground; its address is the first line on stdout."""

import argparse
import asyncio
import sys

from fencepost.adapters.serve.server import serve_forever
from tests.support.odd_brokers import DOUBLES


def announce(host: str, port: int) -> None:
    """Print the address."""
    print(f"{host}:{port}", flush=True)


def main() -> int:
    """Serve until interrupted or killed."""
    parser = argparse.ArgumentParser(prog="doubles", description=__doc__)
    parser.add_argument("name", choices=sorted(DOUBLES))
    parser.add_argument("--port", type=int, default=0, help="(default: a free one)")
    given = parser.parse_args()
    double = DOUBLES[given.name]
    try:
        with double.activate():
            asyncio.run(serve_forever("127.0.0.1", given.port, double.setting, None, announce))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
