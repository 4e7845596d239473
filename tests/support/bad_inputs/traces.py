"""Traces and saved reports with a mistake, each in one place."""

import gzip
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from tests.support.bad_inputs.bad_input import SAMPLES, BadInput, join_lines

# --- Traces with a mistake: in their bytes, in their lines, in each key of the header and of events, in bodies.

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


# --- Saved reports with a mistake, as JSON and as pages.

CHANGES: dict[str, tuple[tuple[str | int, ...], object]] = {
    "a newer version": (("fencepost",), 3),
    "an older version": (("fencepost",), 1),
    "a version in words": (("fencepost",), "2"),
    "a version that is true": (("fencepost",), True),
    "seed in words": (("seed",), "zero"),
    "seconds below 0": (("seconds",), -1),
    "events below 0": (("events",), -1),
    "rules that are a list": (("rules",), []),
    "rules with a count in words": (("rules", "x"), "many"),
    "requirements that are an object": (("requirements",), {}),
    "requirements that are none": (("requirements",), []),
    "a requirement that is a text": (("requirements", 0), "JOIN-29"),
    "an unknown requirement": (("requirements", 0, "id"), "JOIN-999"),
    "an unknown verdict": (("requirements", 0, "verdict"), "excellent"),
    "a better verdict": (("requirements", 1, "verdict"), "pass"),
    "a sentence of somebody else": (("requirements", 0, "sentence"), "anything goes"),
    "checks below 0": (("requirements", 0, "checks"), -1),
    "a better exit code": (("outcome", "exit_code"), 0),
    "another headline": (("outcome", "headline"), "CONFORMANT"),
    "other counts": (("outcome", "verdicts", "pass"), 302),
    "no causes": (("causes",), []),
    "a target without a name": (("target",), {}),
    "a target that is a text": (("target",), "x"),
    "an unknown key": (("colour",), "red"),
    "an end of an unknown kind": (("ended",), {"kind": "bored"}),
    "undecided that is a text": (("undecided",), "nothing"),
    "an end that is nothing": (("ended",), "x"),
}
"""Where in the document, and the value put there."""


def changed_documents() -> Iterator[tuple[str, Any]]:
    """The report with one thing changed, or one of its keys missing."""
    for name, (path, value) in CHANGES.items():
        document = deepcopy(SAMPLES.report)
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        yield name, document
    for key in ("fencepost", "target", "outcome", "requirements", "rules", "seed", "kit"):
        if key in SAMPLES.report:
            yield f"without {key}", {name: value for name, value in SAMPLES.report.items() if name != key}
    twice = deepcopy(SAMPLES.report)
    twice["requirements"].append(twice["requirements"][0])
    yield "a requirement twice", twice


def bad_texts() -> Iterator[tuple[str, bytes]]:
    """Files that are no JSON."""
    good = json.dumps(SAMPLES.report).encode()
    yield "empty", b""
    yield "cut off", good[:-100]
    yield "byte order mark", b"\xef\xbb\xbf" + good
    yield "UTF-16", good.decode().encode("utf-16")
    yield "Latin-1", b'{"fencepost": 2, "x": "\xe4"}'
    yield "null bytes", b"\0" * 100
    yield "a list", b"[]"
    yield "a number", b"2"
    yield "deep nesting", b"[" * 100_000
    yield "a number of 6000 digits", b'{"fencepost": ' + b"9" * 6_000 + b"}"
    yield "not a number", good.replace(b'"seed": 7', b'"seed": NaN')
    yield "another program's", b'{"tests": [], "version": "1.0"}'


def bad_pages() -> Iterator[tuple[str, bytes]]:
    """Files that are no page of a report."""
    yield "empty", b""
    yield "another page", b"<!DOCTYPE html><title>x</title>"
    page = SAMPLES.page
    yield "cut off", page[: len(page) // 2].encode()
    yield "with JSON that is none", page.replace('id="report">{', 'id="report">').encode()
    yield "with another report", page.replace('{"fencepost":2', '{"fencepost":9').encode()


def bad_reports() -> Iterator[BadInput]:
    """Each mistake, shown or compared."""
    good = json.dumps(SAMPLES.report).encode()
    mistakes = [(name, json.dumps(document).encode()) for name, document in changed_documents()]
    for number, (name, content) in enumerate([*mistakes, *bad_texts()]):
        words = ("report", "r.json") if number % 2 else ("report", "good.json", "--compare", "r.json")
        yield BadInput(f"report: {name}", words, "r.json", {"r.json": content, "good.json": good})
    for name, content in bad_pages():
        yield BadInput(f"page: {name}", ("report", "r.html"), "r.html", {"r.html": content})
    files = {"good.json": good}
    yield BadInput("report: not there", ("report", "r.json"), "r.json")
    yield BadInput(
        "report: the older one is not there", ("report", "good.json", "--compare", "r.json"), "r.json", files
    )
    yield BadInput("report: a folder", ("report", "r.json"), "r.json", {"r.json/x": b""})
    several = ("report", "good.json", "good.json", "--junit", "j.xml")
    yield BadInput("report: several as JUnit", several, "--junit", files)
    yield BadInput("report: several compared", (*several[:3], "--compare", "good.json"), "--compare", files)
