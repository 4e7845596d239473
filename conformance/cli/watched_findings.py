"""What `fencepost pipeline watch` has found so far, and how it is told."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class WatchedFindings:
    """What a watch has found: the violations that stand, and whether lines or files were not judged."""

    violations: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    is_open: bool = False

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a finding."""
        key = (row["trace"], row["bucket"], row["value"])
        if row["kind"] == "violation":
            self.violations[key] += 1
        elif row["kind"] == "withdrawn" and self.violations[key]:
            self.violations[key] -= 1
        self.is_open = self.is_open or row["kind"] in ("quarantine", "unjudged")


def unread_line(path: Path, reason: str) -> str:
    """A file that `fencepost pipeline watch` passes over, in one line."""
    from fencepost.conformance.reports.layout import escape_unprintable

    return escape_unprintable(f"{path}: not read: {reason}")


def finding_line(row: Mapping[str, Any]) -> str:
    """A finding of `fencepost pipeline watch` in one line."""
    from fencepost.conformance.reports.layout import escape_unprintable

    value = json.loads(row["value"])
    if row["kind"] == "quarantine":
        return escape_unprintable(f"{row['path']}:{value['line']}: in quarantine: {value['reason']}")
    if row["kind"] == "unjudged":
        return escape_unprintable(f"{row['path']}: not judged any more: {value['reason']}")
    word = "VIOLATION" if row["kind"] == "violation" else "withdrawn"
    broken = ", ".join(value["requirements"]) or "no requirement"
    difference = f"observed {value['observed']}; allowed {' or '.join(value['allowed'])}"
    return escape_unprintable(
        f"{word} {broken}: {value['group']!r}, {value['api']}, event {row['sequence']}: {difference}; {row['path']}"
    )
