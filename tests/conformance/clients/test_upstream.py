"""Clients before a real cluster: the kit hands on what no fault is for, and says what such a cluster does not do."""

import json
import sys
from pathlib import Path

import pytest

from fencepost.adapters.client.upstream_brokers import offer_common_versions, refuse_version
from fencepost.conformance.cli import main
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS, decode_response, encode_response
from tests.support.doc_pages import ROOT
from tests.support.served_coordinator import serve_in_thread
from tests.targets.running import RunningTarget, shared_target

Capture = pytest.CaptureFixture[str]
DRIVER = (sys.executable, str(ROOT / "docs/examples/clients/kafka_python_driver.py"))
SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
APIS = {"ApiVersions": (0, 5), "Fetch": (4, 18), "Heartbeat": (0, 4), "ConsumerGroupHeartbeat": (0, 1)}
CONSUMER_GROUP_HEARTBEAT = 68


@pytest.fixture(scope="module")
def kafka4() -> RunningTarget:
    return shared_target("kafka4")


def run(upstream: str, report: Path, *requirements: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Test kafka-python before a cluster; the exit code, and the requirements of the report."""
    options = ["--driven", "--upstream", upstream, "--json", str(report), "-q", "--only", *requirements]
    code = main(["test-client", *options, "--", *DRIVER])
    return code, {row["id"]: row for row in json.loads(report.read_text())["requirements"]}


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.acceptance
def test_a_client_before_a_served_cluster(tmp_path: Path) -> None:
    with serve_in_thread(SETTINGS) as bootstrap:
        code, rows = run(bootstrap, tmp_path / "r.json", "MEMBER-01", "POLL-12", "MEMBER-28")
    assert code == 0 and rows["MEMBER-01"]["verdict"] == "pass"
    assert rows["POLL-12"]["note"] == "offsets-without-records: the kit writes no transactions to a real cluster"


@pytest.mark.kafka4
def test_a_client_before_apache_kafka(kafka4: RunningTarget, tmp_path: Path) -> None:
    code, rows = run(kafka4.bootstrap, tmp_path / "r.json", "MEMBER-13", "MEMBER-21")
    assert (code, rows["MEMBER-13"]["verdict"], rows["MEMBER-21"]["verdict"]) == (0, "pass", "pass")


def test_a_cluster_that_is_not_there(capsys: Capture) -> None:
    assert main(["test-client", "--upstream", "127.0.0.1:1", "--", "true"]) == 2
    assert "Traceback" not in (told := "".join(capsys.readouterr())) and "127.0.0.1:1" in told


def test_random_schedules_are_refused(capsys: Capture) -> None:
    assert main(["test-client", "--upstream", "127.0.0.1:1", "--schedules", "1", "--", "true"]) == 2
    assert "leave out --upstream" in capsys.readouterr().err


def list_offered(response: bytes, version: int) -> dict[int, tuple[int, int]]:
    rows = decode_response("ApiVersions", version, response).body["api_keys"]
    return {row["api_key"]: (row["min_version"], row["max_version"]) for row in rows}


def test_versions_are_those_that_scenarios_know() -> None:
    keys = {**API_KEYS, "ConsumerGroupHeartbeat": CONSUMER_GROUP_HEARTBEAT}
    rows = [{"api_key": keys[api], "min_version": low, "max_version": high} for api, (low, high) in APIS.items()]
    response = encode_response("ApiVersions", 3, 7, {"error_code": 0, "api_keys": rows})
    found = list_offered(offer_common_versions(3, response), 3)
    assert found == {keys["ApiVersions"]: (0, 4), keys["Fetch"]: (4, 6), keys["Heartbeat"]: (0, 4)}


def test_a_later_version_of_api_versions_is_refused() -> None:
    response = decode_response("ApiVersions", 0, refuse_version(7))
    assert response.body["error_code"] == Error.UNSUPPORTED_VERSION and response.correlation_id == 7
    assert list_offered(refuse_version(7), 0) == {API_KEYS["ApiVersions"]: (0, 4)}
