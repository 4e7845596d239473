"""What the command line calls: test a target and report."""

from collections.abc import Callable

from fencepost.conformance.bundled_run import Bundled
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.progress import Progress
from fencepost.conformance.remote_run import Remote
from fencepost.conformance.results import Report
from fencepost.conformance.selection import wanted

BUNDLED = "bundled"
"""The target that needs no address."""


async def run(plan: Plan, progress: Callable[[Progress], None]) -> Report:
    """Test a target. When cancelled, return what was judged so far, with `cut_short` set."""
    profile = load_profile(plan.profile) if plan.profile is not None else Profile()
    requirements = wanted(plan.patterns)
    if plan.target == BUNDLED:
        return await Bundled(plan, profile).run(requirements, progress)
    return await Remote(plan, profile).run(requirements, progress)
