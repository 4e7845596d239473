"""The sample of mutants is the same each time, its table is read back, and survivors are explained."""

from pathlib import Path

import pytest

from tests.acceptance import core_sample
from tests.acceptance.core_sample import SIZE, SampleVerdict, check_core_sample, explanations, read_table, write_table
from tests.model.mutants import results
from tests.model.mutants.core import core_mutants


def test_the_sample_is_of_the_core() -> None:
    names = [one.name for one in core_sample.sample()]
    assert len(names) == len(set(names)) == SIZE
    assert set(names) <= {one.name for one in core_mutants()}
    assert read_table().keys() <= set(names)


def test_one_mutant_takes_the_place_of_another_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    table, sample = read_table(), core_sample.sample.__wrapped__
    gone, *kept = table
    changed = {"a mutant of the code before": table[gone]} | {name: table[name] for name in kept}
    monkeypatch.setattr(core_sample, "read_table", lambda: changed)
    names = [one.name for one in sample()]
    assert names[: len(kept)] == kept and len(set(names)) == SIZE
    assert "a mutant of the code before" not in names


def test_a_table_is_read_back(tmp_path: Path) -> None:
    first, second, *_ = core_sample.sample()
    verdicts = {first.name: SampleVerdict({"join": ["T1"]}), second.name: SampleVerdict(search=["T9"])}
    write_table(verdicts, tmp_path / "table.json")
    assert read_table(tmp_path / "table.json") == verdicts


def test_only_what_is_not_refuted_is_explained() -> None:
    known = {name: row.verdict for name, row in results.read().items()}
    equal = next(name for name, verdict in known.items() if verdict == results.EQUIVALENT)
    told = {equal: SampleVerdict(), "another": SampleVerdict(), "refuted": SampleVerdict({"join": ["T1"]})}
    assert explanations(told) == {equal: "no different answer in an exhaustive comparison"}


def test_a_table_that_is_not_complete_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_sample, "read_table", dict)
    figures = {figure.what: figure for figure in check_core_sample(Path())}
    assert not figures["mutants in the table"].kept
