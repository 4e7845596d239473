"""Measures of runs: the lines that run, and limits of processor time."""

import time
from collections.abc import Iterable
from dataclasses import replace

import pytest

from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.coordinator_stand import play_scenario_in
from fencepost.conformance.classic.zoo.zoo import coordinator_mutants
from fencepost.conformance.zoo import measuring
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, Line, cpu_limit, lines_changed_by, trace_lines
from fencepost.conformance.zoo.mutants import Mutant

# --- Which lines are run, and which of them a mutant changes.

MUTANTS = [each.mutant for each in coordinator_mutants().values() if each.mutant is not None]


def lines_of_plays(names: Iterable[str]) -> set[Line]:
    """The lines that some scenarios get to."""
    chosen = set(names)
    with trace_lines() as lines:
        for play in ALL:
            if play.name in chosen:
                play_scenario_in(PLAIN, play)
    return lines


def mutant_starting_with(beginning: str) -> Mutant:
    """The first mutant whose name begins so."""
    return next(each for each in MUTANTS if each.name.startswith(beginning))


def test_what_a_play_gets_to_is_seen() -> None:
    lines = lines_of_plays(["fetch-during-a-transaction"])
    leaving, transactions = (
        lines_changed_by(mutant_starting_with("membership.Leaving.")),
        lines_changed_by(mutant_starting_with("offsets.Transactions.check_producer")),
    )
    assert leaving is not None and lines.isdisjoint(leaving)
    assert transactions is not None and not lines.isdisjoint(transactions)


def test_nothing_is_seen_afterwards() -> None:
    with trace_lines() as lines:
        pass
    lines_of_plays(["fetch-during-a-transaction"])
    assert not lines


@pytest.mark.slow
def test_every_mutant_is_in_lines_of_its_own() -> None:
    for mutant in MUTANTS:
        changed = lines_changed_by(mutant)
        assert changed is None or min(number for _, number in changed) == mutant.line


def test_what_loading_runs_is_never_out_of_reach() -> None:
    assert lines_changed_by(replace(MUTANTS[0], path=(("body", 0),))) is None


# --- Limits end code that never ends, even if it swallows the first alarm.

PATIENCE_SECONDS = 20


def burn_cpu() -> None:
    """Be busy for much longer than any limit here."""
    begun = time.process_time()
    while time.process_time() - begun < PATIENCE_SECONDS:
        pass


def test_cpu_limit_raises_until_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "REPEAT_SECONDS", 0.1)
    deaf = 0
    with pytest.raises(CpuLimitExceeded), cpu_limit(0.1):
        try:
            burn_cpu()
        except CpuLimitExceeded:
            deaf += 1
        burn_cpu()
    assert deaf == 1


def test_an_outer_limit_rings_after_an_inner_one() -> None:
    begun = time.process_time()
    with pytest.raises(CpuLimitExceeded), cpu_limit(0.4):
        with pytest.raises(CpuLimitExceeded), cpu_limit(0.1):
            burn_cpu()
        burn_cpu()
    assert 0.3 < time.process_time() - begun < PATIENCE_SECONDS


def test_work_within_the_limit_finishes() -> None:
    with cpu_limit(PATIENCE_SECONDS):
        pass
