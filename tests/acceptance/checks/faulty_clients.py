"""Thresholds of clients: held-out faults and systematic mutants of the reference client."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from fencepost.conformance.zoo.classic.clients.bug import Side
from fencepost.conformance.zoo.client_hunts import hunt_bug, strategies_for
from fencepost.conformance.zoo.client_mutants import client_mutants, hunt_mutant
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from tests.acceptance.framework import Check, Figure, at_least, without_threshold
from tests.acceptance.heldout_clients.registry import CLIENT_FAULTS

SEED = 20_261_124
"""Of the schedules on held-out faults, and of the draw of mutants."""
HUNT_SECONDS = 10.0
DRAWN = 120
MUTANT_SCHEDULES = 20
MIN_SHARE = 95.0
EXPLAINED: dict[str, str] = {}
"""Mutants that do nothing else than the shipped client wherever it was looked at, and why they cannot."""


def hunt_fault(number: str) -> HuntResult:
    """Hunt a held-out fault by each strategy in turn, the plainest first, until one finds it."""
    fault = CLIENT_FAULTS[number]
    for strategy in strategies_for(fault):
        result = hunt_bug(HuntTask(number, strategy, SEED, HUNT_SECONDS, shrink=1.0), fault)
        if result.is_found:
            break
    return result


def check_heldout(side: Side, folder: Path) -> Iterator[Figure]:
    """Each held-out fault of a side, with what found it."""
    found = Counter[str]()
    faults = {number: fault for number, fault in CLIENT_FAULTS.items() if fault.side is side}
    for number, fault in faults.items():
        begun = time.process_time()
        result = hunt_fault(number)
        how = f"{result.requirement} by {result.task.strategy}" if result.is_found else "not found"
        is_own = result.requirement in fault.breaks
        found["found"] += result.is_found
        found["own"] += is_own
        took = time.process_time() - begun
        print(f"{number}: {how}, {took:.1f} s", flush=True)
        yield without_threshold(f"{number}, {fault.sentence}", how)
    yield without_threshold("faults", len(faults))
    yield without_threshold("found", found["found"])
    yield without_threshold("of these, by a requirement that forbids them", found["own"])


def drawn_mutants() -> list[str]:
    """The mutants that are hunted, in the order of the draw; FENCEPOST_CLIENT_MUTANTS is how many of them."""
    names = sorted(client_mutants())
    return Random(SEED).sample(names, DRAWN)[: int(os.environ.get("FENCEPOST_CLIENT_MUTANTS", DRAWN))]


def check_mutants(folder: Path) -> Iterator[Figure]:
    """Each drawn mutant: what found it, or whether it does anything else than the shipped client."""
    kinds = Counter[str]()
    for name in drawn_mutants():
        outcome = hunt_mutant(name, SEED, MUTANT_SCHEDULES)
        explained = EXPLAINED.get(name, "")
        kind = "found" if outcome.found else "explained" if explained else "open" if outcome.differs else "the same"
        kinds[kind] += 1
        print(f"{name}: {outcome.found or explained or kind}, {outcome.seconds:.1f} s", flush=True)
        yield without_threshold(name, outcome.found or explained or kind)
    hunted = kinds.total() - kinds["explained"]
    yield without_threshold("mutants drawn and hunted", kinds.total())
    yield without_threshold("explained: they cannot be told apart", kinds["explained"])
    yield without_threshold("not found, and not seen to do anything else", kinds["the same"])
    yield without_threshold("not found, and seen to do something else", kinds["open"])
    yield at_least("percent found of those not explained", round(100 * kinds["found"] / max(hunted, 1), 1), MIN_SHARE)


CHECKS = (
    *(Check(f"heldout-{side}s", f"held-out faults of {side}s", partial(check_heldout, side)) for side in Side),
    Check("mutants", f"at least {MIN_SHARE:g} % of the mutants that can be told apart", check_mutants),
)
