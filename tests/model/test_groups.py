"""Offsets and administration of groups of a protocol that is not the classic one: a roll of names with epochs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from fencepost.model.errors import Error
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.groups import admin, offsets
from fencepost.model.groups.messages import (
    NO_OFFSET,
    CommitRequest,
    DeleteGroup,
    DescribeGroup,
    DescribeGroupResponse,
    EndTxn,
    ListGroups,
    ListGroupsResponse,
    MemberDescription,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    PartitionErrors,
    TxnOffsetCommit,
)
from fencepost.model.groups.protocol import NOTHING_DELETED, Cluster, DeletedOffsets, GroupProtocol, PendingOffsets
from fencepost.model.settings import Settings
from fencepost.model.sorts import MemberId

CLUSTER = Cluster(Settings(), {"t": 2, "u": 1})
ANN, BOB = MemberId("ann"), MemberId("bob")
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


@dataclass(frozen=True, slots=True)
class RollDialect:
    """The differences, as the newer coordinator does."""

    unknown_group_named: bool = True
    unknown_group_fences_transaction: bool = True
    keeps_version_0: bool = False
    emptied_group_stays: bool = True
    deleted_offsets_stay_deleted: bool = True


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a step, and the dialect."""

    now: int = 0
    dialect: RollDialect = RollDialect()


@fast_frozen
@dataclass(frozen=True, slots=True)
class RollWorld:
    """A group: the epochs of its members by their names, the topics they use; None where there is no group."""

    roll: Mapping[str, int] | None = None
    topics: frozenset[str] = frozenset()
    offsets: Mapping[tuple[str, int], Offset] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=dict)
    ended_transactions: tuple[tuple[int, bool, int], ...] = ()
    epochs: Mapping[int, int] = field(default_factory=dict)
    deleted: DeletedOffsets = NOTHING_DELETED


def members_of(world: RollWorld) -> Mapping[str, int]:
    assert world.roll is not None
    return world.roll


def may_commit(world: RollWorld, request: OffsetCommit, moment: Moment) -> tuple[Error, str, RollWorld]:
    return fence(world, request.core), "roll.commit", world


def fence(world: RollWorld, claim: CommitRequest) -> Error:
    """An epoch that is not the member's is stale; whoever is outside commits to an empty group."""
    if not members_of(world) and claim.generation < 0:
        return Error.NONE
    if claim.member is None or claim.member not in members_of(world):
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if members_of(world)[claim.member] == claim.generation else Error.ILLEGAL_GENERATION


def describe(world: RollWorld, version: int) -> tuple[DescribeGroupResponse, str]:
    members = tuple(MemberDescription(name, None, None, None) for name in members_of(world))
    return DescribeGroupResponse(Error.NONE, "Stable" if members else "Empty", "roll", members=members), "roll.describe"


ROLL: GroupProtocol[RollWorld, Moment] = GroupProtocol(
    dialect=lambda moment: moment.dialect,
    exists=lambda world: world.roll is not None,
    create=lambda world: evolve(world, roll={}),
    forget=lambda deleted: RollWorld(deleted=deleted),
    is_empty=lambda world: not members_of(world),
    may_commit=may_commit,
    may_commit_in_transaction=lambda world, request, moment: fence(world, request.core),
    may_lose_offsets=lambda world: True,
    protects=lambda world, topic: bool(members_of(world)) and topic in world.topics,
    unused_since=lambda world, topic, offset: None if topic in world.topics else offset.committed,
    describe=describe,
    summarize=lambda world: ListGroupsResponse(True, "Stable" if members_of(world) else "Empty", "roll"),
    type_of=lambda world: "roll",
)
GROUP = RollWorld({ANN: 3, BOB: 2}, frozenset({"t"}), {T0: Offset(1), U0: Offset(2)})


def commit(world: RollWorld, member: MemberId | None, epoch: int, now: int = 0) -> tuple[RollWorld, Error, str]:
    """The world after a commit of both partitions of t, with the error and the rule."""
    request = OffsetCommit("g", CommitRequest(0, member, None, epoch), 9, ((T0, Offset(7)), (T1, Offset(8))))
    after, response, rule = offsets.on_commit(world, request, Moment(now), CLUSTER, ROLL)
    (error,) = set(response.errors.values())
    return after, error, rule


def fetch(world: RollWorld, *, stable: bool = False) -> dict[tuple[str, int], int | None]:
    request = OffsetFetch("g", 0, 7, (T0, T1, U0), stable)
    _, response, _ = offsets.on_fetch(world, request, Moment(), CLUSTER, ROLL)
    return {where: None if found is None else found.offset for where, found in response.offsets.items()}


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (ANN, 3, Error.NONE),
        (ANN, 2, Error.ILLEGAL_GENERATION),
        (MemberId("eve"), 3, Error.UNKNOWN_MEMBER_ID),
        (None, -1, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_the_protocol_says_who_may_commit(member: MemberId | None, epoch: int, error: Error) -> None:
    after, found, rule = commit(GROUP, member, epoch, now=5)
    assert (found, rule) == (error, "roll.commit")
    if error is Error.NONE:
        assert fetch(after) == {T0: 7, T1: 8, U0: 2} and after.offsets[T0].committed == 5
    else:
        assert after == GROUP


def test_a_commit_from_outside_creates_a_group_and_one_with_an_epoch_does_not() -> None:
    after, error, _ = commit(RollWorld(), None, -1)
    assert error is Error.NONE and after.roll == {} and fetch(after) == {T0: 7, T1: 8, U0: NO_OFFSET.offset}
    assert commit(RollWorld(), ANN, 3) == (RollWorld(), Error.GROUP_ID_NOT_FOUND, "commit.unknown-group")


def test_a_transaction_shows_when_its_marker_comes() -> None:
    request = TxnOffsetCommit("g", CommitRequest(0, ANN, None, 3), 1, ((T0, Offset(9)),))
    pending, _, rule = offsets.on_transactional_commit(GROUP, request, Moment(), CLUSTER, ROLL)
    assert rule == "transaction.member" and fetch(pending)[T0] == 1 and fetch(pending, stable=True)[T0] is None
    ended, _, _ = offsets.on_end_transaction(pending, EndTxn("g", 0, 1, True), Moment())
    assert fetch(offsets.apply_transaction_marker(ended), stable=True)[T0] == 9
    stale = replace(request, core=CommitRequest(0, ANN, None, 2))
    _, response, rule = offsets.on_transactional_commit(GROUP, stale, Moment(), CLUSTER, ROLL)
    assert (response, rule) == (PartitionErrors({T0: Error.ILLEGAL_GENERATION}), "transaction.fenced")


def test_offsets_of_a_topic_in_use_stay_and_others_go() -> None:
    request = OffsetDelete("g", 0, (T0, U0))
    after, response, _ = offsets.on_delete_offsets(GROUP, request, Moment(), CLUSTER, ROLL)
    assert response.errors == {T0: Error.GROUP_SUBSCRIBED_TO_TOPIC, U0: Error.NONE}
    assert fetch(after) == {T0: 1, T1: NO_OFFSET.offset, U0: NO_OFFSET.offset}
    assert offsets.expired_offsets(GROUP, 100, 50, ROLL) == {U0}


def test_description_list_and_deletion() -> None:
    _, described, rule = admin.on_describe(GROUP, DescribeGroup("g", 0, 6), ROLL)
    assert [member.id for member in described.members] == [ANN, BOB] and rule == "roll.describe"
    _, unknown, _ = admin.on_describe(RollWorld(), DescribeGroup("g", 0, 6), ROLL)
    assert (unknown.error, unknown.state) == (Error.GROUP_ID_NOT_FOUND, "Dead")
    none: frozenset[str] = frozenset()
    wanted = (none, frozenset({"roll"})), (frozenset({"stable"}), none), (frozenset({"empty"}), none)
    rules = [admin.on_list(GROUP, ListGroups("g", 0, states, types), ROLL)[2] for states, types in wanted]
    assert rules == ["list.group", "list.group", "list.filtered"]
    refused, _, rule = admin.on_delete(GROUP, DeleteGroup("g", 0), ROLL)
    assert refused is GROUP and rule == "delete.active"
    gone, _, rule = admin.on_delete(evolve(GROUP, roll={}), DeleteGroup("g", 0), ROLL)
    assert gone == RollWorld() and rule == "delete.empty"
