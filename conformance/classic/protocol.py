"""The classic protocol as runs, replays and reports see it.

Tours and random schedules are imported late: NetworkX and Hypothesis are for those who ask for them.
"""

from collections.abc import Sequence

from fencepost.adapters.address import TargetError, parse_target
from fencepost.adapters.security.authentication import load_security
from fencepost.adapters.wire.process_control import MoveCommand, ProcessControl
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.scenarios.lookups import versions
from fencepost.conformance.profile import Profile
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
from fencepost.traces.replay_script import IdTranslation, with_defaults
from fencepost.traces.verdict import Transition

# --- A Kafka cluster at an address, as a profile describes it.


def kafka_target(address: str, profile: Profile) -> KafkaTarget:
    """The target at an address, with security, settings and commands of the profile; the empty address stands for the
    one that its start command prints. Raises `TargetError` for no address, and if a file or secret is missing."""
    if not address and not profile.start:
        raise TargetError("no target: name one, such as bundled, or give a --profile with [target] start")
    if address and profile.start and not profile.kill:
        raise TargetError(
            f"{address}: the profile has start and no kill, so that only a target which the kit started can be "
            "restarted; leave the address out, or give [target] kill"
        )
    bootstrap = parse_target(address) if address else None
    security = load_security(profile.security, wants_tls=bootstrap is not None and bootstrap.wants_tls)
    lifecycle = ProcessControl(profile.start, profile.kill, profile.folder) if profile.can_restart else None
    return KafkaTarget(
        bootstrap,
        security=security,
        overrides=profile.settings,
        may_contradict=profile.overrides_broker,
        process_control=lifecycle,
        move_command=MoveCommand(profile.move, profile.folder) if profile.move else None,
    )


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
