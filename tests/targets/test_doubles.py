"""Each double does its one thing, and the server that it is made from does not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.odd_brokers import DOUBLES
from tests.support.served_coordinator import serve_in_thread
from tests.targets import probe
from tests.targets.session import starting

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "doubles"
TOPIC = "topic"


def run_script(name: str, *arguments: str) -> str:
    """Run one of the doubles' scripts and return what it prints."""
    command = [str(SCRIPTS / name), *arguments]
    env = os.environ | {"PYTHON": sys.executable}
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextmanager
def running_double(name: str, folder: Path) -> Iterator[int]:
    """A double that lives in `folder`; gives its port."""
    with starting(folder):
        address = run_script("start", name, "--data", str(folder))
    try:
        yield int(address.rpartition(":")[2])
    finally:
        run_script("kill", name, "--data", str(folder))


@contextmanager
def running_server() -> Iterator[int]:
    """The server that the doubles are made from; gives its port."""
    with serve_in_thread() as address:
        yield int(address.rpartition(":")[2])


def commit(port: int, group: str) -> None:
    probe.touch_topic(port, TOPIC)
    assert probe.commit_offset(port, group, TOPIC, 42) == 0


def test_one_hangs_up_on_describe_configs(tmp_path: Path) -> None:
    with running_double("hangs-up", tmp_path) as port:
        assert probe.DESCRIBE_CONFIGS in probe.api_versions(port)
        with pytest.raises(ConnectionError):
            probe.describe_configs_error(port)
    with running_server() as port:
        assert probe.describe_configs_error(port) == 0


def test_one_wipes_every_group(tmp_path: Path) -> None:
    with running_double("wipes", tmp_path) as port:
        commit(port, "")
        commit(port, "bystander")
        commit(port, "other")
        assert probe.delete_error(port, "other") == 0
        assert probe.committed_offset(port, "bystander", TOPIC) == 42
        assert probe.delete_error(port, "") == 0
        assert probe.committed_offset(port, "bystander", TOPIC) == -1
    with running_server() as port:
        commit(port, "")
        commit(port, "bystander")
        assert probe.delete_error(port, "") == 0
        assert probe.committed_offset(port, "bystander", TOPIC) == 42


def test_one_dies_of_a_join_without_protocols(tmp_path: Path) -> None:
    with running_double("dies", tmp_path) as port:
        with pytest.raises(ConnectionError):
            probe.join_error(port, "a", protocols=0)
        assert probe.join_error(port, "a") == 0
    with running_server() as port:
        assert probe.join_error(port, "a", protocols=0) != 0


def test_one_never_parks_a_request(tmp_path: Path) -> None:
    with running_double("never-parks", tmp_path) as port:
        assert probe.join_error(port, "a") == 0
        assert probe.join_error(port, "a") == probe.REBALANCE_IN_PROGRESS
    with running_server() as port:
        assert probe.join_error(port, "a") == 0
        with pytest.raises(TimeoutError):
            probe.join_error(port, "a", timeout=1)


@pytest.mark.parametrize("name", DOUBLES)
def test_one_command_serves_a_double(name: str) -> None:
    command = [sys.executable, "-m", "tests.targets.doubles", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as double:
        try:
            assert double.stdout is not None
            assert probe.api_versions(int(double.stdout.readline().rpartition(":")[2]))
        finally:
            double.kill()
