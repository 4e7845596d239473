"""The states of the consistent region beside those of the scratch explorer in the specification.

Run with `python -m tests.benchmarks.region_states [--most STATES]`. The two count differently: here the steps of the
merge and of the group are steps of their own, and operators that are alike may change places. A search that the limit
ends says so.

Measured on two cores with much other work, so that seconds of the processor are told, of the whole search with numpy
where a state fits in 64 bits. Repaired, 2 operators, 2 checkpoints; nothing broke:

| partitions / records | faults | specification | here | processor seconds |
|---|---|---|---|---|
| 1 / 2 | none | 14,802 | 67,710 | 3 |
| 1 / 2 | a failure downstream | 32,998 | 360,454 | 9 |
| 1 / 2 | a rebalance | 60,554 | 417,041 | 10 |
| 1 / 2 | a crash | 75,797 | 1,327,339 | 38 |
| 1 / 2 | an expulsion | 177,567 | 1,195,236 | 18 |
| 1 / 2 | a crash and an expulsion | 710,357 | 8,695,121 | 135 |
| 1 / 2 | two crashes | 193,057 | 8,574,556 | 190 |
| 2 / 1 | none | 28,022 | 309,108 | 11 |
| 2 / 1 | a failure downstream | 60,980 | 1,621,201 | 184 |
| 2 / 1 | a rebalance | 128,986 | 5,139,101 | 334 |
| 1 / 1, 3 operators, 1 checkpoint | none | 242,620 | 477,394 | 13 |

As documented, 1 checkpoint; seven or eight properties break:

| partitions / records | faults | specification | here | processor seconds |
|---|---|---|---|---|
| 1 / 1 | none | 11,149 | 3,583 | 1 |
| 1 / 1 | a failure downstream | 33,064 | 28,231 | 1 |
| 1 / 1 | a rebalance | 70,416 | 30,096 | 1 |
| 1 / 1 | a crash | 79,738 | 95,419 | 5 |
| 1 / 1 | an expulsion | 289,241 | 231,882 | 6 |
| 1 / 2 | none | 47,716 | 14,313 | 2 |
| 2 / 1 | none | 78,226 | 74,122 | 4 |

The two largest take 2.9 and 4.7 GB. A crash and an expulsion, each with 2 partitions, were not run to their ends.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.model.explore.engine import explore_system
from fencepost.model.region.dialect import DOCUMENTED, REPAIRED, RegionDialect
from fencepost.model.region.explore.row import RegionBounds, RegionFaults
from fencepost.model.region.explore.system import region_system

NO_FAULT = RegionFaults()
REBALANCE = RegionFaults(rebalances=1)
CRASH = RegionFaults(crashes=1)
FAILURE = RegionFaults(failures=1)
EXPULSION = RegionFaults(expulsions=1)
BOTH = RegionFaults(crashes=1, expulsions=1)


@dataclass(frozen=True, slots=True)
class Run:
    """A search; `told` is the specification's number of states."""

    sizes: tuple[int, int, int]
    """Operators, partitions, records."""
    checkpoints: int
    faults: RegionFaults
    told: int
    dialect: RegionDialect = REPAIRED

    def bounds(self) -> RegionBounds:
        """What is explored."""
        operators, partitions, records = self.sizes
        return RegionBounds(operators, partitions, records, self.checkpoints, faults=self.faults, dialect=self.dialect)


RUNS = (
    Run((2, 1, 2), 2, NO_FAULT, 14_802),
    Run((2, 1, 2), 2, FAILURE, 32_998),
    Run((2, 1, 2), 2, REBALANCE, 60_554),
    Run((2, 1, 2), 2, CRASH, 75_797),
    Run((2, 1, 2), 2, EXPULSION, 177_567),
    Run((2, 1, 2), 2, RegionFaults(crashes=2), 193_057),
    Run((2, 1, 2), 2, BOTH, 710_357),
    Run((2, 2, 1), 2, NO_FAULT, 28_022),
    Run((2, 2, 1), 2, FAILURE, 60_980),
    Run((2, 2, 1), 2, REBALANCE, 128_986),
    Run((2, 2, 1), 2, CRASH, 185_489),
    Run((2, 2, 1), 2, EXPULSION, 512_849),
    Run((3, 1, 1), 1, NO_FAULT, 242_620),
    Run((2, 1, 1), 1, NO_FAULT, 11_149, DOCUMENTED),
    Run((2, 1, 1), 1, FAILURE, 33_064, DOCUMENTED),
    Run((2, 1, 1), 1, REBALANCE, 70_416, DOCUMENTED),
    Run((2, 1, 1), 1, CRASH, 79_738, DOCUMENTED),
    Run((2, 1, 1), 1, EXPULSION, 289_241, DOCUMENTED),
    Run((2, 1, 2), 1, NO_FAULT, 47_716, DOCUMENTED),
    Run((2, 2, 1), 1, NO_FAULT, 78_226, DOCUMENTED),
)


def faults_in_words(faults: RegionFaults) -> str:
    """The faults that may happen."""
    names = RegionFaults.__dataclass_fields__
    told = [f"{getattr(faults, name)} {name}" for name in names if getattr(faults, name)]
    return ", ".join(told) or "none"


def rows(most: int) -> Iterator[str]:
    """A row of a Markdown table for each search."""
    names = ("dialect", "operators / partitions / records", "checkpoints", "faults", "specification", "here", "seconds")
    yield f"| {' | '.join(names)} | broken |"
    yield "|---|---|---|---|---|---|---|---|"
    for run in RUNS:
        begun = time.perf_counter()
        found, _ = explore_system(region_system(run.bounds()), limit=most)
        seconds = time.perf_counter() - begun
        broken = sorted({one.name for one in found.violations} - {"no-deadlock"})
        count = f"{found.states:,}" + ("" if found.finished else " and more")
        dialect = "repaired" if run.dialect is REPAIRED else "as documented"
        sizes, faults = " / ".join(map(str, run.sizes)), faults_in_words(run.faults)
        cells = (dialect, sizes, run.checkpoints, faults, f"{run.told:,}", count, f"{seconds:.1f}")
        yield f"| {' | '.join(map(str, cells))} | {', '.join(broken) or 'nothing'} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=2_000_000, help="states after which a search ends")
    for row in rows(parser.parse_args(arguments).most):
        print(row, flush=True)


if __name__ == "__main__":
    main()
