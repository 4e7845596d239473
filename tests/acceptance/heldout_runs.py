"""Random schedules alone on a coordinator in this process: no scenarios, no tours."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description
from fencepost.conformance.events import RunEvent, ScheduleFinished
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.subject import Selection, select_requirements
from fencepost.model.catalogue.requirement import Requirement


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What the random schedules of one seed found.

    `named` are the requirements that the report fails. `first` is the number of the first schedule that violates
    something and `seconds` when it was judged, both None without one; `total_seconds` includes shrinking. Seconds are
    those of one core.
    """

    seed: int
    named: tuple[str, ...]
    first: int | None
    seconds: float | None
    total_seconds: float

    @property
    def is_found(self) -> bool:
        """Whether the report of this seed blames the coordinator."""
        return bool(self.named)


class SchedulesOnlyRun(BundledRun):
    """A run on the bundled coordinator as it is in this process, without scenarios."""

    def select(self, requirements: Sequence[Requirement], description: Description) -> Selection:
        """All requirements, and no scenario."""
        return replace(super().select(requirements, description), scenarios=())


def run_schedules_only(seed: int, schedules: int) -> ScheduleRun:
    """Play so many random schedules of a seed, shrink and replay what they find, and return what the report says."""
    begun = time.process_time()
    played, found = 0, list[tuple[int, float]]()

    def watch(event: RunEvent) -> None:
        nonlocal played
        if isinstance(event, ScheduleFinished):
            played += 1
            if event.violated:
                found.append((played, time.process_time() - begun))

    run = SchedulesOnlyRun(
        Plan("bundled", seed=seed, schedules=schedules),
        Profile(),
        lambda settings: InProcessTarget(BUNDLED_SETTINGS),
        can_configure=False,
    )
    report = asyncio.run(run.run(select_requirements(()), watch))
    first, seconds = found[0] if found else (None, None)
    named = tuple(result.id for result in report.failed_results())
    return ScheduleRun(seed, named, first, seconds, time.process_time() - begun)
