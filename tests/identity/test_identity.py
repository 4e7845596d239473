"""The identity set finds what differs, and each of its parts is frozen."""

import json
from pathlib import Path

import pytest

from tests.identity import compare
from tests.identity.parts import PARTS, trace_files
from tests.identity.verdicts import RECORDINGS, frozen_verdicts, verdicts_on


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


def is_quick(name: str, way: str) -> bool:
    """Whether judging this recording in this way takes no seconds."""
    return way == "likely" or ".clients." in name or (way == "judge" and ".schedule-" not in name)


@pytest.mark.slow
@pytest.mark.parametrize("kafka", ["kafka4", pytest.param("kafka3", marks=pytest.mark.acceptance)])
def test_recordings_are_judged_as_ever(kafka: str) -> None:
    """In the quicker ways only; the part has all ways."""
    frozen = {key: each for key, each in frozen_verdicts().items() if key.startswith(kafka) and is_quick(*key.split())}
    assert len({key.split()[0] for key in frozen}) > 300
    assert compare.differences(frozen, json.loads(json.dumps(dict(verdicts_on(frozen))))) == []


def test_recordings_show_what_there_is_to_see() -> None:
    frozen = frozen_verdicts()
    assert {path.name for path in RECORDINGS.iterdir()} == {f"{key.split()[0]}.jsonl.gz" for key in frozen}
    for part in ("violations", "checks", "rules", "transitions", "differences", "inconclusive"):
        assert any(verdict[part] for verdict in frozen.values()), part
