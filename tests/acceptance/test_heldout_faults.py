"""The witnesses of the held-out faults: responses differ, and the judge rejects the faulty coordinator's only."""

from collections import Counter
from dataclasses import replace

import pytest

import fencepost
from tests.acceptance.heldout_faults.fault import Edit, Fault, StaleEditError
from tests.acceptance.heldout_faults.play import record_play
from tests.acceptance.heldout_faults.registry import FAULTS

IDS = {requirement.id for requirement in fencepost.requirements()}
BLAMED = [fault for fault in FAULTS if not fault.not_blamed]


def name_of(fault: Fault) -> str:
    return fault.name


def test_thirty_faults_of_twelve_kinds() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) == 30
    kinds = Counter(fault.kind for fault in FAULTS)
    assert len(kinds) == 12 and min(kinds.values()) >= 2


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_fault_is_described(fault: Fault) -> None:
    assert fault.sentence.endswith(".") and fault.source
    assert set(fault.requirements) <= IDS
    assert fault.requirements or fault.not_blamed, "no requirement forbids it, and no reason says why"


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_witness_tells_the_coordinators_apart(fault: Fault) -> None:
    header, shipped = record_play(fault.witness)
    with fault.injected():
        _, faulty = record_play(fault.witness)
    assert shipped != faulty
    assert not fencepost.judge(shipped, header).violations
    _, again = record_play(fault.witness)
    assert again == shipped, "the fault is still there"


@pytest.mark.parametrize("fault", BLAMED, ids=name_of)
def test_the_judge_rejects_the_faulty_coordinator(fault: Fault) -> None:
    with fault.injected():
        header, events = record_play(fault.witness)
    assert fencepost.judge(events, header).violations


def test_an_edit_of_text_that_is_gone_is_refused() -> None:
    fault = FAULTS[0]
    shipped = record_play(fault.witness)
    half = replace(fault, edits=(*fault.edits, Edit("cleanup.Cleanup.schedule", "not there", "")))
    with (
        pytest.raises(StaleEditError, match=r"cleanup\.Cleanup\.schedule: 'not there' is there 0 times"),
        half.injected(),
    ):
        pass
    assert record_play(fault.witness) == shipped, "the first edit is still there"
    gone = replace(fault, edits=(Edit("cleanup.Cleanup.tidy", "", ""),))
    with pytest.raises(StaleEditError, match="no such method"), gone.injected():
        pass
