"""The interface of observers of a trace while it is judged."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from fencepost.traces.events import Header
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path
from fencepost.traces.operations import PairedEvent


class TraceObserver(Protocol):
    """Is told of the events of one trace, and of the steps that explain them."""

    def before_event(self, moment: PairedEvent, judge: Judge) -> None:
        """An event that the judge is about to get."""

    def on_step(self, group: str, step: Path) -> None:
        """A step of the model that is settled."""

    def after_event(self, moment: PairedEvent, judge: Judge) -> None:
        """An event that the judge has judged."""

    def finish(self) -> None:
        """The trace is over, or was given up; the judge has finished."""


MakeObserver: TypeAlias = Callable[[str, Header], TraceObserver]
"""Makes the observer of a trace by its path and its header."""
