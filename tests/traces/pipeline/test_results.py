"""A folder of results is replaced as a whole or not at all."""

import os
from pathlib import Path

import pytest

from fencepost.traces.pipeline.results import replace_folder


def fill(folder: Path, text: str) -> None:
    (folder / "rows").write_text(text)


def test_of_two_that_replace_a_folder_at_the_same_time_the_later_one_wins(tmp_path: Path) -> None:
    target = tmp_path / "judged"
    with replace_folder(target) as slow:
        fill(slow, "slow")
        with replace_folder(target) as quick:
            fill(quick, "quick")
        assert (target / "rows").read_text() == "quick" and (slow / "rows").read_text() == "slow"
    assert (target / "rows").read_text() == "slow"
    assert [path.name for path in tmp_path.iterdir()] == ["judged"] and [path.name for path in target.iterdir()] == [
        "rows"
    ]


def test_an_error_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    with replace_folder(tmp_path / "judged") as folder:
        fill(folder, "before")
    with pytest.raises(KeyError), replace_folder(tmp_path / "judged") as folder:
        fill(folder, "after")
        raise KeyError
    assert (tmp_path / "judged" / "rows").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["judged"]


def test_what_a_killed_process_left_is_removed_after_a_week(tmp_path: Path) -> None:
    for name in ("judged.partial-dead", "judged.partial-living", "other.partial-dead"):
        (tmp_path / name / "new").mkdir(parents=True)
    (tmp_path / "judged.partial-notes.txt").touch()
    for name in ("judged.partial-dead", "judged.partial-notes.txt", "other.partial-dead"):
        os.utime(tmp_path / name, (0, 0))
    with replace_folder(tmp_path / "judged"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "judged",
        "judged.partial-living",
        "judged.partial-notes.txt",
        "other.partial-dead",
    ]
