"""The uniform branch of the sticky assignors: all members subscribe to the same topics (member.md 5.4)."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence

from fencepost.model.assignors.quotas import Quota, is_below, kept_claims, may_grow, quota_after
from fencepost.model.assignors.sticky_group import RackTable, StickyGroup


def assign_uniformly(group: StickyGroup) -> list[list[int]]:
    """The partitions of each member, by its position, when each may read each: as many claims kept as balance allows,
    the rest dealt in turn."""
    given, quota = _keep_claims(group, Quota(*divmod(len(group.owners), len(group.order))))
    taken = bytearray(len(group.owners))
    for codes in given:
        for code in codes:
            taken[code] = True
    rest = [code for code, gone in enumerate(taken) if not gone]
    dealer = _Dealer(given, quota)
    if group.racks is not None:
        rest.sort(key=group.racks.readers_near)
        rest = dealer.deal_by_racks(rest, group.racks)
    dealer.deal(rest)
    return given


def _keep_claims(group: StickyGroup, quota: Quota) -> tuple[list[list[int]], Quota]:
    """What each member keeps, and the quota that is left."""
    given = group.claims_in_rack()
    for position in group.order:
        claims = given[position]
        if not claims:
            continue
        kept = kept_claims(quota, len(claims))
        if kept < len(claims):
            # The highest numbers go, so that each topic sheds its share (KAFKA-16277).
            claims.sort(key=group.number_then_topic)
            del claims[kept:]
        quota = quota_after(quota, kept)
    return given, quota


class _Dealer:
    """Deals partitions to the members below the quota in turn, then one more to members that may grow."""

    def __init__(self, given: list[list[int]], quota: Quota) -> None:
        self.given = given
        self.quota = quota
        self.below = [position for position, codes in enumerate(given) if is_below(quota, len(codes))]
        self.growing = [position for position, codes in enumerate(given) if may_grow(quota, len(codes))]

    def deal(self, codes: Sequence[int]) -> None:
        """Deal all of these partitions, without regard to racks."""
        given, low, below = self.given, self.quota.low, self.below
        waiting = iter(codes)
        while below:
            for position, code in zip(below, waiting, strict=False):  # one round
                given[position].append(code)
            self.growing += [position for position in below if len(given[position]) == low]
            below = [position for position in below if len(given[position]) < low]
        for position, code in zip(self.growing, waiting, strict=False):
            given[position].append(code)

    def deal_by_racks(self, codes: Sequence[int], racks: RackTable) -> list[int]:
        """Deal those partitions that a member can read in its rack; return the others."""
        turns = _RackTurns(self.below, racks.readers)
        queue = _RackQueue(self.growing, racks.readers)
        others = []
        for code in codes:
            near = racks.replicas[code]
            position = turns.take(near)
            if position is not None:
                self.given[position].append(code)
                if not is_below(self.quota, len(self.given[position])):
                    turns.remove(position)
                    if may_grow(self.quota, len(self.given[position])):
                        queue.add(position)
            elif self.quota.extra > 0 and (position := queue.take(near)) is not None:
                self.given[position].append(code)
                self.quota = quota_after(self.quota, len(self.given[position]))
            else:
                others.append(code)
        self.below, self.growing = turns.left(), queue.left()
        return others


class _RackTurns:
    """Members that take turns: each turn goes to the next one around that reads from a wanted rack."""

    def __init__(self, members: Sequence[int], readers: Sequence[str | None]) -> None:
        self.readers = readers
        self.members = members
        self.next = 0
        self.by_rack: dict[str | None, list[int]] = defaultdict(list)
        for position in members:
            self.by_rack[readers[position]].append(position)

    def take(self, racks: frozenset[str]) -> int | None:
        """The member whose turn it is; None if none reads from one of these racks."""
        first: list[tuple[bool, int]] = []
        for rack in racks:
            if waiting := self.by_rack.get(rack):
                place = bisect_left(waiting, self.next)
                around = place == len(waiting)
                first.append((around, waiting[0 if around else place]))
        if not first:
            return None
        position = min(first)[1]
        self.next = position + 1
        return position

    def remove(self, position: int) -> None:
        """The member takes no more turns."""
        self.by_rack[self.readers[position]].remove(position)

    def left(self) -> list[int]:
        """The members that still take turns."""
        return sorted(position for waiting in self.by_rack.values() for position in waiting)


class _RackQueue:
    """Members in a queue, each of which takes one partition."""

    def __init__(self, members: Sequence[int], readers: Sequence[str | None]) -> None:
        self.readers = readers
        self.added = 0
        self.by_rack: dict[str | None, deque[tuple[int, int]]] = defaultdict(deque)
        for position in members:
            self.add(position)

    def add(self, position: int) -> None:
        """A member joins the tail."""
        self.by_rack[self.readers[position]].append((self.added, position))
        self.added += 1

    def take(self, racks: frozenset[str]) -> int | None:
        """Take the first member that reads from one of these racks from the queue; None if none does."""
        waiting = [queue for rack in racks if (queue := self.by_rack.get(rack))]
        return min(waiting, key=lambda queue: queue[0]).popleft()[1] if waiting else None

    def left(self) -> list[int]:
        """The members that are still in the queue, in its order."""
        return [position for _, position in sorted(place for queue in self.by_rack.values() for place in queue)]
