"""Generations: their heartbeats, numbers, leaders, members and fencing, and the vote on their protocol."""

from collections.abc import Sequence

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.model.errors import Error
from fencepost.traces.events import Body

generations = ScenarioFamily()


@generations.add("HB-01")
async def heartbeat_without_a_group(group: ScenarioContext) -> None:
    """A Heartbeat with the empty group id is refused."""
    a = group.member("A")
    await group.check_versions("HB-01", group.heartbeat(a, group_id="", member_id="nobody", generation_id=1))


@generations.add("HB-02")
async def heartbeat_to_nobody(group: ScenarioContext) -> None:
    """An unknown group and an emptied group refuse every member id."""
    await group.check_versions("HB-02", group.heartbeat(group.member("B"), member_id="nobody", generation_id=1))
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    for generation in (a.generation, a.generation + 1):
        await group.check_versions("HB-02", group.heartbeat(a, generation_id=generation))


@generations.add("HB-05", "HB-04", "HB-03", smoke=True)
async def heartbeat_in_stable(group: ScenarioContext) -> None:
    """The current generation succeeds; other generations and unknown ids are refused."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    for member in (a, b):
        await group.check_versions("HB-05", group.heartbeat(member))
    for generation in (b.generation + 1, b.generation - 1, -1):
        await group.check_versions("HB-04", group.heartbeat(a, generation_id=generation))
    for generation in (a.generation, -1):
        await group.check_versions("HB-03", group.heartbeat(a, member_id="nobody", generation_id=generation))


@generations.add("HB-06", "HB-11")
async def heartbeat_in_preparing(group: ScenarioContext) -> None:
    """During the join phase every Heartbeat gets REBALANCE_IN_PROGRESS, until the member rejoins."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    parked = group.join(a)
    is_preparing = await group.wait_for_state(PREPARING)

    for requirement in ("HB-06", "HB-11", "HB-11"):
        call = group.heartbeat(b)
        body = await call
        is_reached = is_preparing or body["error_code"] == Error.REBALANCE_IN_PROGRESS
        await group.check(requirement, call, reached=is_reached)
    await group.join(b)
    await parked
    await group.check("HB-11", group.heartbeat(b))


@generations.add("HB-07", smoke=True)
async def heartbeat_in_completing(group: ScenarioContext) -> None:
    """In CompletingRebalance, the Heartbeats of leader and follower succeed."""
    for member in await group.form_generation(group.patient_member("A"), group.patient_member("B")):
        await group.check_versions("HB-07", group.heartbeat(member))


@generations.add("HB-08")
async def heartbeat_of_a_pending_id(group: ScenarioContext) -> None:
    """A member id that was only issued is unknown."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = group.member("P")
    body = await group.join(newcomer, version=group.highest_version("JoinGroup", 4))

    await group.check_versions(
        "HB-08",
        group.heartbeat(newcomer, generation_id=a.generation),
        reached=body["error_code"] == Error.MEMBER_ID_REQUIRED,
    )


@generations.add("HB-09")
async def heartbeat_extends_the_session(group: ScenarioContext) -> None:
    """Heartbeats at every half session timeout keep a member for longer than one session."""
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    past = 0
    while past < a.session_timeout + 2 * group.grace + group.short_pause:
        await group.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2
        call = group.heartbeat(a)
        await call

    await group.check("HB-09", call)


@generations.add("HB-09")
async def heartbeat_in_preparing_extends_the_session(group: ScenarioContext) -> None:
    """Heartbeats that get REBALANCE_IN_PROGRESS keep a member, too."""
    enough = group.session_timeout + 2 * group.grace + group.short_pause
    a = group.member("A")
    b = group.expiring_member("B", rebalance_timeout=2 * enough + group.rebalance_timeout)
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(a)
    is_preparing = await group.wait_for_state(PREPARING)
    past = 0
    while past < enough:
        await group.sleep(b.session_timeout // 2)
        past += b.session_timeout // 2
        call = group.heartbeat(b)
        await call
    is_reached = is_preparing or call.error == Error.REBALANCE_IN_PROGRESS

    await group.check("HB-09", call, reached=is_reached)
    await group.join(b)
    await parked


@generations.add("HB-10")
async def refused_heartbeat_does_not_extend(group: ScenarioContext) -> None:
    """A member that only sends Heartbeats of another generation expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    past = 0
    while past < a.session_timeout + 2 * group.grace + group.short_pause:
        await group.heartbeat(a, generation_id=a.generation + 1)
        await group.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2

    await group.check("HB-10", group.heartbeat(a))


@generations.add("HB-13")
async def heartbeats_do_not_replace_a_rejoin(group: ScenarioContext) -> None:
    """A member that heartbeats but does not rejoin is removed at the rebalance timeout."""
    a, b = group.member("A"), group.member("B")
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(a)
    await group.keep_alive([b], b.rebalance_timeout + 2 * group.grace + group.short_pause)

    await group.check("HB-13", group.heartbeat(b))
    await parked


@generations.add("HB-13")
async def heartbeats_do_not_replace_a_sync(group: ScenarioContext) -> None:
    """A follower that heartbeats but does not sync is removed at the rebalance timeout."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    await group.sync_leader(leader, follower)
    await group.keep_alive([leader, follower], follower.rebalance_timeout + 2 * group.grace + group.short_pause)

    await group.check("HB-13", group.heartbeat(follower))


@generations.add("HB-14")
async def instance_before_generation(group: ScenarioContext) -> None:
    """A foreign and an unknown instance id are refused before a wrong generation is."""
    version = group.highest_version("Heartbeat", 3)
    group.highest_version("JoinGroup", 5)
    a, b = await group.form_stable_group(group.member("A", instance="one"), group.member("B", instance="two"))

    for instance in (b.instance, "nobody"):
        await group.check_versions(
            "HB-14",
            group.heartbeat(a, group_instance_id=instance, generation_id=a.generation + 1, version=version),
            since=3,
        )


# --- Generations: their numbers, their leaders, their members, and their fencing.


@generations.add("GEN-01", smoke=True)
async def first_generation(group: ScenarioContext) -> None:
    """The first member of a new group joins generation 1."""
    await group.check("GEN-01", await group.join_new(group.member("A")), fields="generation")


@generations.add("GEN-02", smoke=True)
async def every_round_counts_once(group: ScenarioContext) -> None:
    """Each of two further rebalances raises the generation by one."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for _ in range(2):
        for call in await group.rebalance(a, b):
            await group.check("GEN-02", call, fields="generation")
        await group.sync_all(a, b)


@generations.add("GEN-02")
async def round_that_ends_empty_counts(group: ScenarioContext) -> None:
    """The rebalance after the last member's session has expired raises the generation, too."""
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    await group.commit(a, {0: 1})
    await group.sleep_past(a.session_timeout)

    await group.check("GEN-02", await group.join_new(a), fields="generation")


@generations.add("GEN-14")
async def emptied_group_counts_on(group: ScenarioContext) -> None:
    """An emptied group that is kept by its offsets does not start over."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 1})
    await group.leave(a)

    await group.check("GEN-14", await group.join_new(a), fields="generation")


@generations.add("GEN-03")
async def nothing_else_counts(group: ScenarioContext) -> None:
    """All requests that begin no join phase leave the generation as it is."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.sync(a)
    await group.heartbeat(b)
    await group.commit(a, {0: 1})
    await group.join(group.member("C"), protocol_type="other")
    await group.describe_groups()

    await group.check("GEN-03", group.heartbeat(b))
    await group.check("GEN-03", group.heartbeat(a))


@generations.add("GEN-04")
async def answers_of_a_generation_agree(group: ScenarioContext) -> None:
    """A follower that rejoins gets the same protocol and the same leader."""
    a, b = await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p", "q"))
    rejoins = await group.rebalance(a, b)
    await group.sync_all(a, b)

    for call in rejoins:
        await group.check("GEN-04", call, fields=("protocol", "leader"))
    again, generation = group.join(b), b.generation
    await again
    if b.generation == generation:
        await group.check("GEN-04", again, fields=("protocol", "leader"))


@generations.add("GEN-05")
async def one_leader(group: ScenarioContext) -> None:
    """Of three members, two are named followers."""
    leader, *followers = await group.form_stable_group(*map(group.member, "ABC"))
    for call in (await group.rebalance(leader, *followers))[1:]:
        await group.check("GEN-05", call, fields=("leader", "members"))


@generations.add("GEN-06")
async def leader_has_rejoined(group: ScenarioContext) -> None:
    """A static leader that does not rejoin stays a member, and another member becomes leader."""
    group.highest_version("JoinGroup", 5)
    first, other = await group.form_stable_group(group.member("A", instance="one"), group.member("B", instance="two"))
    await group.check("GEN-06", group.join_with_new_metadata(other), fields="leader", reached=first.id != other.id)


@generations.add("GEN-06")
async def successor_has_rejoined(group: ScenarioContext) -> None:
    """The leader leaves during the join phase; the one member that has rejoined becomes leader."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))

    call = group.join_with_new_metadata(follower)
    await group.wait_for_state(PREPARING)
    await group.leave(leader)

    await group.check("GEN-06", call, fields="leader")


@generations.add("GEN-05", "JOIN-37")
async def one_successor(group: ScenarioContext) -> None:
    """The leader leaves during the join phase; one of the two that have rejoined becomes leader."""
    leader, *followers = await group.form_stable_group(*map(group.member, "ABC"))

    calls = [group.join_with_new_metadata(follower) for follower in followers]
    await group.sleep(2 * group.short_pause)
    await group.leave(leader)

    for call in calls:
        await group.check("GEN-05", call, fields="leader")
        await group.check("JOIN-37", call, fields="members")


@generations.add("GEN-07")
async def leader_keeps_its_role(group: ScenarioContext) -> None:
    """The leader rejoins second, in rebalances that the follower began, and stays leader."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    for number in range(2):
        rejoined = group.join_with_new_metadata(follower, f"changed {number}")
        await group.wait_for_state(PREPARING)
        call = group.join(leader)
        await rejoined
        await group.check("GEN-07", call, fields="leader")
        await group.sync_all(leader, follower)


@generations.add("GEN-13")
async def recreated_group_starts_over(group: ScenarioContext) -> None:
    """A deleted group starts over with generation 1."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.leave(a)
    deleted = await group.delete_groups()
    is_deleted = all(row["error_code"] in (Error.NONE, Error.GROUP_ID_NOT_FOUND) for row in deleted["results"])

    await group.check("GEN-13", await group.join_new(group.member("B")), fields="generation", reached=is_deleted)


@generations.add("GEN-15", smoke=True)
async def previous_generation_is_fenced(group: ScenarioContext) -> None:
    """After a rebalance, all requests of the generation before are refused."""
    (a,) = await group.form_stable_group(group.member("A"))
    before = a.generation
    await group.rebalance(a)
    await group.sync_all(a)

    for call in (
        group.sync(a, generation_id=before),
        group.heartbeat(a, generation_id=before),
        group.commit(a, {0: 1}, generation_id_or_member_epoch=before),
    ):
        await group.check_versions("GEN-15", call)


@generations.add("GEN-16")
async def assignment_of_the_generation(group: ScenarioContext) -> None:
    """After a rebalance, the members receive the assignments of the new generation."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.rebalance(a, b)
    for call in (group.sync(a, {a.id: b"second", b.id: b"second too"}), group.sync(b)):
        await group.check("GEN-16", call, fields="assignment")


@generations.add("GEN-17")
async def no_stable_without_the_leader(group: ScenarioContext) -> None:
    """The group is not Stable before the leader has synced."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    waiting = group.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await group.sleep(2 * group.short_pause)

    await group.check("GEN-17", group.describe_groups(), fields="state")
    await group.sync_leader(leader, follower)
    await waiting


@generations.add("GEN-18")
async def kept_member_is_fenced(group: ScenarioContext) -> None:
    """A static member that did not rejoin may not act, neither in the new generation nor in the old one."""
    group.highest_version("JoinGroup", 5)
    a, s = group.member("A"), group.member("S", instance="static")
    await group.form_stable_group(a, s)
    await group.join_with_new_metadata(a)
    await group.sync_all(a)

    for call in (group.heartbeat(s), group.sync(s), group.commit(s, {0: 1})):
        await group.check_versions("GEN-18", call, reached=a.generation > s.generation)


@generations.add("GEN-20")
async def members_of_a_round(group: ScenarioContext) -> None:
    """Of three members one rejoins, one stays as it is static, and one is removed."""
    group.highest_version("JoinGroup", 5)
    a = group.member("A")
    await group.form_stable_group(a, group.member("B"), group.member("S", instance="static"))

    await group.check("GEN-20", group.join_with_new_metadata(a), fields="members")


# --- The vote on the protocol of a generation.


def protocols_named(member: Member, names: Sequence[str]) -> list[Body]:
    """Let a member support the protocols, with its label as metadata; returns them for the body of JoinGroup."""
    member.protocols = tuple((name, member.label.encode()) for name in names)
    return [{"name": name, "metadata": metadata} for name, metadata in member.protocols]


def voting_member(group: ScenarioContext, label: str, names: str, instance: str | None = None) -> Member:
    """A new member that supports protocols of one letter each, and need not heartbeat."""
    member = group.member(label, *names, instance=instance, protocol_type="worker")
    protocols_named(member, names)
    return member


@generations.add("GEN-08")
async def protocol_suits_all(group: ScenarioContext) -> None:
    """The selected protocol is supported by all members, though each prefers another."""
    a, b = await group.form_stable_group(voting_member(group, "A", "pq"), voting_member(group, "B", "rq"))
    for call in await group.rebalance(a, b):
        await group.check("GEN-08", call, fields="protocol")


@generations.add("GEN-09")
async def members_disagree(group: ScenarioContext) -> None:
    """Two members with the same protocols in another order have one vote each, and get the same protocol."""
    a, b = await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p", "q"))

    first = group.join(b, protocols=protocols_named(b, "qp"))
    await group.sleep(2 * group.short_pause)
    calls = (first, group.join(a))

    for call in calls:
        group.add_check("GEN-09", call, fields="protocol")
    for call in calls:
        await call


@generations.add("GEN-09")
async def most_votes_win(group: ScenarioContext) -> None:
    """The protocol that two of three members prefer is selected."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "qp"), voting_member(group, "C", "qp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@generations.add("GEN-09")
async def votes_are_for_what_all_offer(group: ScenarioContext) -> None:
    """A vote goes to the first protocol of the list that all members support."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "xqp"), voting_member(group, "C", "xqp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@generations.add("GEN-10", smoke=True)
async def order_is_preference(group: ScenarioContext) -> None:
    """A lone member gets the first protocol of its list, also when the order changes."""
    a = voting_member(group, "A", "pq")
    await group.check("GEN-10", await group.join_new(a), fields="protocol")
    await group.check("GEN-10", group.join(a, protocols=protocols_named(a, "qp")), fields="protocol")


@generations.add("GEN-11")
async def rolling_upgrade(group: ScenarioContext) -> None:
    """A new protocol is selected once the last member supports it."""
    a, b = voting_member(group, "A", "qp"), voting_member(group, "B", "p")
    ordered = await group.form_stable_group(a, b)

    for call in await group.rebalance(*ordered):
        await group.check("GEN-11", call, fields="protocol")
    await group.sync_all(*ordered)
    upgraded = group.join(b, protocols=protocols_named(b, "qp"))
    await group.sleep(2 * group.short_pause)
    for call in (group.join(a), upgraded):
        await group.check("GEN-11", call, fields="protocol")


@generations.add("GEN-12")
async def protocol_type_is_the_groups(group: ScenarioContext) -> None:
    """In a group of another protocol type, JoinGroup and SyncGroup return that type."""
    group.highest_version("JoinGroup", 7)
    a, b = await group.form_stable_group(voting_member(group, "A", "p"), voting_member(group, "B", "p"))
    for call in (*await group.rebalance(a, b), group.sync(a, version=group.highest_version("SyncGroup", 5))):
        await group.check("GEN-12", call, fields="protocol_type")


@generations.add("GEN-21")
async def last_member_leaves_a_pending_id_behind(group: ScenarioContext) -> None:
    """A group without members is Empty, though an id was handed out and is not used yet."""
    (a,) = await group.form_stable_group(group.member("A"))
    first = group.join(group.member("B"), version=group.highest_version("JoinGroup", at_least=4))
    group.require((await first)["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")
    await group.leave(a)
    await group.sleep(group.short_pause)

    await group.check("GEN-21", group.describe_groups(), fields="state")


@generations.add("GEN-19")
async def kept_members_vote(group: ScenarioContext) -> None:
    """Static members that do not rejoin vote: their preference outweighs that of the member that rejoins."""
    group.highest_version("JoinGroup", 5)
    a = voting_member(group, "A", "qp")
    await group.form_stable_group(a, voting_member(group, "S", "pq", "one"), voting_member(group, "T", "pq", "two"))

    await group.check("GEN-19", group.join_with_new_metadata(a), fields="protocol")
