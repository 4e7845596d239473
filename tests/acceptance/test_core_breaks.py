"""Each break is put into its module, its table is read back, and the check fails on a table that is not complete."""

import ast
from pathlib import Path

import pytest

from fencepost.conformance.zoo.mutants import source_of
from tests.acceptance import core_breaks
from tests.acceptance.core_breaks import UNNOTICED, BreakVerdict, broken_source, check_core_breaks, with_theorems
from tests.model.proofs.breaks import BREAKS

NAMES = [one.name for one in BREAKS]


def test_each_break_changes_its_module_and_no_other() -> None:
    for broken in BREAKS:
        ((name, changed),) = broken_source(broken).items()
        assert name == broken.function.__module__
        assert ast.unparse(changed) != ast.unparse(ast.parse(source_of(name)))


def test_the_table_is_of_the_breaks() -> None:
    assert core_breaks.read_table().keys() <= set(NAMES)
    assert UNNOTICED.keys() <= set(NAMES)


def test_a_table_is_read_back(tmp_path: Path) -> None:
    verdicts = {NAMES[0]: BreakVerdict({"commit": ["T2"]}, ["no-stale-commit"]), NAMES[1]: BreakVerdict({}, [])}
    core_breaks.write_table(verdicts, tmp_path / "table.json")
    assert core_breaks.read_table(tmp_path / "table.json") == verdicts


def test_theorems_are_named_as_people_read_them() -> None:
    found = with_theorems(BreakVerdict({"join": ["T1", "join-response"]}, ["no-stale-commit", "timers-answer"]))
    assert found.by_theorems == ["T1", "T2"]


def test_a_table_that_is_not_complete_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_breaks, "read_table", dict)
    figures = {figure.what: figure for figure in check_core_breaks(Path())}
    assert not figures["breaks given to prove"].kept and not figures["breaks given to explore"].kept
    assert not figures["refuted by one of the two"].kept
