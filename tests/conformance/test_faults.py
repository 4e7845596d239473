"""Every fault of `faults` is found by the kit's own scenarios, and a coordinator without faults is not blamed.

With `-s`, a table shows by which requirement each fault was found, in which scenario, and after how many requests.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description
from fencepost.conformance.bundled_run import Bundled
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.selection import wanted
from fencepost.traces.events import Order
from tests.conformance.faults import FAULTS, STORE_MS, Fault, store_slowly


class SlowTarget(InProcessTarget):
    """The bundled coordinator with a log that takes its time: requests take a while, as clients see it."""

    async def open(self) -> Description:
        return replace(await super().open(), order=Order.INTERVALS)


def run(*, slow_store: bool = False) -> Report:
    """All scenarios on the bundled coordinator as it is now; with a slow store those that have to do with it."""
    bundled = Bundled(Plan(BUNDLED), Profile(grace=STORE_MS if slow_store else None))
    bundled.make_target = SlowTarget if slow_store else InProcessTarget
    requirements = wanted(("SYNC-*", "GEN-*") if slow_store else ())
    return asyncio.run(bundled.run(requirements, lambda progress: None))


@dataclass(frozen=True, slots=True)
class Finding:
    """How a fault was found."""

    requirement: str
    scenario: str
    requests: int


def findings(report: Report) -> list[Finding]:
    """Everything that a run found broken, and confirmed by a replay; the shortest schedule of each requirement."""
    failed = [result for result in report.results if result.verdict is Verdict.FAIL]
    shortest = [(result.id, result.shortest_first()[0]) for result in failed]
    return [Finding(id, failure.trace, len(failure.schedule)) for id, failure in shortest]


def look_for(fault: Fault) -> list[Finding]:
    """What is found in a coordinator with the fault."""
    with pytest.MonkeyPatch.context() as patch:
        fault.put_back(patch)
        return findings(run(slow_store=fault.slow_store))


@pytest.fixture(scope="module")
def table() -> Iterator[list[tuple[Fault, list[Finding]]]]:
    """What was found so far; printed at the end."""
    rows: list[tuple[Fault, list[Finding]]] = []
    yield rows
    print(f"\n{'bug':8} {'found by':12} {'requests':>8}  {'scenario':46} {'in all':>6}  what it does")
    for fault, found in rows:
        best = shortest(fault, found)
        where = f"{best.requirement:12} {best.requests:8}  {best.scenario:46} {len(found):6}"
        print(f"{fault.bug:8} {where}  {fault.sentence}")


def shortest(fault: Fault, found: list[Finding]) -> Finding:
    """Of what had to be found, that with the shortest schedule."""
    return min((one for one in found if one.requirement in fault.breaks), key=lambda one: one.requests)


def test_no_fault_no_finding() -> None:
    report = run()
    assert findings(report) == []
    assert report.summary()[Verdict.INCONCLUSIVE] == 0


def test_a_slow_log_alone_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    store_slowly(monkeypatch, for_any_generation=False)
    report = run(slow_store=True)
    assert findings(report) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.bug)
def test_fault_is_found(fault: Fault, table: list[tuple[Fault, list[Finding]]]) -> None:
    found = look_for(fault)
    assert set(fault.breaks) <= {one.requirement for one in found}
    table.append((fault, found))
