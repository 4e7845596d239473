"""The consumer group in a consistent region as runs, replays and reports see it."""

from collections.abc import Sequence

from fencepost.adapters.address import TargetError, parse_address
from fencepost.adapters.region.line_target import LineTarget, connect_in_memory, connect_over_tcp
from fencepost.conformance.profile import Profile
from fencepost.conformance.region.job import Job
from fencepost.conformance.region.scenarios import ALL
from fencepost.conformance.reports.incident_words import HistoryWords
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.schedule import ScheduleProtocol, ScheduleScope
from fencepost.conformance.subject import Scenario
from fencepost.model.region.specification import REGION as SPECIFICATION
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.region.judge import RegionProtocol


def make_schedules(scope: ScheduleScope) -> ScheduleProtocol:
    """Random schedules of one job."""
    from fencepost.conformance.region.schedules import RegionSchedules

    return RegionSchedules()


def make_target(address: str, profile: Profile) -> LineTarget:
    """The program at `region://host:port`. Raises `TargetError`."""
    found = parse_address(address.strip().partition("://")[2])
    if found is None:
        raise TargetError(f"{address!r} is no address of a region: write region://host:port, or region://bundled")
    return LineTarget(address.strip(), connect_over_tcp(*found), "wall")


def make_bundled(settings: Settings) -> LineTarget:
    """The bundled operators in this process."""
    return LineTarget("region://bundled", connect_in_memory, implementation={"name": "fencepost bundled region"})


def repeat(events: Sequence[Event]) -> Scenario:
    """A scenario that sends the requests of a trace again, with what operators write into checkpoints this time."""

    async def play(context: ScenarioContext) -> None:
        job = Job(context, ())
        for event in events:
            if event.kind is Kind.REQUEST:
                await job.repeat(event.api, event.body)

    return Scenario("replay", (), play)


REGION = ProtocolDescription(
    SPECIFICATION,
    RegionProtocol,
    ALL,
    make_schedules=make_schedules,
    make_target=make_target,
    make_bundled=make_bundled,
    repeat=repeat,
)
PHASES = {"Preparing": "Merging", "Completing": "Seeking", "Stable": "Running", "Dead": "Down"}
WORDS = HistoryWords(
    change="reset",
    phases=("Merge", "Seek"),
    round="checkpoint",
    round_mark="#",
    last="was last",
    states=PHASES,
    bands=PHASES,
    seen_by={"coordinator": "requests to the operators of a region"},
    question="Do the operators keep the protocol?",
)
