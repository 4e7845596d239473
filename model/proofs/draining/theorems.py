"""Every theorem about draining and prefetching (KIP-41)."""

from collections.abc import Iterator

from fencepost.model.proofs.draining.fetching import FETCHING, fetching_lemmas
from fencepost.model.proofs.draining.waiting import WAITING, waiting_lemmas
from fencepost.model.proofs.obligations import Lemma

THEOREMS = WAITING | FETCHING
"""What the lemmas of each theorem amount to; n partitions, m = max.poll.records."""


def draining_lemmas() -> Iterator[Lemma]:
    """Every lemma of every theorem about draining."""
    yield from waiting_lemmas()
    yield from fetching_lemmas()
