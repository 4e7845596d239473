"""The reports of a registry as an Atom feed (RFC 4287), the newest first."""

from collections.abc import Iterator, Sequence

from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.registry.entries import RegistryEntry
from fencepost.conformance.reports.text import outcome_line

MAX_ENTRIES = 50
"""How many reports are in the feed."""
NO_DATE = "1970-01-01T00:00:00Z"


def to_feed(entries: Sequence[RegistryEntry]) -> str:
    """The feed. Its ids stay the same wherever the site is; its links are relative to the feed."""
    newest = sorted(entries, key=lambda entry: (format_start(entry), entry.path), reverse=True)[:MAX_ENTRIES]
    updated = format_start(newest[0]) if newest else NO_DATE
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<id>urn:fencepost:registry</id>",
        "<title>Implementations of the Kafka group protocol</title>",
        "<author><name>Fencepost registry</name></author>",
        f"<updated>{updated}</updated>",
        '<link rel="self" href="feed.xml"/>',
        '<link rel="alternate" type="text/html" href="index.html"/>',
    ]
    for entry in newest:
        lines += entry_lines(entry)
    return "\n".join([*lines, "</feed>"]) + "\n"


def entry_lines(entry: RegistryEntry) -> Iterator[str]:
    """A report in the feed."""
    yield "<entry>"
    yield f"<id>urn:fencepost:registry:{clean(entry.path.replace('/', ':'))}</id>"
    yield f"<title>{clean(entry.about.name)} {clean(entry.version)}</title>"
    yield f"<updated>{format_start(entry)}</updated>"
    yield f'<link rel="alternate" type="text/html" href="{clean(entry.path)}/index.html"/>'
    yield f"<summary>{clean(outcome_line(entry.report))}</summary>"
    yield "</entry>"


def format_start(entry: RegistryEntry) -> str:
    """When the run of an entry began (RFC 3339)."""
    origin = entry.report.provenance
    return clean(origin.started) if origin is not None and origin.started else NO_DATE
