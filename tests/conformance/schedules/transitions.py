"""Collects the transitions that the model is known to take: those predicted for many random schedules.

`python -m tests.conformance.schedules.transitions` writes the list that coverage is measured against, in minutes. Do so
when the model or the interactions changed.
"""

import sys
import time

from fencepost.conformance.classic.schedules.protocol import KNOWN_TRANSITIONS_FILE, generate_schedules
from fencepost.conformance.events import Progress
from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.schedule import BATCH_SIZE, ScheduleScope
from fencepost.traces.verdict import Transition

SEED, BATCHES = 0, 120


def collect(batches: int, display: ProgressDisplay) -> set[Transition]:
    """The transitions predicted for the schedules of so many batches."""
    found: set[Transition] = set()
    scope = ScheduleScope(BUNDLED_SETTINGS, cuts=True)
    begun = time.monotonic()
    for batch in range(batches):
        for generated in generate_schedules(scope, SEED, batch, BATCH_SIZE):
            found.update(generated.transitions)
        display(
            Progress(batch + 1, batches, time.monotonic() - begun, current=f"{len(found)} transitions", unit="batches")
        )
    return found


if __name__ == "__main__":
    lines = sorted(map(str, collect(BATCHES, ProgressDisplay(sys.stderr, live=sys.stderr.isatty()))))
    KNOWN_TRANSITIONS_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
