"""Start and kill a double in the background.

start NAME         print the bootstrap address, the only line on stdout, once it answers
kill NAME          kill it without warning; the next start is empty and has the same port
"""

import argparse
import sys
from pathlib import Path

from tests.support.odd_brokers import DOUBLES
from tests.targets.background import start_on_port
from tests.targets.process import ProcessFolder, print_address, run_folder


def start(name: str, folder: ProcessFolder) -> str:
    """Start the double that lives in `folder`, unless it runs already, and return its address once it answers."""
    command = [sys.executable, "-m", "tests.targets.doubles", name, "--port"]
    return start_on_port(folder, lambda port: [*command, str(port)])


def main(arguments: list[str] | None = None) -> int:
    """`start NAME` or `kill NAME`; 0 on success, 1 if the start failed."""
    parser = argparse.ArgumentParser(
        prog="background", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("action", choices=["start", "kill"])
    parser.add_argument("name", choices=sorted(DOUBLES))
    parser.add_argument("--data", type=Path, help="the folder of its process (default: double-NAME in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / f"double-{given.name}").absolute())
    if given.action == "kill":
        folder.kill()
        return 0
    return print_address(lambda: start(given.name, folder))


if __name__ == "__main__":
    sys.exit(main())
