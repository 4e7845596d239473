"""The verdict of the tree at hand as plain data, under keys that stay when classes and fields get new names."""

import json
from collections.abc import Iterable
from typing import Any

from fencepost.traces.verdict import CheckResult, TraceVerdict, Violation

Plain = dict[str, Any]
"""A verdict, or a part of one, as it is in JSON."""


def canonical(verdict: TraceVerdict) -> Plain:
    """The whole verdict."""
    return {
        "violations": in_order(map(violation, verdict.violations)),
        "checks": in_order(map(check, verdict.check_results)),
        "rules": dict(sorted(verdict.rules.items())),
        "transitions": in_order([str(each), count] for each, count in verdict.transitions.items()),
        "differences": dict(sorted(verdict.decisions.items())),
        "inconclusive": sorted(verdict.inconclusive),
        "events": verdict.events,
    }


def violation(found: Violation) -> Plain:
    """An answer that the model does not allow."""
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


def check(result: CheckResult) -> Plain:
    """What one marked answer says of one requirement."""
    return {
        "requirement": result.requirement,
        "request": result.sequence,
        "outcome": result.status.value,
        "note": result.note,
        "violation": None if result.violation is None else violation(result.violation),
    }


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Rows of JSON values in an order that does not depend on how they were found."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
