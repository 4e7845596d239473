"""The benchmarks of `explore` and `prove` read what the commands print."""

import pytest

from tests.benchmarks.explore_speed import states_and_moves
from tests.benchmarks.prove_speed import theorems_per_second, verdicts
from tests.benchmarks.trees import CommandRun


def test_states_and_moves_of_a_search_are_read() -> None:
    told = "holds  T7: …\n98,052 states, reduced, 878,300 moves, exhausted in 6.9 s (14,237 states/s, plain); 2.\n"
    assert states_and_moves(CommandRun(told, 7.0, 6.5)) == (98_052, 878_300)


@pytest.mark.parametrize("kind", ["1 states, reduced, 2 moves, cut short", "1 states, reduced, 2 moves, (3, numpy)"])
def test_a_search_that_is_not_exhausted_or_uses_numpy_is_refused(kind: str) -> None:
    with pytest.raises(SystemExit):
        states_and_moves(CommandRun(kind, 1.0, 1.0))


def test_verdicts_are_read_by_theorem_and_counted_by_second() -> None:
    run = CommandRun("proved  T1: Holds. Covers all.\nfalse  T1-weak: Not.\nproved  T2: Holds.\nnoise\n", 4.0, 5.0)
    assert verdicts(run) == {"T1": "proved", "T1-weak": "false", "T2": "proved"}
    assert theorems_per_second(run) == 0.5
