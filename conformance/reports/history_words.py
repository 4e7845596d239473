"""The words of each protocol for the parts of a group's history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
PUSH_PHASES = {"Preparing": "Stopping", "Completing": "Starting", "Stable": "Fetching"}
REGION_PHASES = {"Preparing": "Merging", "Completing": "Seeking", "Stable": "Running", "Dead": "Down"}
WORDS: Mapping[str, HistoryWords] = {
    "push": HistoryWords(
        phases=("Stop", "Start"),
        round="attempt",
        round_mark="#",
        last="answered last",
        states=PUSH_PHASES,
        bands=PUSH_PHASES,
        seen_by={"clients": "messages between consumers and a push coordinator"},
    ),
    "region": HistoryWords(
        change="reset",
        phases=("Merge", "Seek"),
        round="checkpoint",
        round_mark="#",
        last="was last",
        states=REGION_PHASES,
        bands=REGION_PHASES,
        seen_by={"coordinator": "requests to the operators of a region"},
        question="Do the operators keep the protocol?",
    ),
}
"""The words of other protocols than the classic one."""


def words_of(histories: Sequence[TraceHistory]) -> HistoryWords:
    """The words for histories, all of one protocol."""
    return WORDS.get(histories[0].protocol, CLASSIC_WORDS) if histories else CLASSIC_WORDS
