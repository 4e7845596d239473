"""The comparison of mutants with the shipped coordinator."""

import pytest

from fencepost.conformance.classic.zoo import comparison
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.comparison import comparison_scenarios, find_difference
from fencepost.conformance.classic.zoo.coordinator_stand import play_scenario_in
from fencepost.conformance.zoo.registry import fault_named

TOLD_APART = {
    "offset_store.OffsetStore.commit_offset: always: present is None or present.number < offset.number -> True": (
        "transaction-0-True"
    ),
    "cleanup.Cleanup.base_time: always: group.protocol_type is not None and group.state is State.EMPTY -> True": (
        "retention-in-parts-0"
    ),
    "cleanup.Cleanup.has_base_time: always: group.protocol_type == CONSUMER and group.subscribed is not None -> True": (
        "retention-in-parts-3"
    ),
    "loading.Loading.start_group: comparison: len(group.members) > self._runtime.settings.max_group_size -> "
    "len(group.members) >= self._runtime.settings.max_group_size": "6-members-3",
    "rebalance.Rebalancer.extend_initial_delay: statement: group.remaining_delay -= step -> nothing": "initial-delay-3",
    "commits.Commits.admit: never: commit.is_transactional and (not commit.group_id) -> False": "fenced-producers",
    "commits.Commit.names_member: comparison: self.generation >= 0 -> self.generation > 0": "commits-of-every-kind-0",
}
"""Mutants that scenarios, tours and random schedules do not tell apart, and the scenario that does."""


@pytest.mark.parametrize(("mutant", "where"), TOLD_APART.items(), ids=TOLD_APART.values())
def test_a_mutant_is_told_apart(mutant: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only = [each for each in comparison_scenarios() if each.name == f"compare-{where}"]
    monkeypatch.setattr(comparison, "compared_scenarios", lambda: only)
    found = find_difference(fault_named(mutant))
    assert found.startswith(f"compare-{where}, which violates ")


def test_the_scenarios_of_the_comparison_run_to_their_end_without_a_violation() -> None:
    for play in comparison_scenarios():
        played = play_scenario_in(PLAIN, play)
        assert (played.blocked, played.unsupported, played.verdict.violated) == ("", "", frozenset())
