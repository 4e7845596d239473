"""The recorders of histories by protocol: no other module of this package names one."""

from collections.abc import Callable
from importlib import import_module

from fencepost.traces.events import CLASSIC, Header
from fencepost.traces.history.observer import TraceObserver
from fencepost.traces.history.timeline import TraceHistory

RECORDERS = {
    CLASSIC: "fencepost.traces.history.trace_history.HistoryRecorder",
    "push": "fencepost.traces.push.history.PushRecorder",
    "region": "fencepost.traces.region.history.RegionRecorder",
}
"""The recorders by the names of protocols; each is imported with the first trace that needs it."""


class NoHistory(ValueError):
    """There is no history to tell of a protocol; the message is one clear line."""


def make_recorder(path: str, header: Header, histories: list[TraceHistory]) -> TraceObserver:
    """The recorder of a trace, which adds its history to `histories`. Raises `NoHistory`."""
    if header.protocol not in RECORDERS:
        raise NoHistory(f"no history is told of the protocol {header.protocol}: use fencepost judge")
    module, _, name = RECORDERS[header.protocol].rpartition(".")
    make: Callable[[str, Header, list[TraceHistory]], TraceObserver] = getattr(import_module(module), name)
    return make(path, header, histories)
