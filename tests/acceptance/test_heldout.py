"""The held-out faults of coordinators and clients: each is one, and runs of random schedules alone blame it."""

import json
from collections import Counter
from pathlib import Path

import pytest

import fencepost
from fencepost.adapters.classic.administration import Cleanup
from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.membership import Heartbeats
from fencepost.conformance.classic.zoo.client_stand import ClientFault
from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, CoordinatorFault
from fencepost.conformance.zoo.hunt import usual_run
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from tests.acceptance import framework
from tests.acceptance.checks import faulty_clients, heldout
from tests.acceptance.checks.heldout import run_schedules_only
from tests.acceptance.framework import Figure, MeasurementError, write_results
from tests.acceptance.heldout_clients import CLIENT_FAULTS
from tests.acceptance.heldout_faults.fault import Edit, edited_coordinator
from tests.acceptance.heldout_faults.registry import FAULTS, WITNESSES
from tests.support.edits import StaleEditError
from tests.support.patch_checks import assert_put_in_and_taken_out

# --- The held-out faults of clients: each changes something, contradicts a statement, and is taken out again.


def test_there_are_twenty_of_three_sides() -> None:
    sides = [fault.subject for fault in CLIENT_FAULTS.values()]
    assert [sides.count(side) for side in faulty_clients.PARTS] == [12, 4, 4]


@pytest.mark.parametrize("fault", CLIENT_FAULTS.values(), ids=lambda fault: fault.id)
def test_a_fault_contradicts_a_statement_and_is_taken_out_again(fault: ClientFault) -> None:
    assert fault.sentence.endswith(".") and fault.source.startswith("member.md ")
    assert fault.breaks and set(fault.breaks) <= CLIENT_CATALOGUE.keys()
    assert_put_in_and_taken_out(fault)


# --- The witnesses of the held-out faults: responses differ, and the judge rejects the faulty coordinator's only.

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


# --- Runs of random schedules alone: they blame a fault that shows at once, and not the shipped coordinator.

EDIT = Edit(Heartbeats.rebalance_error, "else Error.NONE", "else Error.ILLEGAL_GENERATION")
NO_HEARTBEATS = edited_coordinator("no-heartbeats", ["HB-05"], "", [EDIT])


def test_a_plain_fault_is_found_and_the_shipped_coordinator_is_not_blamed() -> None:
    with NO_HEARTBEATS.activate():
        run = run_schedules_only(1, 10)
    assert run.is_found and "HB-05" in run.named
    assert run.first is not None and run.seconds is not None and 0 < run.seconds <= run.total_seconds
    shipped = run_schedules_only(1, 10)
    assert not shipped.named and shipped.first is None and shipped.seconds is None


def test_the_summary_counts_faults_and_requirements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(framework, "RESULTS", tmp_path)
    with pytest.raises(MeasurementError, match="30 faults are not measured yet"):
        list(heldout.check_found(tmp_path))
    names = [check.name for check in heldout.CHECKS]
    for number, check in enumerate(heldout.CHECKS[1:-1]):
        figures = [Figure("seeds that find it", 5 if number < 26 else 0, "", True)]
        figures.append(Figure("seeds that name a requirement of its own", 2, "", True))
        entry = {"title": "", "kept": True, "figures": [figure.to_json() for figure in figures]}
        entry |= {"seconds": 0, "commit": "", "date": "", "machine": ""}
        write_results("", names, tmp_path / "heldout", check, entry)
    found = {figure.what: figure for figure in heldout.check_found(tmp_path)}
    least = found["faults found with at least one seed"]
    assert least.value == 26 and not least.kept
    assert found["runs that find something"].value == "130 of 150"
    assert found["runs that name a requirement of the fault's own"].value == 60
    assert str(found["not found"].value).split(", ") == [fault.id for fault in FAULTS[26:]]
    assert json.loads((tmp_path / "heldout.json").read_text())["bars"].keys() == {fault.id for fault in FAULTS}
