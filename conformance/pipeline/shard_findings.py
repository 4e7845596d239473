"""What a worker says of a unit: violations as people read them, counts, and the states of its groups."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fencepost.conformance.analysis.aggregation import Origin, failure
from fencepost.conformance.analysis.root_cause import violations
from fencepost.conformance.analysis.trace_report import Reading
from fencepost.traces.events import Header
from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.operations import Moment
from fencepost.traces.pipeline.judge_corpus import Finding, Unit
from fencepost.traces.pipeline.shards import LookupJudge, UnitJudge
from fencepost.traces.verdict import Standing, TraceVerdict

SHOWN = 5
"""How many violations of a requirement are shown of one unit; all are counted."""


def opinion(unit: Unit, header: Header, judge: UnitJudge | LookupJudge, moments: Iterator[Moment]) -> Iterator[Finding]:
    """Have the events of a unit judged, and say what came of it."""
    reading = Reading(Path(unit.trace), judge)
    told = Telling(unit)
    doubts: list[str] = []
    changes = judge.changes if isinstance(judge, UnitJudge) else ()
    try:
        for moment in moments:
            reading.take(moment)
            if changes:
                yield from told.news(judge)
    except TraceError as mistake:
        doubts.append(str(mistake))
    verdict = reading.finish() if not doubts else judge.finish()
    yield from told.news(judge)
    if unit.flawed is not None:
        doubts.append(f"{unit.flawed} is in quarantine; what comes after it is not judged")
    for doubt in (*verdict.inconclusive, *doubts):
        yield told.finding("inconclusive", {"reason": doubt})
    if isinstance(judge, UnitJudge):
        for stuck in judge.stuck():
            yield told.finding("stuck", stuck._asdict(), time=stuck.since, group=stuck.group)
    yield from told.conclusion(header, verdict, reading)


class Telling:
    """Puts into rows what is found in a unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def finding(
        self,
        kind: str,
        value: dict[str, Any],
        sequence: int | None = None,
        time: int | None = None,
        group: str | None = None,
    ) -> Finding:
        """A row."""
        named = None if group is None else group.encode("utf-8", "backslashreplace").decode("utf-8")
        return Finding(self.unit.trace, self.unit.bucket, kind, sequence, time, named, json.dumps(value))

    def news(self, judge: UnitJudge | LookupJudge) -> Iterator[Finding]:
        """What was seen since last time."""
        if isinstance(judge, UnitJudge) and judge.changes:
            for change in judge.changes:
                yield self.finding("state", change._asdict(), change.sequence, change.time, change.group)
            for round in judge.rebalances:
                yield self.finding("rebalance", round._asdict(), time=round.began, group=round.group)
            judge.changes.clear()
            judge.rebalances.clear()

    def conclusion(self, header: Header, verdict: TraceVerdict, reading: Reading) -> Iterator[Finding]:
        """Faults, violations, evidence and counts, once the unit is over: until then a fault may be withdrawn."""
        for fault in verdict.faults:
            yield self.finding("fault", asdict(fault), sequence=fault.sequence, group=fault.group)
        origin = Origin(self.unit.trace, "")
        count: Counter[str] = Counter()
        for violation in violations(verdict):
            count[violation.requirement] += 1
            if count[violation.requirement] <= SHOWN:
                shown = failure(reading.schedule(violation), violation, origin, replayed=False)
                value = {"requirement": violation.requirement, "failure": asdict(shown)}
                group = violation.fault.group if violation.fault is not None else None
                yield self.finding("violation", value, sequence=violation.sequence, group=group)
        for mark in verdict.evidence:
            if mark.standing is not Standing.FAIL:
                value = {"requirement": mark.requirement, "standing": mark.standing.value, "note": mark.note}
                yield self.finding("evidence", value, sequence=mark.sequence)
        summary = {
            "source": header.source,
            "implementation": dict(header.implementation),
            "violations": dict(count),
            "rules": dict(verdict.rules),
            "transitions": {str(each): times for each, times in verdict.transitions.items()},
            "decisions": dict(verdict.decisions),
            "events": verdict.events,
            "inconclusive": len(verdict.inconclusive) + (self.unit.flawed is not None),
        }
        yield self.finding("verdict", summary)
