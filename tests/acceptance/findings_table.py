"""`python -m tests.acceptance.findings_table`: write the table of the requirements that real clients break.

It is made of the reports in the registry, whose pages have the shortest schedule of each finding, and of the places in
the sources.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fencepost.conformance.analysis.failures import MAX_STEPS
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from tests.acceptance.client_findings import SOURCE_OF_FAILURES
from tests.acceptance.registry_reports import REGISTRY

TABLE = Path(__file__).parent / "results" / "client_findings.md"
INTRODUCTION = """\
# Findings in real clients

What each client does otherwise than a requirement says, in the report of the registry or in another run, with the
place in its source. The number of steps is that of the shortest schedule that shows it, which the report has. "Other
runs" stands where another run has shown it, and it takes luck.
"""


def newest_report(client: str) -> tuple[str, dict[str, Any]]:
    """The newest version of a client in the registry, and its report."""
    found = (REGISTRY / "clients" / client).glob("*/report.json")
    newest = max(found, key=lambda path: [int(part) for part in path.parent.name.split(".")])
    return newest.parent.name, json.loads(newest.read_text())


def failures_in(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The shortest failure of each requirement that a report says is broken."""
    rows = (row for row in report["requirements"] if row["verdict"] == "fail")
    return {row["id"]: min(row["failures"], key=lambda failure: len(failure["schedule"])) for row in rows}


def table_lines(client: str) -> Iterator[str]:
    """The part of the table about a client."""
    version, report = newest_report(client)
    failures = failures_in(report)
    yield f"\n## {client} {version}\n"
    yield "| requirement | | what it does | steps | place in the source |"
    yield "|---|---|---|---|---|"
    for id, place in sorted(SOURCE_OF_FAILURES[client].items()):
        failure = failures.get(id)
        what, steps = (failure["title"], count_steps(failure["schedule"])) if failure else ("", "other runs")
        yield f"| {id} | {CLIENT_CATALOGUE[id].title} | {what} | {steps} | {place} |"


def count_steps(schedule: Sequence[str]) -> str:
    """The number of steps in a schedule, which a report may have the last ones of."""
    return str(len(schedule)) if len(schedule) < MAX_STEPS else f"{MAX_STEPS} and more"


def make_table() -> str:
    """The whole table."""
    return INTRODUCTION + "\n".join(line for client in SOURCE_OF_FAILURES for line in table_lines(client)) + "\n"


if __name__ == "__main__":
    TABLE.write_text(make_table())
