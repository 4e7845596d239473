"""Real clients through `fencepost record`: they notice nothing, and what was recorded can be judged."""

import time
from collections import Counter
from pathlib import Path

import pytest

from fencepost.adapters.record.recorder import Job
from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.results import Report
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.frames import Conversation, Flight, Tape
from fencepost.traces.importers.packet_capture import Source, import_capture
from tests.adapters.test_serve_clients import PATIENCE, TOPIC, Room, produce
from tests.support.pcap_writer import PORT, Wire
from tests.support.real_clients import CLIENTS
from tests.support.recorder_thread import at, recording
from tests.support.served_coordinator import served
from tests.targets.running import Running


def job(upstream: str, path: Path, rotate: int | None = None) -> Job:
    return Job(("127.0.0.1", 0), at(upstream), path, rotate=rotate, sync=0.1)


def a_group_lives(bootstrap: str, group: str) -> None:
    """Three clients come, consume, go and come again."""
    room = Room(bootstrap, group)
    wanted = produce(bootstrap, range(40))
    for client in CLIENTS:
        room.enter(client)
    room.wait_until(lambda: room.is_shared_out() and room.has_consumed(wanted))
    room.leave(room.members[0])
    room.wait_until(room.is_shared_out)
    room.enter("aiokafka")
    room.wait_until(room.is_shared_out)
    while room.members:
        room.leave(room.members[0])


def judged(*paths: Path) -> Report:
    return judge_files(paths, lambda progress: None)


def test_three_clients_on_the_bundled_coordinator(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with served() as upstream, recording(job(upstream, path)) as session:
        a_group_lives(session.bootstrap, "recorded")
    (recorded,) = session.recorded
    assert (session.told, recorded.files, recorded.undecoded, recorded.lost) == ([], (path,), 0, "")
    header, events = open_trace(path)
    seen = Counter((event.kind, event.api) for event in events)
    assert recorded.events == seen.total()
    assert {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "Fetch"} <= {
        api for kind, api in seen if kind is Kind.ANSWER
    }
    assert header.settings.initial_rebalance_delay == 200
    assert judged(path).exit_code() == 0


def test_the_parts_of_a_recording_are_traces(tmp_path: Path) -> None:
    with served() as upstream, recording(job(upstream, tmp_path / "trace.jsonl", rotate=20_000)) as session:
        a_group_lives(session.bootstrap, "parts")
    (recorded,) = session.recorded
    assert len(recorded.files) > 2
    sequences = [{event.sequence for event in open_trace(path)[1]} for path in recorded.files]
    assert sequences[0] | set.union(*sequences) == set(range(recorded.events))
    whole = judged(*recorded.files)
    assert (whole.exit_code(), whole.schedules, whole.events) == (
        0,
        len(recorded.files),
        recorded.events - len(sequences) + 1,
    )
    assert not any(result.failures for result in judged(*recorded.files[1:]).results)


class WiredTape(Tape):
    """A tape that also keeps the bytes, as packets."""

    wire = Wire()

    def conversation(self) -> Conversation:
        """A connection that keeps its bytes."""
        plain = super().conversation()
        self.wire.open(plain.number, time.monotonic())
        request, answer = plain.request, plain.answer

        def asked(frame: bytes) -> None:
            self.wire.say(plain.number, time.monotonic(), True, len(frame).to_bytes(4) + frame)
            request(frame)

        def told(frame: bytes) -> Flight | None:
            self.wire.say(plain.number, time.monotonic(), False, len(frame).to_bytes(4) + frame)
            return answer(frame)

        plain.request, plain.answer = asked, told  # type: ignore[method-assign]
        return plain


def test_a_capture_of_the_same_bytes_is_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.jsonl"
    WiredTape.wire = Wire()
    monkeypatch.setattr("fencepost.adapters.record.recorder.Tape", WiredTape)
    with served() as upstream, recording(job(upstream, path)) as session:
        a_group_lives(session.bootstrap, "captured")
    WiredTape.wire.write(tmp_path / "kafka.pcap")
    settings = open_trace(path)[0].settings
    capture = Source([tmp_path / "kafka.pcap"], frozenset({PORT}), settings)
    told = import_capture(capture, tmp_path / "captured.jsonl")
    assert (told.gaps, told.undecoded) == (0, 0)
    recorded, captured = (
        [(event.kind, event.api, event.version, event.body, event.of is None) for event in open_trace(each)[1]]
        for each in (path, tmp_path / "captured.jsonl")
    )
    said = {Kind.REQUEST, Kind.ANSWER}
    assert [each for each in captured if each[0] in said] == [each for each in recorded if each[0] in said]
    reports = [judged(each) for each in (path, tmp_path / "captured.jsonl")]
    assert [report.exit_code() for report in reports] == [0, 0]
    assert len({tuple(result.verdict for result in report.results) for report in reports}) == 1


@pytest.mark.parametrize("name", [pytest.param(one, marks=getattr(pytest.mark, one)) for one in ("kafka4", "kafka3")])
def test_three_clients_on_apache_kafka(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    kafka: Running = request.getfixturevalue(name)
    path = tmp_path / "trace.jsonl"
    with recording(job(kafka.bootstrap, path)) as session:
        create_topic(session.bootstrap)
        a_group_lives(session.bootstrap, "recorded")
    assert session.recorded[0].undecoded == 0 and session.told == []
    assert judged(path).exit_code() == 0


def create_topic(bootstrap: str) -> None:
    """The topic of the rooms, where nobody makes it by itself."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})  # its answers come as long as there is a name for it
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(PATIENCE)
