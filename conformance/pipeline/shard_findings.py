"""The rows a worker writes for a shard: violations with their schedules, counts, and states of groups."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.analysis.root_cause import violations_in
from fencepost.conformance.analysis.trace_report import TraceJudging
from fencepost.traces.events import Header
from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.history.state_history import StateHistory
from fencepost.traces.operations import PairedEvent
from fencepost.traces.pipeline.judge_corpus import Finding, Shard
from fencepost.traces.pipeline.shards import ShardJudge
from fencepost.traces.verdict import CheckStatus, TraceVerdict

MAX_SHOWN = 5
"""How many violations of a requirement are shown for one shard; all are counted."""


def shard_findings(unit: Shard, header: Header, judge: ShardJudge, moments: Iterator[PairedEvent]) -> Iterator[Finding]:
    """Judge the events of a shard and yield its findings."""
    reading = TraceJudging(Path(unit.trace), judge.judge)
    told = FindingRows(unit)
    doubts: list[str] = []
    try:
        for moment in moments:
            reading.judge_event(moment)
            yield from told.new_findings(judge.history)
    except TraceError as mistake:
        doubts.append(str(mistake))
    verdict = reading.finish() if not doubts else judge.judge.finish()
    yield from told.new_findings(judge.history)
    if unit.flaw is not None:
        doubts.append(f"{unit.flaw} is in quarantine; what comes after it is not judged")
    for doubt in (*verdict.inconclusive, *doubts):
        yield told.finding("inconclusive", {"reason": doubt})
    for stuck in judge.history.stuck_rebalances():
        yield told.finding("stuck", stuck._asdict(), time=stuck.since, group=stuck.group)
    yield from told.final_findings(header, verdict, reading)


class FindingRows:
    """Makes rows of the findings in a shard."""

    def __init__(self, unit: Shard) -> None:
        self.unit = unit

    def finding(
        self,
        kind: str,
        value: dict[str, Any],
        sequence: int | None = None,
        time: int | None = None,
        group: str | None = None,
    ) -> Finding:
        """A row with `value` as JSON."""
        named = None if group is None else group.encode("utf-8", "backslashreplace").decode("utf-8")
        return Finding(self.unit.trace, self.unit.bucket, kind, sequence, time, named, json.dumps(value))

    def new_findings(self, history: StateHistory) -> Iterator[Finding]:
        """The changes of state and the rebalances since the last call."""
        if history.state_changes:
            for change in history.state_changes:
                yield self.finding("state", change._asdict(), change.sequence, change.time, change.group)
            for round in history.rebalances:
                yield self.finding("rebalance", round._asdict(), time=round.began, group=round.group)
            history.state_changes.clear()
            history.rebalances.clear()

    def final_findings(self, header: Header, verdict: TraceVerdict, reading: TraceJudging) -> Iterator[Finding]:
        """Violations, failures of requirements, check results and counts, once the shard is over: before that, the
        judge may still take a violation back."""
        for wrong in verdict.violations:
            yield self.finding("violation", asdict(wrong), sequence=wrong.sequence, group=wrong.group)
        origin = Origin(self.unit.trace, "")
        count: Counter[str] = Counter()
        for violation in violations_in(verdict):
            count[violation.requirement] += 1
            if count[violation.requirement] <= MAX_SHOWN:
                events = reading.events_leading_to(violation)
                shown = build_failure(events, violation, origin, replayed=False, header=header)
                value = {"requirement": violation.requirement, "failure": asdict(shown)}
                group = violation.violation.group if violation.violation is not None else None
                yield self.finding("failure", value, sequence=violation.sequence, group=group)
        for mark in verdict.check_results:
            if mark.status is not CheckStatus.FAIL:
                value = {"requirement": mark.requirement, "status": mark.status.value, "note": mark.note}
                yield self.finding("check", value, sequence=mark.sequence)
        summary = {
            "source": header.source,
            "implementation": dict(header.implementation),
            "violations": dict(count),
            "rules": dict(verdict.rules),
            "transitions": {str(each): times for each, times in verdict.transitions.items()},
            "decisions": dict(verdict.decisions),
            "events": verdict.events,
            "inconclusive": len(verdict.inconclusive) + (self.unit.flaw is not None),
        }
        yield self.finding("verdict", summary)
