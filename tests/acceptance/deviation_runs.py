"""Runs of the kit on a coordinator that deviates, or that is merely unusual, and what their reports say of it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fencepost.adapters.target import Description
from fencepost.conformance.analysis.causes import find_causes
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.events import RunEvent
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import Selection, select_requirements
from fencepost.model.catalogue.requirement import Requirement


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run says of a coordinator: the failed requirements, those of the first cause first, the failures that no
    requirement speaks of, and the undecided requirements."""

    failed: tuple[str, ...]
    unclassified: int
    undecided: tuple[str, ...]

    @property
    def first(self) -> str:
        """The name that the report gives first, "" if it blames nobody."""
        return self.failed[0] if self.failed else "unclassified" if self.unclassified else ""

    def wrong_names(self, fault: CoordinatorFault) -> tuple[str, ...]:
        """The failed requirements whose sentences the coordinator keeps."""
        return tuple(id for id in self.failed if id not in fault.breaks)


class PartialRun(BundledRun):
    """A run of all scenarios, or of random schedules alone."""

    def select(self, requirements: Sequence[Requirement], description: Description) -> Selection:
        """All requirements; no scenario if random schedules are played."""
        selection = super().select(requirements, description)
        return replace(selection, scenarios=()) if self.plan.schedules else selection


def run_deviation(fault: CoordinatorFault, seed: int, schedules: int = 0) -> Outcome:
    """Play all scenarios, or so many random schedules of a seed, on a coordinator with a fault."""
    logging.getLogger("fencepost").setLevel(logging.CRITICAL)
    plan = Plan(BUNDLED, seed=seed, schedules=schedules)
    with fault.activate():
        run = PartialRun(plan, Profile(grace=fault.setting.grace), fault.setting.make_target)
        report = asyncio.run(run.run(select_requirements(()), ignore_event))
    causes = [id for cause in find_causes(report) for id in cause.requirements]
    failed = dict.fromkeys([*causes, *(result.id for result in report.failed_results())])
    undecided = tuple(result.id for result in report.results if result.verdict is Verdict.INCONCLUSIVE)
    return Outcome(tuple(failed), len(report.unclassified), undecided)


def ignore_event(event: RunEvent) -> None:
    """Show no progress."""
