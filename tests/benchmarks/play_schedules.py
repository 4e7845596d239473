# mypy: ignore-errors
# The names of modules and methods are those of commit 79b4ef4 where the tree at hand has other ones.
"""Draw, play and judge random schedules on the bundled coordinator with the code of any tree, and print what it took.

PYTHONPATH=TREE/.src:TREE python -P play_schedules.py SEED BATCHES

The reference differences are settled, as they are in a run once its scenarios were played. Prints JSON.
"""

import json
import sys
import time
from functools import partial

DECISIONS = {
    "expiry_cuts_initial_delay": True,
    "initial_delay_grows": True,
    "initial_delay_grows_always": True,
    "unknown_group_named": True,
}
BATCH = 20


def play_new(seed, number, seen):
    """The schedules of a batch and their runs."""
    from fencepost.adapters.in_process import InProcessTarget
    from fencepost.conformance.protocols.registry import DEFAULT_PROTOCOL
    from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
    from fencepost.conformance.schedules.bench import Bench
    from fencepost.conformance.schedules.scope import ScheduleScope

    scope = ScheduleScope(BUNDLED_SETTINGS, restarts=True, transactions=True, cuts=True)
    bench = Bench(DEFAULT_PROTOCOL.make_schedules(scope), partial(InProcessTarget, BUNDLED_SETTINGS))
    for each in bench.protocol.generate(seed, number, BATCH):
        yield each.schedule, bench.play_decided(each.schedule, DECISIONS)


def play_old(seed, number, seen):
    """As `play_new`, with the code of the old tree."""
    from fencepost.conformance.bundled_run import BUNDLED_SETTINGS
    from fencepost.conformance.schedules.generation import Ground
    from fencepost.conformance.schedules.in_process import Field
    from fencepost.conformance.schedules.steering import Order, drawn_for

    settled = tuple(sorted(DECISIONS.items()))
    order = Order(Ground(BUNDLED_SETTINGS, cuts=True), seed, number, BATCH, frozenset(seen), settled)
    field = Field(BUNDLED_SETTINGS)
    for each in drawn_for(order):
        yield each.schedule, field.played(each.schedule, order)


def choose_tree():
    """`play_new` or `play_old`, whichever the tree at hand has."""
    try:
        import fencepost.conformance.schedules.bench  # noqa: F401
    except ImportError:
        return play_old
    return play_new


def main(seed, batches):
    """Play the batches, one more before them that is not counted, and print the figures."""
    play = choose_tree()
    list(play(seed, batches, frozenset()))
    seen, drawn, moves, events, failed = set(), set(), 0, 0, 0
    begun = time.process_time()
    for number in range(batches):
        for schedule, run in play(seed, number, seen):
            seen |= set(run.verdict.transitions)
            drawn.add(schedule.moves)
            moves += len(schedule.moves)
            events += run.verdict.events
            failed += bool(run.verdict.violations if hasattr(run.verdict, "violations") else run.verdict.faults)
    seconds = time.process_time() - begun
    figures = {"schedules": batches * BATCH, "different": len(drawn), "moves": moves, "events": events}
    print(json.dumps({**figures, "seconds": seconds, "transitions": len(seen), "failed": failed}))


main(int(sys.argv[1]), int(sys.argv[2]))
