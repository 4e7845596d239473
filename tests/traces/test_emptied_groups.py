"""Groups that OffsetDelete leaves without offsets: the older coordinator removes them at once (DIV-12)."""

from pathlib import Path

from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge

TRACE = Path(__file__).parent / "regressions" / "group-removed-with-its-last-offset.jsonl.gz"
"""A random schedule on Apache Kafka 3.9: a clean-up pass removes the group again less than a period later."""


def test_a_clean_up_pass_may_follow_at_any_time() -> None:
    header, events = open_trace(TRACE)
    verdict = judge(header, tuple(events))
    assert (verdict.violations, verdict.inconclusive) == ((), ())


def test_on_a_target_that_keeps_such_groups_it_is_a_violation() -> None:
    header, events = open_trace(TRACE)
    assert judge(header, tuple(events), {"emptied_group_stays": True}).violations
