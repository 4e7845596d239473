"""What the start commands of servers on one port have in common: they run in the background of a folder."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.targets import probe
from tests.targets.process import ProcessFolder, chosen_ports, print_address, run_folder

START_TIMEOUT_S = 30
"""Seconds a server may take to answer, on a busy machine."""


def is_serving(port: int) -> bool:
    """Whether a server on this port of 127.0.0.1 answers ApiVersions."""
    try:
        return bool(probe.api_versions(port))
    except OSError:
        return False


def start_on_port(folder: ProcessFolder, command: Callable[[int], Sequence[str]]) -> str:
    """Start the server that lives in `folder`, unless it runs already, and return its address once it answers.

    `command` gets the port, which is the same at each start.
    """
    [port] = chosen_ports(folder.path, 1)
    process = folder.launch(command(port))
    folder.wait_until_serving(process, lambda: is_serving(port), START_TIMEOUT_S)
    return f"127.0.0.1:{port}"


def start_or_kill(
    name: str, description: str | None, start: Callable[[ProcessFolder], str], arguments: Sequence[str] | None
) -> int:
    """Do what the command line says with the target of this name; 0 on success, 1 if the start failed, 2 if something
    that it needs is missing."""
    parser = argparse.ArgumentParser(prog=name, description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill"])
    parser.add_argument("--data", type=Path, help=f"the folder of its process (default: {name} in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / name).absolute())
    if given.action == "kill":
        folder.kill()
        return 0
    return print_address(lambda: start(folder))
