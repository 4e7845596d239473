"""The witnesses of the held-out faults: responses differ, and the judge rejects the faulty coordinator's only."""

from collections import Counter

import pytest

import fencepost
from fencepost.adapters.classic.administration import Cleanup
from fencepost.adapters.classic.group import Group
from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, CoordinatorFault
from fencepost.conformance.zoo.hunt import usual_run
from tests.acceptance.heldout_faults.fault import Edit, edited_coordinator
from tests.acceptance.heldout_faults.registry import FAULTS, WITNESSES
from tests.support.edits import StaleEditError

IDS = {requirement.id for requirement in fencepost.requirements()}


def id_of(fault: CoordinatorFault) -> str:
    return fault.id


def test_thirty_faults_of_twelve_kinds() -> None:
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) == 30
    kinds = Counter(witness.kind for witness in WITNESSES.values())
    assert len(kinds) == 12 and min(kinds.values()) >= 2


@pytest.mark.parametrize("fault", FAULTS, ids=id_of)
def test_a_fault_is_described(fault: CoordinatorFault) -> None:
    assert fault.sentence.endswith(".") and fault.source
    assert set(fault.breaks) <= IDS
    assert fault.breaks or WITNESSES[fault.id].not_blamed, "no requirement forbids it, and no reason says why"


@pytest.mark.parametrize("fault", FAULTS, ids=id_of)
def test_a_witness_tells_the_coordinators_apart(fault: CoordinatorFault) -> None:
    scenario = WITNESSES[fault.id].scenario
    shipped, faulty = usual_run(COORDINATORS, fault.setting, scenario), COORDINATORS.run_with(fault, scenario)
    assert shipped.events != faulty.events
    assert not shipped.verdict.violated and not shipped.blocked
    assert COORDINATORS.play(fault.setting, scenario, "run").events == shipped.events, "the fault is still there"


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not WITNESSES[fault.id].not_blamed], ids=id_of)
def test_the_judge_rejects_the_faulty_coordinator(fault: CoordinatorFault) -> None:
    assert COORDINATORS.run_with(fault, WITNESSES[fault.id].scenario).verdict.violated


def test_an_edit_of_text_that_is_gone_is_refused() -> None:
    fits = Edit(Group.accepts, "len(self.members) < limit", "len(self.members) <= limit")
    shipped = vars(Group)["accepts"]
    half = edited_coordinator("half", [], "", [fits, Edit(Cleanup.schedule, "not there", "")])
    with (
        pytest.raises(StaleEditError, match=r"Cleanup\.schedule: 'not there' is there 0 times"),
        half.activate(),
    ):
        pass
    assert vars(Group)["accepts"] is shipped, "the first edit is still there"
