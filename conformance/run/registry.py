"""The protocols that can be tested, by the names that traces and addresses have for them, and the default one."""

from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.model.protocols import default_protocol, find_protocol, load_part

DEFAULT_PROTOCOL: ProtocolDescription = load_part(default_protocol().description)


def protocol_named(name: str) -> ProtocolDescription:
    """The protocol of a trace whose header has this name. Raises KeyError if there is none."""
    if name == default_protocol().name:
        return DEFAULT_PROTOCOL
    entry = find_protocol(name)
    if entry is None or not entry.description:
        raise KeyError(name)
    found: ProtocolDescription = load_part(entry.description)
    return found


def name_of_target(target: str) -> str:
    """The name of the protocol that the target with this address speaks: `push://host:port` speaks push."""
    scheme, mark, _ = target.strip().partition("://")
    entry = find_protocol(scheme.lower()) if mark else None
    return (default_protocol() if entry is None or not entry.description else entry).name


def is_bundled(target: str) -> bool:
    """Whether the target is in this process."""
    scheme, _, place = target.strip().partition("://")
    return target == BUNDLED or (place == BUNDLED and name_of_target(target) == scheme.lower())


def protocol_of_target(target: str) -> ProtocolDescription:
    """The protocol that the target with this address speaks."""
    return protocol_named(name_of_target(target))
