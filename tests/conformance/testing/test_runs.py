"""Runs behind test cases, servers of connections in this process, the fake for applications, and the recorder."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.serve.coordination import Topics
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.testing.case import Violation
from fencepost.conformance.testing.in_memory import MakeServe, Serve, Storage
from fencepost.conformance.testing.recording import Recorder, Recording
from fencepost.conformance.testing.runs import InProcessRun, RunChoices, SessionRun
from fencepost.conformance.testing.targets import SessionPlan, make_session_run, serve_in_thread
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.settings import Settings
from fencepost.testing import in_memory_stream
from fencepost.traces.files.trace_files import open_trace
from tests.support.bug_witnesses import record_bug
from tests.support.stream_servers import make_server
from tests.support.tcp_application import consume_one

# --- The runs behind test cases: each selection of results has all of its violations and no other.

BUGS = ("BUG-05", "BUG-12", "BUG-40", "BUG-50")


def run_on(bug: CoordinatorFault, *, knows: bool) -> InProcessRun:
    """A run on a bug; with `knows` it is known what will be asked for, as where there is one worker."""
    expected = tuple(CATALOGUE) if knows else ()

    def make_run(plan: Plan, profile: Profile) -> BundledRun:
        return BundledRun(plan, profile, bug.setting.make_target)

    profile = Profile(grace=bug.setting.grace)
    return InProcessRun(make_run, RunChoices(profile), tuple(CATALOGUE), expected)


def violated_in(run: InProcessRun, ids: list[str]) -> set[str]:
    """The requirements whose violation the test cases of these ids show."""
    found: set[str] = set()
    for id in ids:
        if run.result(id).verdict is Verdict.FAIL:
            found.add(id)
        found |= {finding.requirement for finding in run.findings_beside(id)}
    return found


def found_by_workers(bug: CoordinatorFault, workers: int) -> set[str]:
    """The violations that workers show of which each gets a share of the requirements and knows nothing of the rest."""
    found: set[str] = set()
    with bug.activate():
        for share in range(workers):
            ids = list(itertools.islice(CATALOGUE, share, None, workers))
            found |= violated_in(run_on(bug, knows=False), ids)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [BUGS[0], *(pytest.param(number, marks=pytest.mark.acceptance) for number in BUGS[1:])]
)
def test_workers_lose_no_violation(number: str) -> None:
    bug = COORDINATOR_BUGS[number]
    with bug.activate():
        alone = violated_in(run_on(bug, knows=True), list(CATALOGUE))
    assert alone and alone <= found_by_workers(bug, 2)


def test_a_worker_plays_only_what_it_is_asked_for() -> None:
    run = InProcessRun(BundledRun, RunChoices(), tuple(CATALOGUE))
    assert run.result("HB-05").verdict is Verdict.PASS
    assert {id for each in run.state.runs for id in each.scenario.requirements} >= {"HB-05"}
    assert len(run.state.runs) < 20 < len(run.left)


def test_everything_is_played_once_something_is_wrong() -> None:
    bug = COORDINATOR_BUGS["BUG-07"]
    with bug.activate():
        run = InProcessRun(BundledRun, RunChoices(), tuple(CATALOGUE)[:40])
        assert run.result("JOIN-15").verdict is Verdict.FAIL
    assert not run.left


# --- Servers of connections in this process: their bytes are judged, on virtual time.

ASKED = ("JOIN-04", "HB-04", "HB-05", "SYNC-04")


def make_closing(settings: Settings, topics: Topics, storage: Storage) -> Serve:
    """A server that closes each connection at its first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.close()
        await writer.wait_closed()

    return serve


def make_raising(settings: Settings, topics: Topics, storage: Storage) -> Serve:
    """A server that raises an exception at the first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        raise LookupError("no such group")

    return serve


def run_server(factory: MakeServe, **options: Any) -> SessionRun:
    """A run on a server of connections."""
    return make_session_run(in_memory_stream(factory, **options), RunChoices(), SessionPlan(ASKED, frozenset(ASKED)))


def verdicts_on(run: SessionRun) -> dict[str, Verdict]:
    """The verdicts on what is asked for."""
    return {id: run.result(id).verdict for id in ASKED}


def test_a_right_server_passes() -> None:
    assert set(verdicts_on(run_server(make_server)).values()) == {Verdict.PASS}


@pytest.mark.parametrize(
    ("odd", "verdict", "told"),
    [({"cut": 1}, Verdict.FAIL, ""), ({"shift": 1}, Verdict.PASS, "wire"), ({"cut": 6}, Verdict.FAIL, "")],
)
def test_bytes_are_judged_as_over_a_network(odd: dict[str, int], verdict: Verdict, told: str) -> None:
    def make(settings: Settings, topics: Topics, storage: Storage) -> Serve:
        return make_server(settings, topics, storage, **odd)

    run = run_server(make)
    assert run.result("HB-04").verdict is verdict and told in run.result("HB-04").comment
    assert run.result("JOIN-04").verdict is Verdict.PASS and not run.result("JOIN-04").comment


def test_a_connection_that_is_closed_is_the_end() -> None:
    run = run_server(make_closing)
    assert Verdict.PASS not in verdicts_on(run).values()
    assert any("the connection was closed without a response" in each for each in run.exceptions())


def test_an_exception_is_told() -> None:
    run = run_server(make_raising)
    assert Verdict.PASS not in verdicts_on(run).values()
    assert any("LookupError: no such group" in each for each in run.exceptions())


# --- The fake for tests of applications, and the recorder, with real clients.


@pytest.mark.extra("confluent_kafka")
def test_an_application_with_a_real_client() -> None:
    with serve_in_thread() as served:
        served.create_topic("orders")
        assert consume_one(served.bootstrap) == b"one"
        group = served.groups["readers"]
        assert (group.state, group.clients, group.offsets) == ("Empty", (), {("orders", 0): 1})
        commit, *_ = served.requests("OffsetCommit")
        assert commit.body["group_id"] == "readers" and commit.response["topics"][0]["partitions"][0]["error_code"] == 0
        assert {"JoinGroup", "SyncGroup", "LeaveGroup"} <= {each.api for each in served.requests()}


def test_a_topic_is_made_once() -> None:
    with serve_in_thread() as served:
        served.create_topic("orders", 2)
        with pytest.raises(ValueError, match="TOPIC_ALREADY_EXISTS"):
            served.create_topic("orders", 2)


@pytest.mark.extra("confluent_kafka")
def test_a_recording_is_judged(tmp_path: Path) -> None:
    with serve_in_thread() as served:
        served.create_topic("orders")
        with Recorder(tmp_path)(served.bootstrap) as recording:
            consume_one(recording.bootstrap)
    assert recording.check().rules["commit.stable"] >= 1
    header, events = open_trace(recording.path)
    assert any(event.api == "LeaveGroup" for event in events) and header.source.endswith(served.bootstrap)


def test_a_violation_in_a_recording_is_shown(tmp_path: Path) -> None:
    with pytest.raises(Violation, match="as test       fencepost replay") as found:
        Recording(record_bug("BUG-07", tmp_path)).check()
    assert found.value.requirement == "JOIN-15"


def test_a_cluster_that_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(TargetError), Recorder(tmp_path)("127.0.0.1:1"):
        raise AssertionError
    with pytest.raises(TargetError, match="no address"), Recorder(tmp_path)("nonsense"):
        raise AssertionError
