"""The bundled coordinator as a server that stays in the foreground: `python -m tests.support.foreground_broker`.

It prints a line of greeting, then its address. FOLDER has its storage; MANNER is calm, forgives (heartbeats of any
generation), spins (a child process that computes for ever), floods (and that writes for ever), or dies of a JoinGroup:
of the protocol type "worker", or of a group whose name begins with "schedule".
"""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.adapters.classic import coordinator
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.serve.server import serve_forever
from fencepost.model.settings import Settings
from tests.support.faulty_coordinators import FORGIVING

SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
MANNERS = {
    "calm": "",
    "dies-of-workers": "",
    "dies-of-schedules": "",
    "forgives": "",
    "spins": "while True: pass",
    "floods": "import os, time\nwhile True: os.write(1, b'x' * 99_999 + b'\\n'); time.sleep(0.005)",
}


def die_of_joins(field: str) -> None:
    """Have the coordinator end its process at a JoinGroup with a certain value in this field."""
    handle = coordinator.Coordinator.handle

    def handle_or_die(self: coordinator.Coordinator, request: Request, now: int) -> list[Response]:
        if request.api == "JoinGroup" and str(request.body.get(field)).startswith(("worker", "schedule")):
            os._exit(3)
        return handle(self, request, now)

    patch: Any = coordinator.Coordinator
    patch.handle = handle_or_die


def main(folder: str, manner: str) -> None:
    """Serve until killed."""
    print("hello", flush=True)
    if MANNERS[manner]:
        subprocess.Popen([sys.executable, "-c", MANNERS[manner]])
    if manner.startswith("dies"):
        die_of_joins("protocol_type" if manner == "dies-of-workers" else "group_id")
    if manner == "forgives":
        vars(coordinator)["KAFKA"] = replace(coordinator.KAFKA, make_coordinator=FORGIVING)

    def announce(host: str, port: int) -> None:
        print(f"{host}:{port}", flush=True)

    asyncio.run(serve_forever("127.0.0.1", 0, SETTINGS, Path(folder) / "data", announce))


if __name__ == "__main__":
    main(*sys.argv[1:])
