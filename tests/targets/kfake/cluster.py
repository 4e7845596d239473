"""Start and kill kfake, the imitation of Kafka that comes with the Go client franz-go, as one node on loopback.

start              print the bootstrap address, the only line on stdout, once it answers
kill               kill it without warning; the next start is empty and has the same port

It is built at the first start, into $FENCEPOST_CACHE (default ~/.cache/fencepost).
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.targets import probe
from tests.targets.process import (
    MissingDependencyError,
    ProcessFolder,
    cache_folder,
    chosen_ports,
    print_address,
    run_folder,
)

HERE = Path(__file__).parent
SOURCES = ("go.mod", "go.sum", "main.go")
START_TIMEOUT_S = 30
"""Seconds kfake may take to answer, on a busy machine."""


def build() -> Path:
    """Build the program once per machine for each state of its sources, and return it."""
    go = shutil.which("go")
    if go is None:
        raise MissingDependencyError("go: not found; install Go 1.26 or newer, which builds kfake")
    digest = sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()
    home = cache_folder() / "kfake"
    home.mkdir(parents=True, exist_ok=True)
    program = home / f"kfake-{digest[:16]}"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            part = program.with_suffix(".part")
            command = [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(part), "."]
            env = os.environ | {"GOWORK": "off"}
            done = subprocess.run(
                command, cwd=HERE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if done.returncode:
                raise MissingDependencyError(f"kfake cannot be built: {done.stdout[-2000:].strip()}")
            part.rename(program)
    return program


def start(folder: ProcessFolder) -> str:
    """Start the kfake that lives in `folder`, unless it runs already, and return its address once it answers."""
    program = build()
    [port] = chosen_ports(folder.path, 1)
    process = folder.launch([str(program), str(port)])
    folder.wait_until_serving(process, lambda: is_serving(port), START_TIMEOUT_S)
    return f"127.0.0.1:{port}"


def is_serving(port: int) -> bool:
    """Whether kfake answers ApiVersions."""
    try:
        return bool(probe.api_versions(port))
    except OSError:
        return False


def main(arguments: list[str] | None = None) -> int:
    """`start` or `kill`; 0 on success, 1 if the start failed, 2 if Go or the download is missing."""
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill"])
    parser.add_argument("--data", type=Path, help="the folder of its process (default: kfake in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / "kfake").absolute())
    if given.action == "kill":
        folder.kill()
        return 0
    return print_address(lambda: start(folder))


if __name__ == "__main__":
    sys.exit(main())
