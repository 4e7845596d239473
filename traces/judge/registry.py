"""The protocols by which traces are judged, by the names that headers have for them."""

from collections.abc import Callable
from typing import TypeAlias

from fencepost.model.errors import FencepostError
from fencepost.model.protocols import find_protocol, load_part, protocols_with
from fencepost.traces.events import Header
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol

MakeProtocol: TypeAlias = Callable[[Header], JudgedProtocol]
"""Makes the reader of a trace from its header."""


class UnknownProtocol(FencepostError):
    """A trace is of a protocol that no judge is there for; the message is one clear line."""


def protocol_of(header: Header) -> JudgedProtocol:
    """The reader of a trace, by the protocol that its header names. Raises `UnknownProtocol`."""
    entry = find_protocol(header.protocol)
    if entry is None or not entry.judge:
        known = ", ".join(protocols_with(lambda entry: entry.judge))
        raise UnknownProtocol(f"protocol {header.protocol!r} is none that is judged: {known}")
    make: MakeProtocol = load_part(entry.judge)
    return make(header)


DEFAULT_PROTOCOL: MakeProtocol = protocol_of
