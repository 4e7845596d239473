"""Whole runs: replays, verdicts, reports, and clients that cannot be tested."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.adapters.client import cluster
from fencepost.adapters.client.cluster import REFUSED, ScriptedCluster, start_cluster
from fencepost.adapters.client.program import ClientPlace, launch_program
from fencepost.adapters.client.upstream_brokers import offer_common_versions, refuse_version
from fencepost.adapters.wire.process_control import PROC, processes_of_session, stat_fields
from fencepost.conformance.cli import main
from fencepost.conformance.clients.run import describe_requests
from fencepost.conformance.clients.stage import ClientFacts, ClientStage, StageBlocked
from fencepost.conformance.events import Progress
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import EndKind, ExitCode, NamedBy, Verdict
from fencepost.conformance.run.stream import progress_consumer
from fencepost.model.catalogue.requirement import UnknownRequirement
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS, decode_response, encode_response
from fencepost.traces.events import Event, Kind
from tests.support.client_scenarios import make_run
from tests.support.doc_pages import ROOT
from tests.support.faulty_clients import FRESH_ID, twice
from tests.support.served_coordinator import serve_in_thread
from tests.support.wire_client import WireClient
from tests.targets.running import RunningTarget, shared_target

Body = dict[str, Any]


async def test_the_reference_client_conforms() -> None:
    report = await make_run("MEMBER-1*", "MEMBER-2*", "HBT-*").run()
    assert report.exit_code() is ExitCode.CONFORMANT
    assert report.result("MEMBER-13").verdict is Verdict.PASS
    assert report.result("HBT-06").verdict is Verdict.UNSUPPORTED
    assert "driver" in report.result("HBT-06").note


async def test_a_violation_is_replayed_and_told_with_its_schedule() -> None:
    report = await make_run("MEMBER-12", tamper=FRESH_ID).run()
    assert report.exit_code() is ExitCode.VIOLATION
    failure = report.result("MEMBER-12").failures_by_length()[0]
    assert failure.replayed and failure.replay == "fencepost test-client --only MEMBER-12 -- reference"
    assert failure.title == "JoinGroup has the wrong member_id"
    assert failure.schedule[-1].endswith("<-- wrong")
    assert any("ILLEGAL_GENERATION" in step for step in failure.schedule)
    assert "FAIL MEMBER-12 MUST" in render_report(report)


async def test_what_no_replay_shows_again_is_inconclusive() -> None:
    seen: list[str] = []

    def fail_once(client: WireClient, api: str, body: Body) -> Body:
        if api == "JoinGroup" and client.count(api) == 2 and not seen:
            seen.append(api)
            return {**body, "member_id": ""}
        return body

    report = await make_run("MEMBER-34", tamper=fail_once).run()
    assert report.result("MEMBER-34").verdict is Verdict.INCONCLUSIVE
    assert "not when it was replayed" in report.result("MEMBER-34").note
    assert report.exit_code() is ExitCode.INCONCLUSIVE


async def test_a_report_on_a_client_can_be_read_back() -> None:
    report = await make_run("MEMBER-34").run()
    text = to_json(report)
    assert '"subject": "client"' in text
    assert from_json(text) == report


async def test_a_profile_names_the_client_and_declares_deviations() -> None:
    run = make_run("MEMBER-12", tamper=FRESH_ID)
    run.profile = Profile(deviations={"MEMBER-12": "fixed in 2.0"}, about={"name": "acme", "version": "1.9"})
    report = await run.run()
    assert report.exit_code() is ExitCode.CONFORMANT
    assert report.result("MEMBER-12").verdict is Verdict.KNOWN
    assert report.target == {"name": "acme", "version": "1.9"}
    assert report.provenance is not None and report.provenance.named_by is NamedBy.PROFILE


async def test_progress_counts_scenarios() -> None:
    run, seen = make_run("MEMBER-12", tamper=FRESH_ID), list[Progress]()
    await run.run(progress_consumer(seen.append))
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert seen[0].done == 1 < seen[0].total
    last = seen[-1]
    assert last.done == last.total > 1 and last.failures and last.waits is None


async def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(UnknownRequirement, match="JOIN-29"):
        await make_run("JOIN-29").run()


async def test_a_client_that_floods_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MAX_EVENTS", 200)
    report = await make_run("MEMBER-34", tamper=twice("Heartbeat", 100)).run()
    assert report.exit_code() is ExitCode.INCONCLUSIVE
    assert "exchanged 200 messages" in report.undecided[0]


async def test_a_client_that_ends_by_itself_is_told() -> None:
    def end_early(client: WireClient, api: str, body: Body) -> Body:
        if api == "Heartbeat" and client.count(api) == 1:
            client.ended.set_result(7)
        return body

    report = await make_run("MEMBER-34", tamper=end_early).run()
    assert report.exit_code() is ExitCode.INCONCLUSIVE
    assert "the program ended by itself; exit code 7" in report.undecided[0]


async def test_a_run_that_takes_too_long_keeps_what_was_judged() -> None:
    report = await make_run("MEMBER-*", seconds=0.001).run()
    assert report.ended is not None and report.ended.kind is EndKind.STOPPED
    assert report.exit_code() is ExitCode.INCONCLUSIVE


# -- programs ---------------------------------------------------------------------------------------------------------

SPEAK_GARBAGE = """
import os, socket, sys, time
host, port = os.environ["FENCEPOST_BOOTSTRAP"].split(":")
socket.create_connection((host, int(port))).sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["sh", "-c", "echo broken >&2; exit 3"],
            "it never connected; the program ended before JoinGroup came; exit code 3; its last words: broken",
        ),
        (["sleep", "60"], "it never connected; no JoinGroup came within 0.5 s"),
        (["sh", "-c", "while :; do echo garbage; echo garbage >&2; done"], "its last words: garbage"),
        ([sys.executable, "-c", SPEAK_GARBAGE], "what is not Kafka's protocol (a request of 1195725856 bytes)"),
        (["no-such-program"], "cannot be run: No such file or directory"),
    ],
    ids=["exits", "hangs", "prints", "speaks garbage", "missing"],
)
def test_a_program_that_is_no_client(
    command: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = "2" if "-c" in command and command[0] == sys.executable else "0.5"
    begun = time.monotonic()
    options = ["test-client", "--startup-seconds", seconds, "--json", str(tmp_path / "r.json")]
    assert main([*options, "--", *command]) == ExitCode.COULD_NOT_RUN
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.count("Cut short: ") == 1
    report = from_json((tmp_path / "r.json").read_text())
    assert report.ended is not None and report.ended.kind is EndKind.NOT_STARTED
    assert told in report.ended.reason and "\n" not in report.ended.reason
    assert time.monotonic() - begun < 50  # the programs sleep for 60 s


async def test_a_driver_that_ends_during_a_command_is_told() -> None:
    async def do(command: str) -> None:
        await asyncio.Future[None]()

    unused: Any = None
    stage = ClientStage(ScriptedCluster(Settings()), unused, ClientPlace("h:1", "g", "t"), ClientFacts(), 1.0)
    running: Any = SimpleNamespace(application=SimpleNamespace(do=do))
    stage.running, stage.ended = running, asyncio.ensure_future(asyncio.sleep(0, 1))
    with pytest.raises(StageBlocked, match="ended before it could poll"):
        await stage.do("poll")


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-client", "--only", "MEMBER-01"]) == ExitCode.COULD_NOT_RUN
    assert "name the command of a client behind --" in capsys.readouterr().err


GONE: list[list[str]] = [[], ["Z"]]
"""The states of processes that have ended; nobody may have taken note yet."""


@pytest.mark.real_time
async def test_the_process_group_of_a_program_is_ended() -> None:
    program = await launch_program(["sh", "-c", "sleep 60 & sleep 60"], ClientPlace("h:1", "g", "t"), Path())
    session = program.command.process.pid
    os.kill(session, signal.SIGKILL)  # what it started is left
    assert await program.wait() == -signal.SIGKILL
    await program.kill()
    deadline = time.monotonic() + 5
    while running := [each for each in processes_of_session(session) if stat_fields(PROC / str(each))[:1] not in GONE]:
        assert time.monotonic() < deadline, running
        await asyncio.sleep(0.01)


@pytest.mark.real_time
async def test_a_program_is_told_where_to_go() -> None:
    script = 'echo "{bootstrap} $FENCEPOST_GROUP {topic} {other}" >&2'
    program = await launch_program(["sh", "-c", script], ClientPlace("h:1", "g", "t"), Path())
    assert await program.wait() == 0
    assert program.last_words() == "h:1 g t {other}"
    await program.kill()


@pytest.mark.real_time
async def test_a_cluster_listens_on_loopback() -> None:
    scripted = await start_cluster(Settings())
    host, port = scripted.brokers.address
    assert host == "127.0.0.1" and port
    await scripted.brokers.close()


def test_placeholders_are_those_of_the_environment() -> None:
    values: Mapping[str, str] = ClientPlace("b", "g", "t").values()
    assert values == {"bootstrap": "b", "group": "g", "topic": "t"}


# --- Clients before a real cluster: the kit hands on what no fault is for, and says what such a cluster does not do.

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


def test_a_client_that_no_version_fits_is_told_which_there_are() -> None:
    asked = Event(0, 0, 1, "A", Kind.REQUEST, "ApiVersions", 3, {})
    refused = Event(1, 0, 1, "", Kind.INTERNAL, REFUSED, 0, {"reason": "Fetch version 17 is not offered; 4 to 13 are"})
    assert "no more came; it may need others than" in describe_requests([asked])
    assert "JoinGroup 0 to 9" in describe_requests([asked]) and "Fetch 4 to 13" in describe_requests([asked])
    assert describe_requests([asked, refused]).endswith("hung up on (Fetch version 17 is not offered; 4 to 13 are)")
