"""What is behind the operators, as one consumer that keeps count: the oracle of loss and duplication."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.offsets import Record


@fast_frozen
@dataclass(frozen=True, slots=True)
class Downstream:
    """The next offset of each partition, and whether one came twice or was left out since the state was restored."""

    next: tuple[int, ...]
    has_duplicate: bool = False
    has_gap: bool = False


def take_tuple(downstream: Downstream, record: Record) -> Downstream:
    """Process a tuple."""
    partition, offset = record
    due = downstream.next[partition]
    later = (*downstream.next[:partition], max(due, offset + 1), *downstream.next[partition + 1 :])
    return evolve(
        downstream,
        next=later,
        has_duplicate=downstream.has_duplicate or offset < due,
        has_gap=downstream.has_gap or offset > due,
    )
