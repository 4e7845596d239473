"""Real targets for tests: started from their profiles, in a folder of the test session, and killed at its end."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fencepost.conformance.profile import Profile, load_profile
from tests.targets.session import session_folder, starting

MISSING_EXIT_CODE = 2
"""The exit code of a start command that lacks something on this machine."""


@dataclass(slots=True)
class RunningTarget:
    """A target that was started from its profile; `bootstrap` is "host:port" and may change with a restart."""

    name: str
    profile: Profile
    folder: Path
    bootstrap: str = ""

    @property
    def port(self) -> int:
        """The port of 127.0.0.1 that it serves on."""
        return int(self.bootstrap.rpartition(":")[2])

    def start(self) -> None:
        """Start it unless it runs. If it cannot exist on this machine, skip the test; with CI=true, fail."""
        with starting(self.folder):
            done = self._run(self.profile.start)
        if done.returncode == MISSING_EXIT_CODE and os.environ.get("CI") != "true":
            pytest.skip(f"{self.name} is missing: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        self.bootstrap = done.stdout.strip()

    def kill(self) -> None:
        """Kill it without warning."""
        done = self._run(self.profile.kill)
        assert done.returncode == 0, done.stderr

    def run(self, *command: str) -> str:
        """Run a command in the profile's folder and return what it prints."""
        done = self._run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = os.environ | {"FENCEPOST_RUN": str(self.folder), "PATH": path}
        return subprocess.run(command, cwd=self.profile.folder, env=env, capture_output=True, text=True)


def load_target(name: str, folder: Path) -> RunningTarget:
    """The target of tests/targets/NAME.toml, not yet started, with its data in `folder`."""
    return RunningTarget(name, load_profile(Path(__file__).parent / f"{name}.toml"), folder)


def shared_target(name: str) -> RunningTarget:
    """The running target of tests/targets/NAME.toml that all processes of the test session share."""
    session = session_folder()
    assert session is not None, "only a test session shares targets"
    target = load_target(name, session / name)
    target.start()
    return target
