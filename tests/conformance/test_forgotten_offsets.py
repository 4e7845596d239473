"""Transactional offsets that a coordinator forgets long before their retention is over."""

from typing import Any

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.fetches import Producer
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario
from fencepost.traces.verdict import TraceVerdict

COMMITTED_AT_MS = 100_000
"""Long after the retention of an offset that was committed when the trace began."""
KEPT_MS = 600
"""How long the faulty coordinator keeps an offset of a transaction."""


class ForgetfulCoordinator(Coordinator):
    """Forgets the offsets of a group 600 ms after a transaction has ended."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.ended_at: int | None = None
        super().__init__(*given, **named)

    def handle(self, request: Request, now: int) -> list[Response]:
        if request.api == "EndTxn":
            self.ended_at = now
        elif self.ended_at is not None and now >= self.ended_at + KEPT_MS:
            for group in self._runtime.groups.values():
                group.offsets.clear()
        return super().handle(request, now)


async def commit_in_a_transaction(group: ScenarioContext) -> None:
    """Commit an offset in a transaction late in the trace, and fetch it 600 ms later."""
    await group.sleep(COMMITTED_AT_MS)
    producer = Producer(group)
    await producer.begin()
    await producer.commit(0, 70)
    await producer.end(committed=True)
    await group.fetch(stable=True)
    await group.sleep(KEPT_MS)
    await group.fetch(stable=True)


def verdict_on(coordinator: type[Coordinator]) -> TraceVerdict:
    """The verdict on the scenario, played on a coordinator that keeps offsets for a minute."""

    async def play() -> TraceVerdict:
        target = InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator)
        scenario = Scenario("forgotten", (), commit_in_a_transaction)
        return (await play_scenario(scenario, target, await target.open(), "g", grace=0)).verdict

    return run_virtual(play())


def test_a_transactional_offset_forgotten_after_600_ms_is_a_violation() -> None:
    assert COMMITTED_AT_MS > BUNDLED_SETTINGS.offsets_retention > KEPT_MS
    (violation,) = verdict_on(ForgetfulCoordinator).violations
    assert (violation.api, violation.fields) == ("OffsetFetch", ("offset",))


def test_the_bundled_coordinator_keeps_it() -> None:
    verdict = verdict_on(Coordinator)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert verdict.rules["fetch.offsets"] == 2
