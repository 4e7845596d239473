"""Reassembly of TCP streams from segments that come twice, out of order, or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Address: TypeAlias = tuple[bytes, int]
"""IP address and port."""
MAX_WAITING_SEGMENTS = 256
"""A gap is final once this many segments wait behind it."""
MAX_GAP_WAIT_MS = 200
"""A gap is final this many milliseconds after the other side acknowledged its bytes."""
SEQUENCE_MODULUS = 1 << 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment. `missing` is the number of its bytes that were not captured; `time` is in milliseconds."""

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


def sequence_distance(one: int, other: int) -> int:
    """The distance from sequence number `one` forward to `other`, negative if `other` is before it (RFC 1982)."""
    return (other - one + SEQUENCE_MODULUS // 2) % SEQUENCE_MODULUS - SEQUENCE_MODULUS // 2


def sequence_length(segment: Segment) -> int:
    """The number of sequence numbers that a segment takes; FIN takes one."""
    return len(segment.data) + segment.missing + segment.fin


@dataclass(slots=True)
class TcpStream:
    """One direction of a connection."""

    next_sequence: int | None = None
    first_sequence: int | None = None
    """The sequence number of the SYN, if it was captured."""
    waiting: dict[int, Segment] = field(default_factory=dict)
    gap_since: int | None = None
    """Time of the first acknowledgement of bytes that are missing here, in milliseconds."""

    def feed(self, segment: Segment) -> Iterator[bytes | Gap]:
        """Add a segment; yield the bytes that can be read now, in order, and `GAP` where bytes are missing."""
        if segment.syn:
            if segment.sequence != self.first_sequence:
                self.first_sequence, self.next_sequence = segment.sequence, (segment.sequence + 1) % SEQUENCE_MODULUS
                self.waiting, self.gap_since = {}, None
            return
        if self.next_sequence is None:
            self.next_sequence = segment.sequence
        if not sequence_length(segment):
            return
        if sequence_distance(self.next_sequence, segment.sequence) > 0:
            known = self.waiting.get(segment.sequence)
            if known is None or len(known.data) < len(segment.data):
                self.waiting[segment.sequence] = segment
            if len(self.waiting) > MAX_WAITING_SEGMENTS:
                yield from self.skip_gap()
            return
        yield from self.consume_segment(segment)
        yield from self.drain_waiting()

    def on_acknowledgement(self, acknowledged: int, time: int) -> Iterator[bytes | Gap]:
        """Yield the bytes behind a gap that the other side acknowledged more than `MAX_GAP_WAIT_MS` ago."""
        if self.next_sequence is None or sequence_distance(self.next_sequence, acknowledged) <= 0:
            self.gap_since = None
        elif self.gap_since is None:
            self.gap_since = time
        elif time - self.gap_since > MAX_GAP_WAIT_MS:
            if self.waiting:
                yield from self.skip_gap()
            else:
                self.next_sequence = acknowledged
                yield GAP
            self.gap_since = None

    def skip_gap(self) -> Iterator[bytes | Gap]:
        """Yield `GAP` and the bytes behind the gap."""
        assert self.next_sequence is not None
        self.next_sequence = min(self.waiting, key=lambda each: sequence_distance(self.next_sequence or 0, each))
        yield GAP
        yield from self.drain_waiting()

    def drain_waiting(self) -> Iterator[bytes | Gap]:
        """Yield the bytes of waiting segments that follow without a gap."""
        while self.waiting:
            assert self.next_sequence is not None
            first = min(self.waiting, key=lambda each: sequence_distance(self.next_sequence or 0, each))
            if sequence_distance(self.next_sequence, first) > 0:
                return
            yield from self.consume_segment(self.waiting.pop(first))

    def consume_segment(self, segment: Segment) -> Iterator[bytes | Gap]:
        """Yield the new bytes of a segment that begins at or before the next sequence number."""
        assert self.next_sequence is not None
        old = -sequence_distance(self.next_sequence, segment.sequence)
        if old < len(segment.data):
            yield segment.data[old:]
        if old < sequence_length(segment):
            self.next_sequence = (segment.sequence + sequence_length(segment)) % SEQUENCE_MODULUS
            if segment.missing:
                yield GAP
