"""The members that may read a partition, and the one of them that has the fewest partitions."""

from collections.abc import Iterable
from heapq import heapify, heappush, heapreplace

from fencepost.model.assignors.sticky_group import RackTable


class Audiences:
    """The sizes of all members, and the audience of each partition: the members that may read it.

    Members are positions, partitions codes, and audiences numbers: topics with the same subscribers share one. The
    smallest member of an audience is the one with the fewest partitions, of several the first.
    """

    def __init__(self, size: int, subscribers: Iterable[tuple[tuple[int, ...], range]]) -> None:
        """`size` is the number of members; `subscribers` are those of each topic, with the codes of its partitions."""
        self.sizes = [0] * size
        self.of: list[int] = []
        self.members: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._near: dict[tuple[int, frozenset[str]], int] = {}
        self._heaps: dict[int, list[tuple[int, int]]] = {}
        self._joined: list[list[int]] = [[] for _ in range(size)]
        for members, codes in subscribers:
            self.of += [self._number(members)] * len(codes)

    def _number(self, members: tuple[int, ...]) -> int:
        """The number of the audience of these members."""
        if members not in self._numbers:
            number = self._numbers[members] = len(self.members)
            self.members.append(members)
            for position in members:
                self._joined[position].append(number)
        return self._numbers[members]

    def near(self, code: int, racks: RackTable) -> int:
        """The number of the audience of those members that may read the partition and are near it."""
        key = self.of[code], racks.replicas[code]
        if key not in self._near:
            self._near[key] = self._number(tuple(one for one in self.members[key[0]] if racks.is_near(one, code)))
        return self._near[key]

    def smallest(self, audience: int) -> int:
        """The smallest member of an audience, which is not empty."""
        heap, sizes = self._heaps.get(audience), self.sizes
        if heap is None:
            heap = self._heaps[audience] = [(sizes[position], position) for position in self.members[audience]]
            heapify(heap)
        while True:
            size, position = heap[0]
            if size == sizes[position]:
                return position
            # Members that grow stay where they are in a heap until they come to its top.
            heapreplace(heap, (sizes[position], position))

    def grow(self, position: int) -> None:
        """The member has one partition more."""
        self.sizes[position] += 1

    def shrink(self, position: int) -> None:
        """The member has one partition less."""
        self.sizes[position] -= 1
        for audience in self._joined[position]:
            if audience in self._heaps:
                heappush(self._heaps[audience], (self.sizes[position], position))

    def is_uneven(self) -> bool:
        """Whether two members differ by more than one partition."""
        return max(self.sizes) - min(self.sizes) > 1
