"""The benchmark of the commands compares two trees."""

import pytest

from tests.benchmarks import speed


@pytest.mark.slow
def test_each_part_is_run_by_both_trees(capsys: pytest.CaptureFixture[str]) -> None:
    few = {"judge": 400, "judge-intervals": 400}
    assert speed.main(["HEAD", "startup", *few, "--pairs", "1", "--least", "0"], few) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["startup", *few]


@pytest.mark.slow
def test_a_part_that_is_slower_than_it_may_be_is_told() -> None:
    assert speed.main(["HEAD", "startup", "--pairs", "1", "--least", "99"]) == 1


def test_unknown_parts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        speed.main(["HEAD", "steady"])
    assert "no such part: steady; known: startup, judge" in capsys.readouterr().err
