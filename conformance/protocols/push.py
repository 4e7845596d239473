"""The push coordinator as runs, replays and reports see it."""

from fencepost.adapters.address import parse_bootstrap
from fencepost.adapters.push.bundled_target import TOPIC, BundledPushTarget
from fencepost.adapters.push.network_target import PushTarget
from fencepost.adapters.target import TargetError
from fencepost.conformance.profile import Profile
from fencepost.conformance.protocols.description import ProtocolDescription
from fencepost.conformance.scenarios.push import ALL
from fencepost.conformance.scenarios.push.repeating import repeat_trace
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.model.push.rules import PUSH as SPECIFICATION
from fencepost.model.settings import Settings
from fencepost.traces.judge.push.protocol import PushProtocol

SCHEME = "push://"


def push_target(address: str, profile: Profile) -> PushTarget:
    """The brokers at `push://host:port`, with the topic and the limits of the profile. Raises `TargetError`."""
    found = parse_bootstrap(address.strip()[len(SCHEME) :])
    if found is None or found.wants_tls:
        raise TargetError(f"{address!r} is no target: write push://host:port, or push://bundled")
    return PushTarget(found.addresses, profile.topic or TOPIC, profile.limits)


def make_bundled(settings: Settings) -> BundledPushTarget:
    """The bundled coordinator in this process."""
    return BundledPushTarget()


def make_schedules(scope: ScheduleScope) -> TargetScheduleProtocol:
    """Random schedules of consumers."""
    from fencepost.conformance.schedules.push.schedules import make_push_schedules

    return make_push_schedules(scope)


PUSH = ProtocolDescription(
    SPECIFICATION,
    PushProtocol,
    ALL,
    make_schedules=make_schedules,
    make_target=push_target,
    make_bundled=make_bundled,
    repeat=repeat_trace,
)
