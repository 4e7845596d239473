"""`python -m tests.acceptance [SUITE] [NAME...]`: measure the thresholds of a suite, of all or of those named.

Suites: pages, targets, proofs, schedules, verdicts, robustness, deviations, tests.
Results are written to `tests/acceptance/results`. All of them take many hours. With the environment variable
FENCEPOST_BATCHES, batches of random schedules on Kafka whose reports are in that folder are not played again. With
FENCEPOST_REPORTS, the reports of whole runs are kept there.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from tests.acceptance import framework

SUITES = {
    "pages": "Thresholds of pages in a browser",
    "targets": "Whole runs on every target",
    "proofs": "Thresholds of the formal core",
    "schedules": "Thresholds of random schedules",
    "verdicts": "Thresholds of the judge",
    "robustness": "Thresholds of robustness",
    "deviations": "Known deviations of products",
    "tests": "Long tests",
}
"""The suites by name, with the titles of their results. Each is a module of `tests.acceptance.checks`."""


def suite_checks(suite: str) -> Sequence[framework.Check]:
    """The `CHECKS` of the module of `tests.acceptance.checks` called `suite`, which is imported on demand."""
    checks: Sequence[framework.Check] = import_module(f"tests.acceptance.checks.{suite}").CHECKS
    return checks


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code: 0 if every threshold holds, 1 if one is missed, 2 for an unknown suite."""
    suites = arguments[:1] or list(SUITES)
    if unknown := set(suites) - set(SUITES):
        print(f"no suite is called {min(unknown)!r}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    return max(
        framework.main(SUITES[suite], suite_checks(suite), framework.RESULTS / suite, arguments[1:]) for suite in suites
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
