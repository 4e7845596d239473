# mypy: ignore-errors
# The names of modules and methods are those of commit 79b4ef4 where the tree at hand has other ones.
"""Hunt the known bugs of the coordinator by random schedules with the code of any tree, and print what it took.

PYTHONPATH=TREE/.src:TREE python -P hunt_bugs.py SEED SECONDS BUG...

Each bug is put back alone and hunted for at most so many processor seconds. Prints JSON: found and seconds by bug.
"""

import json
import sys


def make_hunt(seed, seconds):
    """The function that hunts one bug, of whichever tree is at hand."""
    try:
        from fencepost.conformance.zoo.hunt import HuntTask as Task
        from fencepost.conformance.zoo.hunt import run_hunt as hunt
    except ImportError:
        from fencepost.conformance.zoo.hunting import Task, hunt
    return lambda name: hunt(Task(name, "schedules", seed, seconds, 0.0))


def main(seed, seconds, *names):
    """Hunt the bugs and print the figures; the first is hunted once more before, which is not counted."""
    hunt = make_hunt(int(seed), float(seconds))
    hunt(names[0])
    results = {name: hunt(name) for name in names}
    print(json.dumps({name: [bool(each.requirement), each.seconds] for name, each in results.items()}))


main(*sys.argv[1:])
