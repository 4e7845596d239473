"""TCP put together again from segments that come twice, out of order, or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Address: TypeAlias = tuple[bytes, int]
"""IP address and port."""
MOST_WAITING = 256
"""So many segments behind a hole, and the hole will not be filled."""
PATIENCE_MS = 200
"""So long after the other side has had the bytes in a hole, and they are not in the capture."""
WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment. `missing` is how many bytes of it were not captured; `time` is in milliseconds."""

    time: int
    source: Address
    target: Address
    sequence: int
    acknowledged: int | None
    syn: bool
    fin: bool
    rst: bool
    data: bytes
    missing: int = 0


class Gap:
    """Bytes that are not in the capture."""


GAP = Gap()


def distance(one: int, other: int) -> int:
    """How far the other sequence number is behind the one, which may have wrapped around."""
    return (other - one + WRAP // 2) % WRAP - WRAP // 2


def length(segment: Segment) -> int:
    """How many sequence numbers a segment takes; its end takes one."""
    return len(segment.data) + segment.missing + segment.fin


@dataclass(slots=True)
class Stream:
    """One direction of a connection."""

    next: int | None = None
    first: int | None = None
    """The sequence number with which it began, if that was seen."""
    waiting: dict[int, Segment] = field(default_factory=dict)
    hole_since: int | None = None
    """When the other side was first seen to have bytes that are not here."""

    def feed(self, segment: Segment) -> Iterator[bytes | Gap]:
        """Take a segment in; what can be read now, in order."""
        if segment.syn:
            if segment.sequence != self.first:
                self.first, self.next = segment.sequence, (segment.sequence + 1) % WRAP
                self.waiting, self.hole_since = {}, None
            return
        if self.next is None:
            self.next = segment.sequence
        if not length(segment):
            return
        if distance(self.next, segment.sequence) > 0:
            known = self.waiting.get(segment.sequence)
            if known is None or len(known.data) < len(segment.data):
                self.waiting[segment.sequence] = segment
            if len(self.waiting) > MOST_WAITING:
                yield from self.skip()
            return
        yield from self.taken(segment)
        yield from self.ready()

    def seen(self, acknowledged: int, time: int) -> Iterator[bytes | Gap]:
        """The other side has everything up to here: if that is not in the capture, it will not come any more."""
        if self.next is None or distance(self.next, acknowledged) <= 0:
            self.hole_since = None
        elif self.hole_since is None:
            self.hole_since = time
        elif time - self.hole_since > PATIENCE_MS:
            if self.waiting:
                yield from self.skip()
            else:
                self.next = acknowledged
                yield GAP
            self.hole_since = None

    def skip(self) -> Iterator[bytes | Gap]:
        """Go on behind the hole."""
        assert self.next is not None
        self.next = min(self.waiting, key=lambda each: distance(self.next or 0, each))
        yield GAP
        yield from self.ready()

    def ready(self) -> Iterator[bytes | Gap]:
        """What was waiting and follows now."""
        while self.waiting:
            assert self.next is not None
            first = min(self.waiting, key=lambda each: distance(self.next or 0, each))
            if distance(self.next, first) > 0:
                return
            yield from self.taken(self.waiting.pop(first))

    def taken(self, segment: Segment) -> Iterator[bytes | Gap]:
        """What is new in a segment that begins here or before."""
        assert self.next is not None
        old = -distance(self.next, segment.sequence)
        if old < len(segment.data):
            yield segment.data[old:]
        if old < length(segment):
            self.next = (segment.sequence + length(segment)) % WRAP
            if segment.missing:
                yield GAP
