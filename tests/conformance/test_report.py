from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import run
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.layout import escape_unprintable
from fencepost.conformance.reports.report import render_replay, render_report
from fencepost.conformance.reports.words import fold_ids, outcome_line
from fencepost.conformance.results import ExitCode, Report, RequirementResult, Scope, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.traces.verdict import UNCLASSIFIED, FieldDifference
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

((METHOD, ADDRESS),) = DEFAULT_SPECIFICATION.links_of("JOIN-29")
VIOLATED_TEXT = f"""\
Target: kafka://127.0.0.1:9092 (implementation made up 4.1, clock wall)

FAIL JOIN-29 MUST: Matching rejoin in CompletingRebalance
  JoinGroup response has the wrong generation_id
  expected      generation_id = 1
  observed      generation_id = -1
  requirement   In CompletingRebalance, a member that rejoins with identical protocols is answered
                at once with the current generation and without a rebalance; the leader gets the
                members again.
  source        {METHOD}, {ADDRESS}
  model         answers NONE, since a member asks again (rule join.completing.same-protocols)
  state         Completing, generation 1, members A, B
  schedule      1. A: JoinGroup v5
                2. A: JoinGroup v5 with the id given
                3. A: JoinGroup v5, the same again   <-- wrong response
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

8 requirements: 1 fail, 2 pass, 1 known, 1 inconclusive, 2 unsupported, 1 not observed; 12
  schedules, 345 events, 1 of 2 rules seen, 6.8 s, seed 7.
NOT CONFORMANT: 1 cause, 1 requirement violated of 4 checked.
"""

KEPT_TEXT = """\
Target: bundled

Families
  HB            1 pass

1 requirement: 1 pass; 1 schedule, 8 events, 0.0 s, seed 0.
NO VIOLATION: 1 of 1 requirement checked (selected), none violated.
"""

NOTHING_TEXT = """\
Target: bundled

0 requirements: none; 0 schedules, 0 events, 0.0 s, seed 0.
INCONCLUSIVE: the run was cut short.
"""

STILL_FAILS_TEXT = f"""\
FAIL JOIN-29 MUST: Matching rejoin in CompletingRebalance
  JoinGroup response has the wrong generation_id
  expected      NONE, generation=1
  observed      error_code=NONE, generation_id=-1
  requirement   In CompletingRebalance, a member that rejoins with identical protocols is answered
                at once with the current generation and without a rebalance; the leader gets the
                members again.
  source        {METHOD}, {ADDRESS}
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
    assert coloured.endswith("\x1b[31mNOT CONFORMANT: 1 cause, 1 requirement violated of 4 checked.\x1b[0m\n")
    assert coloured.replace("\x1b[31m", "").replace("\x1b[0m", "") == VIOLATED_TEXT
    assert render_report(KEPT, colour=True).endswith(f"\x1b[32m{outcome_line(KEPT)}\x1b[0m\n")


def test_a_target_cannot_send_control_characters_to_the_terminal() -> None:
    failure = replace(
        JOIN_29, differences=(), observed="member \x1b[2J\r\n\x07 \ud800", schedule=("A\x1b[H",), trace="a\nb"
    )
    result = RequirementResult("JOIN-29", Verdict.FAIL, note="\x1b", failures=(failure,))
    text = render_report(replace(KEPT, target={"name": "x\x9b1m", "y": "\x1b"}, results=(result,)))
    assert all(c == "\n" or c.isprintable() for c in text)
    assert r"member \x1b[2J\r\n\x07 \ud800" in text


def test_printable_text_is_left_alone() -> None:
    assert escape_unprintable("Gr\u00fc\u00dfe, \N{SNOWMAN} \\") == "Gr\u00fc\u00dfe, \N{SNOWMAN} \\"


@pytest.mark.parametrize(
    ("verdicts", "scope", "cut_short", "expected"),
    [
        ("fail fail pass", Scope.FULL, False, "NOT CONFORMANT: 2 causes, 2 requirements violated of 3 checked."),
        ("fail", Scope.SMOKE, False, "NOT CONFORMANT: 1 cause, 1 requirement violated of 1 checked (smoke)."),
        (
            "fail",
            Scope.FULL,
            True,
            "NOT CONFORMANT: 1 cause, 1 requirement violated of 1 checked. The run was cut short.",
        ),
        ("inconclusive pass", Scope.FULL, False, "INCONCLUSIVE: 1 requirement could not be decided."),
        ("inconclusive inconclusive", Scope.FULL, True, "INCONCLUSIVE: the run was cut short."),
        ("unsupported not-observed", Scope.FULL, False, "NOTHING CHECKED: no requirement was put to the test."),
        ("pass unsupported", Scope.FULL, False, "CONFORMANT: 1 of 2 requirements checked, none violated."),
        (
            "pass not-observed",
            Scope.SMOKE,
            False,
            "NO VIOLATION: 1 of 2 requirements checked (smoke), none violated.",
        ),
        (
            "pass known",
            Scope.FULL,
            False,
            "CONFORMANT: 2 of 2 requirements checked, none violated, apart from 1 known deviation.",
        ),
        (
            "known known",
            Scope.TRACES,
            False,
            "NO VIOLATION: 2 of 2 requirements checked (traces of a coordinator), none violated, "
            "apart from 2 known deviations.",
        ),
    ],
)
def test_headlines(verdicts: str, scope: Scope, cut_short: bool, expected: str) -> None:
    ids = ("HB-05", "HB-06", "HB-07")
    results = tuple(RequirementResult(id, Verdict(verdict)) for id, verdict in zip(ids, verdicts.split(), strict=False))
    assert outcome_line(replace(KEPT, results=results, cut_short=cut_short, scope=scope)) == expected


def test_requirements_that_fail_by_the_same_response_are_one_cause() -> None:
    shorter = replace(JOIN_29, schedule=JOIN_29.schedule[:2])
    other = (FieldDifference("generation_id", "1", "2"),)
    results = (
        RequirementResult("JOIN-29", Verdict.FAIL, failures=(JOIN_29,)),
        RequirementResult("JOIN-32", Verdict.FAIL, failures=(shorter,)),
        RequirementResult("SYNC-10", Verdict.FAIL, failures=(replace(JOIN_29, kind="another", differences=other),)),
    )
    text = render_report(replace(KEPT, results=results, scope=Scope.FULL))
    assert "   1. JOIN-32, JOIN-29: wrong value. JoinGroup response has the wrong generation_id: expected 1" in text
    assert "   2. SYNC-10: wrong value. JoinGroup response" in text
    assert "  as            JOIN-32: the same wrong response of the same rule" in text
    assert text.count("expected      generation_id = 1") == 2
    assert outcome_line(replace(KEPT, results=results, scope=Scope.FULL)).startswith("NOT CONFORMANT: 2 causes, 3 ")


def test_a_violation_that_no_requirement_speaks_of_is_never_green() -> None:
    report = replace(KEPT, unclassified=(JOIN_29,))
    assert report.exit_code() is ExitCode.VIOLATION
    assert outcome_line(report) == "NOT CONFORMANT: 1 unclassified violation (selected)."
    assert "UNCLASSIFIED no behaviour of the model explains this" in render_report(report)
    assert 'failures="1"' in to_junit(report)


def test_requirements_that_follow_from_a_failure_are_counted_apart() -> None:
    blocked = RequirementResult("SYNC-10", Verdict.INCONCLUSIVE, "blocked by JOIN-29", causes=("JOIN-29",))
    failed = RequirementResult("JOIN-29", Verdict.FAIL, failures=(JOIN_29,))
    text = render_report(replace(KEPT, results=(failed, blocked)))
    assert "2 requirements: 1 fail, 1 inconclusive (1 by a failure);" in text


def test_ids_in_a_row_are_folded() -> None:
    ids = ["HB-01", "HB-02", "HB-03", "HB-05", "HB-06", "JOIN-01"]
    assert fold_ids(ids, CATALOGUE) == "HB-01..HB-03, HB-05, HB-06, JOIN-01"
    assert fold_ids([], CATALOGUE) == ""


def test_a_long_response_is_cut_and_says_so() -> None:
    failure = replace(JOIN_29, differences=(), observed="x" * 5000)
    text = render_report(replace(KEPT, results=(RequirementResult("JOIN-29", Verdict.FAIL, failures=(failure,)),)))
    assert "... (5000 characters)" in " ".join(text.split())
    assert len(text) < 2000


def test_a_replay_that_still_fails_shows_the_failure() -> None:
    bare = replace(
        JOIN_29, trace="", guard="", rule="", state="", differences=(), schedule=(), replay="", replayed=False
    )
    assert render_replay(ReplayResult(ReplayOutcome.STILL_FAILS, "JOIN-29", bare)) == STILL_FAILS_TEXT


def test_a_replay_shows_a_violation_that_no_requirement_speaks_of() -> None:
    text = render_replay(ReplayResult(ReplayOutcome.DIFFERENT, UNCLASSIFIED, JOIN_29, gone=("HB-04", "HB-05")))
    assert text.startswith("UNCLASSIFIED no behaviour of the model explains this")
    assert text.endswith("\n\nNo longer violated: HB-04, HB-05\n\nDIFFERENT\n")


def test_a_replay_that_is_fixed_says_no_more() -> None:
    assert render_replay(ReplayResult(ReplayOutcome.FIXED)) == "FIXED\n"
    assert render_replay(ReplayResult(ReplayOutcome.FIXED), colour=True) == "\x1b[32mFIXED\x1b[0m\n"


def test_the_head_says_what_the_profile_says_about_the_target(tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text('[about]\nname = "acme"\nversion = "1.4"\nlanguage = "Rust"\nurl = "https://acme.example"\n')
    lines = render_report(run("bundled", only=["HB-05"], profile=profile)).splitlines()
    assert lines[0].startswith("Target: acme (version 1.4, ")
    assert lines[1] == "  about         language Rust, url https://acme.example"


# --- width


@pytest.mark.parametrize(("columns", "longest"), [(None, 100), (10, 72), (72, 72), (88, 88), (120, 120), (300, 120)])
def test_lines_are_as_wide_as_the_terminal_within_reason(columns: int | None, longest: int) -> None:
    """But for lines that are there to be copied, and the outcome."""
    lines = render_report(VIOLATED, width=columns).splitlines()[:-1]
    copied = ("  source", "  trace", "  replay", "FAIL")
    widths = [len(line) for line in lines if not line.startswith(copied)]
    assert longest - 16 < max(widths) <= longest
    assert " ".join(render_report(VIOLATED, width=columns).split()) == " ".join(VIOLATED_TEXT.split())
    assert render_report(VIOLATED) == VIOLATED_TEXT


def test_the_summary_counts_every_verdict() -> None:
    assert VIOLATED.summary() == {
        Verdict.PASS: 2,
        Verdict.FAIL: 1,
        Verdict.KNOWN: 1,
        Verdict.UNSUPPORTED: 2,
        Verdict.NOT_OBSERVED: 1,
        Verdict.INCONCLUSIVE: 1,
    }


@pytest.mark.parametrize(
    ("verdicts", "cut_short", "expected"),
    [
        ("pass", False, ExitCode.CONFORMANT),
        ("pass known unsupported not-observed", False, ExitCode.CONFORMANT),
        ("pass", True, ExitCode.INCONCLUSIVE),
        ("pass inconclusive", False, ExitCode.INCONCLUSIVE),
        ("fail inconclusive", False, ExitCode.VIOLATION),
        ("fail", True, ExitCode.VIOLATION),
        ("", True, ExitCode.INCONCLUSIVE),
        ("", False, ExitCode.INCONCLUSIVE),
        ("unsupported not-observed", False, ExitCode.INCONCLUSIVE),
        ("known", False, ExitCode.CONFORMANT),
    ],
)
def test_exit_codes(verdicts: str, cut_short: bool, expected: ExitCode) -> None:
    results = tuple(RequirementResult("HB-05", Verdict(verdict)) for verdict in verdicts.split())
    assert replace(KEPT, results=results, cut_short=cut_short).exit_code() is expected


def test_exit_codes_are_those_that_scripts_rely_on() -> None:
    assert list(ExitCode) == [0, 1, 2, 3]
