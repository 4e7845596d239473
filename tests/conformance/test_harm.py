"""A run touches nothing on a cluster but its own groups and topics, and removes those."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.adapters.address import TargetError, parse_target
from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.run.crashes import CrashMonitor
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import ScenarioPool
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.subject import Scenario, required_capabilities
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from tests.support.fake_broker import FakeBroker, serve_brokers
from tests.support.odd_brokers import ODD_BROKERS, TopicDeletingServer
from tests.support.served_coordinator import serve_in_thread

pytestmark = pytest.mark.real_time

SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
PATIENCE_S = 240
LONG_SESSION_MS = 30_000
WRITING_APIS = {"OffsetCommit", "TxnOffsetCommit", "OffsetDelete", "DeleteGroups", "AddOffsetsToTxn"}
"""APIs that change offsets or groups without membership."""
INTRUSIVE = [scenario for scenario in ALL if "intrusive" in required_capabilities(scenario)]


def named_groups(body: dict[str, object]) -> list[object]:
    names = body.get("groups_names")
    return list(names) if isinstance(names, list) else [body.get("group_id")]


def test_without_leave_no_request_that_writes_has_the_empty_group_id(tmp_path: Path) -> None:
    """Looked at in the traces of every scenario about commits and deletions."""
    with serve_in_thread(SETTINGS) as bootstrap:
        options = ["--only", "COMMIT-1*", "ADMIN-1*", "ADMIN-2*", "ADMIN-3*", "--traces", str(tmp_path)]
        assert main(["test", f"kafka://{bootstrap}", *options]) == 0
    requests = [
        event
        for path in sorted(tmp_path.iterdir())
        for event in open_trace(path)[1]
        if event.kind is Kind.REQUEST and event.api in WRITING_APIS
    ]
    assert requests
    assert not [event for event in requests if "" in named_groups(dict(event.body))]


def run_on_wiping_broker(report: Path, *options: str) -> tuple[int, dict[str, str]]:
    with ODD_BROKERS["wipes"].activate(), serve_in_thread(SETTINGS) as bootstrap:
        code = main(["test", f"kafka://{bootstrap}", "--only", "ADMIN-32", "ADMIN-16", "--json", str(report), *options])
    document = json.loads(report.read_text())
    return code, {each["id"]: each["verdict"] for each in document["requirements"]}


def test_a_broker_that_wipes_everything_violates_the_requirement(tmp_path: Path) -> None:
    code, verdicts = run_on_wiping_broker(tmp_path / "r.json", "--intrusive")
    assert (code, verdicts["ADMIN-32"]) == (1, "fail")


def test_without_leave_it_is_not_provoked(tmp_path: Path) -> None:
    code, verdicts = run_on_wiping_broker(tmp_path / "r.json")
    assert (code, verdicts["ADMIN-32"]) == (0, "unsupported")


def test_intrusive_scenarios_come_last_and_alone() -> None:
    playing: list[str] = []
    order: list[tuple[str, int]] = []

    class CountingPool(ScenarioPool):
        async def play(self, scenario: Scenario, attempt: str, restart: object = None, *, alone: bool = True) -> None:  # type: ignore[override]
            playing.append(scenario.name)
            await asyncio.sleep(0)
            order.append((scenario.name, len(playing)))
            playing.remove(scenario.name)

    async def play() -> None:
        target = KafkaTarget(("127.0.0.1", 1))
        monitor = CrashMonitor(target, can_restart=False)
        pool = CountingPool(target, None, monitor, LoopLagMonitor(), None, "token", 0)  # type: ignore[arg-type]
        harmless = [one for one in ALL if not required_capabilities(one)][:3]
        await pool.play_all([*INTRUSIVE, *harmless], "run", lambda run: None)

    async def open_nothing(self: KafkaTarget, connections: int) -> None:
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaTarget, "open_idle_connections", open_nothing)
        asyncio.run(play())
    assert INTRUSIVE
    assert [(one.name, 1) for one in INTRUSIVE] == order[-len(INTRUSIVE) :]
    assert max(together for _, together in order) == 3


# --- what is left


async def groups_on(bootstrap: str) -> list[str]:
    target = KafkaTarget(parse_target(f"kafka://{bootstrap}"))
    try:
        await target.open()
        body = await target.channel(TraceBuilder(lambda: 0)).send("ListGroups", 4, {"states_filter": []}).response
        assert body is not None
        return [row["group_id"] for row in body["groups"]]
    finally:
        await target.close()


def remarks_of_a_run(report: Path) -> list[str]:
    """The remarks in the report of a run that leaves no group on the bundled server."""
    with serve_in_thread(SETTINGS) as bootstrap:
        options = ["--only", "HB-05", "COMMIT-03", "JOIN-07", "SYNC-*", "--json", str(report)]
        assert main(["test", f"kafka://{bootstrap}", *options]) == 0
        assert asyncio.run(groups_on(bootstrap)) == []
    remarks: list[str] = json.loads(report.read_text())["facts"]["remarks"]
    return remarks


def test_nothing_of_the_kit_is_left(tmp_path: Path) -> None:
    """Neither groups, among them some with members in sessions that last for long, and with offsets, nor a topic."""
    assert remarks_of_a_run(tmp_path / "r.json") == []


def test_a_topic_that_cannot_be_deleted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {api: bounds for api, bounds in OFFERED_VERSIONS.items() if api != "DeleteTopics"}
    for module in ("cluster", "server"):
        monkeypatch.setattr(f"fencepost.adapters.serve.{module}.OFFERED_VERSIONS", offered)
    assert remarks_of_a_run(tmp_path / "r.json") == ["the topic fencepost stays, which the kit created"]


async def leave_with_a_reserved_id(bootstrap: str) -> tuple[str, ...]:
    """What stays of a group that rebalances, and waits for a member that has an id and does not join."""
    target = KafkaTarget(parse_target(bootstrap))
    try:
        await target.open()
        channel = target.channel(TraceBuilder(lambda: 0))
        join = {
            "group_id": f"reserved-{FIRST}-run",
            "session_timeout_ms": LONG_SESSION_MS,
            "rebalance_timeout_ms": LONG_SESSION_MS,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        first = await channel.send("JoinGroup", 4, join).response
        assert first is not None
        again = {**join, "member_id": first["member_id"]}
        await channel.send("JoinGroup", 4, again).response
        await channel.send("JoinGroup", 4, join).response
        channel.send("JoinGroup", 4, {**again, "protocols": [{"name": "range", "metadata": b"changed"}]})
        state = ""
        async with asyncio.timeout(20):
            while state != "PreparingRebalance":
                described = await channel.send("DescribeGroups", 4, {"groups": [join["group_id"]]}).response
                assert described is not None
                state = described["groups"][0]["group_state"]
        return await target.remove_traces(FIRST)
    finally:
        await target.close()


def test_a_group_that_waits_for_a_reserved_id_is_removed() -> None:
    with serve_in_thread(SETTINGS, make_server=TopicDeletingServer) as bootstrap:
        assert asyncio.run(leave_with_a_reserved_id(bootstrap)) == ()


async def remove_from(broker: FakeBroker) -> tuple[str, ...]:
    async with asyncio.timeout(20), serve_brokers(broker):
        target = KafkaTarget(("127.0.0.1", broker.port), overrides={"offsets_partitions": 1})
        try:
            await target.open()
            return await target.remove_traces("token")
        finally:
            await target.close()


@pytest.mark.parametrize("was_there", [True, False])
def test_the_topic_is_deleted_if_the_kit_created_it(was_there: bool) -> None:
    """Whatever CreateTopics says of a topic that exists: some brokers say that they have created it."""
    broker = FakeBroker()
    broker.responses["CreateTopics"] = lambda _: {"topics": [{"name": "fencepost", "error_code": 0}]}
    broker.responses["DeleteTopics"] = lambda _: {"responses": [{"name": "fencepost", "error_code": 0}]}
    everything = broker.metadata

    def metadata(request: object) -> object:
        told = everything(request)  # type: ignore[arg-type]
        assert isinstance(told, dict)
        is_missing = not was_there and "CreateTopics" not in broker.requested_apis()
        if is_missing or "DeleteTopics" in broker.requested_apis():
            return {**told, "topics": [{"error_code": 3, "name": "fencepost"}]}
        return told

    broker.responses["Metadata"] = metadata  # type: ignore[assignment]
    assert asyncio.run(remove_from(broker)) == ()
    assert ("DeleteTopics" in broker.requested_apis()) is not was_there


# --- two runs at once


def run_process(bootstrap: str, report: Path, *options: str) -> "subprocess.Popen[str]":
    """A run in a process of its own."""
    words = [sys.executable, "-m", "fencepost", "test", bootstrap, "-q", "--json", str(report), *options]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def verdicts_in(report: Path) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in json.loads(report.read_text())["requirements"]}


@pytest.mark.slow
def test_two_runs_at_once_disturb_each_other_in_nothing(tmp_path: Path) -> None:
    """One of them creates the topic, and ends while the other one needs it."""
    servers: list[TopicDeletingServer] = []

    def make_server(settings: Settings, storage: Path | None, delay: int) -> TopicDeletingServer:
        servers.append(TopicDeletingServer(settings, storage, delay))
        return servers[0]

    with serve_in_thread(SETTINGS, make_server=make_server) as bootstrap:
        alone = run_process(bootstrap, tmp_path / "alone.json", "--only", "COMMIT-*", "ADMIN-*")
        told = [alone.communicate(timeout=PATIENCE_S)[0]]
        assert alone.returncode == 0, told
        assert servers[0].deleted == ["fencepost"]
        runs = [
            run_process(bootstrap, tmp_path / "short.json", "--only", "COMMIT-0*"),
            run_process(bootstrap, tmp_path / "long.json", "--only", "COMMIT-*", "ADMIN-*"),
        ]
        told = [run.communicate(timeout=PATIENCE_S)[0] for run in runs]
        assert [run.returncode for run in runs] == [0, 0], told
        assert asyncio.run(groups_on(bootstrap)) == []
    expected = verdicts_in(tmp_path / "alone.json")
    assert verdicts_in(tmp_path / "long.json") == expected
    short = verdicts_in(tmp_path / "short.json")
    assert short == {id: expected[id] for id in short}


async def has_topic(target: KafkaTarget) -> bool:
    body = await target.channel(TraceBuilder(lambda: 0)).send("Metadata", 5, TOPIC_QUESTION).response
    assert body is not None
    return bool(body["topics"][0]["error_code"] == 0)


async def end_while_another_run_is_there(bootstrap: str, other_is_there: bool) -> tuple[tuple[str, ...], bool]:
    """What a run that created the topic leaves, and whether the topic is there for the other run."""
    first, second = (KafkaTarget(parse_target(bootstrap)) for _ in range(2))
    try:
        await first.open()
        await first.mark_run(FIRST)
        if other_is_there:
            await second.open()
            await second.mark_run(SECOND)
        stays = await first.remove_traces(FIRST)
        return stays, await has_topic(first)
    finally:
        await first.close()
        await second.close()


TOPIC_QUESTION = {"topics": [{"name": "fencepost"}], "allow_auto_topic_creation": False}
FIRST, SECOND = "aaaaaa", "bbbbbb"


@pytest.mark.parametrize("other_is_there", [True, False])
def test_the_topic_is_deleted_only_if_no_other_run_uses_it(other_is_there: bool) -> None:
    with serve_in_thread(SETTINGS, make_server=TopicDeletingServer) as bootstrap:
        stays, is_there = asyncio.run(end_while_another_run_is_there(bootstrap, other_is_there))
    assert is_there is other_is_there
    line = f"the topic fencepost stays, which the kit created: another run uses it, see fencepost-{SECOND}-presence"
    assert stays == ((line,) if other_is_there else ())


def test_a_replay_removes_its_groups(tmp_path: Path) -> None:
    with serve_in_thread(SETTINGS) as bootstrap:
        assert main(["test", bootstrap, "-q", "--only", "COMMIT-03", "--traces", str(tmp_path)]) == 0
        trace = next(path for path in sorted(tmp_path.iterdir()) if b'"OffsetCommit"' in path.read_bytes())
        assert main(["replay", str(trace), bootstrap]) == 3
        assert asyncio.run(groups_on(bootstrap)) == []


def test_a_run_is_named_after_no_other(tmp_path: Path) -> None:
    """Groups are told from those of others by the run's own token."""
    from fencepost.conformance.plan import Plan
    from fencepost.conformance.profile import Profile

    tokens = {RemoteRun(Plan("kafka://127.0.0.1:1"), Profile()).token for _ in range(10)}
    assert len(tokens) == 10
    with pytest.raises(TargetError):
        RemoteRun(Plan("nowhere"), Profile())
