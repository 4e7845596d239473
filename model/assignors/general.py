"""The general branch of the sticky assignors: members subscribe to different topics (member.md 5.4).

Every move takes a partition from a member to one that has at least two fewer. So the sum of the squared sizes falls
with every move, the search ends, and at its end no member could take a partition from one with at least two more.
Moves of one topic's partitions from a member to another and back cancel out.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from fencepost.model.assignors.audiences import Audiences
from fencepost.model.assignors.claims import NO_OWNER, older_owners
from fencepost.model.assignors.group import java_order, subscriber_positions
from fencepost.model.assignors.sticky_group import StickyGroup
from fencepost.model.logic import Truth


def assign_generally(group: StickyGroup) -> list[list[int]]:
    """The partitions of each member, by its position: claims kept, the rest given to the smallest, then improved."""
    subscriptions = [frozenset(member.subscription.topics) for member in group.members]
    codes = group.index.codes
    subscribers = subscriber_positions(group.members)
    audiences = Audiences(len(subscriptions), ((subscribers[topic], codes[topic]) for topic in codes))
    holders = _keep_claims(group, subscriptions, audiences)
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


def _keep_claims(group: StickyGroup, subscriptions: Sequence[frozenset[str]], audiences: Audiences) -> list[int]:
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
        while is_moving and self.audiences.is_uneven():
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
