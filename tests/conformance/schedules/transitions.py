"""Collects the transitions that the model is known to take: those of the forecasts of many random schedules.

`python -m tests.conformance.schedules.transitions` writes the list that coverage is measured against, in minutes. Do so
when the model or the rules of generation changed.
"""

import sys
import time

from fencepost.conformance.events import Progress
from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import generate_schedules
from fencepost.conformance.schedules.classic.protocol import KNOWN_TRANSITIONS_FILE
from fencepost.conformance.schedules.guidance import BATCH_SIZE
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.traces.model_transitions import Transition

SEED, CHUNKS = 0, 500


def collect(chunks: int, display: ProgressDisplay) -> set[Transition]:
    """The transitions that these schedules are foretold to show."""
    found: set[Transition] = set()
    begun = time.monotonic()
    for chunk in range(chunks):
        for drawn in generate_schedules(ScheduleScope(BUNDLED_SETTINGS), SEED, chunk, BATCH_SIZE):
            found.update(drawn.transitions)
        display(
            Progress(chunk + 1, chunks, time.monotonic() - begun, current=f"{len(found)} transitions", unit="chunks")
        )
    return found


if __name__ == "__main__":
    lines = sorted(map(str, collect(CHUNKS, ProgressDisplay(sys.stderr, live=sys.stderr.isatty()))))
    KNOWN_TRANSITIONS_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
