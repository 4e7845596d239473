"""Causes by source: the data on the mock and on kfake are complete, and the comparison sees what is merged wrongly."""

from collections.abc import Mapping, Sequence

import pytest

from fencepost.model.classic.catalogue import CATALOGUE
from tests.acceptance import kfake_findings, mock_findings
from tests.acceptance.source_causes import Deviation, compare_causes

LOOKED_UP, LET_IN, SHORT = "looked-up", "let-in", "short"
DEVIATIONS_OF = {
    "HB-01": (LET_IN, LOOKED_UP),
    "HB-02": (LOOKED_UP,),
    "JOIN-01": (LET_IN,),
    "SYNC-02": (LOOKED_UP,),
    "JOIN-44": (SHORT,),
}


@pytest.mark.parametrize(
    ("reported", "false_merges", "missed_merges"),
    [
        ([("HB-01", "JOIN-01"), ("HB-02", "SYNC-02"), ("JOIN-44",)], (), ()),
        ([("HB-02", "HB-01", "JOIN-01", "SYNC-02")], (), ()),
        ([("HB-02", "JOIN-01"), ("HB-01",)], ("HB-02 | JOIN-01",), ("JOIN-01 | HB-01",)),
        ([("HB-02",), ("SYNC-02", "JOIN-44")], ("SYNC-02 | JOIN-44",), ("HB-02 | SYNC-02",)),
        ([("JOIN-44", "FETCH-01")], (), ()),
    ],
)
def test_what_is_merged_wrongly_is_told(
    reported: Sequence[Sequence[str]], false_merges: tuple[str, ...], missed_merges: tuple[str, ...]
) -> None:
    found = compare_causes(reported, DEVIATIONS_OF)
    assert (found.false_merges, found.missed_merges) == (false_merges, missed_merges)


def test_causes_are_counted_for_what_is_known_of_the_source() -> None:
    found = compare_causes([("HB-01", "HB-02"), ("JOIN-44",), ("FETCH-01",)], DEVIATIONS_OF)
    assert (found.reported, found.by_source) == (2, 3)


@pytest.mark.parametrize(
    ("known", "deviations", "deviations_of"),
    [
        (mock_findings.KNOWN_FAILURES, mock_findings.DEVIATIONS, mock_findings.DEVIATIONS_OF),
        (kfake_findings.KNOWN_FAILURES, kfake_findings.DEVIATIONS, kfake_findings.DEVIATIONS_OF),
    ],
    ids=["mock", "kfake"],
)
def test_every_known_failure_has_its_deviations(
    known: Mapping[str, str], deviations: Mapping[str, Deviation], deviations_of: Mapping[str, Sequence[str]]
) -> None:
    assert deviations_of.keys() >= known.keys()
    assert deviations_of.keys() <= CATALOGUE.keys()
    assert {name for names in deviations_of.values() for name in names} == deviations.keys()
    assert all(deviations_of.values())
