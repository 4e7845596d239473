"""Playing schedules with a client in this process, on virtual time."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.clients.play import ClientPlay
from fencepost.conformance.clients.schedule_protocol import ClientScheduleProtocol
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ClientBench:
    """Plays schedules with a client of `make_play`; `facts` are what it is."""

    protocol: ClientScheduleProtocol
    make_play: Callable[[], ClientPlay]
    facts: ClientFacts

    def play(self, schedule: Schedule) -> ScenarioRun:
        """Play a schedule, and judge it."""
        return run_virtual(self.make_play().play(self.protocol.client_scenario_of(schedule), self.facts))

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows violated."""
        return self.play(schedule).verdict.violated

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, for a schedule that is played the first time."""
        return self.violated_by(schedule)
