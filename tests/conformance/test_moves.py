"""Runs on the bundled coordinator with two nodes: moves between correct nodes, and between faulty ones."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import VERSIONS
from fencepost.adapters.classic.responses import BODIES
from fencepost.adapters.serve.coordination import NodeLeadership, Request, Response
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.cli import main
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.wire.codec import decode_body, encode_body, fit_body
from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from tests.support.sample_reports import JOIN_29
from tests.targets.running import RunningTarget, load_target

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
TARGETS = Path(__file__).parent.parent / "targets"
CLUSTER = ("FIND-04", "FIND-10", "FAILOVER-11", "FAILOVER-18", "FAILOVER-20")
ACCEPTED_JOIN = {
    "error_code": 0,
    "generation_id": 2,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "leader": "",
    "skip_assignment": False,
    "member_id": "",
    "members": [],
}
ACCEPTED_SYNC = {"error_code": 0, "protocol_type": "consumer", "protocol_name": "range", "assignment": b"early"}


def verdicts_on_bundled() -> dict[str, Verdict]:
    """The verdicts on the requirements that take a second node."""
    run = BundledRun(Plan(BUNDLED), Profile())
    report = asyncio.run(run.run([CATALOGUE[each] for each in CLUSTER], lambda event: None))
    return {result.id: result.verdict for result in report.results}


def failed_requirements() -> set[str]:
    return {id for id, verdict in verdicts_on_bundled().items() if verdict is Verdict.FAIL}


def test_two_nodes_that_do_it_right() -> None:
    assert verdicts_on_bundled() == dict.fromkeys(CLUSTER, Verdict.PASS)


# --- faulty nodes


def refuse_but(*apis: str) -> Callable[[NodeLeadership, Request, int], Response | None]:
    """A node that handles requests of these APIs whoever coordinates their group."""
    rightly = NodeLeadership.refuse

    def refuse(nodes: NodeLeadership, request: Request, node: int) -> Response | None:
        return None if request.api in apis else rightly(nodes, request, node)

    return refuse


def succeed(nodes: NodeLeadership, request: Request) -> Response | None:
    """Parked requests succeed when their group is moved."""
    body = ACCEPTED_JOIN if request.api == "JoinGroup" else ACCEPTED_SYNC
    member = {"member_id": request.body["member_id"], "leader": request.body["member_id"]}
    return Response(request.handle, {"throttle_time_ms": 0, **body, **(member if request.api == "JoinGroup" else {})})


TELL_TRULY = NodeLeadership.describe_offsets_topic


def name_other_node(nodes: NodeLeadership, partitions: int) -> dict[str, Any]:
    """Metadata names another leader than FindCoordinator."""
    return TELL_TRULY(NodeLeadership(nodes.nodes[::-1]), partitions)


@pytest.mark.parametrize(
    ("function", "faulty", "failing"),
    [
        ("end_parked", succeed, {"FAILOVER-11"}),
        ("end_parked", lambda nodes, request: None, {"FAILOVER-11"}),
        ("refuse", refuse_but("Heartbeat", "SyncGroup", "OffsetFetch", "LeaveGroup"), {"FAILOVER-18"}),
        ("refuse", refuse_but("OffsetCommit"), {"FAILOVER-20"}),
        ("refuse", refuse_but("JoinGroup"), {"FIND-10"}),
        ("describe_offsets_topic", name_other_node, {"FIND-04"}),
    ],
    ids=["parked-succeed", "parked-forgotten", "old-answers", "old-commits", "wrong-node", "another-leader"],
)
def test_what_faulty_nodes_violate(
    function: str, faulty: Callable[..., Any], failing: set[str], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(NodeLeadership, function, faulty)
    assert failed_requirements() == failing


def test_a_lookup_that_does_not_follow_a_move(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        NodeLeadership, "describe_offsets_topic", lambda nodes, count: TELL_TRULY(NodeLeadership(nodes.nodes), count)
    )
    assert failed_requirements() == {"FIND-04"}


# --- replays


def test_a_move_is_replayed(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(NodeLeadership, "refuse", refuse_but("OffsetCommit"))
        assert main(["test", "bundled", "--only", "FAILOVER-20", "--save", str(tmp_path)]) == 1
        told = capsys.readouterr().out
        assert "ms moved from node 0 to node 1\n" in told and "ms A: OffsetCommit v10 to node 0 member_id=A" in told
        (trace,) = tmp_path.glob("*.jsonl*")
        assert [event.api for event in open_trace(trace)[1] if event.kind is Kind.FAULT] == ["move", "moved"]
        assert main(["replay", str(trace), "bundled"]) == 1
        assert capsys.readouterr().out.endswith("STILL FAILS\n")
    assert main(["replay", str(trace), "bundled"]) == 0
    assert capsys.readouterr().out.endswith("FIXED\n")


# --- over the network


def verdicts_on(target: RunningTarget, profile: str, ids: Sequence[str], report: Path, patch: Patch) -> dict[str, str]:
    """The verdicts of a run on a target that is running, with a profile of tests/targets."""
    patch.setenv("FENCEPOST_RUN", str(target.folder))
    patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    options = ["--profile", str(TARGETS / f"{profile}.toml"), "--json", str(report), "--only", *ids]
    assert main(["test", f"kafka://{target.bootstrap}", *options]) == 0
    return {row["id"]: row["verdict"] for row in json.loads(report.read_text())["requirements"]}


@pytest.mark.slow
def test_the_server_with_two_nodes(tmp_path: Path, monkeypatch: Patch) -> None:
    server, ids = load_target("serve_nodes", tmp_path), ("FIND-10", "FAILOVER-20")
    server.start()
    try:
        verdicts = verdicts_on(server, "serve_nodes", ids, tmp_path / "r.json", monkeypatch)
    finally:
        server.kill()
    assert verdicts == dict.fromkeys(ids, "pass")


@pytest.mark.kafka_cluster
@pytest.mark.parametrize(
    ("profile", "ids"),
    [
        ("kafka_cluster", CLUSTER),
        pytest.param("kafka_cluster_kill", ("FAILOVER-20",), marks=pytest.mark.acceptance),
    ],
)
def test_apache_kafka_with_three_nodes(
    profile: str, ids: tuple[str, ...], kafka_cluster: RunningTarget, tmp_path: Path, monkeypatch: Patch
) -> None:
    verdicts = verdicts_on(kafka_cluster, profile, ids, tmp_path / "r.json", monkeypatch)
    assert verdicts == dict.fromkeys(ids, "pass")


# --- refusals


@pytest.mark.parametrize("api", BODIES)
def test_a_refusal_is_a_response_of_every_version(api: str) -> None:
    nodes = NodeLeadership((0, 1))
    body: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "groups": [{"group_id": "g"}] if api == "OffsetFetch" else ["g"],
        "groups_names": ["g"],
        "transactional_id": "t",
        "topics": [
            {"name": "t", "topic_id": ZERO_UUID, "partitions": [{"partition_index": 0}], "partition_indexes": [0]}
        ],
    }
    lowest, highest = VERSIONS[api]
    for version in range(lowest, highest + 1):
        request = Request(7, api, version, None, "/host", fit_body(f"{api}Request", version, body))
        assert nodes.refuse(request, 0) is None
        refusal = nodes.refuse(request, 1)
        assert refusal is not None and refusal.handle == 7
        assert fit_body(f"{api}Response", version, refusal.body) == refusal.body
        assert decode_body(f"{api}Response", version, encode_body(f"{api}Response", version, refusal.body)).body


def test_any_node_gives_out_producer_ids() -> None:
    request = Request(7, "InitProducerId", 2, None, "/host", {"transactional_id": None, "transaction_timeout_ms": 1})
    assert NodeLeadership((0, 1)).refuse(request, 1) is None


# --- Failures of a target that is an older Apache Kafka say so, and stay failures.

NOTE = "as Apache Kafka before 3.7.1 (KAFKA-16371)"


def report_on(release: str, *requirements: str) -> Report:
    """A report on a target by whose versions it is this release, with a failure of each requirement."""
    builder = ReportBuilder(requirements, kafka_release=release)
    for requirement in requirements:
        builder.add_failure(requirement, JOIN_29)
    return builder.build(schedules=1, events=1, seconds=1.0, target={"name": "kafka://127.0.0.1:9092"})


def test_a_failure_of_an_older_kafka_says_so_and_stays_one() -> None:
    report = report_on("3.6.2", "COMMIT-15")
    assert report.result("COMMIT-15").note == NOTE
    assert report.result("COMMIT-15").verdict is Verdict.FAIL
    assert report.exit_code() is ExitCode.VIOLATION
    assert f"note          {NOTE}" in render_report(report)


def test_a_failure_of_a_newer_or_unknown_target_stands_alone() -> None:
    # By its versions, 3.7.0 is no other than 3.7.2, which does better.
    for release in ("3.7.2", "3.8.1", "3.9.2", ""):
        report = report_on(release, "COMMIT-15")
        assert report.result("COMMIT-15").note == ""
        assert "as Apache Kafka before" not in render_report(report)


def test_a_requirement_that_always_held_gets_no_note() -> None:
    assert report_on("2.3.1", "JOIN-29").result("JOIN-29").note == ""


def test_each_of_several_failures_with_one_cause_has_its_note() -> None:
    text = render_report(report_on("2.8.2", "LEAVE-15", "STATIC-07"))
    assert text.count("as Apache Kafka before 3.0.0") == 2


def test_json_says_since_when_a_requirement_holds() -> None:
    report = report_on("3.6.2", "COMMIT-15")
    assert '"since": "Apache Kafka 3.7.1 (KAFKA-16371)"' in to_json(report)
    assert from_json(to_json(report)) == report
