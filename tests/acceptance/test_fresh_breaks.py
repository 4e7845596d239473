"""Fresh breaks: the draw is that of its seed, a break that fails a test is told, and every other one has a reason."""

import ast
from pathlib import Path

import pytest

from fencepost.conformance.zoo.mutants import source_of
from tests.acceptance import fresh_breaks
from tests.acceptance.fresh_breaks import (
    COUNT,
    Judged,
    check_fresh_breaks,
    draw,
    failed_tests,
    parts,
    read_table,
    write_table,
)

STEPPING = "fencepost.traces.classic.stepping"


def test_a_seed_draws_as_many_of_each_part() -> None:
    drawn = draw(3).mutants
    counts = {part: sum(of == part for of, _ in drawn.values()) for part in parts()}
    assert set(counts.values()) == {COUNT // len(counts)}
    assert drawn.keys() == draw(3).mutants.keys() != draw(4).mutants.keys()


@pytest.mark.slow
@pytest.mark.parametrize(("after", "fails"), [("rule == 'sync.stable'", False), ("True", True)])
def test_a_test_fails_of_a_changed_module_alone(after: str, fails: bool) -> None:
    source = source_of(STEPPING).replace('return rule == "sync.stable"', f"return {after}")
    test = "tests/traces/judge/test_between_steps.py::test_a_request_that_commutes_loses_no_explanation"
    assert bool(failed_tests({STEPPING: ast.parse(source)}, (test,))) is fails


def test_what_nothing_refutes_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = {"core: a": Judged("core", "prove", ("join", "T1")), "core: b": Judged("core")}
    write_table(7, judged, tmp_path / "table.json")
    assert read_table(tmp_path / "table.json") == (7, judged)
    monkeypatch.setattr(fresh_breaks, "read_table", lambda: (7, judged))
    missed = {figure.what for figure in check_fresh_breaks(tmp_path) if not figure.kept}
    assert missed == {"breaks that were judged", "refuted in % of the breaks", "not refuted, and no reason"}
