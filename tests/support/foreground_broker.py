"""The bundled coordinator as a server that stays in the foreground: `python -m tests.support.foreground_broker`.

It prints a line of greeting, then its address. FOLDER has its storage; MANNER is calm, forgives (heartbeats of any
generation), spins (a child process that computes for ever), or floods (and that writes for ever).
"""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from fencepost.adapters.classic import coordinator
from fencepost.adapters.serve.server import serve_forever
from fencepost.model.settings import Settings
from tests.support.faulty_coordinators import FORGIVING

SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
MANNERS = {
    "calm": "",
    "forgives": "",
    "spins": "while True: pass",
    "floods": "import os, time\nwhile True: os.write(1, b'x' * 99_999 + b'\\n'); time.sleep(0.005)",
}


def main(folder: str, manner: str) -> None:
    """Serve until killed."""
    print("hello", flush=True)
    if MANNERS[manner]:
        subprocess.Popen([sys.executable, "-c", MANNERS[manner]])
    if manner == "forgives":
        vars(coordinator)["KAFKA"] = replace(coordinator.KAFKA, make_coordinator=FORGIVING)

    def announce(host: str, port: int) -> None:
        print(f"{host}:{port}", flush=True)

    asyncio.run(serve_forever("127.0.0.1", 0, SETTINGS, Path(folder) / "data", announce))


if __name__ == "__main__":
    main(*sys.argv[1:])
