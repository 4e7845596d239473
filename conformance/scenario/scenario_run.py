"""The result of playing a scenario, as plain data."""

from dataclasses import dataclass

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import TraceVerdict


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario that was played: its trace, the judge's verdict, and why it ended early if it did.

    `unsupported` names what the target does not offer; `blocked` is the reason why the scenario could not go on;
    `crashed` is true if the target was gone afterwards; `loop_lag` is the kit's own worst delay in milliseconds.
    """

    scenario: Scenario
    header: Header
    events: tuple[Event, ...]
    verdict: TraceVerdict
    unsupported: str = ""
    blocked: str = ""
    crashed: bool = False
    loop_lag: int = 0
