"""The recorders of histories, by the names that headers have for protocols."""

from collections.abc import Callable

from fencepost.model.protocols import find_protocol, load_part
from fencepost.traces.events import Header
from fencepost.traces.history.builder import TraceHistory, TraceObserver


class NoHistory(ValueError):
    """There is no history to tell of a protocol; the message is one clear line."""


def make_recorder(path: str, header: Header, histories: list[TraceHistory]) -> TraceObserver:
    """The recorder of a trace, which adds its history to `histories`. Raises `NoHistory`."""
    entry = find_protocol(header.protocol)
    if entry is None or not entry.history:
        raise NoHistory(f"no history is told of the protocol {header.protocol}: use fencepost judge")
    make: Callable[[str, Header, list[TraceHistory]], TraceObserver] = load_part(entry.history)
    return make(path, header, histories)
