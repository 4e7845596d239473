"""The sticky assignors: `sticky` (KIP-54) and `cooperative-sticky` (KIP-429), and their two branches (member.md 5.4).

In the uniform branch all members subscribe to the same topics, in the general branch to different ones. Every move of
the general branch takes a partition from a member to one that has at least two fewer. So the sum of the squared sizes
falls with every move, the search ends, and at its end no member could take a partition from one with at least two more.
Moves of one topic's partitions from a member to another and back cancel out.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Collection, Sequence

from fencepost.model.assignors.group import (
    Assignment,
    ClusterTopics,
    GroupMember,
    is_uniform,
    java_order,
    subscriber_positions,
)
from fencepost.model.assignors.sticky_group import (
    NO_OWNER,
    Audiences,
    Quota,
    RackTable,
    StickyGroup,
    cooperative_claim,
    is_below,
    kept_claims,
    make_sticky_group,
    may_grow,
    older_owners,
    quota_after,
    sticky_claim,
)
from fencepost.model.logic import Truth


def assign_uniformly(group: StickyGroup) -> list[list[int]]:
    """The partitions of each member, by its position, when each may read each: as many claims kept as balance allows,
    the rest dealt in turn."""
    given, quota = _keep_claims_uniformly(group, Quota(*divmod(len(group.owners), len(group.order))))
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


def _keep_claims_uniformly(group: StickyGroup, quota: Quota) -> tuple[list[list[int]], Quota]:
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


def assign_generally(group: StickyGroup) -> list[list[int]]:
    """The partitions of each member, by its position: claims kept, the rest given to the smallest, then improved."""
    subscriptions = [frozenset(member.subscription.topics) for member in group.members]
    codes = group.index.codes
    subscribers = subscriber_positions(group.members)
    audiences = Audiences(len(subscriptions), ((subscribers[topic], codes[topic]) for topic in codes))
    holders = _keep_claims_generally(group, subscriptions, audiences)
    scarce_first = sorted(codes, key=lambda topic: (len(subscribers[topic]), java_order(topic)))
    order = [code for topic in scarce_first for code in codes[topic]]
    added = [code for code in order if holders[code] == NO_OWNER]
    is_revoking = any(owner >= 0 and holders[code] != owner for code, owner in enumerate(group.owners))
    _give_to_smallest(added, group, audiences, holders)
    claims = ((position, group.claims[position]) for position in group.order)
    older = older_owners(claims, group.index, lambda position, topic: topic in subscriptions[position])
    improvement = _Improvement(group, audiences, holders, older)
    if not is_revoking:
        improvement.improve(added)
    improvement.improve(order)
    given: list[list[int]] = [[] for _ in subscriptions]
    for code, holder in enumerate(holders):
        given[holder].append(code)
    return given


def _keep_claims_generally(
    group: StickyGroup, subscriptions: Sequence[frozenset[str]], audiences: Audiences
) -> list[int]:
    """The holder of each partition that its valid owner keeps, for it subscribes to it and is near it."""
    holders = [NO_OWNER] * len(group.owners)
    for position, claims in enumerate(group.claims_in_rack()):
        for code in claims:
            if group.index.names[code][0] in subscriptions[position]:
                holders[code] = position
                audiences.grow(position)
    return holders


def _give_to_smallest(codes: Sequence[int], group: StickyGroup, audiences: Audiences, holders: list[int]) -> None:
    """Give each partition to the smallest member that may read it; where racks count, near ones come first."""
    if group.racks is not None:
        for code in codes:
            audience = audiences.near(code, group.racks)
            if audiences.members[audience]:
                holders[code] = audiences.smallest(audience)
                audiences.grow(holders[code])
    for code in codes:
        if holders[code] == NO_OWNER:
            holders[code] = audiences.smallest(audiences.of[code])
            audiences.grow(holders[code])


def is_improvement(larger: int, smaller: int) -> Truth:
    """Whether a partition should go from a member of one size to a member of another."""
    return larger > smaller + 1


def choose_returning(partitions: Collection[int]) -> int:
    """Which of the partitions goes back to where it was; the rules leave it open."""
    return min(partitions)


class _Improvement:
    """Moves partitions to smaller members until none can be moved."""

    def __init__(self, group: StickyGroup, audiences: Audiences, holders: list[int], older: dict[int, int]) -> None:
        self.names = group.index.names
        self.audiences = audiences
        self.holders = holders
        self.older = older
        self.origins: dict[int, int] = {}
        """Where partitions were that have moved."""
        self.moves: dict[tuple[str, int, int], set[int]] = defaultdict(set)
        """The partitions that have moved, by topic, origin and holder."""

    def improve(self, codes: Sequence[int]) -> None:
        """Move what can be moved of these partitions, in passes, until a pass moves none."""
        sizes, holders, of = self.audiences.sizes, self.holders, self.audiences.of
        is_moving = True
        while is_moving and max(sizes) - min(sizes) > 1:
            is_moving = False
            for code in codes:
                size = sizes[holders[code]]
                target = self.older.get(code, NO_OWNER)
                if target == NO_OWNER or not is_improvement(size, sizes[target]):
                    target = self.audiences.smallest(of[code])
                    if not is_improvement(size, sizes[target]):
                        continue
                self.move(code, target)
                is_moving = True

    def move(self, code: int, target: int) -> None:
        """Move the partition, or in its place one of the topic that came from the target to where it was at first."""
        sizes, topic = self.audiences.sizes, self.names[code][0]
        origin = self.origins.get(code, self.holders[code])
        back = self.moves.get((topic, target, origin))
        if back and is_improvement(sizes[origin], sizes[target]):
            code = choose_returning(back)
        holder, origin = self.holders[code], self.origins.pop(code, self.holders[code])
        self.moves[topic, origin, holder].discard(code)
        if origin != target:
            self.origins[code] = origin
            self.moves[topic, origin, target].add(code)
        self.holders[code] = target
        self.audiences.grow(target)
        self.audiences.shrink(holder)


def assign_sticky(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `sticky`, which takes the partitions that members claim from their user data alone.

    Where the rules leave something open, such as who keeps a surplus partition, the order of the members decides.
    """
    group = make_sticky_group(members, cluster, sticky_claim)
    return group.name_partitions(_assign_target(group))


def assign_cooperative_sticky(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `cooperative-sticky`: its target without the partitions that a member has to give up first.

    Those are withheld from all in this round, and given in the next one (COOP-09, -16, -18).
    """
    group = make_sticky_group(members, cluster, cooperative_claim)
    return group.name_partitions(withhold(group, _assign_target(group)))


def withhold(group: StickyGroup, given: Sequence[Sequence[int]]) -> list[list[int]]:
    """A target without the partitions that another member has to give up first, or that several claim."""
    return [
        [code for code in codes if group.owners[code] in (NO_OWNER, position)] for position, codes in enumerate(given)
    ]


def _assign_target(group: StickyGroup) -> list[list[int]]:
    """The balanced assignment that keeps claims, by position."""
    if not group.members:
        return []
    return assign_uniformly(group) if is_uniform(group.members) else assign_generally(group)
