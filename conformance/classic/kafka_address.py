"""A Kafka cluster at an address, as a profile describes it."""

from fencepost.adapters.address import TargetError, parse_target
from fencepost.adapters.security.authentication import load_security
from fencepost.adapters.wire.process_control import MoveCommand, ProcessControl
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.profile import Profile


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
