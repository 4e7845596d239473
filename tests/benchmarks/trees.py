"""Running scripts and commands with the code of any tree, this one or an old one."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CommandRun:
    """What a command printed, and the seconds that it took by the clock and of processors."""

    output: str
    elapsed: float
    cpu: float


def tree_environment(tree: Path, before: Iterable[Path] = ()) -> dict[str, str]:
    """The environment in which Python imports from a tree, and from the folders `before` it."""
    path = os.pathsep.join(map(str, (*before, tree / ".src", tree)))
    return os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def run_script(tree: Path, script: Path, *arguments: object) -> dict[str, Any]:
    """The figures that a script prints as JSON, run in a process of its own with the code of a tree."""
    command = [sys.executable, "-P", str(script), *map(str, arguments)]
    done = subprocess.run(command, cwd=tree, env=tree_environment(tree), stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def run_fencepost(
    tree: Path, *arguments: str, before: Iterable[Path] = (), prepare: Callable[[], None] | None = None
) -> CommandRun:
    """Run `fencepost` of a tree, whose exit status may tell of a theorem in doubt; `prepare` is called in its process
    first."""
    used, begun = _cpu_of_children(), time.monotonic()
    command = [sys.executable, "-P", "-m", "fencepost", *arguments]
    done = subprocess.run(
        command,
        cwd=tree,
        env=tree_environment(tree, before),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=prepare,
    )
    return CommandRun(done.stdout, time.monotonic() - begun, _cpu_of_children() - used)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
