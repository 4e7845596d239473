"""Mutated frames: the codec reads them all, and `fencepost serve` bears them; and one that does not is found out."""

import sys

import pytest

from fencepost.model.wire import codec
from tests.support import frame_fuzzer

FRAMES_READ, FRAMES_SENT = 12_000, 8_000
GROWTH_MIB = 60


def wrong(flaw: str) -> tuple[str, ...]:
    """A server that does `flaw` when it gets a Heartbeat."""
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


def test_the_codec_reads_whatever_comes() -> None:
    frame_fuzzer.read_all(1, FRAMES_READ)


def test_what_the_codec_does_not_bear_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(frame: bytes, most_items: int) -> None:
        frame.decode("ascii")

    monkeypatch.setattr(codec, "decode_request", fragile)
    with pytest.raises(UnicodeDecodeError):
        frame_fuzzer.read_all(1, 100)


def test_a_server_bears_mutated_frames() -> None:
    storm = frame_fuzzer.hail(1, FRAMES_SENT)
    assert storm.trouble == []
    assert storm.frames >= FRAMES_SENT
    assert min(storm.answered, storm.refused) > FRAMES_SENT // 20
    assert storm.most - storm.before < GROWTH_MIB


@pytest.mark.parametrize(
    ("flaw", "told"),
    [
        ("raise ZeroDivisionError", "an error of its own"),
        ("os._exit(3)", "it "),
        ("time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_server_that_does_not_is_found_out(flaw: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_fuzzer, "SILENCE_SECONDS", 1.0 if "sleep" in flaw else frame_fuzzer.SILENCE_SECONDS)
    storm = frame_fuzzer.hail(1, FRAMES_SENT, wrong(flaw))
    assert storm.trouble
    assert storm.trouble[0].startswith(told)
    assert storm.frames < FRAMES_SENT


def test_a_server_that_keeps_what_it_was_sent_grows() -> None:
    hoarding = "hoard = globals().setdefault('hoard', []); hoard.append(b'x' * (1 << 23))"
    storm = frame_fuzzer.hail(1, 2_500, wrong(hoarding))
    assert storm.most - storm.before > GROWTH_MIB


def test_a_client_that_goes_is_noticed_behind_a_parked_request_with_more_behind_it() -> None:
    """Fetch waits for records as long as it is told to; nobody is there any more to get them."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
    body = {
        "max_wait_ms": 2**31 - 1,
        "min_bytes": 1,
        "max_bytes": 1,
        "topics": [{"topic": "t", "partitions": partitions}],
    }
    house = frame_fuzzer.House()
    try:
        made = {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}
        assert frame_fuzzer.whole(house.talk([codec.encode_request("Metadata", 4, 1, None, made)])) == 1
        parked = codec.encode_request("Fetch", 4, 2, None, body)
        assert house.talk([parked, codec.encode_request("ApiVersions", 0, 3, None, {})]) == b""
    finally:
        house.close()
