"""The table of states is as its page says, in its smallest rows."""

from tests.benchmarks import push_states


def test_the_smallest_rows_are_those_on_record() -> None:
    _, _, row = push_states.rows(push_states.RUNS[:1], 10_000)
    cells = row.rsplit("|", 2)[0]
    assert f"{cells}|" in (push_states.__doc__ or "")


def test_a_search_that_the_limit_ends_says_so() -> None:
    *_, row = push_states.rows(push_states.RUNS[:1], 10)
    assert "and more" in row
