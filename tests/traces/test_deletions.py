"""Deletions on the older coordinator of Apache Kafka: what goes with the last offset, and what a failover brings back.

The traces are random schedules on Apache Kafka 3.9.
"""

from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

REGRESSIONS = Path(__file__).parent / "regressions"
CASES = {
    "group-removed-with-its-last-offset": "emptied_group_stays",
    "deleted-offset-comes-back": "deleted_offsets_stay_deleted",
    "offset-of-a-deleted-group-comes-back": "deleted_offsets_stay_deleted",
}
"""By trace, the difference of the two coordinators that it shows."""


def judge_regression(name: str, decisions: dict[str, bool]) -> TraceVerdict:
    """The verdict on a trace, with some differences settled."""
    header, events = open_trace(REGRESSIONS / f"{name}.jsonl.gz")
    return judge(header, tuple(events), decisions, eager=True)


@pytest.mark.parametrize("name", CASES)
def test_it_is_told_from_what_it_looks_like(name: str) -> None:
    verdict = judge_regression(name, {})
    assert (verdict.violations, verdict.inconclusive) == ((), ())


@pytest.mark.parametrize(("name", "difference"), CASES.items())
def test_of_a_target_that_is_as_the_newer_one_it_is_a_violation(name: str, difference: str) -> None:
    assert judge_regression(name, {difference: True}).violations
