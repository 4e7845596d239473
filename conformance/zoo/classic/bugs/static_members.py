"""Bugs of static members: an instance that joins again."""

from fencepost.adapters.bundled.classic.coordinator_state import CoordinatorState
from fencepost.adapters.bundled.classic.group import Group, Member, State
from fencepost.adapters.bundled.classic.messages import JoinGroup
from fencepost.adapters.bundled.classic.static_membership import StaticMembership
from fencepost.conformance.zoo.classic.bug import BugFamily
from fencepost.conformance.zoo.mutation.patching import Patch

statics = BugFamily()


@statics.add("BUG-12", "KAFKA-8500, https://github.com/apache/kafka/commit/e981b82601e", "STATIC-05", "STATIC-25")
def instance_is_replaced_in_stable_only(patch: Patch) -> None:
    """An instance id that comes back while a round is under way makes a second member."""
    join_static = StaticMembership.join

    def join_twice(statics: StaticMembership, group: Group, join: JoinGroup) -> None:
        if group.state is not State.STABLE:
            group.instances.pop(join.instance_id or "", None)
        join_static(statics, group, join)

    patch.replace(StaticMembership, "join", join_twice)


@statics.add("BUG-13", "KAFKA-8715, https://github.com/apache/kafka/commit/79341a12f23", "STATIC-02", "STATIC-24")
def id_comes_from_the_last_change_of_state(patch: Patch) -> None:
    """The id of a static member is made of its instance id and the time of the group's last change of state, so that
    one that comes back before the next change has the id of its former self."""
    join_static = StaticMembership.join

    def join_by_state(statics: StaticMembership, group: Group, join: JoinGroup) -> None:
        with Patch() as dated:
            dated.replace(
                CoordinatorState, "new_id", property(lambda runtime: lambda prefix: f"{prefix}-{group.since}")
            )
            join_static(statics, group, join)

    patch.replace(StaticMembership, "join", join_by_state)


@statics.add("BUG-17", "KAFKA-10284, https://github.com/apache/kafka/commit/7ca299b8c0f", "STATIC-28")
def new_id_is_not_stored(patch: Patch) -> None:
    """A static member that comes back without a rebalance gets an id that the log never hears of."""
    replace_member = StaticMembership.replace_member

    def replace_in_memory(
        statics: StaticMembership, group: Group, member: Member, new_id: str, join: JoinGroup
    ) -> None:
        with Patch() as forgetful:
            forgetful.replace(CoordinatorState, "write", lambda runtime, *batch: None)
            replace_member(statics, group, member, new_id, join)

    patch.replace(StaticMembership, "replace_member", replace_in_memory)
