"""Held-out faults of assignors, in the order in which their statements were drawn."""

from collections.abc import Collection, Sequence
from typing import Any

from fencepost.conformance.zoo.classic.clients.bug import ClientBugFamily, Side, replace_function
from fencepost.conformance.zoo.mutation.patching import Patch
from fencepost.model.assignors import general, racks
from fencepost.model.assignors.claims import CONTESTED
from fencepost.model.assignors.group import GroupMember, subscriber_positions
from fencepost.model.assignors.sticky_group import StickyGroup, make_sticky_group
from fencepost.model.frozen import evolve

assignors = ClientBugFamily(Side.ASSIGNOR)


@assignors.add("HELDOUT-13", "member.md 5.4: topics by number of potential consumers ascending", "STICKY-02")
def topics_are_given_by_name(patch: Patch) -> None:
    """Where subscriptions differ, partitions are given in the order of their topics' names."""

    positions = subscriber_positions

    class Uncounted(tuple[int, ...]):
        """Subscribers whose number counts for nothing."""

        def __len__(self) -> int:
            return 0

    def hide_numbers(members: Sequence[GroupMember]) -> dict[str, tuple[int, ...]]:
        return {topic: Uncounted(subscribers) for topic, subscribers in positions(members).items()}

    patch.replace(general, "subscriber_positions", hide_numbers)


@assignors.add("HELDOUT-14", "member.md 5.6: used only if some member has a rack", "RANGE-08", "STICKY-19")
def racks_take_a_rack_of_each_member(patch: Patch) -> None:
    """Racks are used only if every member has one."""
    should = racks.should_use_racks

    def need_all(member_racks: Collection[str | None], partition_racks: Sequence[frozenset[str]]) -> bool:
        return None not in member_racks and bool(should(member_racks, partition_racks))

    replace_function(patch, should, need_all)


@assignors.add("HELDOUT-15", "member.md 5.4: repeat passes until a pass changes nothing", "STICKY-02")
def the_plan_is_improved_once(patch: Patch) -> None:
    """Where subscriptions differ, the plan is improved in one pass over each list of partitions."""

    def improve_once(improvement: Any, codes: Sequence[int]) -> None:
        audiences, holders = improvement.audiences, improvement.holders
        for code in codes if audiences.is_uneven() else ():
            size, smallest = audiences.sizes[holders[code]], audiences.smallest(audiences.of[code])
            older = improvement.older.get(code, smallest)
            target = older if general.is_improvement(size, audiences.sizes[older]) else smallest
            if general.is_improvement(size, audiences.sizes[target]):
                improvement.move(code, target)

    patch.replace(general._Improvement, "improve", improve_once)


@assignors.add("HELDOUT-16", "member.md 5.4: or a multiply claimed one, is transferring", "COOP-16", "COOP-09")
def contested_partitions_are_given_at_once(patch: Patch) -> None:
    """A cooperative assignor does not withhold a partition that two members claim in one generation."""
    make = make_sticky_group

    def make_without_contests(*group: object) -> StickyGroup:
        made: StickyGroup = make(*group)  # type: ignore[arg-type]
        return evolve(made, owners=tuple(-1 if owner == CONTESTED else owner for owner in made.owners))

    replace_function(patch, make, make_without_contests)


PASSED_OVER = {
    "5.5 the generation that a member writes into its subscription": "about the member; BUG-71 is not put back",
    "5.4 set aside topics with fewer than two potential consumers": "changes no plan by itself",
    "5.5 a member whose SyncGroup failed": "about the member",
    "5.4 which of several members keeps the extra one": "latitude",
}
