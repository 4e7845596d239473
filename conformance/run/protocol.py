"""The interface of a protocol to runs, replays and reports: one value that names its parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Target
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.schedule import ScheduleProtocol, ScheduleScope
from fencepost.conformance.subject import Scenario, Subject
from fencepost.model.catalogue.specification import Specification
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event
from fencepost.traces.judge.judge import MakeProtocol, judge
from fencepost.traces.replay_script import Translation
from fencepost.traces.verdict import Transition

# -- a target on the network ------------------------------------------------------------------------------------------


class RemoteTarget(Target, Protocol):
    """A target in other processes: it may go down or be busy, and connections to it take time."""

    @property
    def idle_findings(self) -> tuple[str, ...]:
        """What it did while it was idle that it should not."""
        ...

    @property
    def idle_remarks(self) -> tuple[str, ...]:
        """Why it was not watched while it was idle, if it should have been."""
        ...

    async def mark_run(self, token: str) -> str | None:
        """Leave a sign of the run with this token; the id of the topic, if it has one."""
        ...

    async def remove_traces(self, token: str) -> tuple[str, ...]:
        """Remove what the run with this token left; a line for each kind of thing that stays."""
        ...

    async def is_alive(self) -> bool:
        """Whether it responds on a fresh connection."""
        ...

    async def measure_response_time(self) -> float:
        """How many seconds a trivial request takes at present."""
        ...

    async def measure_again(self, topic_id: str | None) -> Mapping[str, tuple[int, int]]:
        """Measure its settings once more, those that were measured; those that differ by now, with both values."""
        ...

    async def watch_idle(self, when: str) -> None:
        """Measure the idle target; `when` is a phrase such as "after the scenarios"."""
        ...

    async def open_idle_connections(self, connections: int) -> None:
        """Open connections in advance until so many are idle."""
        ...


# -- a protocol -------------------------------------------------------------------------------------------------------


async def play_nothing(context: ScenarioContext) -> None:
    """Send no request."""


def no_schedules(scope: ScheduleScope) -> ScheduleProtocol:
    """Raises NotImplementedError: there are no random schedules."""
    raise NotImplementedError


def no_target(address: str, profile: Profile) -> RemoteTarget:
    """Raises TargetError: the protocol is not spoken over the network."""
    raise TargetError(f"{address}: no target of this protocol is reached over the network")


NO_SCENARIO = Scenario("nothing", (), play_nothing)


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """How traces of a protocol are replayed.

    `make_translation` gets a function that renames groups, for targets that keep those of earlier replays.
    `complete_request` makes a request of a trace whole, and raises ValueError if it cannot be sent. A response that
    `is_transient` asks for the request to be sent again. Requests to `setup_apis` are not judged; the rules in
    `stateless_rules` say nothing of the state that a schedule led to.
    """

    make_translation: Callable[[Callable[[str], str]], Translation] = Translation
    complete_request: Callable[[Event], Event] = lambda event: event
    is_transient: Callable[[Body], bool] = lambda response: False
    setup_apis: frozenset[str] = frozenset()
    stateless_rules: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProtocolDescription:
    """A protocol that can be tested.

    `judged` makes the reader of a trace for its judge. `scenarios` are played in every run; `versions_scenario` is the
    one that finds out which versions of requests a target over the network takes. `make_tours` makes so many tours of
    the model's transitions by a seed, `make_schedules` random schedules; `known_transitions` are those that
    their coverage is measured against. `release_of` names the release of the reference implementation that advertises
    exactly these versions, "" if it is none of those that are known to do otherwise. `make_target` makes the target at
    an address, as its profile says, and raises `TargetError`. `make_bundled` makes the one in
    this process, where the address is `bundled` behind the scheme. `repeat` makes the scenario that plays a trace
    again, where that is not done request by request.
    """

    specification: Specification
    judged: MakeProtocol
    scenarios: tuple[Scenario, ...] = ()
    versions_scenario: Scenario = NO_SCENARIO
    make_tours: Callable[[Settings, int, int], Sequence[Scenario]] = lambda settings, count, seed: ()
    make_schedules: Callable[[ScheduleScope], ScheduleProtocol] = no_schedules
    known_transitions: Callable[[], frozenset[Transition]] = frozenset
    replay: ReplayRules = ReplayRules()
    release_of: Callable[[Mapping[str, tuple[int, int]]], str] = lambda versions: ""
    make_target: Callable[[str, Profile], RemoteTarget] = no_target
    make_bundled: Callable[[Settings], Target] | None = None
    repeat: Callable[[Sequence[Event]], Scenario] | None = None

    @property
    def subject(self) -> Subject:
        """The coordinators of the protocol."""
        judging = partial(judge, protocol=self.judged)
        return Subject(self.specification, judging, known_transitions=self.known_transitions)
