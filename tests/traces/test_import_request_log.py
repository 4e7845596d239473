"""The trace of a request log is that of a recorder of the same run, and so are the verdicts on it."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.request_log import RequestLogImportResult, RequestLogSource, import_request_log
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

DATA = Path(__file__).parent / "data"
REGRESSIONS = Path(__file__).parent / "regressions"
LOG, RECORDED = DATA / "kafka-4-requests.log.gz", DATA / "kafka-4-requests.jsonl.gz"
"""One run of three clients on Apache Kafka 4.4: the broker's request log, and what `fencepost record` wrote."""
LEFT_OUT = 5
"""Requests at the end of the run: a rebalance had begun, and its members were gone."""


def import_events(
    folder: Path, *paths: Path, settings: Settings | None = None
) -> tuple[RequestLogImportResult, list[Event]]:
    told = import_request_log(RequestLogSource(paths, settings), folder / "trace.jsonl")
    return told, list(open_trace(folder / "trace.jsonl")[1])


def judge_log(folder: Path, *paths: Path) -> TraceVerdict:
    import_request_log(RequestLogSource(paths, open_trace(RECORDED)[0].settings), folder / "trace.jsonl")
    return judge_file(folder / "trace.jsonl")


def judge_file(path: Path) -> TraceVerdict:
    header, events = open_trace(path)
    return judge(header, list(events))


def messages(events: Sequence[Event]) -> "Counter[str]":
    """The messages about groups: kind, API, version and body."""
    return Counter(
        repr((event.kind, event.api, event.version, event.body))
        for event in events
        if event.kind in (Kind.REQUEST, Kind.RESPONSE)
        and event.api in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch")
    )


def test_a_log_has_the_messages_that_a_recorder_saw(tmp_path: Path) -> None:
    told, events = import_events(tmp_path, LOG)
    recorded = messages(list(open_trace(RECORDED)[1]))
    assert not messages(events) - recorded
    assert (recorded - messages(events)).total() == 2 * LEFT_OUT == 2 * told.left_out
    assert (told.undecoded, told.events) == (0, len(events))
    assert not {event.api for event in events} & {"Produce", "api-63"}, "neither records nor what brokers say"


def test_a_log_has_the_verdicts_of_a_recording(tmp_path: Path) -> None:
    logged, recorded = judge_log(tmp_path, LOG), judge_file(RECORDED)
    assert (logged.violations, logged.inconclusive) == (recorded.violations, recorded.inconclusive) == ((), ())
    assert logged.rules.keys() == recorded.rules.keys()


@pytest.mark.parametrize(
    ("api", "said", "instead", "requirement"),
    [
        ("HEARTBEAT", '"response":{"throttleTimeMs":0,"errorCode":0', '"response":{"errorCode":25', "HB-05"),
        ("JOIN_GROUP", '"generationId":2,"protocol', '"generationId":3,"protocol', "GEN-02"),
    ],
)
def test_a_wrong_response_in_a_log_is_a_violation(
    api: str, said: str, instead: str, requirement: str, tmp_path: Path
) -> None:
    rows = gzip.decompress(LOG.read_bytes()).decode().splitlines(keepends=True)
    place = next(place for place, row in enumerate(rows) if f'"{api}"' in row and said in row)
    rows[place] = rows[place].replace(said, instead)
    (tmp_path / "requests.log").write_text("".join(rows))
    violations = judge_log(tmp_path, tmp_path / "requests.log").violations
    assert requirement in {id for each in violations for id in each.requirements}


def test_parts_and_logs_of_several_brokers_are_put_in_order_by_time(tmp_path: Path) -> None:
    rows = gzip.decompress(LOG.read_bytes()).decode().splitlines(keepends=True)
    groups = [row for row in rows if '"groupId"' in row or '"coordinatorKeys"' in row]
    others = [row for row in rows if row not in groups]
    for name, some in (("b.log", others), ("a.log.2", groups[:20]), ("a.log.1", groups[20:40]), ("a.log", groups[40:])):
        (tmp_path / name).write_text("".join(some))
    _, whole = import_events(tmp_path, LOG)
    _, merged = import_events(tmp_path, *(tmp_path / name for name in ("a.log", "a.log.1", "a.log.2", "b.log")))
    assert messages(merged) == messages(whole)
    assert [event.time for event in merged if event.api == "JoinGroup"] == [
        event.time for event in whole if event.api == "JoinGroup"
    ]


# --- logs that are written here

BEGUN = datetime(2026, 11, 24, 3)
KEYS = {"JoinGroup": 11, "SyncGroup": 14, "Heartbeat": 12, "Produce": 0, "SaslAuthenticate": 36, "DeleteGroups": 42}
Line = tuple[int, str, int, dict[str, Any], dict[str, Any]]
"""When the request was done and how long it took (ms), and what it was about: API, request, response."""


def log_line(connection: str, ended: int, api: str, duration: int, asked: Any, told: Any, **more: Any) -> str:
    header = {"requestApiKey": KEYS[api], "requestApiVersion": 0, "correlationId": ended, "clientId": "c"}
    done = {"isForwarded": False, "requestHeader": header, "request": asked, "response": told, **more}
    stamp = (BEGUN + timedelta(milliseconds=ended)).isoformat(sep=" ", timespec="milliseconds").replace(".", ",")
    value = json.dumps({**done, "connection": connection, "totalTimeMs": duration}, separators=(",", ":"))
    return f"[{stamp}] DEBUG Completed request:{value} (kafka.request.logger)\n"


def join_request(member: str) -> dict[str, Any]:
    asked = {"groupId": "g", "sessionTimeoutMs": 10_000, "memberId": member, "protocolType": "consumer"}
    return {**asked, "protocols": [{"name": "range", "metadata": "AAA="}]}


def join_response(member: str, generation: int, members: Sequence[str] = ()) -> dict[str, Any]:
    rows = [{"memberId": each, "metadata": "AAA="} for each in members]
    told = {"errorCode": 0, "generationId": generation, "protocolName": "range", "leader": "a", "memberId": member}
    return {**told, "members": rows}


def member_of(generation: int, member: str) -> dict[str, Any]:
    return {"groupId": "g", "generationId": generation, "memberId": member}


def stable_group() -> Iterator[str]:
    """Two members join and have an assignment."""
    yield log_line("x", 3_100, "JoinGroup", 3_000, join_request(""), join_response("a", 1, ["a", "b"]))
    yield log_line("y", 3_101, "JoinGroup", 2_500, join_request(""), join_response("b", 1))
    plan = [{"memberId": each, "assignment": each * 4} for each in ("a", "b")]
    yield log_line("x", 3_200, "SyncGroup", 5, {**member_of(1, "a"), "assignments": plan}, sync_response("aaaa"))
    yield log_line("y", 3_201, "SyncGroup", 4, {**member_of(1, "b"), "assignments": []}, sync_response("bbbb"))


def sync_response(assignment: str) -> dict[str, Any]:
    return {"errorCode": 0, "assignment": assignment}


def deletion(ended: int) -> str:
    told = {"results": [{"groupId": "g", "errorCode": 0}]}
    return log_line("y", ended, "DeleteGroups", 1, {"groupsNames": ["g"]}, told)


def heartbeat(member: str, ended: int, error: int = 0, generation: int = 1) -> str:
    connection = {"a": "x", "b": "y"}[member]
    return log_line(connection, ended, "Heartbeat", 1, member_of(generation, member), {"errorCode": error})


def write_log(folder: Path, *rows: str) -> Path:
    (folder / "requests.log").write_text("".join([*stable_group(), *rows]))
    return folder / "requests.log"


def found_in(folder: Path, *rows: str) -> list[str]:
    """The requirements that a log of a stable group violates which goes on with these lines."""
    import_request_log(RequestLogSource([write_log(folder, *rows)], Settings()), folder / "trace.jsonl")
    verdict = judge_file(folder / "trace.jsonl")
    assert verdict.inconclusive == ()
    return [id for each in verdict.violations for id in each.requirements]


def test_a_request_is_placed_where_it_was_received(tmp_path: Path) -> None:
    _, events = import_events(tmp_path, write_log(tmp_path, heartbeat("a", 3_300)))
    seen = [(event.time, event.kind.value, event.api) for event in events if event.kind is not Kind.INTERNAL]
    assert seen[:4] == [
        (0, "request", "JoinGroup"),
        (501, "request", "JoinGroup"),
        (3_001, "response", "JoinGroup"),
        (3_002, "response", "JoinGroup"),
    ]
    assert [event.sequence for event in events if event.api == "unknown"] == [2], (
        "the first line, not the first request"
    )


def test_requests_of_one_connection_follow_each_other(tmp_path: Path) -> None:
    rows = [heartbeat("a", 3_300), heartbeat("a", 3_300), heartbeat("a", 3_300)]
    _, events = import_events(tmp_path, write_log(tmp_path, *rows))
    assert [event.kind.value for event in events if event.api == "Heartbeat"] == ["request", "response"] * 3


def test_a_rebalance_that_goes_on_where_the_log_ends_is_no_violation(tmp_path: Path) -> None:
    rows = [heartbeat("a", 4_000), heartbeat("a", 5_000, 27), heartbeat("b", 5_100, 27)]
    assert found_in(tmp_path, *rows) == []
    told, events = import_events(tmp_path, tmp_path / "requests.log")
    assert told.left_out == 2
    assert sum(event.api == "Heartbeat" for event in events) == 2


@pytest.mark.parametrize("calm", [heartbeat("b", 6_000), deletion(6_000)], ids=["heartbeat", "deletion"])
def test_a_rebalance_that_no_request_began_is_a_violation(calm: str, tmp_path: Path) -> None:
    assert "HB-05" in found_in(tmp_path, heartbeat("a", 4_000), heartbeat("a", 5_000, 27), calm)


def test_what_is_no_client_s_and_what_is_secret_is_left_out(tmp_path: Path) -> None:
    rows = [
        log_line("z", 4_000, "Produce", 1, {"topicData": []}, ""),
        log_line("z", 4_001, "Heartbeat", 1, member_of(1, "a"), {"errorCode": 25}, isForwarded=True),
        log_line("z", 4_002, "SaslAuthenticate", 1, {"authBytes": "c2VjcmV0"}, {"errorCode": 0, "authBytes": ""}),
    ]
    told, events = import_events(tmp_path, write_log(tmp_path, *rows))
    assert [(event.api, dict(event.body)) for event in events if event.time > 3_900][:1] == [("SaslAuthenticate", {})]
    assert told.undecoded == 0
    assert b"secret" not in (tmp_path / "trace.jsonl").read_bytes()
    assert b"c2VjcmV0" not in (tmp_path / "trace.jsonl").read_bytes()


def cut_off(row: str) -> str:
    return row[: len(row) // 2] + "\n"


def with_version(row: str) -> str:
    return row.replace('"requestApiVersion":0', '"requestApiVersion":99')


def with_field(row: str) -> str:
    return row.replace('"generationId"', '"newField"')


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_off, "a line cannot be read"),
        (with_version, "Heartbeat v99 cannot be read"),
        (with_field, "Heartbeat v0 cannot be read"),
    ],
)
def test_after_a_line_that_cannot_be_read_groups_are_unknown(
    damage: Callable[[str], str], reason: str, tmp_path: Path
) -> None:
    told, events = import_events(tmp_path, write_log(tmp_path, damage(heartbeat("a", 4_000)), heartbeat("a", 4_100)))
    assert told.undecoded == 1
    assert {event.body["reason"] for event in events if event.api == "unknown"} == {"the log begins", reason}


@pytest.mark.parametrize("content", [b"", b"\0\xff" * 99, b"[2026-11-24 03:00:00,000] INFO Completed request\n"])
def test_what_is_no_request_log(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "requests.log").write_bytes(content)
    with pytest.raises(TraceError, match="no line of a request log"):
        import_events(tmp_path, tmp_path / "requests.log")


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    path = write_log(tmp_path, heartbeat("a", 200_000), heartbeat("a", 100_000))
    with pytest.raises(TraceError, match=r"requests\.log:6: 100 s before an earlier line"):
        import_events(tmp_path, path)
    _, events = import_events(tmp_path, write_log(tmp_path, heartbeat("a", 50_000), heartbeat("a", 49_000)))
    assert [event.time for event in events] == sorted(event.time for event in events), "threads write in another order"


HEARTBEAT_ROW = re.compile(r'"HEARTBEAT".*"memberId":"rdkafka[^"]*".*"connection":"([^"]*)"')


def change_connections(folder: Path, *connections: str | None) -> Path:
    """The log with the first heartbeats of a member on other connections."""
    rows = gzip.decompress(LOG.read_bytes()).decode().splitlines(keepends=True)
    told = iter(connections)
    for place, row in enumerate(rows):
        found = HEARTBEAT_ROW.search(row)
        other = next(told, None) if found else None
        if found and other:
            rows[place] = row.replace(found[1], other)
    (folder / "changed.log").write_text("".join(rows))
    return folder / "changed.log"


def unknown_groups(events: Sequence[Event]) -> list[str | None]:
    return [event.body.get("group") for event in events if event.api == "unknown"]


def test_the_state_of_a_group_is_unknown_while_a_member_changes_its_connection(tmp_path: Path) -> None:
    # A JoinGroup on the old connection may have waited until this one, and has no line then.
    rows = gzip.decompress(LOG.read_bytes()).decode()
    mine = next(filter(None, map(HEARTBEAT_ROW.search, rows.splitlines())))[1]
    first = rows.index(next(row for row in rows.splitlines() if HEARTBEAT_ROW.search(row)))
    (tmp_path / "changed.log").write_text(rows[:first] + rows[first:].replace(mine, "anew"))
    told, events = import_events(tmp_path, tmp_path / "changed.log")
    group = unknown_groups(events)[1]
    assert unknown_groups(events) == [None, group] and group is not None
    assert LEFT_OUT < told.left_out < 2 * LEFT_OUT, "and no more than in between is left out"
    assert judge_log(tmp_path, tmp_path / "changed.log").violations == ()


def test_the_first_join_of_a_member_counts_for_its_connection(tmp_path: Path) -> None:
    rows = gzip.decompress(LOG.read_bytes()).decode().splitlines(keepends=True)
    first = re.compile(r'"JOIN_GROUP".*"memberId":"","groupInstanceId".*"errorCode":79.*"connection":"([^"]*)"')
    place, found = next((place, found) for place, row in enumerate(rows) if (found := first.search(row)))
    rows[place] = rows[place].replace(found[1], "before")
    (tmp_path / "changed.log").write_text("".join(rows))
    assert len(unknown_groups(import_events(tmp_path, tmp_path / "changed.log")[1])) == 2


def test_a_group_whose_members_use_several_connections_at_once_is_left_out(tmp_path: Path) -> None:
    log = change_connections(tmp_path, None, "another")
    _, events = import_events(tmp_path, log)
    assert not [event for event in events if event.api in ("JoinGroup", "Heartbeat")]
    assert [event for event in events if event.api == "FindCoordinator"]


def test_settings_that_are_assumed_blame_nobody() -> None:
    # An initial delay of 600 ms, where 3 s are assumed: the group seemed to have been removed.
    verdict = judge_file(REGRESSIONS / "delay-shorter-than-assumed.jsonl.gz")
    assert verdict.violations == ()
    assert any("depends on settings of the target" in reason for reason in verdict.inconclusive)


def test_a_partition_may_be_missing_where_the_topics_are_not_known() -> None:
    verdict = judge_file(REGRESSIONS / "partition-that-does-not-exist.jsonl.gz")
    assert verdict.violations == () and verdict.rules["offset-delete.partitions"]
