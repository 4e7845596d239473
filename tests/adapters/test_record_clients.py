"""Real clients through `fencepost record`: they run undisturbed, and their recorded traces can be judged."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.address import parse_address
from fencepost.adapters.record.recorder import (
    RecordingOptions,
    RecordingResult,
    is_known,
    read_addresses,
    rewrite_addresses,
)
from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.results import Report
from fencepost.conformance.testing.recording import record_meanwhile
from fencepost.conformance.testing.threads import enter_in_thread
from fencepost.model.errors import Error
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_response
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.frames import ConnectionDecoder, PendingRequest, WireTrace
from fencepost.traces.importers.packet_capture import CaptureSource, import_capture
from tests.support.pcap_writer import PORT, PcapWriter
from tests.support.real_clients import CLIENTS, TIMEOUT_S, TOPIC, RealClientGroup, produce
from tests.support.served_coordinator import serve_in_thread
from tests.targets.running import RunningTarget

# --- Addresses in answers: those change, and nothing else does.

OLD, NEW = ("broker-1.example", 9092), ("127.0.0.1", 40_001)
BROKER = {"node_id": 1, "host": OLD[0], "port": OLD[1]}
RESPONSES: list[tuple[str, int, dict[str, Any]]] = [
    *(("Metadata", version, {"brokers": [BROKER]}) for version in range(VERSIONS["Metadata"][1] + 1)),
    *(("FindCoordinator", version, dict(BROKER)) for version in range(4)),
    *(
        ("FindCoordinator", version, {"coordinators": [{**BROKER, "key": "g"}]})
        for version in range(4, VERSIONS["FindCoordinator"][1] + 1)
    ),
]


@pytest.mark.parametrize(("api", "version", "body"), RESPONSES)
@pytest.mark.parametrize("tail", [b"", b"tail"])
def test_an_address_becomes_another(api: str, version: int, body: dict[str, Any], tail: bytes) -> None:
    frame = encode_response(api, version, 5, body) + tail
    assert read_addresses(api, version, frame) == [OLD]
    moved = rewrite_addresses(api, version, frame, {OLD: NEW})
    assert read_addresses(api, version, moved) == [NEW]
    assert rewrite_addresses(api, version, moved, {NEW: OLD}) == frame


def test_a_broker_without_an_address_stays_so() -> None:
    frame = encode_response(
        "FindCoordinator", 2, 5, {"error_code": Error.COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
    )
    assert read_addresses("FindCoordinator", 2, frame) == []
    assert rewrite_addresses("FindCoordinator", 2, frame, {}) == frame


def test_an_answer_that_the_kit_would_write_otherwise_is_patched() -> None:
    plain = encode_response("Metadata", 12, 5, {"brokers": [BROKER], "cluster_id": "c"})
    # A length that takes one byte more than it needs: allowed, and nobody writes it so.
    odd = plain.replace(b"\x02c", b"\x82\x00c")
    assert odd != plain and decode_response("Metadata", 12, odd).body["cluster_id"] == "c"
    moved = rewrite_addresses("Metadata", 12, odd, {OLD: NEW})
    assert read_addresses("Metadata", 12, moved) == [NEW]
    assert rewrite_addresses("Metadata", 12, moved, {NEW: OLD}) == odd


def test_versions_beyond_the_kit_are_not_known() -> None:
    assert is_known("Metadata", VERSIONS["Metadata"][1]) and not is_known("Metadata", VERSIONS["Metadata"][1] + 1)


# --- A recorder of our own in a thread, for clients that block.


@dataclass(slots=True)
class RunningRecorder:
    """A running recorder: its address for clients, its notices, and the work that has its result once it has ended."""

    bootstrap: str
    notices: list[str]
    work: asyncio.Task[RecordingResult]


@contextmanager
def record_in_thread(job: RecordingOptions) -> Iterator[RunningRecorder]:
    """Runs a recorder until the end of the block."""
    told: list[str] = []
    with enter_in_thread(lambda: record_meanwhile(job, told.append)) as (bootstrap, work):
        yield RunningRecorder(bootstrap, told, work)


def parse_bootstrap(bootstrap: str) -> tuple[str, int]:
    """Host and port of an address."""
    found = parse_address(bootstrap)
    assert found is not None
    return found


def recording_options(upstream: str, path: Path, rotate: int | None = None) -> RecordingOptions:
    return RecordingOptions(
        ("127.0.0.1", 0), parse_bootstrap(upstream), path, max_file_bytes=rotate, sync_interval_s=0.1
    )


def run_clients(bootstrap: str, group: str) -> None:
    """Three clients come, consume, go and come again."""
    room = RealClientGroup(bootstrap, group)
    wanted = produce(bootstrap, range(40))
    for client in CLIENTS:
        room.add_member(client)
    room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(wanted))
    room.remove_member(room.members[0])
    room.wait_until(room.is_fully_assigned)
    room.add_member("aiokafka")
    room.wait_until(room.is_fully_assigned)
    while room.members:
        room.remove_member(room.members[0])


def judge_paths(*paths: Path) -> Report:
    return judge_files(paths, lambda progress: None)


def test_three_clients_on_the_bundled_coordinator(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with serve_in_thread() as upstream, record_in_thread(recording_options(upstream, path)) as session:
        run_clients(session.bootstrap, "recorded")
    recorded = session.work.result()
    assert (session.notices, recorded.files, recorded.undecoded, recorded.write_error) == ([], (path,), 0, "")
    header, events = open_trace(path)
    seen = Counter((event.kind, event.api) for event in events)
    assert recorded.events == seen.total()
    assert {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "Fetch"} <= {
        api for kind, api in seen if kind is Kind.RESPONSE
    }
    assert header.settings.initial_rebalance_delay == 200
    assert judge_paths(path).exit_code() == 0


def test_the_parts_of_a_recording_are_traces(tmp_path: Path) -> None:
    with (
        serve_in_thread() as upstream,
        record_in_thread(recording_options(upstream, tmp_path / "trace.jsonl", rotate=20_000)) as session,
    ):
        run_clients(session.bootstrap, "parts")
    recorded = session.work.result()
    assert len(recorded.files) > 2
    sequences = [{event.sequence for event in open_trace(path)[1]} for path in recorded.files]
    assert sequences[0] | set.union(*sequences) == set(range(recorded.events))
    whole = judge_paths(*recorded.files)
    assert (whole.exit_code(), whole.schedules, whole.events) == (
        0,
        len(recorded.files),
        recorded.events - len(sequences) + 1,
    )
    assert not any(result.failures for result in judge_paths(*recorded.files[1:]).results)


class CapturingTrace(WireTrace):
    """A tape that also keeps the bytes, as packets."""

    wire = PcapWriter()

    def open_connection(self) -> ConnectionDecoder:
        """A connection that keeps its bytes."""
        plain = super().open_connection()
        self.wire.open(plain.number, time.monotonic())
        request, response = plain.on_request, plain.on_response

        def record_request(frame: bytes) -> None:
            self.wire.send(plain.number, time.monotonic(), True, len(frame).to_bytes(4) + frame)
            request(frame)

        def record_response(frame: bytes) -> PendingRequest | None:
            self.wire.send(plain.number, time.monotonic(), False, len(frame).to_bytes(4) + frame)
            return response(frame)

        plain.on_request, plain.on_response = record_request, record_response  # type: ignore[method-assign]
        return plain


def test_a_capture_of_the_same_bytes_is_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.jsonl"
    CapturingTrace.wire = PcapWriter()
    monkeypatch.setattr("fencepost.adapters.record.recorder.WireTrace", CapturingTrace)
    with serve_in_thread() as upstream, record_in_thread(recording_options(upstream, path)) as session:
        run_clients(session.bootstrap, "captured")
    CapturingTrace.wire.write(tmp_path / "kafka.pcap")
    settings = open_trace(path)[0].settings
    capture = CaptureSource([tmp_path / "kafka.pcap"], frozenset({PORT}), settings)
    told = import_capture(capture, tmp_path / "captured.jsonl")
    assert (told.gaps, told.undecoded) == (0, 0)
    recorded, captured = (
        [(event.kind, event.api, event.version, event.body, event.of is None) for event in open_trace(each)[1]]
        for each in (path, tmp_path / "captured.jsonl")
    )
    said = {Kind.REQUEST, Kind.RESPONSE}
    assert [each for each in captured if each[0] in said] == [each for each in recorded if each[0] in said]
    reports = [judge_paths(each) for each in (path, tmp_path / "captured.jsonl")]
    assert [report.exit_code() for report in reports] == [0, 0]
    assert len({tuple(result.verdict for result in report.results) for report in reports}) == 1


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("kafka4", marks=pytest.mark.kafka4),
        pytest.param("kafka3", marks=[pytest.mark.kafka3, pytest.mark.acceptance]),
    ],
)
def test_three_clients_on_apache_kafka(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    kafka: RunningTarget = request.getfixturevalue(name)
    path = tmp_path / "trace.jsonl"
    with record_in_thread(recording_options(kafka.bootstrap, path)) as session:
        create_topic(session.bootstrap)
        run_clients(session.bootstrap, "recorded")
    assert session.work.result().undecoded == 0 and session.notices == []
    assert judge_paths(path).exit_code() == 0


def create_topic(bootstrap: str) -> None:
    """The topic of the rooms, where nobody makes it by itself."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})  # its answers come as long as there is a name for it
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(TIMEOUT_S)
