"""The theorems about draining are proved of the shipped functions, and not of others."""

from collections.abc import Callable
from dataclasses import replace
from time import process_time

import pytest

from fencepost.model.draining import polling, proofs
from fencepost.model.draining.polling import Prefetch, Resume, Ring, next_position
from fencepost.model.draining.proofs import THEOREMS, draining_lemmas
from fencepost.model.proofs.induction import findings

BUDGET_SECONDS = 1.0


@pytest.mark.parametrize("seed", [0, 7, 19])
def test_every_lemma_is_settled_as_it_should_be_within_a_second(seed: int) -> None:
    begun = process_time()
    found = list(findings(draining_lemmas(), seed))
    assert process_time() - begun <= BUDGET_SECONDS
    assert [each for each in found if not each.as_expected] == []


def test_every_theorem_has_lemmas_and_false_ones_say_so() -> None:
    found = {each.theorem for each in draining_lemmas()}
    assert found == set(THEOREMS)
    assert {each.theorem for each in draining_lemmas() if not each.holds} == {
        name for name, text in THEOREMS.items() if text.startswith("FALSE")
    }


def stays(ring: Ring, resume: Resume) -> Ring:
    """A visit that never moves on."""
    return replace(polling.visit(ring, resume), cursor=ring.cursor)


def skips(ring: Ring, resume: Resume) -> Ring:
    """A visit that jumps over a partition."""
    return replace(polling.visit(ring, resume), cursor=next_position(ring, next_position(ring, ring.cursor)))


def overdraws(ring: Ring, resume: Resume) -> Ring:
    """A visit that takes all records, whatever the limit."""
    return replace(polling.visit(ring, resume), buffers=ring.buffers.put(ring.cursor, 0))


def loses(ring: Ring, resume: Resume) -> Ring:
    """A visit that drops a record."""
    after = polling.visit(ring, resume)
    return replace(after, buffers=after.buffers.put(ring.cursor, after.buffers[ring.cursor] - 1))


def forgets(ring: Ring, resume: Resume) -> Ring:
    """A visit that does not count against the limit."""
    return replace(polling.visit(ring, resume), budget=ring.budget)


@pytest.mark.parametrize("mutant", [stays, skips, overdraws, loses, forgets])
def test_other_visits_are_refuted(monkeypatch: pytest.MonkeyPatch, mutant: Callable[[Ring, Resume], Ring]) -> None:
    monkeypatch.setattr(proofs, "visit", mutant)
    assert any(each.verdict == "refuted" for each in findings(draining_lemmas()) if each.lemma.holds)


def test_a_poll_that_goes_on_where_it_was_does_not_start_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "begin_poll", lambda ring, resume: polling.begin_poll(ring, Resume.AFTER))
    broken = {each.lemma.theorem for each in findings(draining_lemmas()) if not each.as_expected}
    assert broken == {"draining.start"}


def keeps_cursor(ring: Ring, position: int) -> Ring:
    """A partition goes, and the cursor does not follow."""
    return replace(polling.drop_partition(ring, position), cursor=ring.cursor)


def begins_anew(ring: Ring, position: int, *records: int) -> Ring:
    """The ring changes, and the next poll begins with the first partition."""
    changed = polling.add_partition(ring, position, *records) if records else polling.drop_partition(ring, position)
    return replace(changed, cursor=0)


def counts_twice(ring: Ring, position: int, records: int) -> Ring:
    """A fetch that brings its records twice."""
    return polling.add_fetched(ring, position, records + records)


def begins_at_first(ring: Ring, resume: Resume) -> Ring:
    """A poll that begins with the first partition, whatever the rule."""
    return polling.begin_poll(ring, Resume.START)


def forgets_partition(ring: Ring, position: int, *records: int) -> Ring:
    """The ring changes, and its number of partitions does not."""
    changed = polling.add_partition(ring, position, *records) if records else polling.drop_partition(ring, position)
    return replace(changed, partitions=ring.partitions)


def brings_nothing(ring: Ring, position: int, records: int) -> Ring:
    """A fetch whose records get lost."""
    return ring


def visits_again(ring: Ring, resume: Resume) -> Ring:
    """A visit that is not counted."""
    return replace(polling.visit(ring, resume), visited=ring.visited)


def waits_for_empty(prefetch: Prefetch, ring: Ring, position: int, retained: int) -> bool:
    """A fetch below the share is sent of what is empty alone."""
    rule = Prefetch.EMPTY if prefetch is Prefetch.SHARE else prefetch
    return polling.should_fetch(rule, ring, position, retained)


def ignores_leader(prefetch: Prefetch, ring: Ring, position: int, retained: int, leader_is_busy: bool) -> bool:
    """A fetch that does not wait for the leader."""
    return polling.should_fetch(prefetch, ring, position, retained)


@pytest.mark.parametrize(
    ("function", "mutant", "theorem"),
    [
        ("drop_partition", keeps_cursor, "draining.ring-change"),
        ("drop_partition", begins_anew, "draining.ring-change"),
        ("add_partition", begins_anew, "draining.ring-change"),
        ("begin_poll", begins_at_first, "draining.after"),
        ("begin_poll", begins_at_first, "draining.at-unrefilled"),
        ("drop_partition", forgets_partition, "draining.ring-change"),
        ("add_partition", forgets_partition, "draining.ring-change"),
        ("add_fetched", counts_twice, "draining.memory"),
        ("add_fetched", brings_nothing, "draining.after"),
        ("visit", visits_again, "draining.exact"),
        ("should_fetch", waits_for_empty, "draining.share"),
        ("may_send_fetch", ignores_leader, "draining.in-flight"),
        ("visit", forgets, "draining.total"),
        ("visit", loses, "draining.no-limit"),
    ],
)
def test_other_fetchers_are_refuted(
    monkeypatch: pytest.MonkeyPatch, function: str, mutant: Callable[..., object], theorem: str
) -> None:
    monkeypatch.setattr(proofs, function, mutant)
    assert theorem in {each.lemma.theorem for each in findings(draining_lemmas()) if not each.as_expected}
