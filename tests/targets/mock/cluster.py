"""Start and kill librdkafka's mock cluster, one broker on loopback.

start              print the bootstrap address, the only line on stdout, once the mock answers
kill               kill it without warning; the next start is empty and has a new port
"""

import sys
from pathlib import Path

from tests.targets.background import START_TIMEOUT_S, is_serving, start_or_kill
from tests.targets.mock.host import load_library
from tests.targets.process import MissingDependencyError, ProcessFolder


def start(folder: ProcessFolder) -> str:
    """Start the mock that lives in `folder`, unless it runs already, and return its address once it answers."""
    try:
        load_library()
    except ImportError as missing:
        raise MissingDependencyError(str(missing)) from missing
    address = folder.path / "address"
    process = folder.launch([sys.executable, "-m", "tests.targets.mock.host", str(address)], stale=[address])
    folder.wait_until_serving(process, lambda: is_serving_there(address), START_TIMEOUT_S)
    return address.read_text()


def is_serving_there(address: Path) -> bool:
    """Whether the mock has told its address and answers there."""
    return address.exists() and is_serving(int(address.read_text().rpartition(":")[2]))


def main(arguments: list[str] | None = None) -> int:
    """`start` or `kill`; 0 on success, 1 if the start failed, 2 if the wheel is missing."""
    return start_or_kill("mock", __doc__, start, arguments)


if __name__ == "__main__":
    sys.exit(main())
