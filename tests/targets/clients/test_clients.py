"""Unmodified clients as targets of `fencepost test-client`: a few scenarios each, on their own timers.

On a busy machine a client may do late what it should, once; that is inconclusive and no failure.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.results import Report, Verdict
from tests.targets.clients.builds import SARAMA, build_go, find, install_kafkajs
from tests.targets.kafka.installation import JVM_OPTIONS, VERSIONS, find_java, install

HERE = Path(__file__).parent
PLACEHOLDERS = ("{bootstrap}", "{group}", "{topic}")
SHORT_TIMERS = (
    "group.protocol=classic",
    "session.timeout.ms=6000",
    "heartbeat.interval.ms=500",
    "max.poll.interval.ms=6000",
    "metadata.max.age.ms=1000",
    "auto.commit.interval.ms=1000",
)
REQUIREMENTS = ("MEMBER-0[1-6]", "MEMBER-13", "HBT-0[12]")
OF_DRIVERS = ("CALLBACK-0[1-3]", "CALLBACK-11", "POLL-03", "HBT-06")
DRIVERS = HERE.parents[2] / "docs" / "examples" / "clients"


def smoke(tmp_path: Path, *command: str, only: Sequence[str] = REQUIREMENTS, driven: bool = False) -> Report:
    """The report on a client and a few requirements."""
    file = tmp_path / "r.json"
    options = ["-q", "--at-once", "2", "--json", str(file), *(["--driven"] if driven else [])]
    code = main(["test-client", *options, "--only", *only, "--", *command])
    report = from_json(file.read_text())
    assert code == report.exit_code()
    return report


@pytest.mark.slow
@pytest.mark.extra("kafka")
def test_kafka_python_keeps_its_requirements(tmp_path: Path) -> None:
    program = str(DRIVERS / "kafka_python_consumer.py")
    report = smoke(tmp_path, sys.executable, program, *PLACEHOLDERS)
    # 3.0.12 may never complete a join during which a topic grows: need_rejoin in its coordinator/consumer.py.
    assert {result.id for result in report.failed_results()} <= {"HBT-01"}
    assert report.result("MEMBER-13").verdict is Verdict.PASS


@pytest.mark.slow
@pytest.mark.java
def test_the_java_client_keeps_its_requirements(tmp_path: Path) -> None:
    jars = install(VERSIONS["4"])
    program = str(HERE / "JavaConsumer.java")
    command = (find_java(), *JVM_OPTIONS, "-cp", f"{jars / 'jars'}/*", program)
    report = smoke(tmp_path, *command, *PLACEHOLDERS, *SHORT_TIMERS)
    assert report.failed_results() == ()
    assert report.result("MEMBER-13").verdict is Verdict.PASS


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize(
    "strategy", [pytest.param("RangeAssignor", marks=pytest.mark.acceptance), "CooperativeStickyAssignor"]
)
def test_the_java_client_keeps_what_a_driver_shows(tmp_path: Path, strategy: str) -> None:
    jars = install(VERSIONS["4"])
    command = (find_java(), *JVM_OPTIONS, "-cp", f"{jars / 'jars'}/*", str(DRIVERS / "JavaDriver.java"))
    setting = f"partition.assignment.strategy=org.apache.kafka.clients.consumer.{strategy}"
    report = smoke(tmp_path, *command, setting, only=OF_DRIVERS, driven=True)
    assert report.failed_results() == ()
    assert {report.result(id).verdict for id in ("CALLBACK-01", "CALLBACK-11", "POLL-03", "HBT-06")} == {Verdict.PASS}


@pytest.mark.go
def test_franz_go_keeps_what_a_driver_shows(tmp_path: Path) -> None:
    only = ("MEMBER-0*", "CALLBACK-0[23]", "POLL-03", "RANGE-*")
    report = smoke(tmp_path, str(build_go()), "range", only=only, driven=True)
    assert report.failed_results() == ()
    assert {report.result(id).verdict for id in ("MEMBER-02", "POLL-03", "RANGE-01")} == {Verdict.PASS}


@pytest.mark.go
def test_sarama_pushes_and_keeps_what_a_driver_shows(tmp_path: Path) -> None:
    report = smoke(tmp_path, str(build_go(SARAMA)), only=("MEMBER-0*", "CALLBACK-0[23]", "POLL-02"), driven=True)
    assert report.failed_results() == ()
    assert report.result("MEMBER-02").verdict is report.result("CALLBACK-03").verdict is Verdict.PASS


@pytest.mark.node
def test_kafkajs_keeps_its_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(install_kafkajs()))
    program = str(HERE / "kafkajs" / "consumer.js")
    only = ("MEMBER-0[1-6]", "HBT-0[12]", "WIRE-0[14]")
    report = smoke(tmp_path, find("node", "Node 20 or newer"), program, *PLACEHOLDERS, only=only)
    # The fetchers of two brokers may join at once when partitions were added: recoverFromFetch in consumerGroup.js.
    assert {result.id for result in report.failed_results()} <= {"MEMBER-06"}
    assert report.result("MEMBER-02").verdict is Verdict.PASS


@pytest.mark.node
def test_kafkajs_keeps_what_a_driver_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(install_kafkajs()))
    driver = str(DRIVERS / "kafkajs_driver.js")
    report = smoke(tmp_path, find("node", "Node 20 or newer"), driver, only=("MEMBER-0[1-5]",), driven=True)
    assert report.failed_results() == ()
    assert {report.result(id).verdict for id in ("MEMBER-02", "MEMBER-05")} == {Verdict.PASS}
