"""A start and a kill command for the broker of `foreground_broker`, which they run in the background.

`python -m tests.support.background_broker start FOLDER MANNER` prints the address and ends; `kill FOLDER` kills it.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tests.targets.process import ProcessFolder, print_address

START_TIMEOUT_S = 60
BROKER = "tests.support.foreground_broker"


def start(folder: ProcessFolder, manner: str) -> str:
    """Start the broker that lives in the folder, and return its address."""
    folder.log.unlink(missing_ok=True)
    process = folder.launch(
        [sys.executable, "-c", f"from {BROKER} import main; main({str(folder.path)!r}, {manner!r})"]
    )

    def addresses() -> list[str]:
        lines = folder.log.read_text(errors="replace").split("\n")[:-1] if folder.log.exists() else []
        return [line for line in lines if line.startswith("127.0.0.1:")]

    folder.wait_until_serving(process, lambda: bool(addresses()), START_TIMEOUT_S)
    return addresses()[0]


def main(action: str, path: str, manner: str = "") -> int:
    """Start the broker or kill it with what it has started."""
    folder = ProcessFolder(Path(path))
    if action == "start":
        return print_address(lambda: start(folder, manner))
    with suppress(ProcessLookupError):  # the broker has a process group of its own
        os.killpg(int((folder.path / "pid").read_text()), signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
