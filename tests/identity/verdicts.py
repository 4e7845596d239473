"""The verdicts on the recordings of brokers, as plain data under keys that stay when classes and fields get new names.

A recording is judged in the ways in which it was judged before: some of them take long on some recordings.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import Judge, judge
from fencepost.traces.verdict import CheckResult, TraceVerdict, Violation

RECORDINGS = Path(__file__).parent / "recordings"
FROZEN_VERDICTS = Path(__file__).parent / "frozen" / "recordings.json.gz"
Plain = dict[str, Any]
"""A verdict, or a part of one, as it is in JSON."""
WAYS: dict[str, Callable[[Header, tuple[Event, ...]], TraceVerdict]] = {
    "judge": judge,
    "likely": lambda header, events: judge(header, events, eager=True),
    "stream": lambda header, events: Judge(header).judge_events(iter(events)),
}
"""By passes, as runs on a target judge, and in one, as files are judged."""


def frozen_verdicts() -> dict[str, Plain]:
    """The verdicts that are frozen, by the name of the recording and the way of judging."""
    found: dict[str, Plain] = json.loads(gzip.decompress(FROZEN_VERDICTS.read_bytes()))
    return found


def read_recording(path: Path) -> tuple[Header, tuple[Event, ...]]:
    """The header and the events of a recording."""
    header, events = open_trace(path)
    return header, tuple(events)


def verdicts_on(keys: Iterable[str]) -> Iterator[tuple[str, Plain]]:
    """The verdicts of the tree at hand on recordings that are named with a way of judging."""
    for key in keys:
        name, way = key.split()
        yield key, plain_verdict(WAYS[way](*read_recording(RECORDINGS / f"{name}.jsonl.gz")))


def recorded_verdicts() -> Iterator[tuple[str, Plain]]:
    """The verdicts on all recordings."""
    return verdicts_on(frozen_verdicts())


def plain_verdict(verdict: TraceVerdict) -> Plain:
    """The whole verdict."""
    return {
        "violations": in_order(map(plain_violation, verdict.violations)),
        "checks": in_order(map(plain_check, verdict.check_results)),
        "rules": dict(sorted(verdict.rules.items())),
        "transitions": in_order([str(each), count] for each, count in verdict.transitions.items()),
        "differences": dict(sorted(verdict.decisions.items())),
        "inconclusive": sorted(verdict.inconclusive),
        "events": verdict.events,
    }


def plain_violation(found: Violation) -> Plain:
    """A response that the model does not allow."""
    return {
        "request": found.sequence,
        "group": found.group,
        "api": found.api,
        "fields": list(found.fields),
        "observed": found.observed,
        "expected": list(found.allowed),
        "rule": found.rule,
        "requirements": list(found.requirements),
        "signature": found.kind,
        "tolerated": found.tolerated,
    }


def plain_check(result: CheckResult) -> Plain:
    """What one marked response says of one requirement."""
    return {
        "requirement": result.requirement,
        "request": result.sequence,
        "outcome": result.status.value,
        "note": result.note,
        "violation": None if result.violation is None else plain_violation(result.violation),
    }


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Rows of JSON values in an order that does not depend on how they were found."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
