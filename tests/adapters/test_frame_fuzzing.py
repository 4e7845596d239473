"""Mutated frames: the codec reads them all, and `fencepost serve` bears them; and one that does not is found out."""

import sys

import pytest

from fencepost.model.wire import codec
from tests.support import frame_fuzzer

FRAMES_READ, FRAMES_SENT = 12_000, 8_000
GROWTH_MIB = 60


def faulty_server(flaw: str) -> tuple[str, ...]:
    """A server that does `reason` when it gets a Heartbeat."""
    lines = (
        "import os, time",
        "from fencepost.adapters.serve.server import Server",
        "from fencepost.conformance.cli import main",
        "handle = Server._handle",
        "def stumbling(server, request, node, host):",
        f"    if request.api == 'Heartbeat': {flaw}",
        "    return handle(server, request, node, host)",
        "Server._handle = stumbling",
        "main(['serve', '--port', '0'])",
    )
    return (sys.executable, "-c", "\n".join(lines))


def test_codec_reads_mutated_frames() -> None:
    frame_fuzzer.fuzz_codec(1, FRAMES_READ)


def test_codec_failure_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(frame: bytes, most_items: int) -> None:
        frame.decode("ascii")

    monkeypatch.setattr(codec, "decode_request", fragile)
    with pytest.raises(UnicodeDecodeError):
        frame_fuzzer.fuzz_codec(1, 100)


@pytest.mark.slow
def test_server_survives_mutated_frames() -> None:
    storm = frame_fuzzer.fuzz_server(1, FRAMES_SENT)
    assert storm.problems == []
    assert storm.frames >= FRAMES_SENT
    assert min(storm.answered, storm.refused) > FRAMES_SENT // 20
    assert storm.peak_mib - storm.initial_mib < GROWTH_MIB


@pytest.mark.parametrize(
    ("flaw", "told"),
    [
        ("raise ZeroDivisionError", "an error of its own"),
        ("os._exit(3)", "it "),
        ("time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_faulty_server_is_reported(flaw: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_fuzzer, "RESPONSE_TIMEOUT_S", 1.0 if "sleep" in flaw else frame_fuzzer.RESPONSE_TIMEOUT_S)
    storm = frame_fuzzer.fuzz_server(1, FRAMES_SENT, faulty_server(flaw))
    assert storm.problems
    assert storm.problems[0].startswith(told)
    assert storm.frames < FRAMES_SENT


def test_leaking_server_is_measured() -> None:
    hoarding = "hoard = globals().setdefault('hoard', []); hoard.append(b'x' * (1 << 23))"
    storm = frame_fuzzer.fuzz_server(1, 2_500, faulty_server(hoarding))
    assert storm.peak_mib - storm.initial_mib > GROWTH_MIB


def test_disconnect_is_noticed_behind_a_parked_request() -> None:
    """Fetch waits for records as long as it is told to; nobody is there any more to get them."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
    body = {
        "max_wait_ms": 2**31 - 1,
        "min_bytes": 1,
        "max_bytes": 1,
        "topics": [{"topic": "t", "partitions": partitions}],
    }
    house = frame_fuzzer.ServerProcess()
    try:
        made = {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}
        assert (
            frame_fuzzer.count_frames(house.exchange_frames([codec.encode_request("Metadata", 4, 1, None, made)])) == 1
        )
        parked = codec.encode_request("Fetch", 4, 2, None, body)
        assert house.exchange_frames([parked, codec.encode_request("ApiVersions", 0, 3, None, {})]) == b""
    finally:
        house.close()
