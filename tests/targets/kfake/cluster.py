"""Start and kill kfake, the imitation of Kafka that comes with the Go client franz-go, as one node on loopback.

start              print the bootstrap address, the only line on stdout, once it answers
kill               kill it without warning; the next start is empty and has the same port

It is built at the first start, into $FENCEPOST_CACHE (default ~/.cache/fencepost).
"""

import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.targets.background import start_on_port, start_or_kill
from tests.targets.process import MissingDependencyError, ProcessFolder, cache_folder

HERE = Path(__file__).parent
SOURCES = ("go.mod", "go.sum", "main.go")


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
    return start_on_port(folder, lambda port: [str(program), str(port)])


def main(arguments: list[str] | None = None) -> int:
    """`start` or `kill`; 0 on success, 1 if the start failed, 2 if Go or the download is missing."""
    return start_or_kill("kfake", __doc__, start, arguments)


if __name__ == "__main__":
    sys.exit(main())
