from dataclasses import replace

import pytest

from fencepost.conformance.results import ExitCode, RequirementResult, Verdict
from tests.support.sample_reports import KEPT, VIOLATED


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
