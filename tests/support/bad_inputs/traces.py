"""Traces with a mistake: in their bytes, in their lines, in each key of the header and of events, in bodies."""

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.bad_inputs.bad_input import BadInput
from tests.support.bad_inputs.samples import SAMPLES, join_lines

COMMANDS = (("judge", "t.jsonl"), ("replay", "t.jsonl", "bundled"), ("report", "t.jsonl"))
WRONG: Mapping[str, object] = {"missing": None, "null": None, "a list": [], "true": True, "a text": "x", "below 0": -1}
"""Values that hardly a key has. A key that is "missing" is left out."""
TEXTS = {"source", "clock", "member", "api", "kind", "order"}
NUMBERS = {"sequence", "time", "connection", "version", "grace", "fencepost_trace", "of"}
BODIES: Mapping[str, Mapping[str, object]] = {
    "without a group": {"group_id": "MISSING"},
    "with a group that is a number": {"group_id": 1},
    "with a group that is an object": {"group_id": {}},
    "with a generation in words": {"generation_id": "one"},
    "with a generation beyond 32 bits": {"generation_id": 1 << 40},
    "with an unknown field": {"colour": "red"},
    "with bad base64": {"group_id": {"base64": "!"}},
    "without a member": {"member_id": "MISSING"},
}


def bad_bytes() -> Iterator[tuple[str, bytes]]:
    """Files that are no trace at all."""
    trace, compressed = SAMPLES.trace, SAMPLES.trace_gz
    yield "empty", b""
    yield "one line break", b"\n"
    yield "null bytes", b"\0" * 100
    yield "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    yield "plain words", b"hello\n"
    yield "byte order mark", b"\xef\xbb\xbf" + trace
    yield "UTF-16", trace.decode().encode("utf-16")
    yield "UTF-32", trace.decode().encode("utf-32")
    yield "Latin-1 inside", trace.replace(b'"A"', b'"\xe4"')
    yield "gzip cut off", compressed[:-12]
    yield "gzip with a wrong checksum", compressed[:-8] + b"\0" * 8
    yield "gzip with damaged data", compressed[:30] + b"\xff" * 20 + compressed[50:]
    yield "gzip of nothing", gzip.compress(b"")
    yield "gzip twice", gzip.compress(compressed)
    yield "only the magic of gzip", b"\x1f\x8b"
    yield "cut within a line", trace[:-20]
    yield "one JSON array", b"[" + b",".join(trace.splitlines()) + b"]"
    yield "single quotes", trace.replace(b'"', b"'")
    yield "not a number", trace.replace(b'"time": 1', b'"time": NaN')
    yield "infinity", trace.replace(b'"time": 1', b'"time": Infinity')
    yield "a key twice", trace.replace(b'"time": 1', b'"time": 1, "time": 1')
    yield "a number of 6000 digits", trace.replace(b'"time": 4', b'"time": ' + b"9" * 6_000)
    yield "deep nesting", trace.replace(b'"fields": []', b'"fields": ' + b"[" * 20_000 + b"]" * 20_000)


def bad_lines() -> Iterator[tuple[str, bytes]]:
    """Lines in a wrong order or number."""
    header, events = SAMPLES.header, SAMPLES.events
    yield "without its header", join_lines(*events)
    yield "two headers", join_lines(header, header, *events)
    yield "header last", join_lines(*events, header)
    yield "an empty line", join_lines(header) + b"\n" + join_lines(*events)
    yield "a line twice", join_lines(header, events[0], events[0])
    yield "response first", join_lines(header, events[1])
    yield "response twice", join_lines(header, *events[:2], {**events[1], "sequence": 2, "time": 2})
    yield "response to another API", join_lines(header, events[0], {**events[1], "api": "SyncGroup"})
    yield "response to an event that is to come", join_lines(header, events[0], {**events[1], "of": 7})
    yield "time that falls", join_lines(header, {**events[0], "time": 9}, events[1])
    yield "response without its request's number", join_lines(header, events[0], _without(events[1], "of"))
    yield "request that answers", join_lines(header, events[0], {**events[3], "of": 0})
    yield "a newer format", join_lines({**header, "fencepost_trace": 2}, *events)
    yield "an unknown kind", join_lines(header, {**events[0], "kind": "answer"})
    yield "an unknown order", join_lines({**header, "order": "random"}, *events)
    yield "an unknown key of the header", join_lines({**header, "colour": "red"}, *events)
    yield "an unknown key of an event", join_lines(header, {**events[0], "colour": "red"})
    yield "an unknown setting", join_lines({**header, "settings": {"colour": 1}}, *events)
    yield "a setting in words", join_lines({**header, "settings": {"max_group_size": "6"}}, *events)
    yield "a check of nothing", join_lines(header, *events[:2], {**events[2], "body": {}})
    yield "a version that Kafka does not have", join_lines(header, {**events[0], "version": 99}, *events[1:])


def bad_values() -> Iterator[tuple[str, bytes]]:
    """Each key of the header and of an event, missing or with a value of another type."""
    header, events = SAMPLES.header, SAMPLES.events
    for key in header:
        for name, line in _spoilt(header, key):
            yield f"header with {key} {name}", join_lines(line, *events)
    for key in events[1]:
        for name, line in _spoilt(events[1], key):
            yield f"event with {key} {name}", join_lines(header, events[0], line)


def bad_bodies() -> Iterator[tuple[str, bytes]]:
    """Requests that are not as their schema says."""
    header, events = SAMPLES.header, SAMPLES.events
    for name, change in BODIES.items():
        body = {key: value for key, value in {**events[0]["body"], **change}.items() if value != "MISSING"}
        yield f"request {name}", join_lines(header, {**events[0], "body": body}, *events[1:])


def _spoilt(line: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in WRONG.items():
        if name == "missing":
            yield name, _without(line, key)
        elif not _fits(key, value):
            yield name, {**line, key: value}


def _fits(key: str, value: object) -> bool:
    """Whether a value may be one of the key's."""
    if key in TEXTS:
        return isinstance(value, str)
    if key in NUMBERS:
        return type(value) is int and (value >= 0 or key == "version")  # -1: the bytes were too few
    return isinstance(value, dict)


def _without(line: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != key}


def bad_traces() -> Iterator[BadInput]:
    """Each mistake with one of the commands, in turn."""
    mistakes = [*bad_bytes(), *bad_lines(), *bad_values(), *bad_bodies()]
    for number, (name, content) in enumerate(mistakes):
        words = COMMANDS[number % 3]
        yield BadInput(f"trace of {words[0]}: {name}", words, "t.jsonl", {"t.jsonl": content})
    for words in COMMANDS:
        yield BadInput(f"trace of {words[0]}: not there", words, "t.jsonl")
    yield BadInput("trace of judge: an empty folder", ("judge", "folder"), "folder", {"folder/notes.txt": b"x"})
    yield BadInput("trace of report: an empty folder", ("report", "folder"), "folder", {"folder/notes.txt": b"x"})
    yield BadInput("trace of replay: a folder", ("replay", "folder", "bundled"), "folder", {"folder/t.jsonl": b""})
    only_header = {"t.jsonl": join_lines(SAMPLES.header)}
    yield BadInput("trace of replay: a header alone", ("replay", "t.jsonl", "bundled"), "t.jsonl", only_header)
