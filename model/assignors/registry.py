"""The assignors by their names on the wire, and several rounds of one.

In a round members get an assignment, give up partitions, and join again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fencepost.model.assignors.consumer_protocol import encode_cooperative_user_data, encode_sticky_user_data
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, TopicPartition
from fencepost.model.assignors.range import assign_range
from fencepost.model.assignors.round_robin import assign_round_robin
from fencepost.model.assignors.sticky import assign_cooperative_sticky, assign_sticky
from fencepost.model.assignors.sticky_group import cooperative_claim, make_sticky_group
from fencepost.model.frozen import evolve


def no_user_data(partitions: Sequence[TopicPartition], generation: int) -> None:
    """The user data of assignors that need none."""


def cooperative_user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """The user data of `cooperative-sticky`: the generation alone, for the subscription has the partitions."""
    return encode_cooperative_user_data(generation)


@dataclass(frozen=True, slots=True)
class Assignor:
    """An assignor. A cooperative one lets members keep their partitions while they join.

    `user_data` makes the user data that a member sends after it got these partitions in this generation.
    """

    name: str
    assign: Assign
    user_data: Callable[[Sequence[TopicPartition], int], bytes | None] = no_user_data
    is_cooperative: bool = False


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("range", assign_range),
            Assignor("roundrobin", assign_round_robin),
            Assignor("sticky", assign_sticky, encode_sticky_user_data),
            Assignor("cooperative-sticky", assign_cooperative_sticky, cooperative_user_data, is_cooperative=True),
        )
    }
)


MOST_ROUNDS = 5
"""Assignments after which a cooperative group has to be settled (COOP-12); up to 3 have been seen."""


def rejoin(assignor: Assignor, member: GroupMember, assignment: Assignment, generation: int) -> GroupMember:
    """The member as it joins after the assignment of this generation, which it owns when it joins if it is
    cooperative. Otherwise it owns nothing any more, and its user data say what it had. One that is left out has
    nothing."""
    partitions = assignment.get(member.id, ())
    subscription = evolve(
        member.subscription,
        user_data=assignor.user_data(partitions, generation),
        owned=partitions if assignor.is_cooperative else (),
        generation=generation,
    )
    return evolve(member, subscription=subscription)


def run_rounds(
    assignor: Assignor, members: Sequence[GroupMember], cluster: ClusterTopics, most: int = MOST_ROUNDS + 1
) -> Iterator[Assignment]:
    """The assignments of successive rounds, up to the first that equals the one before it."""
    generation = 1 + max((member.subscription.generation for member in members), default=0)
    before: Assignment | None = None
    for number in range(most):
        assignment = assignor.assign(members, cluster)
        yield assignment
        if assignment == before:
            return
        before = assignment
        members = [rejoin(assignor, member, assignment, generation + number) for member in members]


def find_unsettled(assignor: Assignor, members: Sequence[GroupMember], cluster: ClusterTopics) -> Iterator[str]:
    """The sentence that rounds of a sticky assignor go on for too long, if they do (P8, COOP-12).

    An eager one gives the same again at once. Where racks are in use nothing is promised: a partition may go to and
    fro between a member near it and a balanced assignment for some rounds.
    """
    if make_sticky_group(members, cluster, cooperative_claim).racks is None:
        most = MOST_ROUNDS if assignor.is_cooperative else 1
        rounds = list(run_rounds(assignor, members, cluster, most + 1))
        if len(rounds) == most + 1 and rounds[-1] != rounds[-2]:
            yield f"round {most + 1} still changes the assignment"
