"""Several rounds of an assignor: members get an assignment, give up partitions, and join again."""

from collections.abc import Iterator, Sequence

from fencepost.model.assignors.claims import cooperative_claim
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import Assignor
from fencepost.model.assignors.sticky_group import make_sticky_group
from fencepost.model.frozen import evolve

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
