"""The words of each protocol for the parts of a group's history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.model.protocols import find_protocol, load_part
from fencepost.traces.history.timeline import TraceHistory


@dataclass(frozen=True, slots=True)
class HistoryWords:
    """The words of one protocol. A change of all members has two phases, and leads to a numbered round."""

    change: str = "rebalance"
    phases: tuple[str, str] = ("Join phase", "Sync phase")
    round: str = "generation"
    round_mark: str = "g"
    """What stands before the number of a round where there is little room."""
    last: str = "joined last"
    """What the member did that a phase waited for longest."""
    states: Mapping[str, str] = field(
        default_factory=lambda: {"Preparing": "PreparingRebalance", "Completing": "CompletingRebalance"}
    )
    """The states as tools call them, where that is not the name of the phase."""
    bands: Mapping[str, str] = field(default_factory=dict)
    """The phases as a drawing calls them, where that is not their name."""
    seen_by: Mapping[str, str] = field(
        default_factory=lambda: {
            "log": "the log of a coordinator",
            "clients": "messages between clients and brokers",
            "coordinator": "messages as the coordinator handles them",
        }
    )
    """Where a trace was seen, by its kind."""
    question: str = "Does the coordinator keep the protocol?"

    def state(self, phase: str) -> str:
        """The name of a state."""
        return self.states.get(phase, phase) or "unknown"

    def band(self, phase: str) -> str:
        """The name of a phase in a drawing."""
        return self.bands.get(phase, phase)


CLASSIC_WORDS = HistoryWords()


def words_of(histories: Sequence[TraceHistory]) -> HistoryWords:
    """The words for histories, all of one protocol."""
    entry = find_protocol(histories[0].protocol) if histories else None
    words: HistoryWords = CLASSIC_WORDS if entry is None or not entry.words else load_part(entry.words)
    return words
