"""Print the outline of the verdict on each trace of a folder, as JSON, by the judge of any tree since d2249c5f.

PYTHONPATH=TREE/.src:TREE python -P outline.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge


def outline_verdict(path: Path) -> list[Any]:
    """The violations, checks and decided differences of a trace, and how many reasons of doubt there are; its error if
    the tree cannot read it."""
    try:
        header, events = open_trace(path)
        verdict = judge(header, tuple(events))
    except Exception as error:  # of any tree, whatever its errors are called
        return [type(error).__name__]
    violations = sorted([each.sequence, list(each.requirements), each.tolerated] for each in verdict.violations)
    checks = sorted([each.requirement, each.sequence, each.status.value] for each in verdict.check_results)
    return [violations, checks, sorted(verdict.decisions.items()), len(verdict.inconclusive)]


if __name__ == "__main__":
    print(json.dumps({path.stem: outline_verdict(path) for path in sorted(Path(sys.argv[1]).iterdir())}))
