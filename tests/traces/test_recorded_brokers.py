"""Traces that were recorded on kfake, whose wrong responses were held against its source by hand."""

from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

KFAKE = Path(__file__).parent / "data" / "kfake"


def judge_recorded(name: str) -> TraceVerdict:
    """The verdict on a trace of kfake."""
    header, events = open_trace(KFAKE / f"{name}.jsonl")
    return judge(header, list(events))


@pytest.mark.parametrize(
    ("trace", "sequence", "requirements", "rule"),
    [
        # Whoever leaves is forgotten with the JoinGroup that waits for its end.
        ("leave-answers-the-parked-join", 15, ("LEAVE-09",), "leave.member"),
        ("nobody-came", 7, ("LEAVE-09",), "leave.member"),
        # A session runs out while its JoinGroup or SyncGroup is parked.
        ("parked-join-protects-the-session", 15, ("TIMER-03",), "join.unknown-member"),
        ("parked-sync-protects-the-session", 11, ("TIMER-04",), "sync.unknown-member"),
        # A clean-up pass has removed the Empty group, and kfake answers GROUP_ID_NOT_FOUND for one that is not there.
        ("static-session-expiry", 5, ("HB-02",), "heartbeat.unknown-group"),
        ("fetches-do-not-extend-the-session", 23, ("FETCH-03",), "fetch.unknown-group"),
        # It has no place for that error in version 0, and leaves the partitions out.
        ("fetch-in-version-0", 1, ("FETCH-03",), "fetch.unknown-group"),
        # The instance id alone says who leaves.
        ("leave-with-another-instance-id", 9, ("LEAVE-15",), "leave.nobody"),
        # Nobody waits for the owners of pending ids.
        ("pending-id-holds-up-the-phase", 9, ("JOIN-28",), "join.stable.leader"),
        # In version 0 the session timeout does not count. The judge does not take the request to have been on its way
        # until the other member was gone.
        ("version-0-ends-early", 5, ("JOIN-26",), "join.new"),
        # A commit was refused as if the group were gone, which it may have been by a clean-up pass, and was not.
        ("join-after-a-refused-commit", 9, (), "timer.initial-delay"),
    ],
)
def test_what_kfake_does_wrong_is_charged_to_what_it_breaks(
    trace: str, sequence: int, requirements: tuple[str, ...], rule: str
) -> None:
    first, *_ = judge_recorded(trace).violations
    assert (first.sequence, first.requirements, first.rule) == (sequence, requirements, rule)


def test_a_response_without_any_error_code_decides_nothing_and_excuses_nothing() -> None:
    verdict = judge_recorded("fetch-in-version-0")
    assert "keeps_version_0" not in verdict.decisions
    assert verdict.inconclusive == ()


def test_a_group_that_was_removed_is_followed_on() -> None:
    verdict = judge_recorded("fetches-do-not-extend-the-session")
    assert {violation.requirements for violation in verdict.violations} == {("FETCH-03",), ("HB-02",)}
