"""The interface of a protocol to runs against clients: one value that names its parts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.clients.schedule_protocol import ClientScheduleProtocol
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import TraceVerdict


@dataclass(frozen=True, slots=True)
class ClientProtocol:
    """A protocol whose clients can be tested.

    The first of the `scenarios` is played by itself, to see what the client is. `needs` has all capabilities in words
    that fit after "needs"; `out_of_reach` are those that the client is not taken to have.
    """

    specification: Specification
    scenarios: tuple[Scenario, ...]
    follow: FollowClient
    needs: Mapping[str, str]
    out_of_reach: frozenset[str]
    schedules: ClientScheduleProtocol | None = None
    """Random schedules, if it has any."""

    def judge(self, header: Header, events: Iterable[Event]) -> TraceVerdict:
        """The verdict on the client in a trace."""
        return judge_client(header, events, CLIENT_LABEL, self.follow)

    def scenarios_for(self, requirements: frozenset[str]) -> tuple[Scenario, ...]:
        """The scenarios that show one of these requirements, and need no capability that is out of reach."""
        return tuple(
            scenario
            for scenario in self.scenarios
            if requirements & set(scenario.requirements) and not self.out_of_reach & set(scenario.needs)
        )
