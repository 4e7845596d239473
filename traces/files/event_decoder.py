"""Decoding of many lines of which most repeat an earlier one: heartbeats differ from the last ones in numbers alone.

A line that the kit writes is `{"sequence":N,"time":N,` with the same words as before, and perhaps `,"of":N` at the
end. Which words are well formed does not depend on the numbers, so those that were decoded strictly once are not
decoded again. Any other line is decoded by itself.
"""

import re
from collections.abc import Callable

from fencepost.model.frozen import evolver
from fencepost.traces.events import Event
from fencepost.traces.files.jsonl import decode_event

MAX_REMEMBERED_EVENTS = 4_096
MAX_REMEMBERED_BYTES = 1_024
"""The longest line of which the words are remembered."""
_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_split_line = re.compile(
    rb'\{"sequence":%b,"time":%b,(.*\})(?:,"of":%b)?\}\n' % (_NUMBER, _NUMBER, _NUMBER), re.DOTALL
).fullmatch
_replace_numbers: Callable[[Event, int, int, int | None], Event] = evolver(Event, "sequence", "time", "of")


class EventDecoder:
    """Decodes the events of a trace. Those in the same words share their body."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bool], Event] = {}
        """By their words, and by whether they have an `of`, events that were decoded strictly."""

    def decode(self, line: bytes) -> Event:
        """The event in `line`. Raises `MalformedLineError`."""
        found = _split_line(line)
        if found is None:
            return decode_event(line)
        sequence, time, words, of = found.groups()
        known = self._known.get((words, of is None))
        if known is not None:
            return _replace_numbers(known, int(sequence), int(time), None if of is None else int(of))
        event = decode_event(line)
        if len(line) <= MAX_REMEMBERED_BYTES:
            if len(self._known) >= MAX_REMEMBERED_EVENTS:
                self._known.clear()
            self._known[words, of is None] = event
        return event
