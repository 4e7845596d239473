"""The document about the proofs, read for its tables."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "model" / "PROOFS.md").read_text()


def rows(head: str) -> list[tuple[str, ...]]:
    """The rows of the tables with this head."""
    found: list[tuple[str, ...]] = []
    inside = False
    for line in DOCUMENT.splitlines():
        if line == head:
            inside = True
        elif inside and line.startswith("| "):
            found.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
        elif not line.startswith("|-"):
            inside = False
    return found
