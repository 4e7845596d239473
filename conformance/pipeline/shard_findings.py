"""The rows a worker writes for a shard: violations with their schedules, counts, and the story of its groups."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fencepost.conformance.analysis.trace_report import MALFORMED_ERRORS, MalformedMessageError, TraceJudging
from fencepost.conformance.pipeline.merge import FailureOfGroup, shortest_failures
from fencepost.conformance.reports.typed import to_plain
from fencepost.traces.client_judge.judge import is_recording
from fencepost.traces.events import Header, PairedEvent
from fencepost.traces.history.recordings import recording_parts
from fencepost.traces.pipeline.judge_corpus import UNREADABLE, Found, FoundInShard, ShardJudge, unreadable_value
from fencepost.traces.pipeline.rows import WHOLE_TRACE
from fencepost.traces.pipeline.shard_plan import Shard
from fencepost.traces.pipeline.story import StoryTeller
from fencepost.traces.verdict import CheckStatus, TraceVerdict

MAX_SHOWN = 5
"""How many violations of a requirement are shown for one shard; all are counted."""
FOUND_AT_THE_END = 1 << 62
"""The place of a violation that came to light once the trace was over, and of what has no place."""


def shard_findings(shard: Shard, header: Header, judge: ShardJudge, moments: Iterator[PairedEvent]) -> Iterator[Found]:
    """Judge the events of a shard and yield its findings, and the story of its groups."""
    judging = TraceJudging(Path(shard.trace), judge.judge, judge.recorder, later=moments)
    parts = recording_parts()
    owners = parts.owners(judge.owns_group) if is_recording(header) else None
    judging.members = parts.members(header, judge.owns_group) if is_recording(header) else None
    rows, teller = FindingRows(shard), StoryTeller.of(shard.trace, header)
    times: dict[int, int] = {}
    try:
        for moment in moments:
            judging.judge_event(moment)
            for fault in judge.judge.found[len(times) :]:
                times.setdefault(fault.sequence, moment.event.time)
            yield from (teller.tell(*told) for told in judge.take_story())
            for period in owners.on_event(*moment) if owners is not None else ():
                yield from teller.ownership(period)
        verdict = judging.finish()
    except MalformedMessageError as error:
        yield rows.unreadable(error.reason, error.sequence)
        return
    except MALFORMED_ERRORS as error:
        yield rows.unreadable(f"the judge cannot go on: {type(error).__name__}: {error}", FOUND_AT_THE_END)
        return
    if judge.recorder is not None:
        judge.recorder.finish()
    yield from (teller.tell(*told) for told in judge.take_story())
    for period in owners.finish() if owners is not None else ():
        yield from teller.ownership(period)
    for doubt in verdict.inconclusive:
        yield rows.finding("inconclusive", {"reason": doubt})
        yield teller.note("inconclusive", doubt)
    for wrong in verdict.violations:
        words = (", ".join(wrong.requirements) or None, wrong.api, wrong.title or wrong.guard, wrong.observed)
        place = wrong.sequence, times.get(wrong.sequence)
        yield teller.finding("violation", *place, wrong.group or None, *words, " or ".join(wrong.allowed))
    for requirement, failure in judging.member_failures:
        told = (failure.title or failure.guard, failure.observed, " or ".join(failure.allowed))
        yield teller.finding("member-failure", failure.step, None, None, requirement, None, *told)
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

    def final_findings(
        self, header: Header, verdict: TraceVerdict, judging: TraceJudging, events: int
    ) -> Iterator[FoundInShard]:
        """Failures of requirements, check results and counts, once the shard is over: before that, the judge may still
        take a violation back. `events` are those of this shard alone."""
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
        is_whole = self.shard.bucket == WHOLE_TRACE and not self.shard.unread
        summary = {
            "subject": judging.judge.protocol.specification.subject,
            "source": header.source,
            "implementation": judging.implementation() if is_whole else dict(header.implementation),
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
