from dataclasses import replace

import pytest

from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.text import escape_unprintable, outcome_line, render_replay, render_report
from fencepost.conformance.results import Report, RequirementResult, Verdict
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

VIOLATED_TEXT = """\
Target: kafka://127.0.0.1:9092 (implementation made up 4.1, clock wall)

FAIL JOIN-29 MUST: Matching rejoin in CompletingRebalance
  requirement   In CompletingRebalance, a member that rejoins with identical protocols is answered
                at once with the current generation and without a rebalance; the leader gets the
                members again.
  source        GroupMetadataManagerTest
  observed      JoinGroup of A was parked
  allowed       JoinGroup of A: error 0, generation 1, members A and B
                no answer yet
  false guard   the protocols differ from the stored ones
  schedule      1. A: JoinGroup v5
                2. A: JoinGroup v5 with the id given
                3. A: JoinGroup v5, the same again
  trace         failing/JOIN-29.jsonl, event 11
  replay        fencepost replay failing/JOIN-29.jsonl bundled
  replayed      yes, it failed again
  further       1 other failure

Families
  FIND          1 pass, 2 unsupported, 1 not observed
  JOIN          1 fail, 1 pass, 1 known
  SYNC          1 inconclusive

Known deviations
  JOIN-31
    declared: leaders do not rebalance

Inconclusive
  SYNC-10
    could not be set up because of JOIN-29

Unsupported
  FIND-04, FIND-10
    needs a second node beside the coordinator of the group

Not observed
  FIND-08
    nothing in the run touched it

Notes
  JOIN-14
    answered 25 where Kafka answers -1

8 requirements: 1 fail, 2 pass, 1 known, 1 inconclusive, 2 unsupported, 1 not observed; \
12 schedules, 345 events, 1 of 2 rules seen, 6.8 s, seed 7.
NOT CONFORMANT: 1 requirement is violated.
"""

KEPT_TEXT = """\
Target: bundled

Families
  HB            1 pass

1 requirement: 1 pass; 1 schedule, 8 events, 0.0 s, seed 0.
CONFORMANT: everything that was checked is kept.
"""

NOTHING_TEXT = """\
Target: bundled

0 requirements: none; 0 schedules, 0 events, 0.0 s, seed 0.
INCONCLUSIVE: the run was cut short.
"""

STILL_FAILS_TEXT = """\
FAIL JOIN-29 MUST: Matching rejoin in CompletingRebalance
  requirement   In CompletingRebalance, a member that rejoins with identical protocols is answered
                at once with the current generation and without a rebalance; the leader gets the
                members again.
  source        GroupMetadataManagerTest
  observed      JoinGroup of A was parked
  trace         not saved, event 11
  replayed      no

STILL FAILS
"""


def test_a_report_with_every_verdict() -> None:
    assert render_report(VIOLATED) == VIOLATED_TEXT


def test_a_report_without_a_blemish() -> None:
    assert render_report(KEPT) == KEPT_TEXT


def test_a_report_of_a_run_that_was_cut_short_at_once() -> None:
    assert render_report(Report({"name": "bundled"}, 0, (), cut_short=True)) == NOTHING_TEXT


def test_colour_changes_nothing_but_colour() -> None:
    coloured = render_report(VIOLATED, colour=True)
    assert "\x1b[31mFAIL\x1b[0m JOIN-29" in coloured
    assert coloured.endswith("\x1b[31mNOT CONFORMANT: 1 requirement is violated.\x1b[0m\n")
    assert coloured.replace("\x1b[31m", "").replace("\x1b[0m", "") == VIOLATED_TEXT
    assert render_report(KEPT, colour=True).endswith(
        "\x1b[32mCONFORMANT: everything that was checked is kept.\x1b[0m\n"
    )


def test_a_target_cannot_send_control_characters_to_the_terminal() -> None:
    failure = replace(JOIN_29, observed="member \x1b[2J\r\n\x07 \ud800", schedule=("A\x1b[H",), trace="a\nb")
    result = RequirementResult("JOIN-29", Verdict.FAIL, note="\x1b", failures=(failure,))
    text = render_report(replace(KEPT, target={"name": "x\x9b1m", "y": "\x1b"}, results=(result,)))
    assert all(c == "\n" or c.isprintable() for c in text)
    assert r"member \x1b[2J\r\n\x07 \ud800" in text


def test_printable_text_is_left_alone() -> None:
    assert escape_unprintable("Gr\u00fc\u00dfe, \N{SNOWMAN} \\") == "Gr\u00fc\u00dfe, \N{SNOWMAN} \\"


@pytest.mark.parametrize(
    ("verdicts", "cut_short", "expected"),
    [
        ("fail fail", False, "NOT CONFORMANT: 2 requirements are violated."),
        ("fail", True, "NOT CONFORMANT: 1 requirement is violated. The run was cut short."),
        ("inconclusive pass", False, "INCONCLUSIVE: 1 requirement could not be decided."),
        ("inconclusive inconclusive", True, "INCONCLUSIVE: the run was cut short."),
        ("unsupported not-observed", False, "NOTHING CHECKED: no requirement was put to the test."),
        ("pass known", False, "CONFORMANT: everything that was checked is kept, apart from 1 known deviation."),
        ("known known", False, "CONFORMANT: everything that was checked is kept, apart from 2 known deviations."),
    ],
)
def test_headlines(verdicts: str, cut_short: bool, expected: str) -> None:
    results = tuple(RequirementResult("HB-05", Verdict(verdict)) for verdict in verdicts.split())
    assert outcome_line(replace(KEPT, results=results, cut_short=cut_short)) == expected


def test_a_replay_that_still_fails_shows_the_failure() -> None:
    bare = replace(JOIN_29, trace="", allowed=(), guard="", schedule=(), replay="", replayed=False)
    assert render_replay(ReplayResult(ReplayOutcome.STILL_FAILS, "JOIN-29", bare)) == STILL_FAILS_TEXT


def test_a_replay_that_is_fixed_says_no_more() -> None:
    assert render_replay(ReplayResult(ReplayOutcome.FIXED)) == "FIXED\n"
    assert render_replay(ReplayResult(ReplayOutcome.FIXED), colour=True) == "\x1b[32mFIXED\x1b[0m\n"
