"""The protocols by which traces are judged, by the names that headers have for them: no other module of the judge's
engine names one."""

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from fencepost.model.errors import FencepostError
from fencepost.traces.events import CLASSIC, Header
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol

MakeProtocol: TypeAlias = Callable[[Header], JudgedProtocol]
"""Makes the reader of a trace from its header."""
PROTOCOLS = {
    CLASSIC: "fencepost.traces.judge.classic.protocol.ClassicProtocol",
    "push": "fencepost.traces.push.judge.PushProtocol",
    "region": "fencepost.traces.region.judge.RegionProtocol",
}
"""The readers by the names of protocols; each is imported with the first trace that needs it."""


class UnknownProtocol(FencepostError):
    """A trace is of a protocol that no judge is there for; the message is one clear line."""


def protocol_of(header: Header) -> JudgedProtocol:
    """The reader of a trace, by the protocol that its header names. Raises `UnknownProtocol`."""
    if header.protocol not in PROTOCOLS:
        raise UnknownProtocol(f"protocol {header.protocol!r} is none that is judged: {', '.join(PROTOCOLS)}")
    module, _, name = PROTOCOLS[header.protocol].rpartition(".")
    make: MakeProtocol = getattr(import_module(module), name)
    return make(header)


DEFAULT_PROTOCOL: MakeProtocol = protocol_of
