"""The rows a worker writes for a shard: violations with their schedules, counts, and states of groups."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fencepost.conformance.analysis.trace_report import MALFORMED_ERRORS, MalformedMessageError, TraceJudging
from fencepost.conformance.pipeline.merge import FailureOfGroup, shortest_failures
from fencepost.conformance.reports.typed import to_plain
from fencepost.traces.client_judge.judge import is_recording
from fencepost.traces.events import Header, PairedEvent
from fencepost.traces.history.recordings import Ownership, StateFollower, recording_parts
from fencepost.traces.pipeline.judge_corpus import UNREADABLE, FoundInShard, ShardJudge, unreadable_value
from fencepost.traces.pipeline.shard_plan import Shard
from fencepost.traces.verdict import CheckStatus, TraceVerdict

MAX_SHOWN = 5
"""How many violations of a requirement are shown for one shard; all are counted."""
FOUND_AT_THE_END = 1 << 62
"""The place of a violation that came to light once the trace was over, and of what has no place."""


def shard_findings(
    shard: Shard, header: Header, judge: ShardJudge, moments: Iterator[PairedEvent]
) -> Iterator[FoundInShard]:
    """Judge the events of a shard and yield its findings."""
    judging = TraceJudging(Path(shard.trace), judge.judge, later=moments)
    parts = recording_parts()
    owners = parts.owners(judge.owns_group) if is_recording(header) else None
    judging.members = parts.members(header, judge.owns_group) if is_recording(header) else None
    rows = FindingRows(shard)
    try:
        for moment in moments:
            judging.judge_event(moment)
            yield from rows.new_findings(judge.history)
            yield from rows.periods(owners.on_event(*moment) if owners is not None else ())
        verdict = judging.finish()
    except MalformedMessageError as error:
        yield rows.unreadable(error.reason, error.sequence)
        return
    except MALFORMED_ERRORS as error:
        yield rows.unreadable(f"the judge cannot go on: {type(error).__name__}: {error}", FOUND_AT_THE_END)
        return
    yield from rows.new_findings(judge.history)
    yield from rows.periods(owners.finish() if owners is not None else ())
    for doubt in verdict.inconclusive:
        yield rows.finding("inconclusive", {"reason": doubt})
    for stuck in judge.history.stuck_rebalances():
        yield rows.finding("stuck", stuck._asdict(), time=stuck.since, group=stuck.group)
    yield from rows.final_findings(header, verdict, judging, judge.own_events)
    yield from rows.member_findings(judging)


class FindingRows:
    """Makes rows of the findings in a shard."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def finding(
        self,
        kind: str,
        value: dict[str, Any],
        sequence: int | None = None,
        time: int | None = None,
        group: str | None = None,
    ) -> FoundInShard:
        """A row with `value` as JSON."""
        named = None if group is None else group.encode("utf-8", "backslashreplace").decode("utf-8")
        return FoundInShard(self.shard.trace, self.shard.bucket, kind, sequence, time, named, json.dumps(value))

    def unreadable(self, reason: str, sequence: int) -> FoundInShard:
        """The row of a trace that cannot be judged, because of the event with this sequence number."""
        value = unreadable_value(self.shard, 0, reason, sequence)
        return FoundInShard(self.shard.trace, self.shard.bucket, UNREADABLE, None, None, None, value)

    def new_findings(self, history: StateFollower) -> Iterator[FoundInShard]:
        """The changes of state and the rebalances since the last call."""
        if history.state_changes:
            for change in history.state_changes:
                yield self.finding("state", change._asdict(), change.sequence, change.time, change.group)
            for round in history.rebalances:
                yield self.finding("rebalance", round._asdict(), time=round.began, group=round.group)
            history.state_changes.clear()
            history.rebalances.clear()

    def periods(self, periods: Iterable[Ownership]) -> Iterator[FoundInShard]:
        """The periods in which members had partitions, that are over."""
        for each in periods:
            value = {name: told for name, told in asdict(each).items() if name not in ("group", "sequence")}
            yield self.finding("ownership", value, each.sequence, each.since, each.group)

    def final_findings(
        self, header: Header, verdict: TraceVerdict, judging: TraceJudging, events: int
    ) -> Iterator[FoundInShard]:
        """Violations, failures of requirements, check results and counts, once the shard is over: before that, the
        judge may still take a violation back. `events` are those of this shard alone."""
        for wrong in verdict.violations:
            yield self.finding("violation", asdict(wrong), sequence=wrong.sequence, group=wrong.group)
        count: Counter[str] = Counter()
        failures: list[FailureOfGroup] = []
        for number, (violation, failure) in enumerate(judging.failures(verdict)):
            count[violation.requirement] += 1
            found_at = judging.found_at.get(violation.sequence, FOUND_AT_THE_END)
            group = violation.violation.group if violation.violation is not None else None
            if failure.trace == str(judging.path):
                failure = replace(failure, trace=self.shard.trace)  # a URI is no path
            rank = (int(violation.violation is not None and not violation.is_checked), found_at, number)
            failures.append(FailureOfGroup(violation.requirement, rank, failure, group))
        for each in shortest_failures(failures, MAX_SHOWN):
            value = {"requirement": each.requirement, "rank": each.rank, "failure": to_plain(each.failure)}
            yield self.finding("failure", value, sequence=each.failure.step, group=each.group)
        for number, mark in enumerate(verdict.check_results):
            if mark.status is not CheckStatus.FAIL:
                words = {"requirement": mark.requirement, "status": mark.status.value, "note": mark.note}
                value = {**words, "rank": number}
                yield self.finding("check", value, sequence=mark.sequence)
        summary = {
            "subject": judging.judge.protocol.specification.subject,
            "source": header.source,
            "implementation": dict(header.implementation),
            "violations": dict(count),
            "rules": dict(verdict.rules),
            "transitions": {str(each): times for each, times in verdict.transitions.items()},
            "decisions": dict(verdict.decisions),
            "events": events,
            "files": self.shard.files,
            "inconclusive": len(verdict.inconclusive),
        }
        yield self.finding("verdict", summary)

    def member_findings(self, judging: TraceJudging) -> Iterator[FoundInShard]:
        """What the members of a recording kept, broke and did wrong."""
        checks = judging.member_checks()
        if checks is None:
            return
        failures = (
            FailureOfGroup(requirement, (number,), failure)
            for number, (requirement, failure) in enumerate(judging.member_failures)
        )
        for each in shortest_failures(failures, MAX_SHOWN):
            shown = replace(each.failure, trace=self.shard.trace)  # a URI is no path
            value = {"requirement": each.requirement, "rank": each.rank, "failure": to_plain(shown)}
            yield self.finding("member-failure", value, sequence=shown.step)
        yield self.finding("members", {id: asdict(each) for id, each in checks.items()})
