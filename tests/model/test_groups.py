"""Joining, and all else that a group's members ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from fencepost.model.classic.core.state import Phase
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
from tests.support.model_driver import (
    ONLY_P,
    ONLY_Q,
    P_THEN_Q,
    Q_THEN_P,
    SETTINGS,
    ModelCoordinatorDriver,
    driver_in_phase,
)

# --- JoinGroup on the model, over all states: tables A to D of coordinator.md 2.2.

EMPTY, PREPARING, COMPLETING, STABLE = Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE
ACTIVE = (PREPARING, COMPLETING, STABLE)
UNKNOWN, FENCED, ILLEGAL = Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION
REBALANCE, NONE, INCONSISTENT = Error.REBALANCE_IN_PROGRESS, Error.NONE, Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("phase", [None, *Phase])
@pytest.mark.parametrize("version", [3, 9])
def test_join_of_a_dynamic_newcomer(phase: Phase | None, version: int) -> None:
    """Table A."""
    desk = ModelCoordinatorDriver() if phase is None else driver_in_phase(phase)
    before = 0 if phase is None else desk.group.generation
    number = desk.join(None, P_THEN_Q, version=version)
    name = f"m{desk.id_count}"
    if version == 9:
        assert desk.error_of(number) == Error.MEMBER_ID_REQUIRED and desk.response_to(number).member == name
        assert desk.phase is (phase or EMPTY)
    else:
        assert desk.error_of(number) is None and desk.phase is PREPARING
        assert desk.member(name).is_new and desk.member(name).join == number
    assert desk.group.generation == before


@pytest.mark.parametrize("phase", Phase)
def test_join_with_a_pending_id(phase: Phase) -> None:
    """Table C: the second request counts."""
    desk = driver_in_phase(phase)
    desk.join(None, P_THEN_Q, session=6_000)
    name = f"m{desk.id_count}"
    assert desk.error_of(desk.join(name, P_THEN_Q, instance="k")) == Error.UNKNOWN_SERVER_ERROR
    number = desk.join(name, Q_THEN_P, session=8_000)
    assert desk.error_of(number) is None and desk.phase is PREPARING
    slot = desk.member(name)
    assert (slot.session_timeout, [each.name for each in slot.protocols]) == (8_000, ["q", "p"])
    assert slot.deadline == desk.now + SETTINGS.new_member_timeout


@pytest.mark.parametrize("phase", Phase)
def test_join_of_a_new_static_member(phase: Phase) -> None:
    """Table B, instance unknown: no detour."""
    desk = driver_in_phase(phase)
    number = desk.join(None, P_THEN_Q, instance="new")
    assert desk.error_of(number) is None and desk.phase is PREPARING
    assert desk.member(f"m{desk.id_count}").instance == "new"


@pytest.mark.parametrize(
    ("phase", "protocols", "rule", "after"),
    [
        (PREPARING, P_THEN_Q, "join.replace.preparing", PREPARING),
        (COMPLETING, P_THEN_Q, "join.replace.completing", PREPARING),
        (STABLE, P_THEN_Q, "join.replace.stable", STABLE),
        (STABLE, (("p", b"new"), ("q", b"new")), "join.replace.stable", STABLE),
        (STABLE, ONLY_Q, "join.replace.stable.changed-vote", PREPARING),
    ],
)
def test_join_that_replaces(phase: Phase, protocols: tuple[tuple[str, bytes], ...], rule: str, after: Phase) -> None:
    """Table B, instance known."""
    desk = driver_in_phase(phase)
    number = desk.join(None, protocols, instance="i")
    new = f"m{desk.id_count}"
    assert desk.rules[-1] == rule and desk.phase is after
    assert "m2" not in desk.members() and desk.member(new).instance == "i"
    assert [each.metadata for each in desk.member(new).protocols] == [metadata for _, metadata in protocols]
    assert desk.error_of(number) == (NONE if after is STABLE else None)
    assert desk.error_of(desk.heartbeat("m2", 1)) == UNKNOWN
    assert desk.error_of(desk.heartbeat("m2", 1, "i")) == FENCED


@pytest.mark.parametrize(
    ("version", "leader", "count", "skips"), [(9, "m2", 1, True), (8, "m1", 0, False), (5, "m1", 0, False)]
)
def test_the_leader_is_replaced_in_place(version: int, leader: str, count: int, skips: bool) -> None:
    desk = ModelCoordinatorDriver()
    desk.form_stable_group({"instance": "i"})
    response = desk.response_to(desk.join(None, instance="i", version=version))
    members = [view for view in response.members if view.id is not None]
    assert (response.leader, response.member, len(members), response.skip_assignment) == (leader, "m2", count, skips)
    assert (response.generation, response.protocol, desk.group.leader) == (1, "p", "m2")
    assert desk.response_to(desk.sync("m2", 1)).assignment == b"m1"


def test_parked_requests_of_a_replaced_member_are_fenced() -> None:
    desk = driver_in_phase(COMPLETING)
    parked = desk.sync("m2", 1)
    first = desk.join(None, P_THEN_Q, instance="i")
    assert desk.error_of(parked) == FENCED and desk.error_of(first) is None
    desk.join(None, P_THEN_Q, instance="i")
    assert desk.error_of(first) == FENCED and desk.response_to(first).member == "m3"


@pytest.mark.parametrize(
    ("phase", "member", "protocols", "rule", "response", "after"),
    [
        (PREPARING, "m1", P_THEN_Q, "join.preparing", None, PREPARING),
        (PREPARING, "m2", Q_THEN_P, "join.preparing", None, PREPARING),
        (COMPLETING, "m1", P_THEN_Q, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m2", P_THEN_Q, "join.completing.same-protocols", NONE, COMPLETING),
        (COMPLETING, "m1", Q_THEN_P, "join.completing.changed-protocols", None, PREPARING),
        (COMPLETING, "m2", ONLY_P, "join.completing.changed-protocols", None, PREPARING),
        (STABLE, "m1", P_THEN_Q, "join.stable.leader", None, PREPARING),
        (STABLE, "m2", P_THEN_Q, "join.stable.same-protocols", NONE, STABLE),
        (STABLE, "m2", Q_THEN_P, "join.stable.changed-protocols", None, PREPARING),
        (STABLE, "m2", (("p", b"1"), ("q", b"x")), "join.stable.changed-protocols", None, PREPARING),
    ],
)
def test_join_of_a_member(
    phase: Phase,
    member: str,
    protocols: tuple[tuple[str, bytes], ...],
    rule: str,
    response: Error | None,
    after: Phase,
) -> None:
    """Table D. What is answered from the current generation changes nothing, timeouts included (JOIN-35)."""
    desk = driver_in_phase(phase)
    before = desk.state
    number = desk.join(member, protocols, session=7_000)
    assert (desk.rules[-1], desk.error_of(number), desk.phase) == (rule, response, after)
    if response is NONE:
        assert desk.state is before and desk.response_to(number).generation == 1
        assert bool([view for view in desk.response_to(number).members if view.id]) is (member == "m1")
    else:
        assert desk.member(member).session_timeout == 7_000


@pytest.mark.parametrize("phase", [*ACTIVE, EMPTY])
@pytest.mark.parametrize(
    ("member", "instance", "error"),
    [("nobody", None, UNKNOWN), ("m1", "i", FENCED), ("m1", "j", UNKNOWN), ("nobody", "i", FENCED)],
)
def test_join_of_a_stranger(phase: Phase, member: str, instance: str, error: Error) -> None:
    desk = driver_in_phase(phase)
    before = desk.state.group
    number = desk.join(member, P_THEN_Q, instance=instance)
    assert desk.error_of(number) == (UNKNOWN if phase is EMPTY else error)
    assert desk.response_to(number).member == member and desk.state.group == before


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    ("kind", "protocols"), [("", ONLY_P), ("other", ONLY_P), ("consumer", ()), ("consumer", (("r", b""),))]
)
def test_join_with_protocols_that_do_not_fit(phase: Phase, kind: str, protocols: tuple[tuple[str, bytes], ...]) -> None:
    """23 comes before membership (JOIN-19); an Empty group takes any type with any name."""
    desk = driver_in_phase(phase)
    fits = phase is EMPTY and bool(kind) and bool(protocols)
    number = desk.join("nobody", protocols, kind=kind or None)
    assert desk.error_of(number) == (UNKNOWN if fits else INCONSISTENT)
    number = desk.join(None, protocols, kind=kind or None)
    assert desk.error_of(number) == (Error.MEMBER_ID_REQUIRED if fits else INCONSISTENT)


@pytest.mark.parametrize(("session", "error"), [(5_999, 26), (6_000, 79), (1_800_000, 79), (1_800_001, 26)])
def test_join_within_session_bounds(session: int, error: int) -> None:
    desk = ModelCoordinatorDriver()
    number = desk.join(session=session)
    assert desk.error_of(number) == error
    assert (desk.state.group is None) is (error == Error.INVALID_SESSION_TIMEOUT)


def test_join_without_a_group() -> None:
    desk = ModelCoordinatorDriver()
    assert desk.error_of(desk.join(group="")) == Error.INVALID_GROUP_ID
    assert desk.error_of(desk.join("x")) == UNKNOWN
    assert desk.state.group is None


@pytest.mark.parametrize("phase", ACTIVE)
def test_join_of_a_full_group(phase: Phase) -> None:
    desk = driver_in_phase(phase)
    desk.cluster = type(desk.cluster)(Settings(max_group_size=1 if phase is PREPARING else 2), {"t": 1})
    assert desk.error_of(desk.join(None, P_THEN_Q)) == Error.GROUP_MAX_SIZE_REACHED
    number = desk.join("m1", P_THEN_Q)
    refused = phase is PREPARING
    assert desk.error_of(number) != Error.GROUP_MAX_SIZE_REACHED or refused
    assert ("m1" in desk.members()) is not refused


# --- Offsets and administration of groups of a protocol that is not the classic one: a roll of names with epochs.

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
