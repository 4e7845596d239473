"""Finding out which of the scenarios that were being played at once brings the target down.

Whatever was in flight when the target went down is suspect, and one of them needs as many seconds to bring it down as
it had been played for. So all of them are tried at once, each begun so late that these seconds are over at a moment of
its own: the moment at which the target goes down again tells who it was, but for jitter, and for others that would have
brought it down a little later. Those nearest to that moment are tried alone, and then ever more of the others together.
A trial is given up when the target should be down.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
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


TryOut = Callable[[Mapping[Suspect, float]], Awaitable[float | None]]
"""Plays suspects, each begun after its delay in seconds, and returns after how many seconds the target went down, None
if it stood a little longer than any of them needs. It is up again afterwards."""


async def find_crashing_scenario(suspects: Sequence[Suspect], try_out: TryOut) -> Scenario | None:
    """The scenario that brings the target down, None if no trial shows it. A single suspect needs no trial."""
    if len(suspects) == 1:
        return suspects[0].scenario
    moments = separate_moments(suspects)
    went_down = await try_out({each: moment - each.seconds for each, moment in moments.items()})
    if went_down is None:
        return None
    lags = {each: went_down - moment for each, moment in moments.items()}
    left = sorted(suspects, key=lambda each: (lags[each] < -JITTER_SECONDS, abs(lags[each])))
    return await find_crashing_among(left, try_out)


def separate_moments(suspects: Sequence[Suspect]) -> dict[Suspect, float]:
    """When each suspect brings the target down, if it does and is begun in time for that: as soon as possible, and at
    moments that are `SPACING_SECONDS` apart."""
    moments: dict[Suspect, float] = {}
    latest = 0.0
    for each in sorted(suspects, key=lambda each: each.seconds):
        moments[each] = latest = max(latest + SPACING_SECONDS, each.seconds)
    return moments


async def find_crashing_among(suspects: Sequence[Suspect], try_out: TryOut) -> Scenario | None:
    """As `find_crashing_scenario`, the most suspect first."""
    left, size = list(suspects), 1
    while left:
        some, left = left[:size], left[size:]
        if await try_out(dict.fromkeys(some, 0.0)) is not None:
            return some[0].scenario if len(some) == 1 else await find_crashing_among(some, try_out)
        size *= 2
    return None
