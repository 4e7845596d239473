"""The interface of a protocol to runs against clients: one value that names its parts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fencepost.adapters.client.cluster import CLIENT_LABEL, ScriptedCluster
from fencepost.adapters.client.program import ClientUnderTest
from fencepost.conformance.run.schedule import Move, Schedule, ScheduleProtocol
from fencepost.conformance.subject import NO_DECISIONS, Scenario, Subject
from fencepost.model.catalogue.requirement import Requirement, Verifiability
from fencepost.model.catalogue.specification import Specification
from fencepost.model.protocols import default_protocol, load_part
from fencepost.model.settings import Settings
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.verdict import TraceVerdict

# -- random schedules -------------------------------------------------------------------------------------------------

SCHEDULE = "schedule"
"""The name of the event in which the trace of a schedule has its moves."""


def schedule_body(schedule: Schedule) -> Body:
    """The body of the event with the moves of a schedule."""
    moves = [{"kind": move.kind, "who": move.who, "options": dict(move.options)} for move in schedule.moves]
    return {"name": schedule.name, "moves": moves}


def schedule_in(events: Iterable[Event]) -> Schedule | None:
    """The schedule in a trace, None if it has none. Raises `ValueError` for one that cannot be read."""
    found = next((event for event in events if event.kind is Kind.INTERNAL and event.api == SCHEDULE), None)
    if found is None:
        return None
    try:
        moves = tuple(
            Move(str(row["kind"]), int(row["who"]), tuple(dict(row["options"]).items())) for row in found.body["moves"]
        )
        return Schedule(str(found.body["name"]), (), moves)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the schedule in event {found.sequence} cannot be read: {error!r}") from None


# -- runs -------------------------------------------------------------------------------------------------------------


class BundledClient(ClientUnderTest, Protocol):
    """A client in this process."""

    async def start_cluster(self, settings: Settings) -> ScriptedCluster:
        """A cluster that it can reach."""
        ...


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
    schedules: ScheduleProtocol | None = None
    """Random schedules, if it has any."""
    bundled: Callable[[], BundledClient] | None = None
    """Makes the client that the kit brings along, if there is one: it runs in this process, on virtual time."""

    def judge(
        self, header: Header, events: Iterable[Event], decisions: Mapping[str, bool] = NO_DECISIONS
    ) -> TraceVerdict:
        """The verdict on the client in a trace. Of a client no reference differences are known."""
        return judge_client(header, events, CLIENT_LABEL, self.follow)

    @property
    def subject(self) -> Subject:
        """The clients of the protocol."""
        return Subject(self.specification, self.judge, is_watched=True)

    def requirements_out_of_reach(self, requirements: Iterable[Requirement]) -> dict[str, str]:
        """Those that a client cannot show to be kept, each with the reason."""
        return {each.id: reason for each in requirements if (reason := self.reason_left_out(each))}

    def reason_left_out(self, requirement: Requirement) -> str:
        """Why a client of which only requests are seen cannot show that it keeps a requirement, "" if it can."""
        if requirement.testability is Verifiability.UNTESTABLE:
            return requirement.why
        missing = [self.needs[need] for need in requirement.needs if need in self.out_of_reach]
        return f"needs {' and '.join(missing)}" if missing else ""

    def scenarios_for(self, requirements: frozenset[str]) -> tuple[Scenario, ...]:
        """The scenarios that show one of these requirements, and need no capability that is out of reach."""
        return tuple(
            scenario
            for scenario in self.scenarios
            if requirements & set(scenario.requirements) and not self.out_of_reach & set(scenario.needs)
        )


def client_protocol(*, is_driven: bool) -> ClientProtocol:
    """How clients of the default protocol are tested: those with a driver, or those of which only requests are seen."""
    entry = default_protocol()
    found: ClientProtocol = load_part(entry.driven_clients if is_driven else entry.clients)
    return found
