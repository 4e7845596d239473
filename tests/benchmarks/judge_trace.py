# mypy: ignore-errors
# The names of modules and methods are those of commit 79b4ef4 where the tree at hand has other ones.
"""Judge one trace with the code of any tree, as `fencepost judge` does, and print what it took as JSON.

PYTHONPATH=TREE/.src:TREE python -P judge_trace.py TRACE
"""

import json
import sys
import time
from contextlib import nullcontext

try:
    from fencepost.traces.garbage_collection import collect_rarely
except ImportError:
    collect_rarely = nullcontext
try:
    from fencepost.traces.files.trace_files import open_trace
except ImportError:
    from fencepost.traces.format import open_trace
from fencepost.traces.judge.judge import judge


def main(path):
    """The events, the processor seconds, and how many violations and open questions there are."""
    header, events = open_trace(path)
    begun = time.process_time()
    with collect_rarely():
        verdict = judge(header, events)
    seconds = time.process_time() - begun
    violations = verdict.violations if hasattr(verdict, "violations") else verdict.faults
    found = [verdict.events, seconds, len(violations), len(verdict.inconclusive)]
    print(json.dumps(dict(zip(("events", "seconds", "violations", "inconclusive"), found, strict=True))))


main(sys.argv[1])
