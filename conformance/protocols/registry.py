"""The protocols that can be tested, by the names that traces and addresses have for them, and the default one."""

from importlib import import_module

from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.protocols.classic import CLASSIC
from fencepost.conformance.protocols.description import ProtocolDescription
from fencepost.traces import events

DEFAULT_PROTOCOL = CLASSIC
OTHERS = {
    "push": "fencepost.conformance.push.protocol.PUSH",
    "region": "fencepost.conformance.region.protocol.REGION",
}
"""The descriptions of other protocols, each imported when it is asked for, by the scheme of addresses and the name in
headers of traces."""


def protocol_named(name: str) -> ProtocolDescription:
    """The protocol of a trace whose header has this name. Raises KeyError if there is none."""
    if name == events.CLASSIC:
        return DEFAULT_PROTOCOL
    module, _, value = OTHERS[name].rpartition(".")
    found: ProtocolDescription = getattr(import_module(module), value)
    return found


def name_of_target(target: str) -> str:
    """The name of the protocol that the target with this address speaks: `push://host:port` speaks push."""
    scheme, mark, _ = target.strip().partition("://")
    return scheme.lower() if mark and scheme.lower() in OTHERS else events.CLASSIC


def is_bundled(target: str) -> bool:
    """Whether the target is in this process."""
    return target == BUNDLED or target.strip().partition("://")[2] == BUNDLED


def protocol_of_target(target: str) -> ProtocolDescription:
    """The protocol that the target with this address speaks."""
    return protocol_named(name_of_target(target))
