"""The states of the push coordinator beside those of the scratch explorer in the specification.

Run with `python -m tests.benchmarks.push_states [--most STATES]`. The two count differently: here a watch, a listener
and the answer to a registration are steps of their own, and a wrong suspicion includes the stall until the lease is
over. A search that the limit ends says so.

Measured on two cores that other work shared, 0.2 to 12 s each:

| consumers / partitions / brokers | faults | specification, draft / repaired | here, draft / repaired |
|---|---|---|---|
| 2 / 2 / 1 | none | 138 / 182 | 285 / 227 |
| 3 / 3 / 1 | none | 2,057 / 3,032 | 3,089 / 2,899 |
| 2 / 2 / 1 | 1 partitions | - / 836 | 1,842 / 1,550 |
| 2 / 2 / 1 | 1 consumer_crashes | 5,761 / 16,407 | 30,800 / 30,366 |
| 2 / 2 / 1 | 1 suspicions | 6,002 / 182 | 18,217 / 62,241 |
| 2 / 2 / 2 | 1 broker_crashes | 4,847 / 4,367 | 13,383 / 5,707 |
| 2 / 2 / 2 | 1 expiries | 3,607 / 4,125 | 23,203 / 14,623 |

The specification's rows from 36,420 states on were not run.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.model.explore.engine import explore_system
from fencepost.model.push.dialect import DRAFT, REPAIRED
from fencepost.model.push.explore.row import Faults, PushBounds
from fencepost.model.push.explore.system import push_system


@dataclass(frozen=True, slots=True)
class Run:
    """What is searched, and the specification's numbers of states."""

    bounds: PushBounds
    told: str


NARROW = PushBounds(capacity=2)
TWO_BROKERS = PushBounds(brokers=2, capacity=2)
RUNS = (
    Run(PushBounds(), "138 / 182"),
    Run(PushBounds(3, 3), "2,057 / 3,032"),
    Run(PushBounds(faults=Faults(partitions=1)), "- / 836"),
    Run(replace(NARROW, faults=Faults(consumer_crashes=1)), "5,761 / 16,407"),
    Run(PushBounds(faults=Faults(suspicions=1)), "6,002 / 182"),
    Run(replace(TWO_BROKERS, faults=Faults(broker_crashes=1)), "4,847 / 4,367"),
    Run(replace(TWO_BROKERS, faults=Faults(expiries=1)), "3,607 / 4,125"),
)


def rows(runs: Sequence[Run], most: int) -> Iterator[str]:
    """A row of a Markdown table for each search."""
    sizes, told = "consumers / partitions / brokers", "specification, draft / repaired"
    yield f"| {sizes} | faults | {told} | here, draft / repaired | seconds |"
    yield "|---|---|---|---|---|"
    for run in runs:
        begun = time.perf_counter()
        counts = []
        for dialect in (DRAFT, REPAIRED):
            found, _ = explore_system(push_system(replace(run.bounds, dialect=dialect)), limit=most)
            counts.append(f"{found.states:,}" + ("" if found.finished else " and more"))
        seconds = f"{time.perf_counter() - begun:.1f}"
        bounds, faults = run.bounds, run.bounds.faults
        sizes = f"{bounds.consumers} / {bounds.partitions} / {bounds.brokers}"
        faulty = [f"{getattr(faults, name)} {name}" for name in Faults.__dataclass_fields__ if getattr(faults, name)]
        yield f"| {sizes} | {', '.join(faulty) or 'none'} | {run.told} | {' / '.join(counts)} | {seconds} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=200_000, help="states after which a search ends")
    for row in rows(RUNS, parser.parse_args(arguments).most):
        print(row, flush=True)


if __name__ == "__main__":
    main()
