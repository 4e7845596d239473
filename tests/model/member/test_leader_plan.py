"""The assignments of a leader: those of the definition for each member and partition by itself (KIP-429)."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.classic.core.state import MemberView
from fencepost.model.classic.member.member import assignments
from fencepost.model.proposal import member as resync

IDS = ("a", "b", "c", "d")
Plan = Sequence[str | None]


def gets(members: Sequence[MemberView], view: MemberView, plan: Plan, partition: int) -> bool:
    """The member has an id, the plan gives it the partition, and no other one claims that."""
    is_claimed = any(
        other.metadata is not None and other.metadata[partition] and other.id != view.id for other in members
    )
    return view.id is not None and plan[partition] == view.id and not is_claimed


@st.composite
def groups(draw: st.DrawFn) -> tuple[tuple[MemberView, ...], tuple[str | None, ...]]:
    """Members with their claims, of which some are absent or unreadable, and a plan, also for strangers and nobody."""
    count = draw(st.integers(0, 4))
    claims = st.none() | st.tuples(*[st.booleans()] * count)
    ids = draw(st.lists(st.none() | st.sampled_from(IDS), max_size=4))
    views = tuple(MemberView(id, None, draw(claims)) for id in ids)  # type: ignore[arg-type]
    return views, draw(st.tuples(*[st.none() | st.sampled_from((*IDS, "z"))] * count))


@given(groups())
def test_a_leader_assigns_what_the_plan_gives_and_nobody_else_claims(
    group: tuple[tuple[MemberView, ...], tuple[str | None, ...]],
) -> None:
    members, plan = group
    wanted = [(one.id, tuple(gets(members, one, plan, part) for part in range(len(plan)))) for one in members]
    assert list(assignments(members, plan)) == wanted  # type: ignore[arg-type]
    owners = [next((one.id for one in members if gets(members, one, plan, part)), None) for part in range(len(plan))]
    assert list(resync.given_partitions(members, plan)) == owners  # type: ignore[arg-type]
