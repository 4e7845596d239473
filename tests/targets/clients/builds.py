"""Clients that have to be built or installed first, once per machine for each state of their sources, into
$FENCEPOST_CACHE (default ~/.cache/fencepost)."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from tests.targets.process import MissingDependencyError, cache_folder

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "docs" / "examples" / "clients"
FRANZ_GO = EXAMPLES / "franz_go"
SARAMA = EXAMPLES / "sarama"
KAFKAJS = HERE / "kafkajs"


def build_go(folder: Path = FRANZ_GO) -> Path:
    """The program of an example in Go. Raises `MissingDependencyError`."""

    def build(part: Path) -> None:
        command = [
            find("go", "Go 1.26 or newer"),
            "build",
            "-mod=readonly",
            "-buildvcs=false",
            "-o",
            str(part / "driver"),
            ".",
        ]
        run(command, folder, {"GOWORK": "off"})

    name = folder.name.replace("_", "-")
    return make(name, [folder / each for each in ("go.mod", "go.sum", "main.go")], build) / "driver"


def install_kafkajs() -> Path:
    """The folder of Node's modules with kafkajs. Raises `MissingDependencyError`."""
    return install_modules("kafkajs", KAFKAJS)


def install_modules(name: str, folder: Path) -> Path:
    """The folder of the Node modules that a folder's lock file names. Raises `MissingDependencyError`."""

    def install(part: Path) -> None:
        for each in ("package.json", "package-lock.json"):
            shutil.copy(folder / each, part)
        run([find("npm", "Node 20 or newer"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], part, {})

    return make(name, [folder / "package-lock.json"], install) / "node_modules"


def make(name: str, sources: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The folder that `fill` has made of these sources."""
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    home = cache_folder() / "clients"
    home.mkdir(parents=True, exist_ok=True)
    made = home / f"{name}-{digest[:16]}"
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = made.with_name(f"{made.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            fill(part)
            part.rename(made)
    return made


def find(program: str, needed: str) -> str:
    """The path of a program. Raises `MissingDependencyError`."""
    found = shutil.which(program)
    if found is None:
        raise MissingDependencyError(f"{program}: not found; install {needed}")
    return found


def run(command: Sequence[str], folder: Path, settings: dict[str, str]) -> None:
    """Run a preparing command. Raises `MissingDependencyError` with its last output if it fails."""
    env = os.environ | settings
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise MissingDependencyError(f"{' '.join(command)} failed: {done.stdout[-2000:].strip()}")
