"""Finding out which of the scenarios that were being played at once brings the target down.

Whatever was in flight when the target went down is suspect, and one of the suspects needs as many seconds to bring it
down as it had been played for. They are played again, each begun so late that these seconds are over at a moment of its
own: the moment at which the target goes down again tells who it was, but for jitter, and for others that would have
brought it down a little later. Those nearest to that moment are tried alone, and then ever more of the others together.
A trial is given up when the target should be down.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.conformance.scenario.scenario import Scenario

SPACING_SECONDS = 0.1
"""How far the moments of two suspects are apart."""
JITTER_SECONDS = 0.2
"""How much earlier than its moment a suspect may bring the target down."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A scenario that was being played when the target went down, for so many seconds until then."""

    scenario: Scenario
    seconds: float


TryOut = Callable[[Sequence[Suspect]], Awaitable[bool]]
"""Plays suspects at once for a little longer than any of them needs. Whether the target went down; it is up again
afterwards."""


def separate_moments(suspects: Iterable[Suspect]) -> dict[Scenario, float]:
    """When each suspect brings the target down, if it does and is begun in time for that: as soon as possible, and at
    moments that are `SPACING_SECONDS` apart."""
    moments: dict[Scenario, float] = {}
    latest = 0.0
    for each in sorted(suspects, key=lambda each: each.seconds):
        moments[each.scenario] = latest = max(latest + SPACING_SECONDS, each.seconds)
    return moments


def order_suspects(suspects: Iterable[Suspect], moments: Mapping[Scenario, float], went_down: float) -> list[Suspect]:
    """The suspects by how near their moments are to when the target went down: those before it first, and those without
    a moment last."""

    def place(suspect: Suspect) -> tuple[bool, bool, float]:
        moment = moments.get(suspect.scenario)
        lag = went_down - moment if moment is not None else 0.0
        return moment is None, lag < -JITTER_SECONDS, abs(lag)

    return sorted(suspects, key=place)


async def find_crashing_scenario(suspects: Sequence[Suspect], try_out: TryOut) -> Scenario | None:
    """The scenario that brings the target down, None if no trial shows it. The most suspect come first."""
    left, size = list(suspects), 1
    while left:
        some, left = left[:size], left[size:]
        if await try_out(some):
            return some[0].scenario if len(some) == 1 else await find_crashing_scenario(some, try_out)
        size *= 2
    return None
