"""Writers of one folder do not disturb each other, and leave nothing behind if they are killed."""

import os
import time
from pathlib import Path

import pytest

from fencepost.traces.pipeline.writers import NEW_SECONDS, living_writers, register_writer, replace_folder


def test_a_writer_is_alive_until_it_ends(tmp_path: Path) -> None:
    with register_writer(tmp_path) as one, register_writer(tmp_path) as other:
        assert living_writers(tmp_path) == {one, other} and one != other
    assert living_writers(tmp_path) == set()
    (tmp_path / "dead.lock").touch()
    assert living_writers(tmp_path) == set() and not list(tmp_path.iterdir())
    for name in ("dead.new", "living.new"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "dead.new", (0, 0))
    assert living_writers(tmp_path) == set() and [path.name for path in tmp_path.iterdir()] == ["living.new"]


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


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    for role in ("partial", "old"):
        (tmp_path / f"judged.{role}-dead").mkdir()
        (tmp_path / f"judged.{role}-dead" / "owner.lock").touch()
    (tmp_path / "judged.partial-notes.txt").touch()
    long_ago = time.time() - 2 * NEW_SECONDS
    for name in ("judged.new-dead", "judged.new-living"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "judged.new-dead", (long_ago, long_ago))
    with replace_folder(tmp_path / "judged"):
        pass
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["judged", "judged.new-living", "judged.partial-notes.txt"]
