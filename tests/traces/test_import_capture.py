"""Packet captures as traces: all messages are imported, and gaps are marked."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.packet_capture import (
    GAP,
    MAX_WAITING_SEGMENTS,
    CaptureImportResult,
    CaptureSource,
    Segment,
    TcpStream,
    import_capture,
)
from tests.support.pcap_writer import (
    BEATS,
    LINK_TYPES,
    PORT,
    RST,
    PcapWriter,
    heartbeat_request,
    heartbeat_response,
    write_heartbeats,
)


def import_trace(folder: Path, *paths: Path) -> tuple[CaptureImportResult, list[Event]]:
    told = import_capture(CaptureSource(paths, frozenset({PORT})), folder / "trace.jsonl")
    return told, list(open_trace(folder / "trace.jsonl")[1])


def heartbeats_of(events: list[Event], connection: int) -> list[tuple[str, int]]:
    """The heartbeats of one connection: requests with their generation, responses with their throttle time in ms."""
    return [
        (event.kind.value, event.body["generation_id" if event.kind is Kind.REQUEST else "throttle_time_ms"])
        for event in events
        if event.connection == connection and event.kind in (Kind.REQUEST, Kind.RESPONSE)
    ]


ALL_HEARTBEATS = [(kind, beat) for beat in range(1, BEATS + 1) for kind in ("request", "response")]


@pytest.mark.parametrize("link", LINK_TYPES)
@pytest.mark.parametrize("name", ["a.pcap", "a.pcapng"])
@pytest.mark.parametrize("most", [1_400, 7])
def test_every_message_comes_out(link: str, name: str, most: int, tmp_path: Path) -> None:
    write_heartbeats(PcapWriter(most)).write(tmp_path / name, link=link)
    told, events = import_trace(tmp_path, tmp_path / name)
    assert (told.connections, told.gaps, told.undecoded) == (2, 0, 0)
    assert [heartbeats_of(events, number) for number in (1, 2)] == [ALL_HEARTBEATS, ALL_HEARTBEATS]
    assert [event.api for event in events if event.kind is Kind.INTERNAL] == ["unknown"]
    assert [event.time for event in events if event.connection == 1][:2] == [10, 12]


@pytest.mark.parametrize(
    "interfaces", [[("ethernet", 6), ("ethernet", 9)], [("null", 9), ("ethernet", 3)], [("raw", 6), ("sll", 6)]]
)
def test_interfaces_have_clocks_and_link_types_of_their_own(interfaces: list[tuple[str, int]], tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    wire.write(tmp_path / "a.pcap")
    wire.write_interfaces(tmp_path / "b.pcapng", interfaces)
    assert import_trace(tmp_path, tmp_path / "b.pcapng")[1] == import_trace(tmp_path, tmp_path / "a.pcap")[1]


def test_a_time_that_no_calendar_has(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    wire.write_interfaces(tmp_path / "a.pcapng", [("raw", 9)])
    damaged = (tmp_path / "a.pcapng").read_bytes().replace(b"\t\0\1\0\t\0\0\0", b"\t\0\1\0\0\0\0\0")
    (tmp_path / "a.pcapng").write_bytes(damaged)
    with pytest.raises(TraceError, match="damaged after packet 1: a packet with the time"):
        import_trace(tmp_path, tmp_path / "a.pcapng")


def test_cut_packets_are_told_with_their_length(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    for most, cut in ((60, True), (1_500, False)):
        wire.write_interfaces(tmp_path / "a.pcapng", [("raw", 6)], most)
        told, _ = import_trace(tmp_path, tmp_path / "a.pcapng")
        assert (told.cut > 0, told.gaps > 0, told.cut_at) == (cut, cut, 60 if cut else 0)


@pytest.mark.parametrize("seed", range(20))
def test_packets_that_come_twice_or_a_little_late(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    wire = write_heartbeats(PcapWriter(17))
    packets = wire.packets + chance.sample(wire.packets, 20)
    packets = [packet for _, packet in sorted((time + chance.random() / 2_000, (time, data)) for time, data in packets)]
    wire.write(tmp_path / "a.pcap", packets)
    told, events = import_trace(tmp_path, tmp_path / "a.pcap")
    assert (told.gaps, [heartbeats_of(events, number) for number in (1, 2)]) == (0, [ALL_HEARTBEATS, ALL_HEARTBEATS])


def test_a_capture_that_begins_in_the_middle(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter(), opened=False)
    for first in range(8):
        wire.write(tmp_path / "a.pcap", wire.packets[first:])
        told, events = import_trace(tmp_path, tmp_path / "a.pcap")
        assert told.gaps == 0
        for number in (1, 2):
            assert heartbeats_of(events, number)[-2 * BEATS + 6 :] == ALL_HEARTBEATS[6:]


def test_packets_that_are_missing(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    for missing in (10, 11):
        wire.write(tmp_path / "a.pcap", [*wire.packets[:missing], *wire.packets[missing + 1 :]])
        told, events = import_trace(tmp_path, tmp_path / "a.pcap")
        assert told.gaps == 1
        assert [event.api for event in events if event.kind is Kind.INTERNAL].count("unknown") == 2
        found = [beat for number in (1, 3) for beat in heartbeats_of(events, number)]
        whole = [beat for number in range(1, 9) for beat in heartbeats_of(events, number)]
        assert len(whole) >= 2 * len(ALL_HEARTBEATS) - 40 and set(found) <= set(ALL_HEARTBEATS)


def test_packets_that_were_cut_short(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    wire.write(tmp_path / "a.pcap", [(time, data[:60]) for time, data in wire.packets])
    told, events = import_trace(tmp_path, tmp_path / "a.pcap")
    assert told.gaps >= 2 * BEATS
    assert not any(event.kind is Kind.REQUEST for event in events)


@pytest.mark.parametrize(("from_client", "cause"), [(True, "drop"), (False, "lost")])
@pytest.mark.parametrize("by_reset", [True, False])
def test_the_end_of_a_connection(from_client: bool, cause: str, by_reset: bool, tmp_path: Path) -> None:
    wire = PcapWriter()
    wire.open(1, 0)
    wire.send(1, 0.1, True, heartbeat_request(1))
    if by_reset:
        wire.close(1, 0.2, from_client, RST)
    else:
        wire.close(1, 0.2, from_client)
        wire.close(1, 0.2, not from_client)
    wire.open(1, 0.3)
    wire.send(1, 0.4, True, heartbeat_request(2))
    wire.write(tmp_path / "a.pcap")
    _, events = import_trace(tmp_path, tmp_path / "a.pcap")
    faults = [(event.api, event.of) for event in events if event.kind is Kind.FAULT]
    assert faults == [(cause, 1)]
    assert [event.connection for event in events if event.kind is Kind.REQUEST] == [1, 2]


def test_the_end_of_a_stream_is_no_gap(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    wire.close(1, 0.5, True)
    for beat in range(20):
        wire.send(1, 0.6 + beat / 10, False, heartbeat_response(beat + 100))
    wire.write(tmp_path / "a.pcap")
    assert import_trace(tmp_path, tmp_path / "a.pcap")[0].gaps == 0


def test_several_captures_of_the_same_or_other_packets(tmp_path: Path) -> None:
    wire = write_heartbeats(PcapWriter())
    wire.write(tmp_path / "a.pcap", wire.packets[:30])
    wire.write(tmp_path / "b.pcap", wire.packets[20:])
    _, events = import_trace(tmp_path, tmp_path / "b.pcap", tmp_path / "a.pcap")
    assert [heartbeats_of(events, number) for number in (1, 2)] == [ALL_HEARTBEATS, ALL_HEARTBEATS]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a packet capture"),
        (b"hello world, this is no capture at all", "not a packet capture"),
        (b"\xd4\xc3\xb2\xa1\2\0\4\0" + b"\0" * 12 + b"\1\0\0\0", "no TCP to or from port 9092 in 0 packets"),
    ],
)
def test_what_is_no_capture(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(content)
    with pytest.raises(TraceError, match=reason):
        import_trace(tmp_path, tmp_path / "a.pcap")


def test_a_capture_of_another_port(tmp_path: Path) -> None:
    write_heartbeats(PcapWriter()).write(tmp_path / "a.pcap")
    with pytest.raises(TraceError, match="no TCP to or from port 9"):
        import_capture(CaptureSource([tmp_path / "a.pcap"], frozenset({9})), tmp_path / "trace.jsonl")


def test_import_survives_any_bytes(tmp_path: Path) -> None:
    chance, wire = random.Random(1), PcapWriter(50)
    for number in range(5):
        wire.open(number, 0)
        for _ in range(20):
            wire.send(number, 0.1, chance.random() < 0.5, chance.randbytes(chance.randrange(200)))
    wire.write(tmp_path / "a.pcap")
    told, _ = import_trace(tmp_path, tmp_path / "a.pcap")
    assert told.packets == len(wire.packets)


# --- TCP


def segment_at(place: int, data: bytes, missing: int = 0) -> Segment:
    return Segment(0, (b"", 1), (b"", 2), place % (1 << 32), None, False, False, False, data, missing)


@given(
    st.binary(min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 12)), max_size=30),
    st.randoms(use_true_random=False),
    st.sampled_from([0, (1 << 32) - 20]),
)
def test_a_stream_is_put_together_however_it_is_cut(
    data: bytes, cuts: list[tuple[int, int]], chance: random.Random, start: int
) -> None:
    pieces = [segment_at(start + place, data[place : place + 5]) for place in range(0, len(data), 5)]
    pieces += [segment_at(start + place, data[place : place + size]) for place, size in cuts if place < len(data)]
    chance.shuffle(pieces)
    stream = TcpStream(next_sequence=start)
    found = [part for each in pieces for part in stream.feed(each)]
    assert b"".join(part for part in found if isinstance(part, bytes)) == data and GAP not in found


def test_a_hole_that_is_not_filled() -> None:
    stream = TcpStream(next_sequence=0)
    for place in range(MAX_WAITING_SEGMENTS):
        assert list(stream.feed(segment_at(10 + place, b"x"))) == []
    assert list(stream.feed(segment_at(10 + MAX_WAITING_SEGMENTS, b"x")))[:2] == [GAP, b"x"]
    assert list(stream.feed(segment_at(0, b"late"))) == []


def test_what_the_other_side_has_is_waited_for_no_longer() -> None:
    stream = TcpStream(next_sequence=0)
    assert list(stream.on_acknowledgement(5, 100)) == [] == list(stream.on_acknowledgement(5, 200))
    assert list(stream.on_acknowledgement(5, 301)) == [GAP]
    assert list(stream.feed(segment_at(5, b"on"))) == [b"on"]
    assert list(stream.on_acknowledgement(7, 1_000)) == []
