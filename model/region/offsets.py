"""Maps from partitions to offsets, as tuples with an entry for each partition."""

from collections.abc import Iterable

Offsets = tuple[int | None, ...]
"""The offset of each partition; None of one that the map does not have."""
UNSOUGHT = -1
"""The entry of a partition that is known and has no offset yet."""
Record = tuple[int, int]
"""A message: its partition and offset."""


def no_offsets(partitions: int) -> Offsets:
    """The empty map."""
    return (None,) * partitions


def put_offset(offsets: Offsets, partition: int, offset: int | None) -> Offsets:
    """The map with one entry changed."""
    return (*offsets[:partition], offset, *offsets[partition + 1 :])


def keys_of(offsets: Offsets) -> tuple[int, ...]:
    """The partitions that the map has."""
    return tuple(partition for partition, offset in enumerate(offsets) if offset is not None)


def known_offsets(offsets: Offsets) -> Offsets:
    """The map without partitions that have no offset yet."""
    return tuple(None if offset == UNSOUGHT else offset for offset in offsets)


def lay_over(base: Offsets, upper: Offsets) -> Offsets:
    """The entries of the upper map, and those of the base where it has none."""
    return tuple(low if high is None else high for low, high in zip(base, upper, strict=True))


def highest(maps: Iterable[Offsets], partitions: int) -> Offsets:
    """The highest entry of each partition."""
    result = list(no_offsets(partitions))
    for offsets in maps:
        for partition, offset in enumerate(offsets):
            held = result[partition]
            if offset is not None and (held is None or offset > held):
                result[partition] = offset
    return tuple(result)
