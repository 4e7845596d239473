"""Notes on undecided requirements name nothing but requirements that failed."""

from collections.abc import Mapping

import pytest

from fencepost.conformance.analysis.causes import UNCONFIRMED, find_causes, resolve_causes
from fencepost.conformance.results import RequirementResult, Verdict
from tests.support.sample_reports import JOIN_29, LONGER


def undecided(id: str, note: str) -> RequirementResult:
    return RequirementResult(id, Verdict.INCONCLUSIVE, note)


FAILED = RequirementResult("JOIN-29", Verdict.FAIL, failures=(JOIN_29,))
PASSED = RequirementResult("JOIN-07", Verdict.PASS)


@pytest.mark.parametrize(
    ("results", "notes", "causes"),
    [
        ([undecided("HB-05", "blocked by JOIN-29")], {"HB-05": "blocked by JOIN-29"}, {"HB-05": ("JOIN-29",)}),
        (
            [undecided("HB-05", "too late, blocked by JOIN-07, JOIN-29")],
            {"HB-05": "too late, blocked by JOIN-29"},
            {"HB-05": ("JOIN-29",)},
        ),
        (
            [undecided("HB-05", "blocked by HB-06"), undecided("HB-06", "blocked by JOIN-29 at request 5")],
            {"HB-05": "blocked by JOIN-29", "HB-06": "blocked by JOIN-29 at request 5"},
            {"HB-05": ("JOIN-29",), "HB-06": ("JOIN-29",)},
        ),
        ([undecided("HB-05", "blocked by JOIN-07")], {"HB-05": f"blocked by {UNCONFIRMED}"}, {"HB-05": ()}),
        (
            [undecided("HB-05", "blocked by HB-06"), undecided("HB-06", "blocked by HB-05")],
            {"HB-05": f"blocked by {UNCONFIRMED}", "HB-06": f"blocked by {UNCONFIRMED}"},
            {"HB-05": (), "HB-06": ()},
        ),
        (
            [undecided("HB-05", "failed once, see failures/schedule-0-JOIN-07.jsonl")],
            {"HB-05": "failed once, see failures/schedule-0-JOIN-07.jsonl"},
            {"HB-05": ()},
        ),
    ],
)
def test_notes(
    results: list[RequirementResult], notes: Mapping[str, str], causes: Mapping[str, tuple[str, ...]]
) -> None:
    resolved = {each.id: each for each in resolve_causes([FAILED, PASSED, *results])}
    assert {id: resolved[id].note for id in notes} == notes
    assert {id: resolved[id].causes for id in causes} == causes
    assert resolved["JOIN-29"] is FAILED and resolved["JOIN-07"] is PASSED


def test_the_requirement_with_the_shortest_schedule_shows_a_cause() -> None:
    other = RequirementResult("JOIN-32", Verdict.FAIL, failures=(LONGER,))
    (cause, alone) = find_causes([FAILED, other, PASSED])
    assert (cause.requirements, alone.requirements) == (("JOIN-29",), ("JOIN-32",))
    assert cause.title.endswith("expected 1, observed -1")
