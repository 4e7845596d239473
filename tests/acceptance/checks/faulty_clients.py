"""Thresholds of clients: bugs of the zoo and held-out faults."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from fencepost.conformance.classic.zoo.client_stand import ClientFault
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS
from fencepost.conformance.zoo.fault import Side
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.registry import hunt, hunts_for
from fencepost.conformance.zoo.strategies import SCENARIOS
from tests.acceptance.framework import Check, Figure, at_least, without_threshold
from tests.acceptance.heldout_clients import CLIENT_FAULTS

SEED = 20_261_130
"""Of the schedules on held-out faults."""
HUNT_SECONDS = 10.0
MIN_SHARE = 95.0
PARTS = (Side.MEMBER, Side.ASSIGNOR, Side.FETCHER)


def hunt_fault(fault: ClientFault, first: str = "") -> HuntResult:
    """Hunt a fault by each strategy in turn, the plainest first or the one named, until one finds it."""
    for strategy in sorted(hunts_for(fault).strategies, key=lambda each: each != first):
        result = hunt(HuntTask(fault.id, strategy, SEED, HUNT_SECONDS, shrink=1.0), fault)
        if result.is_found:
            break
    return result


def check_zoo(folder: Path) -> Iterator[Figure]:
    """Each bug of the zoo that is put back, in one sitting."""
    figures = []
    for figure in hunt_faults(CLIENT_BUGS.values(), SCENARIOS):
        figures.append(figure)
        yield figure
    hunted, found, _ = figures[-3:]
    yield at_least("percent found", round(100 * int(found.value) / int(hunted.value), 1), MIN_SHARE)


def check_heldout(side: Side, folder: Path) -> Iterator[Figure]:
    """Each held-out fault of a side."""
    yield from hunt_faults(fault for fault in CLIENT_FAULTS.values() if fault.subject is side)


def hunt_faults(faults: Iterable[ClientFault], first: str = "") -> Iterator[Figure]:
    """Each fault with what found it, and how many were found; `first` names the strategy that is tried first."""
    found = Counter[str]()
    for fault in faults:
        number, begun = fault.id, time.process_time()
        result = hunt_fault(fault, first)
        how = f"{result.requirement} by {result.task.strategy}" if result.is_found else "not found"
        is_own = result.requirement in fault.breaks
        found["found"] += result.is_found
        found["own"] += is_own
        took = time.process_time() - begun
        print(f"{number}: {how}, {took:.1f} s", flush=True)
        yield without_threshold(f"{number}, {fault.sentence}", how)
        found["hunted"] += 1
    yield without_threshold("faults", found["hunted"])
    yield without_threshold("found", found["found"])
    yield without_threshold("of these, by a requirement that forbids them", found["own"])


CHECKS = (
    Check("zoo", f"at least {MIN_SHARE:g} % of the bugs of the zoo of clients, in one sitting", check_zoo),
    *(Check(f"heldout-{side}s", f"held-out faults of {side}s", partial(check_heldout, side)) for side in PARTS),
)
