"""The real targets start, answer, die when killed and start again."""

import socket
from pathlib import Path

import pytest

from fencepost.conformance.profile import Profile
from tests.targets import probe
from tests.targets.kafka.broker import GROUPS
from tests.targets.kafka.certificates import make_certificates
from tests.targets.kafka.leadership import partition_of
from tests.targets.kfake.cluster import build
from tests.targets.process import MissingDependencyError, first_ephemeral_port, free_ports, is_free
from tests.targets.running import MISSING_EXIT_CODE, RunningTarget, load_target

JOIN_GROUP = 11
INTERNAL_TOPIC = "__consumer_offsets"


def restart(target: RunningTarget) -> None:
    """Kill and start, seeing it dead in between."""
    target.kill()
    with pytest.raises(OSError):
        probe.api_versions(target.port)
    target.start()


def check_survives_kill(target: RunningTarget, group: str = "a") -> None:
    """A broker comes back at the same address with the offsets it had acknowledged."""
    before = target.bootstrap
    assert probe.committed_offset(target.port, group, INTERNAL_TOPIC) == -1
    assert probe.commit_offset(target.port, group, INTERNAL_TOPIC, 42) == 0
    restart(target)
    assert target.bootstrap == before
    assert probe.committed_offset(target.port, group, INTERNAL_TOPIC) == 42


@pytest.mark.kafka4
def test_kafka4(kafka4: RunningTarget) -> None:
    assert probe.api_versions(kafka4.port)[JOIN_GROUP] == (0, 9)
    check_survives_kill(kafka4)


@pytest.mark.kafka3
def test_kafka3(kafka3: RunningTarget) -> None:
    assert probe.api_versions(kafka3.port)[JOIN_GROUP] == (0, 9)
    check_survives_kill(kafka3)


@pytest.mark.kafka34
def test_kafka34(kafka34: RunningTarget) -> None:
    assert probe.api_versions(kafka34.port)[JOIN_GROUP] == (0, 9)
    check_survives_kill(kafka34)


@pytest.mark.kafka28
def test_kafka28(kafka28: RunningTarget) -> None:
    assert probe.api_versions(kafka28.port)[JOIN_GROUP] == (0, 7)
    check_survives_kill(kafka28)


CLUSTER = "kafka/cluster"


def node_ports(cluster: RunningTarget) -> dict[int, int]:
    """The ports of the cluster's nodes."""
    rows = (line.split() for line in cluster.run(CLUSTER, "nodes").splitlines())
    return {int(node): int(address.rpartition(":")[2]) for node, address in rows}


def leader_of(cluster: RunningTarget, group: str) -> int:
    """The node that coordinates the group."""
    return int(cluster.run(CLUSTER, "leader", group))


@pytest.mark.kafka_cluster
def test_the_cluster_spreads_its_groups_and_survives_kills(kafka_cluster: RunningTarget) -> None:
    kafka_cluster.run(CLUSTER, "move", "d", "--node", "1")
    check_survives_kill(kafka_cluster, "d")
    assert {leader_of(kafka_cluster, group) for group in GROUPS} == set(node_ports(kafka_cluster))


@pytest.mark.kafka_cluster
def test_leadership_moves_while_the_old_leader_stays(kafka_cluster: RunningTarget) -> None:
    ports, old = node_ports(kafka_cluster), leader_of(kafka_cluster, "b")
    assert probe.commit_offset(ports[old], "b", INTERNAL_TOPIC, 7) == 0
    new = int(kafka_cluster.run(CLUSTER, "move", "b"))
    assert new != old and leader_of(kafka_cluster, "b") == new
    assert probe.heartbeat_error(ports[old], "b") == probe.NOT_COORDINATOR
    assert probe.committed_offset(ports[new], "b", INTERNAL_TOPIC) == 7


@pytest.mark.kafka_cluster
def test_the_others_go_on_without_a_killed_node(kafka_cluster: RunningTarget) -> None:
    ports, old = node_ports(kafka_cluster), leader_of(kafka_cluster, "c")
    assert probe.commit_offset(ports[old], "c", INTERNAL_TOPIC, 9) == 0
    kafka_cluster.run(CLUSTER, "kill", "--node", str(old))
    try:
        with pytest.raises(OSError):
            probe.api_versions(ports[old])
        new = int(kafka_cluster.run(CLUSTER, "move", "c"))
        assert probe.committed_offset(ports[new], "c", INTERNAL_TOPIC) == 9
    finally:
        kafka_cluster.run(CLUSTER, "start", "--node", str(old))
    assert probe.api_versions(ports[old])


@pytest.mark.slow
def test_a_move_that_is_impossible_is_told_in_one_line(tmp_path: Path) -> None:
    cluster = load_target("kafka_cluster", tmp_path)
    with pytest.raises(AssertionError, match=r"^fencepost target: no node is up; start the cluster\n$"):
        cluster.run(CLUSTER, "move", "a")


@pytest.mark.kfake
def test_kfake_comes_back_at_the_same_address(kfake: RunningTarget) -> None:
    before = kfake.bootstrap
    assert probe.join_error(kfake.port, "a") == 0
    restart(kfake)
    assert kfake.bootstrap == before and JOIN_GROUP in probe.api_versions(kfake.port)


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


@pytest.mark.slow
def test_the_server_with_two_nodes(tmp_path: Path) -> None:
    server = load_target("serve_nodes", tmp_path)
    server.start()
    try:
        assert probe.heartbeat_error(server.port, "a") == probe.UNKNOWN_MEMBER_ID
        server.run("serve/move", "a", "--nodes", "2")
        assert probe.heartbeat_error(server.port, "a") == probe.NOT_COORDINATOR
    finally:
        server.kill()


@pytest.mark.parametrize(("group", "partition"), [("a", 47), ("", 0), ("polygenelubricants", 0), ("\N{SNOWMAN}", 31)])
def test_a_group_belongs_to_the_partition_of_its_hash(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def missing_target(folder: Path) -> RunningTarget:
    """A target whose start command says that something is not installed."""
    profile = Profile(folder, start=("sh", "-c", f"echo 'no such thing' >&2; exit {MISSING_EXIT_CODE}"), kill=("true",))
    return RunningTarget("ghost", profile, folder)


def test_no_outgoing_connection_takes_the_port_of_a_killed_target() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    assert max(ports) < first_ephemeral_port()
    with socket.create_server(("127.0.0.1", ports[0])):
        assert not is_free(ports[0])
    assert is_free(ports[0])


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


def test_a_kfake_without_go_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"^go: not found; install Go 1\.26"):
        build()


def test_a_sasl_ssl_broker_without_openssl_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"^openssl: not found; install OpenSSL"):
        make_certificates(tmp_path / "certificates", "client")
