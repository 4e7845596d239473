"""The real targets start, answer, die when killed and start again."""

from pathlib import Path

import pytest

from fencepost.conformance.profile import Profile
from tests.targets import probe
from tests.targets.running import MISSING_EXIT_CODE, RunningTarget, load_target

JOIN_GROUP = 11
INTERNAL_TOPIC = "__consumer_offsets"


def restart(target: RunningTarget) -> None:
    """Kill and start, seeing it dead in between."""
    target.kill()
    with pytest.raises(OSError):
        probe.api_versions(target.port)
    target.start()


def check_survives_kill(target: RunningTarget) -> None:
    """A broker comes back at the same address with the offsets it had acknowledged."""
    before = target.bootstrap
    assert probe.committed_offset(target.port, "a", INTERNAL_TOPIC) == -1
    assert probe.commit_offset(target.port, "a", INTERNAL_TOPIC, 42) == 0
    restart(target)
    assert target.bootstrap == before
    assert probe.committed_offset(target.port, "a", INTERNAL_TOPIC) == 42


@pytest.mark.kafka4
def test_kafka4(kafka4: RunningTarget) -> None:
    assert probe.api_versions(kafka4.port)[JOIN_GROUP] == (0, 9)
    check_survives_kill(kafka4)


@pytest.mark.kafka3
def test_kafka3(kafka3: RunningTarget) -> None:
    assert probe.api_versions(kafka3.port)[JOIN_GROUP] == (0, 9)
    check_survives_kill(kafka3)


@pytest.mark.mock
def test_the_mock_comes_back_empty(mock: RunningTarget) -> None:
    assert JOIN_GROUP in probe.api_versions(mock.port)
    restart(mock)
    assert JOIN_GROUP in probe.api_versions(mock.port)


@pytest.mark.slow
def test_the_server(tmp_path: Path) -> None:
    server = load_target("serve", tmp_path)
    server.start()
    try:
        probe.touch_topic(server.port, INTERNAL_TOPIC)
        check_survives_kill(server)
    finally:
        server.kill()


def missing_target(folder: Path) -> RunningTarget:
    """A target whose start command says that something is not installed."""
    profile = Profile(folder, start=("sh", "-c", f"echo 'no such thing' >&2; exit {MISSING_EXIT_CODE}"), kill=("true",))
    return RunningTarget("ghost", profile, folder)


def test_a_missing_target_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="ghost is missing: no such thing"):
        missing_target(tmp_path).start()


def test_in_ci_a_missing_target_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="no such thing"):
        missing_target(tmp_path).start()


def test_a_kafka_without_java_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="install a Java 17"):
        load_target("kafka4", tmp_path).start()
