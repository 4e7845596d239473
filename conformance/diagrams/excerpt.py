"""The trace that a failure brings as text."""

from collections.abc import Sequence

from fencepost.conformance.diagrams.sequence import SequenceDiagram, draw_sequence
from fencepost.conformance.protocols.registry import protocol_named
from fencepost.conformance.results import Failure
from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, decode_header


def read_excerpt(failure: Failure) -> tuple[Header, tuple[Event, ...]] | None:
    """The trace of a failure; None if it has none, or one that is none."""
    first, *lines = failure.excerpt.encode("ascii", "replace").splitlines(keepends=True) or [b""]
    if not first:
        return None
    try:
        return decode_header(first), tuple(map(decode_event, lines))
    except MalformedLineError:
        return None


def draw_excerpt(excerpt: tuple[Header, Sequence[Event]], wrong: int | None = None) -> SequenceDiagram:
    """The sequence diagram of a trace, by the protocol that its header names."""
    header, events = excerpt
    return draw_sequence(events, wrong, protocol_named(header.protocol).specification.pushed)
