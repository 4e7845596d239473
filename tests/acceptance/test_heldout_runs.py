"""Runs of random schedules alone: they blame a fault that shows at once, and not the shipped coordinator."""

import json
from pathlib import Path

import pytest

from fencepost.adapters.classic.membership import Heartbeats
from tests.acceptance import framework
from tests.acceptance.checks import heldout
from tests.acceptance.checks.heldout import run_schedules_only
from tests.acceptance.framework import Figure, MeasurementError, write_results
from tests.acceptance.heldout_faults.fault import Edit, edited_coordinator
from tests.acceptance.heldout_faults.registry import FAULTS

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
