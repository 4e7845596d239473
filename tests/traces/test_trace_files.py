"""The trace format: written traces are read back, and malformed lines are refused with line and reason."""

import gzip
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.generations import generations
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, encode_event
from fencepost.traces.files.rotating_writer import RecordingReader, RotatingTraceWriter
from fencepost.traces.files.trace_files import (
    MAX_REMEMBERED_BYTES,
    EventDecoder,
    TraceError,
    open_trace,
    trace_writer,
    write_trace,
)
from tests.support.group_driver import BundledGroup, wait_for_response
from tests.support.random_client import random_trace

HEADER = Header("bundled", Order.TOTAL, "virtual", Settings(min_session_timeout=1), 0, {"name": "bundled"})
REQUEST = Event(0, 0, 1, "A", Kind.REQUEST, "Heartbeat", 4, {"group_id": "g"})
RESPONSE = Event(1, 5, 1, "A", Kind.RESPONSE, "Heartbeat", 4, {"error_code": 0}, of=0)


def read_back(path: Path) -> tuple[Header, list[Event]]:
    header, events = open_trace(path)
    return header, list(events)


# --- round trip

names = st.text(max_size=8) | st.sampled_from(["base64", "~base64", "~~base64", "error_code"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
bodies = st.dictionaries(names, values, max_size=4)


@st.composite
def lawful_events(draw: st.DrawFn) -> list[Event]:
    """Events in a lawful order."""
    events: list[Event] = []
    in_flight: dict[int, str] = {}
    sequence, time = -1, 0
    for _ in range(draw(st.integers(0, 8))):
        sequence += draw(st.integers(1, 3))
        time += draw(st.integers(0, 1000))
        kind = draw(st.sampled_from(Kind))
        api, of = draw(st.text(max_size=5)), None
        if kind is Kind.REQUEST:
            in_flight[sequence] = api
        elif kind is Kind.RESPONSE and not in_flight:
            kind = Kind.INTERNAL
        elif kind is Kind.RESPONSE:
            of = draw(st.sampled_from(sorted(in_flight)))
            api = in_flight.pop(of)
        version, connection = draw(st.integers(-1, 20)), draw(st.integers(0, 9))
        events.append(Event(sequence, time, connection, draw(names), kind, api, version, draw(bodies), of))
    return events


headers = st.builds(
    Header,
    names,
    st.sampled_from(Order),
    st.sampled_from(["virtual", "wall"]),
    st.builds(Settings, min_session_timeout=st.integers(0), max_group_size=st.integers(0)),
    st.integers(0),
    st.dictionaries(names, names, max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(headers, lawful_events(), st.sampled_from(["trace.jsonl", "trace.jsonl.gz"]))
def test_what_is_written_is_read(tmp_path: Path, header: Header, events: list[Event], name: str) -> None:
    write_trace(tmp_path / name, header, events)
    assert read_back(tmp_path / name) == (header, events)


def test_a_body_that_looks_like_bytes_stays_a_body(tmp_path: Path) -> None:
    body = {"a": b"\x00\xff", "b": {"base64": "AP8="}, "c": {"~base64": {"base64": b""}}, "base64": 1}
    events = [Event(0, 0, 0, "", Kind.INTERNAL, "x", 0, body)]
    write_trace(tmp_path / "t", HEADER, events)
    assert read_back(tmp_path / "t")[1] == events
    line = json.loads((tmp_path / "t").read_text().splitlines()[1])
    assert line["body"]["a"] == {"base64": "AP8="}
    assert line["body"]["b"] == {"~base64": "AP8="}


def test_gzip_is_told_by_content_and_equal_traces_are_equal_files(tmp_path: Path) -> None:
    write_trace(tmp_path / "a.gz", HEADER, [REQUEST, RESPONSE])
    write_trace(tmp_path / "b.gz", HEADER, [REQUEST, RESPONSE])
    zipped = (tmp_path / "a.gz").read_bytes()
    assert zipped == (tmp_path / "b.gz").read_bytes()
    (tmp_path / "plain.jsonl").write_bytes(zipped)
    assert read_back(tmp_path / "plain.jsonl") == (HEADER, [REQUEST, RESPONSE])
    (tmp_path / "c.gz").write_bytes(gzip.decompress(zipped))
    assert read_back(tmp_path / "c.gz") == (HEADER, [REQUEST, RESPONSE])


DROP = Event(1, 0, 1, "A", Kind.FAULT, "drop", 0, {}, of=0)
LATE = Event(2, 5, 1, "A", Kind.RESPONSE, "Heartbeat", 4, {}, of=0)


def test_a_coordinator_may_answer_a_dropped_request_once(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", HEADER, [REQUEST, DROP, LATE])
    assert read_back(tmp_path / "t")[1] == [REQUEST, DROP, LATE]
    write_trace(tmp_path / "t", HEADER, [REQUEST, DROP, LATE, replace(LATE, sequence=3)])
    with pytest.raises(TraceError, match="t:5: 'of' is 0, but no request 0 is awaiting a response"):
        read_back(tmp_path / "t")
    write_trace(tmp_path / "t", HEADER, [REQUEST, DROP, replace(DROP, sequence=2)])
    with pytest.raises(TraceError, match="t:4: 'of' is 0, but request 0 has lost its connection before"):
        read_back(tmp_path / "t")


def test_a_client_sees_no_answer_to_a_dropped_request(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", replace(HEADER, order=Order.INTERVALS), [REQUEST, DROP, LATE])
    with pytest.raises(TraceError, match="t:4: 'of' is 0, but no request 0 is awaiting a response"):
        read_back(tmp_path / "t")


def test_a_remark_may_be_about_a_request_that_is_over(tmp_path: Path) -> None:
    remark = Event(2, 5, 0, "", Kind.INTERNAL, "check", 0, {"requirement": "HB-01"}, of=0)
    write_trace(tmp_path / "t", HEADER, [REQUEST, RESPONSE, remark])
    assert read_back(tmp_path / "t")[1][2] == remark
    write_trace(tmp_path / "t", HEADER, [REQUEST, RESPONSE, replace(remark, of=2)])
    with pytest.raises(TraceError, match="t:4: 'of' is 2, but no earlier event has that number"):
        read_back(tmp_path / "t")


@pytest.mark.parametrize("body", [{"a": object()}, {"a": {1: 2}}, {"a": float("nan")}])
def test_values_without_a_form_are_not_written(tmp_path: Path, body: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_trace(tmp_path / "t", HEADER, [Event(0, 0, 0, "", Kind.INTERNAL, "x", 0, body)])


# --- flaws


def header_line(**changes: Any) -> str:
    line = {
        "fencepost_trace": 1,
        "source": "s",
        "order": "total",
        "clock": "wall",
        "settings": {"min_session_timeout": 1},
        "grace": 5,
        "implementation": {},
    }
    return json.dumps({key: value for key, value in (line | changes).items() if value is not ...})


def event_line(**changes: Any) -> str:
    line = {
        "sequence": 0,
        "time": 10,
        "connection": 1,
        "member": "A",
        "kind": "request",
        "api": "Heartbeat",
        "version": 4,
        "body": {},
    }
    return json.dumps({key: value for key, value in (line | changes).items() if value is not ...})


def response_line(**changes: Any) -> str:
    return event_line(**{"sequence": 1, "kind": "response", "of": 0} | changes)


H, E = header_line(), event_line()
FLAWS = {
    "empty file": ([], "t:1: the file is empty: a trace begins with a header line"),
    "no header": ([E], "t:1: not a header: a trace begins with a line that has the key 'fencepost_trace'"),
    "newer": (
        [header_line(fencepost_trace=2)],
        "t:1: trace format 2 is newer than 1, the newest this Fencepost reads",
    ),
    "version 0": ([header_line(fencepost_trace=0)], "t:1: trace format 0 is unknown; this Fencepost reads 1"),
    "version true": ([header_line(fencepost_trace=True)], "t:1: trace format True is unknown; this Fencepost reads 1"),
    "header key missing": ([header_line(grace=...)], "t:1: key 'grace' is missing"),
    "header key unknown": ([header_line(colour="red")], "t:1: unknown key 'colour'"),
    "header type": ([header_line(grace="5")], "t:1: 'grace' is not an integer"),
    "grace negative": ([header_line(grace=-1)], "t:1: 'grace' is negative"),
    "order": ([header_line(order="partial")], "t:1: unknown order 'partial'; known: total, intervals"),
    "clock": ([header_line(clock="sun")], "t:1: unknown clock 'sun'; known: virtual, wall"),
    "setting unknown": ([header_line(settings={"depth": 1})], "t:1: unknown key 'depth' in 'settings'"),
    "setting type": (
        [header_line(settings={"max_group_size": True})],
        "t:1: 'max_group_size' in 'settings' is not an integer",
    ),
    "implementation": ([header_line(implementation={"v": 3})], "t:1: 'v' in 'implementation' is not a string"),
    "not JSON": ([H, E[:-1]], "t:2: not JSON: Expecting ',' delimiter at column 125"),
    "two on a line": ([H, E + E], "t:2: not JSON: Extra data at column 125"),
    "NaN": ([H, E.replace("{}", '{"a": NaN}')], "t:2: not JSON: NaN"),
    "empty line": ([H, "", E], "t:2: empty line"),
    "not an object": ([H, "[1]"], "t:2: not a JSON object"),
    "given twice": ([H, E[:-1] + ', "time": 3}'], "t:2: key 'time' is given twice"),
    "nested": ([H, "[" * 100_000], "t:2: nested too deeply"),
    "key missing": ([H, event_line(member=...)], "t:2: key 'member' is missing"),
    "key unknown": ([H, E, event_line(sequence=1, colour="red")], "t:3: unknown key 'colour'"),
    "two keys unknown": ([H, event_line(of=1, b=1, a=1)], "t:2: unknown key 'a'"),
    "string for number": ([H, event_line(sequence="0")], "t:2: 'sequence' is not an integer"),
    "float for number": ([H, event_line(time=1.0)], "t:2: 'time' is not an integer"),
    "boolean for number": ([H, event_line(connection=True)], "t:2: 'connection' is not an integer"),
    "connection": ([H, event_line(connection=-1)], "t:2: 'connection' is negative"),
    "body a list": ([H, event_line(body=[])], "t:2: 'body' is not an object"),
    "body bytes": ([H, event_line(body={"base64": ""})], "t:2: 'body' is not an object"),
    "base64": ([H, event_line(body={"a": {"base64": "A"}})], "t:2: bad base64: "),
    "base64 type": ([H, event_line(body={"a": {"base64": 1}})], "t:2: base64 is not a string"),
    "kind": (
        [H, event_line(kind="guess")],
        "t:2: unknown kind 'guess'; known: request, response, callback, poll, fault, internal",
    ),
    "sequence same": ([H, E, E], "t:3: sequence 0 does not rise: 0 came before"),
    "sequence falls": (
        [H, event_line(sequence=7), event_line(sequence=3)],
        "t:3: sequence 3 does not rise: 7 came before",
    ),
    "sequence negative": ([H, event_line(sequence=-1)], "t:2: sequence -1 does not rise: -1 came before"),
    "time falls": ([H, E, event_line(sequence=1, time=9)], "t:3: time 9 falls: 10 came before"),
    "of unknown": ([H, E, response_line(of=5)], "t:3: 'of' is 5, but no request 5 is awaiting a response"),
    "of itself": ([H, response_line(sequence=0)], "t:2: 'of' is 0, but no request 0 is awaiting a response"),
    "answered twice": (
        [H, E, response_line(), response_line(sequence=2)],
        "t:4: 'of' is 0, but no request 0 is awaiting a response",
    ),
    "of missing": ([H, E, response_line(of=...)], "t:3: a response without 'of'"),
    "of null": ([H, E, response_line(of=None)], "t:3: 'of' is not an integer"),
    "of on a poll": (
        [H, E, response_line(kind="poll")],
        "t:3: 'of' on an event of kind poll; only responses, faults and internal events have it",
    ),
    "other api": ([H, E, response_line(api="SyncGroup")], "t:3: a response of SyncGroup to a request of Heartbeat"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_one_clear_line(flaw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, message = FLAWS[flaw]
    monkeypatch.chdir(tmp_path)
    Path("t").write_text("".join(line + "\n" for line in lines))
    with pytest.raises(TraceError) as caught:
        read_back(Path("t"))
    assert "\n" not in str(caught.value)
    if message.endswith(" "):
        assert str(caught.value).startswith(message)
    else:
        assert str(caught.value) == message


def test_the_lines_that_the_flaws_are_made_from_are_good(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("\n".join([H, E, response_line()]))
    assert [event.kind for event in read_back(tmp_path / "t")[1]] == [Kind.REQUEST, Kind.RESPONSE]


def test_other_encodings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t").write_bytes(H.encode() + b'\n{"\xff')
    with pytest.raises(TraceError, match=r"^t:2: not UTF-8 at byte 3$"):
        read_back(Path("t"))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fencepost.traces.files.trace_files.MAX_LINE", 500)
    Path("t").write_text(H + "\n" + event_line(body={"a": "x" * 500}))
    with pytest.raises(TraceError, match=r"^t:2: longer than 500 bytes$"):
        read_back(Path("t"))


def zipped_trace() -> bytes:
    return gzip.compress("".join(line + "\n" for line in [H, E, response_line()]).encode())


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda zipped: zipped[:-9],
    "header only": lambda zipped: zipped[:12],
    "checksum": lambda zipped: zipped[:-8] + b"\0\0\0\0" + zipped[-4:],
    "bits": lambda zipped: zipped[:30] + bytes(byte ^ 0xFF for byte in zipped[30:40]) + zipped[40:],
    "surplus": lambda zipped: zipped + b"surplus",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_gzip_is_refused(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t").write_bytes(DAMAGE[damage](zipped_trace()))
    with pytest.raises(TraceError, match=r"^t:\d: damaged or truncated gzip: [^\n]+$"):
        read_back(Path("t"))


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError, match=r"^nowhere: cannot be read: No such file or directory$"):
        open_trace("nowhere")
    with pytest.raises(TraceError, match=r"^.: cannot be read: Is a directory$"):
        open_trace(".")


# --- flat memory


def long_trace(pairs: int) -> Iterator[Event]:
    for number in range(0, 2 * pairs, 2):
        yield Event(number, number, 1, "A", Kind.REQUEST, "SyncGroup", 5, {"assignment": b"x" * 200})
        yield Event(number + 1, number, 1, "A", Kind.RESPONSE, "SyncGroup", 5, {"error_code": 0}, of=number)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_memory_does_not_grow_with_the_trace(tmp_path: Path, name: str) -> None:
    tracemalloc.start()
    try:
        with trace_writer(tmp_path / name, HEADER) as write:
            for event in long_trace(10_000):
                write(event)
        _, events = open_trace(tmp_path / name)
        assert sum(1 for _ in events) == 20_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000  # the file holds about 5 MB


def test_a_reader_that_is_let_go_closes_the_file(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", HEADER, [REQUEST, RESPONSE])
    header, events = open_trace(tmp_path / "t")
    assert header == HEADER
    del events  # pytest turns the warning of an unclosed file into a failure


# --- Lines in words that were decoded before are decoded as any other line is.

HEARTBEAT = (
    b'{"sequence":7,"time":9,"connection":0,"member":"A","kind":"response","api":"Heartbeat","version":4,"body":{},'
    b'"of":3}\n'
)


def outcome(decode: object, line: bytes) -> Event | str:
    """The event in a line, or why there is none."""
    assert callable(decode)
    try:
        event = decode(line)
    except MalformedLineError as flaw:
        return str(flaw)
    assert isinstance(event, Event)
    return event


def test_every_line_is_decoded_as_by_itself() -> None:
    _, events = random_trace(random.Random(3), 150)
    lines = [encode_event(event) for event in events]
    decoder = EventDecoder()
    for line in [*lines, *lines]:
        assert decoder.decode(line) == decode_event(line)


def test_numbers_are_those_of_the_line_and_the_body_is_shared() -> None:
    decoder = EventDecoder()
    first = decoder.decode(HEARTBEAT)
    other = decoder.decode(HEARTBEAT.replace(b":7,", b":8,").replace(b":9,", b":10,").replace(b":3}", b":4}"))
    assert other == replace(first, sequence=8, time=10, of=4)
    assert other.body is first.body


def test_a_response_without_of_is_not_taken_for_one_with_it() -> None:
    decoder = EventDecoder()
    assert decoder.decode(HEARTBEAT).of == 3
    assert decoder.decode(HEARTBEAT.replace(b',"of":3', b"")).of is None
    assert decoder.decode(HEARTBEAT).of == 3


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_lines_are_refused_as_by_themselves(seed: int) -> None:
    source, decoder = random.Random(seed), EventDecoder()
    _, events = random_trace(source, 60)
    lines = [encode_event(event) for event in events]
    for line in lines:
        decoder.decode(line)
    refused = 0
    for line in [HEARTBEAT, *lines]:
        for _ in range(20):
            place = source.randrange(len(line))
            spoiled = line[:place] + source.choice((b"", b'"', b"}", b",", b"0", b"-", b'"of":1,')) + line[place + 1 :]
            found = outcome(decoder.decode, spoiled)
            assert found == outcome(decode_event, spoiled)
            refused += isinstance(found, str)
    assert refused > 100


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line.replace(b'{},"of"', b'{},"time":3,"of"'),
        lambda line: line.replace(b'{},"of"', b'{},"of":3,"of"'),
        lambda line: line.replace(b'{},"of":3}', b'{"a":{},"of":3}'),
        lambda line: line.replace(b":7,", b":007,"),
        lambda line: line.replace(b":7,", b":-7,"),
        lambda line: line.replace(b":7,", b":7.0,"),
        lambda line: line.replace(b":3}", b":3}}"),
        lambda line: line.replace(b"\n", b" \n"),
        lambda line: line.replace(b"\n", b""),
        lambda line: line.replace(b":9,", b":" + 30 * b"9" + b","),
    ],
    ids=range(10),
)
def test_lines_that_are_nearly_in_the_same_words(spoil: object) -> None:
    assert callable(spoil)
    decoder = EventDecoder()
    decoder.decode(HEARTBEAT)
    for _ in range(2):
        assert outcome(decoder.decode, spoil(HEARTBEAT)) == outcome(decode_event, spoil(HEARTBEAT))


def test_long_lines_are_not_remembered() -> None:
    decoder = EventDecoder()
    line = HEARTBEAT.replace(b'"A"', b'"' + b"A" * MAX_REMEMBERED_BYTES + b'"')
    first, second = decoder.decode(line), decoder.decode(line)
    assert first == second
    assert first.body is not second.body


# --- The strict reader accepts the traces that the kit itself records.


@pytest.mark.parametrize("scenario", generations.scenarios, ids=lambda scenario: scenario.name)
def test_scenarios_with_their_evidence(scenario: Scenario, tmp_path: Path) -> None:
    async def run_scenario() -> ScenarioRun:
        target = InProcessTarget()
        return await play_scenario(scenario, target, await target.open(), "g", grace=0, restart=target.restart)

    seen = run_virtual(run_scenario())
    assert any(event.kind is Kind.INTERNAL and event.of is not None for event in seen.events)
    write_trace(tmp_path / "t", seen.header, seen.events)
    header, events = open_trace(tmp_path / "t")
    assert (header, tuple(events)) == (seen.header, seen.events)


async def test_drops_and_restarts(bundled: BundledGroup, tmp_path: Path) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    dropped, kept = b.join(), a.join()
    dropped.drop()
    await wait_for_response(kept)
    await bundled.target.restart()
    header = Header("test", Order.TOTAL, "virtual", Settings(), 0)
    write_trace(tmp_path / "t", header, bundled.recorder.events)
    assert tuple(open_trace(tmp_path / "t")[1]) == bundled.recorder.events


# --- The writer of recordings writes whole lines, and parts that are traces of their own.

RECORDED = Header("here", Order.INTERVALS, "wall", Settings(), 1_000, {"recording": "r"})


def request(sequence: int) -> Event:
    return Event(sequence, sequence, 1, "A", Kind.REQUEST, "Heartbeat", 0, {"group_id": "g"})


def response(sequence: int, of: int) -> Event:
    return Event(sequence, sequence, 1, "A", Kind.RESPONSE, "Heartbeat", 0, {"error_code": 0}, of)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_was_taken_in_is_read_again(name: str, tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / name, RECORDED)
    events = [request(0), response(1, 0)]
    for event in events:
        recording.append(event)
    recording.flush()
    recording.sync()
    recording.close()
    header, read = open_trace(tmp_path / name)
    assert list(read) == events
    assert header.implementation == {"recording": "r", "part": "1"}


def test_what_was_flushed_is_a_trace_although_the_recorder_goes_on(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "trace.jsonl", RECORDED)
    recording.append(request(0))
    recording.flush()
    recording.append(request(1))
    assert [event.sequence for event in open_trace(tmp_path / "trace.jsonl")[1]] == [0]
    recording.close()
    assert [event.sequence for event in open_trace(tmp_path / "trace.jsonl")[1]] == [0, 1]


def test_a_full_part_is_followed_by_another_that_begins_with_what_is_in_flight(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "trace.jsonl", RECORDED, max_part_bytes=1)
    assert not recording.is_part_full
    recording.append(request(0))
    assert recording.is_part_full
    recording.rotate([request(0)])
    recording.append(response(1, 0))
    recording.close()
    assert [path.name for path in recording.files] == ["trace.0001.jsonl", "trace.0002.jsonl"]
    parts = [open_trace(path) for path in recording.files]
    assert [header.implementation["part"] for header, _ in parts] == ["1", "2"]
    assert [list(events) for _, events in parts] == [[request(0)], [request(0), response(1, 0)]]


def test_the_parts_of_a_recording_are_read_as_one_trace(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "a.jsonl", RECORDED, max_part_bytes=1)
    recording.append(request(0))
    for part in (1, 2):
        recording.rotate([request(0)])
        recording.append(Event(part, part, 0, "", Kind.INTERNAL, "continued", 0, {}))
    recording.append(response(3, 0))
    recording.close()
    other = RotatingTraceWriter(tmp_path / "b.jsonl", replace(RECORDED, implementation={"recording": "other"}))
    other.append(request(7))
    other.close()
    paths = [*recording.files, *other.files]
    shelf = RecordingReader(paths)
    found = [(path, list(events), shelf.files) for path, _, events in shelf.traces()]
    assert found == [
        (paths[0], [request(0), response(3, 0)], paths[:3]),
        (paths[3], [request(7)], paths[3:]),
    ]
    # A later part alone begins with what it repeats, and with the remark.
    alone = [list(events) for _, _, events in RecordingReader(paths[2:3]).traces()]
    assert [[event.sequence for event in events] for events in alone] == [[0, 2, 3]]


def test_a_part_after_a_bad_line_is_a_trace_of_its_own(tmp_path: Path) -> None:
    """What the part before has lost is not known, so that its events do not continue those before the bad line."""
    recording = RotatingTraceWriter(tmp_path / "a.jsonl", RECORDED, max_part_bytes=1)
    recording.append(request(0))
    recording.rotate([request(0)])
    recording.append(Event(1, 1, 0, "", Kind.INTERNAL, "continued", 0, {}))
    recording.append(response(2, 0))
    recording.close()
    with recording.files[0].open("ab") as out:
        out.write(b"?\n")
    errors: list[TraceError] = []
    found = [
        [event.sequence for event in events]
        for _, _, events in RecordingReader(recording.files, errors.append).traces()
    ]
    assert found == [[0], [0, 1, 2]] and [error.line for error in errors] == [3]


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("precious")
    with pytest.raises(FileExistsError):
        RotatingTraceWriter(tmp_path / "trace.jsonl", RECORDED)
    assert (tmp_path / "trace.jsonl").read_text() == "precious"
