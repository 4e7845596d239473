"""`python -m tests.acceptance [SUITE] [NAME...]`: measure the thresholds of a suite, of all or of those named.

Suites: conformance, proofs, schedules, pipeline. Results are written to `tests/acceptance/results`. The environment
variable FENCEPOST_EVENTS makes the pipeline's corpus smaller than 10,000,000 events; with FENCEPOST_MUTANTS=rest,
mutants that random schedules found before are taken from the record. All suites take many hours.
"""

import sys
from importlib import import_module

SUITES = {
    "conformance": "Bars of the spine",
    "proofs": "Bars of the formal core",
    "schedules": "Bars of random schedules",
    "pipeline": "Bars of the pipeline",
}
"""The suites by name, with the titles of their results."""


def main(arguments: list[str]) -> int:
    """Measure and return the exit code: 0 if every threshold holds, 1 if one is missed, 2 for an unknown suite."""
    from tests.acceptance import framework

    suites = arguments[:1] or list(SUITES)
    if unknown := set(suites) - set(SUITES):
        print(f"no suite is called {min(unknown)!r}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    codes = [
        framework.main(
            SUITES[suite],
            import_module(f"tests.acceptance.checks.{suite}").BARS,
            framework.RESULTS / suite,
            arguments[1:],
        )
        for suite in suites
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
