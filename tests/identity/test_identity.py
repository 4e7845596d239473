"""The identity set finds what differs, and each of its parts is frozen."""

from pathlib import Path

import pytest

from tests.identity import compare
from tests.identity.parts import PARTS, trace_files


@pytest.fixture
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of the frozen parts."""
    monkeypatch.setattr(compare, "FROZEN", tmp_path)
    return tmp_path


def test_every_part_is_frozen() -> None:
    assert {path.name for path in compare.FROZEN.iterdir()} == {compare.path_of(part).name for part in PARTS}


def test_what_differs_is_named(frozen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part that was not frozen differs whole; frozen, it is equal; with a line altered, that line is shown."""
    assert compare.main(["formats"]) == 1
    assert compare.main(["formats", "--record"]) == 0
    assert compare.main(["formats"]) == 0
    compare.freeze("formats", {"report-2.schema.json": "another"})
    assert compare.main(["formats"]) == 1
    assert "report-2.schema.json" in capsys.readouterr().out


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["bundeld"])
    assert "no part is named bundeld" in capsys.readouterr().err


def test_traces_of_coordinators_and_clients_are_in_it() -> None:
    folders = {path.parent.name for path in trace_files()}
    assert len(trace_files()) > 700 and {"recordings", "data", "finding", "regressions"} <= folders
