"""The runs in which Kafka and the proposal differ: each shows its difference with its last move, and no sooner."""

from dataclasses import replace

import pytest

from fencepost.conformance.proposal.report import describe_difference, exit_code, summarize
from fencepost.conformance.results import ExitCode
from fencepost.model.proposal.explore import DIFFERENCES, FoundDifference, Pair, find_differences, moves_from

RUNS = {
    "two leaders": ["A joins", "the join phase ends", "the coordinator is lost", "B joins", "the join phase ends"],
    "a member is forgotten": ["A joins", "the join phase ends", "A hears", "the coordinator is lost", "A syncs"],
    "a generation is forgotten": ["A joins", "B joins", "A hears", "the coordinator is lost", "A syncs"],
    "a topic grows": ["the topic grows", "B heartbeats"],
    "an assignment fails": ["B syncs", "A cannot assign"],
    "two owners": ["A gives its partition away", "B heartbeats", "B syncs"],
    "a repeated JoinGroup": ["A joins", "B joins", "B hears", "B syncs", "A joins"],
}
"""As the search has them; the page in the documentation shows its whole output."""
BY_NAME = {one.name: one for one in DIFFERENCES}


def replay(start: Pair, run: list[str]) -> list[Pair]:
    """The pairs along a run."""
    pairs = [start]
    for label in run:
        pairs.append(dict(moves_from(pairs[-1]))[label])
    return pairs


@pytest.mark.parametrize("name", RUNS)
def test_a_run_shows_its_difference_with_its_last_move(name: str) -> None:
    difference = BY_NAME[name]
    *before, last = replay(difference.start(), RUNS[name])
    assert difference.shows(last) and not any(map(difference.shows, before))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("is_proposed", [False, True], ids=["kafka", "proposal"])
def test_two_groups_of_one_dialect_do_not_differ(name: str, is_proposed: bool) -> None:
    difference = BY_NAME[name]
    start = difference.start()
    same = start.proposal if is_proposed else start.kafka
    pair = replace(start, kafka=same, proposal=same)
    for label in RUNS[name]:
        pair = dict(moves_from(pair)).get(label, pair)
        assert not difference.shows(pair)


@pytest.mark.parametrize("name", ["a topic grows", "an assignment fails", "two owners"])
def test_the_search_finds_the_shortest_run(name: str) -> None:
    difference = BY_NAME[name]
    (found,) = find_differences(5_000, [difference])
    assert list(found.run or ()) == RUNS[name]
    assert exit_code([found]) is ExitCode.CONFORMANT


def test_a_search_that_ends_too_soon_says_so() -> None:
    difference = BY_NAME["two owners"]
    (found,) = find_differences(1, [difference])
    assert found == FoundDifference(difference, None)
    assert "No run was found" in describe_difference(found)
    assert summarize([found]) == "0 of 1 differences found" and exit_code([found]) is ExitCode.INCONCLUSIVE
