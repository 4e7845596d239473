"""The classic protocol as runs, replays and reports see it.

Tours and random schedules are imported late: NetworkX and Hypothesis are for those who ask for them.
"""

from collections.abc import Sequence

from fencepost.conformance.classic.kafka_address import kafka_target
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.scenarios.lookups import versions
from fencepost.conformance.run.protocol import ProtocolDescription, ReplayRules
from fencepost.conformance.run.schedule import ScheduleProtocol, ScheduleScope
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue import CLASSIC as SPECIFICATION
from fencepost.model.classic.catalogue.reference import latest_release
from fencepost.model.errors import TRANSIENT_ERRORS
from fencepost.model.settings import Settings
from fencepost.traces.classic.protocol import ClassicProtocol
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.model_transitions import Transition
from fencepost.traces.replay_script import IdTranslation, with_defaults

SETUP_APIS = frozenset({"InitProducerId", "AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn"})
"""Requests to the transaction coordinator."""
STATELESS_RULES = frozenset({"find.coordinator"})
"""Rules that hold in every state."""


def is_transient(response: Body) -> bool:
    """All errors in a response mean that the target is not ready."""
    return errors_in(response) <= TRANSIENT_ERRORS and bool(errors_in(response))


def make_tours(settings: Settings, count: int, seed: int) -> Sequence[Scenario]:
    """Tours of the transitions of a small coordinator."""
    from fencepost.conformance.classic.scenarios.tours import sample_tours

    return sample_tours(settings, count, seed)


def make_schedules(scope: ScheduleScope) -> ScheduleProtocol:
    """Random schedules of classic groups."""
    from fencepost.conformance.classic.schedules.protocol import ClassicSchedules

    return ClassicSchedules(scope)


def known_transitions() -> frozenset[Transition]:
    """The transitions that the classic coordinator took in many simulated schedules."""
    from fencepost.conformance.classic.schedules.protocol import coverage_goals

    return coverage_goals().transitions


CLASSIC = ProtocolDescription(
    SPECIFICATION,
    ClassicProtocol,
    ALL,
    versions.scenarios[0],
    make_tours,
    make_schedules,
    known_transitions,
    ReplayRules(IdTranslation, with_defaults, is_transient, SETUP_APIS, STATELESS_RULES),
    latest_release,
    kafka_target,
)
