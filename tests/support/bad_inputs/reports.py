"""Saved reports with a mistake, as JSON and as pages."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.support.bad_inputs.bad_input import BadInput
from tests.support.bad_inputs.samples import SAMPLES

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
