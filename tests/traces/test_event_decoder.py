"""Lines in words that were decoded before are decoded as any other line is."""

import random
from dataclasses import replace

import pytest

from fencepost.traces.events import Event
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, encode_event
from fencepost.traces.files.trace_files import MAX_REMEMBERED_BYTES, EventDecoder
from tests.support.random_client import random_trace

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
