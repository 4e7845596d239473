"""Requests in recorded traces: one without the form of its API is a mistake of the trace, not of the coordinator."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.cli import main
from fencepost.model.wire.codec import VERSIONS, decode_body, encode_body
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import RequestFormError, check_request_form, open_trace

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
