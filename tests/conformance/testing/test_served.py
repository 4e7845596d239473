"""The fake for tests of applications, and the recorder, with real clients."""

from pathlib import Path

import pytest

from fencepost.adapters.address import TargetError
from fencepost.conformance.testing.case import Violation
from fencepost.conformance.testing.recording import Recorder, Recording
from fencepost.conformance.testing.targets import serve_in_thread
from fencepost.traces.files.trace_files import open_trace
from tests.support.bug_witnesses import record_bug
from tests.support.tcp_application import consume_one

pytest.importorskip("confluent_kafka", reason="the extra dev")


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
