"""Start and kill librdkafka's mock cluster, one broker on loopback.

start              print the bootstrap address, the only line on stdout, once the mock answers
kill               kill it without warning; the next start is empty and has a new port
"""

import argparse
import sys
from pathlib import Path

from tests.targets import probe
from tests.targets.mock.host import load_library
from tests.targets.process import MissingDependencyError, ProcessFolder, print_address, run_folder

START_TIMEOUT_S = 30
"""Seconds the mock may take to answer, on a busy machine."""


def start(folder: ProcessFolder) -> str:
    """Start the mock that lives in `folder`, unless it runs already, and return its address once it answers."""
    try:
        load_library()
    except ImportError as missing:
        raise MissingDependencyError(str(missing)) from missing
    address = folder.path / "address"
    process = folder.launch([sys.executable, "-m", "tests.targets.mock.host", str(address)], stale=[address])
    folder.wait_until_serving(process, lambda: is_serving(address), START_TIMEOUT_S)
    return address.read_text()


def is_serving(address: Path) -> bool:
    """Whether the mock has told its address and answers there."""
    try:
        return bool(probe.api_versions(int(address.read_text().rpartition(":")[2])))
    except OSError:
        return False


def main(arguments: list[str] | None = None) -> int:
    """`start` or `kill`; 0 on success, 1 if the start failed, 2 if the wheel is missing."""
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill"])
    parser.add_argument("--data", type=Path, help="the folder of its process (default: mock in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / "mock").absolute())
    if given.action == "kill":
        folder.kill()
        return 0
    return print_address(lambda: start(folder))


if __name__ == "__main__":
    sys.exit(main())
