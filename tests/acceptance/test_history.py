"""The commits that changed verdicts are found."""

from tests.acceptance.verdict_corpus.history import find_changes


def test_changes_are_found_at_the_commits_that_make_them() -> None:
    asked: list[int] = []

    def outlines_of(place: int) -> dict[str, int]:
        asked.append(place)
        return {"a": int(place >= 40), "b": 2 * (place >= 40) + (place >= 71), "c": 0}

    assert list(find_changes(100, outlines_of)) == [(40, ["a", "b"]), (71, ["b"])]
    assert len(set(asked)) < 20


def test_nothing_is_searched_where_nothing_differs() -> None:
    assert not list(find_changes(1_000, lambda place: {"a": 1}))
