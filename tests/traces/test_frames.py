"""Frames become events in order; nothing is lost, and records and credentials are not kept."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.conformance.cli import main
from fencepost.model.errors import Error
from fencepost.model.wire.codec import VERSIONS, decode_body, encode_body, encode_request, encode_response
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import RequestFormError, check_request_form, open_trace
from fencepost.traces.frames import FrameSplitter, WireTrace

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


class RecordedTrace:
    """A tape whose events are kept, with a clock that ticks."""

    def __init__(self, *, everything: bool = False) -> None:
        self.events: list[Event] = []
        ticks = count()
        self.tape = WireTrace(self.events.append, lambda: next(ticks), keep_all_bytes=everything)


def join_frame(member: str, correlation: int) -> bytes:
    body = {"group_id": "g", "session_timeout_ms": 1, "member_id": member, "protocol_type": "consumer", "protocols": []}
    return encode_request("JoinGroup", 4, correlation, "me", body)


def test_a_request_and_its_answer() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    talk.on_request(encode_request("Heartbeat", 3, 7, "me", HEARTBEAT))
    talk.on_response(encode_response("Heartbeat", 3, 7, {"error_code": Error.REBALANCE_IN_PROGRESS}))
    request, response = desk.events
    assert (request.kind, request.api, request.version, request.body["generation_id"]) == (
        Kind.REQUEST,
        "Heartbeat",
        3,
        1,
    )
    assert (response.kind, response.of, response.body["error_code"]) == (
        Kind.RESPONSE,
        request.sequence,
        Error.REBALANCE_IN_PROGRESS,
    )
    assert request.connection == response.connection == talk.number


def test_a_member_keeps_its_label_on_another_connection() -> None:
    desk = RecordedTrace()
    first, other, second = (desk.tape.open_connection() for _ in range(3))
    first.on_request(join_frame("", 1))
    first.on_response(encode_response("JoinGroup", 4, 1, {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "a"}))
    other.on_request(join_frame("", 1))
    second.on_request(join_frame("a", 1))
    assert [event.member for event in desk.events] == ["A", "A", "B", "A"]


def test_the_labels_after_z() -> None:
    actors = RecordedTrace().tape.labels
    assert [actors.new_label() for _ in range(53)][24:] == ["Y", "Z", *("A" + chr(65 + n) for n in range(26)), "BA"]


def test_an_unknown_version_is_kept_and_makes_the_groups_unknown() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    frame = (11).to_bytes(2) + (99).to_bytes(2) + (5).to_bytes(4) + b"\xff\xffwhatever"
    talk.on_request(frame)
    talk.on_response((5).to_bytes(4) + b"anything")
    request, doubt, response, again = desk.events
    assert (request.api, request.version, request.body["_undecoded"]) == ("JoinGroup", 99, frame)
    assert response.body["_undecoded"] == (5).to_bytes(4) + b"anything"
    assert doubt.api == again.api == "unknown"
    assert desk.tape.undecoded == 2


def test_surplus_bytes_are_kept_beside_what_was_read() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    frame = encode_request("Heartbeat", 0, 7, "me", HEARTBEAT) + b"surplus"
    talk.on_request(frame)
    (request,) = desk.events
    assert request.body["member_id"] == "m" and request.body["_undecoded"] == frame and request.body["_findings"]


def test_records_and_credentials_are_told_by_their_size_alone() -> None:
    secret = b"secret"
    for key in (0, 1, 36, 51, 999):
        desk, eager = RecordedTrace(), RecordedTrace(everything=True)
        frame = key.to_bytes(2) + (90).to_bytes(2) + (5).to_bytes(4) + b"\xff\xff" + secret
        for each in (desk, eager):
            talk = each.tape.open_connection()
            talk.on_request(frame)
            talk.on_response((5).to_bytes(4) + secret)
        assert secret not in repr(desk.events).encode()
        assert [event.body["_size"] for event in desk.events] == [len(frame), 10]
        assert key == 0 or repr(eager.events).count("secret") == 2


def test_what_authenticates_is_left_out_but_not_whether_it_did() -> None:
    desk = RecordedTrace(everything=True)
    talk = desk.tape.open_connection()
    talk.on_request(encode_request("SaslHandshake", 1, 1, "me", {"mechanism": "PLAIN"}))
    talk.on_response(encode_response("SaslHandshake", 1, 1, {"mechanisms": ["PLAIN"]}))
    talk.on_request(encode_request("SaslAuthenticate", 2, 2, "me", {"auth_bytes": b"\0me\0secret"}))
    answer = {"error_code": 58, "error_message": "no", "auth_bytes": b"secret", "session_lifetime_ms": 9}
    talk.on_response(encode_response("SaslAuthenticate", 2, 2, answer))
    assert "secret" not in repr(desk.events)
    assert [dict(event.body) for event in desk.events] == [
        {"mechanism": "PLAIN"},
        {"error_code": 0, "mechanisms": ["PLAIN"]},
        {},
        {"error_code": 58, "error_message": "no", "session_lifetime_ms": 9},
    ]


def test_credentials_without_a_header_are_told_by_their_size_alone() -> None:
    """After version 0 of SaslHandshake; the second user's name begins as a ConsumerGroupHeartbeat would."""
    for token in (b"\0user\0secret", b"\0Dora\0secret", b"\0/etc\0secret", b"n,,n=user,r=secret"):
        desk = RecordedTrace()
        talk = desk.tape.open_connection()
        talk.on_request(encode_request("SaslHandshake", 0, 1, "me", {"mechanism": "PLAIN"}))
        talk.on_response(encode_response("SaslHandshake", 0, 1, {"mechanisms": ["PLAIN"]}))
        talk.on_request(token)
        talk.on_response(b"")
        talk.on_request(encode_request("Heartbeat", 3, 7, "me", HEARTBEAT))
        assert "secret" not in repr(desk.events)
        assert desk.events[2].body == {"_size": len(token)}
        assert desk.events[-1].body["member_id"] == "m"


def test_what_was_fetched_is_left_out_but_not_where_the_log_ends() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    partition = {"partition_index": 2, "high_watermark": 42, "records": b"secret"}
    talk.on_request(encode_request("Fetch", 12, 1, "me", {}))
    talk.on_response(encode_response("Fetch", 12, 1, {"responses": [{"topic": "t", "partitions": [partition]}]}))
    (seen,) = desk.events[1].body["responses"][0]["partitions"]
    assert seen["high_watermark"] == 42 and "records" not in seen


def test_a_request_that_is_never_answered_is_passed_by() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    for correlation in (1, 2):
        talk.on_request(encode_request("Heartbeat", 0, correlation, "me", HEARTBEAT))
    talk.on_response(encode_response("Heartbeat", 0, 2, {}))
    assert desk.events[2].of == desk.events[1].sequence and not desk.tape.requests_in_flight()


def test_an_answer_that_nobody_asked_for() -> None:
    desk = RecordedTrace()
    assert desk.tape.open_connection().on_response(b"\0\0\0\7?") is None
    assert [(event.kind, event.api) for event in desk.events] == [(Kind.INTERNAL, "stray")]


def test_the_end_of_a_connection() -> None:
    for cause, doubts in (("drop", 0), ("lost", 1)):
        desk = RecordedTrace()
        talk = desk.tape.open_connection()
        talk.on_request(encode_request("Heartbeat", 0, 1, "me", HEARTBEAT))
        assert desk.tape.requests_in_flight() == desk.events
        talk.on_closed(cause, "why")
        fault, *rest = desk.events[1:]
        assert (fault.kind, fault.api, fault.of) == (Kind.FAULT, cause, 0)
        assert [event.api for event in rest] == ["unknown"] * doubts and not desk.tape.requests_in_flight()


def test_a_broker_that_goes_without_having_heard_of_groups_leaves_no_doubt() -> None:
    desk = RecordedTrace()
    talk = desk.tape.open_connection()
    talk.on_request(encode_request("Metadata", 4, 1, "me", {}))
    talk.on_closed("lost", "why")
    assert [event.api for event in desk.events] == ["Metadata", "lost"]


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(len(frame).to_bytes(4) + frame for frame in frames) + b"\0\0"
    splitter, found, place = FrameSplitter(1000), list[bytes](), 0
    for size in (*cuts, len(stream)):
        found += splitter.feed(stream[place : place + size])
        place += size
    assert found == frames and splitter.take_rest() == b"\0\0" and not splitter.take_rest()


def test_what_is_no_frame_ends_the_splitting() -> None:
    splitter = FrameSplitter(1000)
    assert list(splitter.feed(b"\0\0\0\1aGET / HTTP/1.1")) == [b"a"]
    assert splitter.is_broken and splitter.take_rest() == b"GET / HTTP/1.1"
    assert list(splitter.feed(b"\0\0\0\0")) == []


# --- Requests in recorded traces: one without the form of its API is a mistake of the trace, not of the coordinator.

BEAT: dict[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}


@pytest.mark.parametrize(
    ("version", "change", "reason"),
    [
        (4, {"group_id": ...}, "Heartbeat v4 without 'group_id'"),
        (4, {"group_id": 1}, "'group_id' of Heartbeat v4 is not a string"),
        (4, {"group_id": None}, "'group_id' of Heartbeat v4 is not a string"),
        (4, {"generation_id": 1 << 40}, "'generation_id' of Heartbeat v4 is not an integer of 32 bits"),
        (4, {"generation_id": True}, "'generation_id' of Heartbeat v4 is not an integer of 32 bits"),
        (4, {"colour": "red"}, "Heartbeat v4 has no field 'colour'"),
        (2, {}, "Heartbeat v2 has no field 'group_instance_id'"),
        (99, {}, "Heartbeat has no version 99 that Fencepost knows"),
    ],
)
def test_what_is_wrong_is_named(version: int, change: dict[str, Any], reason: str) -> None:
    body = {name: value for name, value in {**BEAT, **change}.items() if value is not ...}
    with pytest.raises(RequestFormError) as raised:
        check_request_form("Heartbeat", version, body)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("api", "version", "body"),
    [
        ("Heartbeat", 4, BEAT),
        ("Heartbeat", 4, {"group_id": b"\xff", "generation_id": 1, "member_id": "m"}),
        ("Heartbeat", 99, {"_undecoded": b"x"}),
        ("Heartbeat", 4, {"group_id": None, "_findings": ["a forbidden null"]}),
        ("api-99", 0, {}),
        ("Lease", 3, {"holder": 1}),
        ("InitProducerId", 4, {"transactional_id": "t", "transaction_timeout_ms": 1}),
    ],
)
def test_what_may_be_otherwise(api: str, version: int, body: dict[str, Any]) -> None:
    """Bytes for text, what a recorder could not read, APIs of others, fields with a default of their own."""
    check_request_form(api, version, body)


@pytest.mark.parametrize("api", VERSIONS)
def test_every_request_that_the_codec_reads_has_the_form(api: str) -> None:
    lowest, highest = VERSIONS[api]
    for version in range(lowest, highest + 1):
        name = f"{api}Request"
        check_request_form(api, version, decode_body(name, version, encode_body(name, version, {})).body)


def test_requests_of_the_kit_have_the_form(tmp_path: Path) -> None:
    assert main(["test", "bundled", "--smoke", "-q", "--traces", str(tmp_path)]) == 0
    requests = [event for path in tmp_path.iterdir() for event in open_trace(path)[1] if event.kind is Kind.REQUEST]
    assert requests
    for event in requests:
        check_request_form(event.api, event.version, event.body)


def test_the_coordinator_is_not_blamed_for_a_field_that_the_trace_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", "bundled", "-q", "--only", "JOIN-23", "--traces", str(tmp_path)]) == 0
    trace = min(tmp_path.iterdir())
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    (number, line) = next((n, line) for n, line in enumerate(lines) if line.get("api") == "JoinGroup")
    del line["body"]["group_id"]
    trace.write_text("\n".join(map(json.dumps, lines)))
    capsys.readouterr()
    for words in (["judge", str(trace)], ["replay", str(trace), "bundled"]):
        assert main(words) == 2
        reason = f"event {line['sequence']}: JoinGroup v{line['version']} without 'group_id'"
        assert capsys.readouterr().err == f"fencepost: {trace}: {reason}\n", number
