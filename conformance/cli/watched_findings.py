"""What `fencepost pipeline watch` has found so far, and how it is told."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.conformance.cli.console import Console


@dataclass(slots=True)
class WatchedFindings:
    """What a watch has found: the files it is in, the violations that stand, and whether lines were not judged."""

    files: set[str] = field(default_factory=set)
    violations: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    is_open: bool = False
    empty: set[Path] = field(default_factory=set)
    """The empty files that were told of: Spark passes over them."""

    def tell_empty_files(self, landing: Path, console: Console) -> None:
        """Tell of the trace files below `landing` that are empty."""
        from fencepost.traces.pipeline.stream import empty_files

        for path in empty_files(landing):
            if path not in self.empty:
                console.print_line(f"{path}:1: in quarantine: the file is empty: a trace begins with a header line")
                self.empty.add(path)
                self.is_open = True

    def add(self, file: str, row: Mapping[str, Any]) -> None:
        """Add a finding."""
        self.files.add(file)
        key = (row["trace"], row["bucket"], row["value"])
        if row["kind"] == "violation":
            self.violations[key] += 1
        elif row["kind"] == "withdrawn" and self.violations[key]:
            self.violations[key] -= 1
        self.is_open = self.is_open or row["kind"] in ("quarantine", "unjudged")


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
