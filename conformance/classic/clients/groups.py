"""Groups that the script invents: the client leads them, and plans for members that are not there."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.client.cluster import InterceptedRequest, refusal_of
from fencepost.conformance.clients.stage import (
    PATIENCE_S,
    ClientScenarioFamily,
    ClientStage,
    NotShown,
    StageBlocked,
    has_member_id,
)
from fencepost.model.assignors.checks import (
    CHECKS,
    OWN_RULES,
    AssignorCheck,
    MissingPlan,
    PlanError,
    SeenPlans,
    encode_in_version,
)
from fencepost.model.assignors.consumer_protocol import (
    NEWEST_VERSION,
    ConsumerProtocolError,
    decode_assignment,
    decode_sticky_user_data,
    encode_sticky_user_data,
)
from fencepost.model.assignors.group import NO_GENERATION, Assignment, GroupMember, Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.wire.codec import Body
from fencepost.traces.classic.client.joins import INSTANCE_VERSIONS
from fencepost.traces.classic.client.plans import CHECKS_BY_NAME, REPEATED

FAMILY = ClientScenarioFamily()
MAX_REPEATS = 2
"""How often a client is told again of a group whose plan left out a topic."""
METADATA_S = 0.5
"""How long the response to such a plan waits, so that Metadata can tell the client of the topic."""
PLAYED = tuple(check for check in CHECKS if not check.has_racks)
"""The checks that the wire can play; the nodes of the cluster are in no rack."""


def requirements_of(*, own: bool) -> tuple[str, ...]:
    """The requirements that the played checks are about."""
    found = dict.fromkeys(check.requirement for check in PLAYED)
    return tuple(each for each in found if (each in OWN_RULES) is own)


@dataclass(slots=True)
class Inventor:
    """Has the client lead one invented group after the other. Every plan is refused, so that it joins again."""

    stage: ClientStage
    generation: int = 1_000
    tells_instances: bool = True
    """Whether JoinGroup tells the client which members are static."""
    groups: "asyncio.Queue[InventedGroup]" = field(default_factory=asyncio.Queue)
    """Those that the client has not been told of."""
    plan: "asyncio.Future[Assignment | None] | None" = None
    """The plan for the group that it was told of, None if it fails at it."""
    told: "InventedGroup | None" = None
    """The group that it was told of."""
    is_last_try: bool = False
    """Whether it was told of it again, since it joined again in the place of a plan."""
    repeats: int = 0
    """How often it was told of it again, since its plan left out a topic."""
    shapes: dict[tuple[tuple[str, int], ...], str] = field(default_factory=dict)
    """What the names on the wire of the topics of a cluster begin with."""
    names: dict[str, str] = field(default_factory=dict)
    """The topics of the group that the client was told of, by their names on the wire."""
    missing: set[str] = field(default_factory=set)
    """The names of topics that are not there."""

    def begin(self) -> None:
        """From the next rebalance on the client leads invented groups."""
        play, always = self.stage.play, 1_000_000
        play("JoinGroup", self.join, "JoinGroup is told of an invented group", times=always, matches=has_member_id)
        play("SyncGroup", self.sync, "SyncGroup gets REBALANCE_IN_PROGRESS", times=always)
        play("Metadata", self.describe, "Metadata says which topics are not there", times=always)
        self.stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS, times=always)
        self.stage.refuse("OffsetCommit", Error.NONE, times=always)

    async def ask(self, assignor: str, check: AssignorCheck, group: MissingPlan) -> Assignment | None:
        """The plan of the client for a group, None if it fails at it. Raises `StageBlocked`."""
        topics = await self.name_topics(group)
        existing = frozenset(topic for topic, count in group.cluster.partitions.items() if count)
        self.plan = asyncio.get_running_loop().create_future()
        self.groups.put_nowait(InventedGroup(assignor, check, group.members, topics, existing))
        assert self.stage.ended is not None
        waiting: list[asyncio.Future[Any]] = [self.plan, self.stage.ended]
        await asyncio.wait(waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if self.plan.done():
            return self.plan.result()
        if self.stage.ended.done():
            raise StageBlocked("the program ended before it planned for a group")
        if not self.groups.empty():
            raise StageBlocked(f"the client did not join again within {PATIENCE_S:g} s")
        return None

    async def name_topics(self, group: MissingPlan) -> dict[str, str]:
        """Create the topics of a group; their names on the wire."""
        shape = tuple(sorted(group.cluster.partitions.items()))
        is_new = shape not in self.shapes
        prefix = self.shapes.setdefault(shape, f"{self.stage.place.topic}-{len(self.shapes)}-")
        for topic, count in shape if is_new else ():
            await self.stage.cluster.create_topic(prefix + topic, count, 0)
        wanted = {topic for member in group.members for topic in member.subscription.topics}
        claimed = {topic for member in group.members for topic, _ in member.subscription.owned}
        self.missing |= {prefix + topic for topic in wanted - group.cluster.partitions.keys()}
        return {topic: prefix + topic for topic in {*group.cluster.partitions, *wanted, *claimed}}

    # -- faults ---------------------------------------------------------------------------------------------------

    async def join(self, intercepted: InterceptedRequest) -> Body | None:
        """The client leads the next group."""
        is_again = self.plan is not None and not self.plan.done() and self.groups.empty()
        if is_again and self.is_last_try:
            assert self.plan is not None
            self.plan.set_result(None)
            is_again = False
        if is_again and self.told is not None:
            group = self.told
        else:
            group, self.repeats = await self.groups.get(), 0
        self.told, self.is_last_try = group, is_again
        self.generation += 1
        self.names = {wire: name for name, wire in group.topics.items()}
        told = {"assignor": group.assignor, "check": group.check.name, "topics": self.names, "again": is_again}
        self.stage.cluster.annotate("group", told)
        member = intercepted.request.body["member_id"]
        return {
            "throttle_time_ms": 0,
            "error_code": Error.NONE,
            "generation_id": self.generation,
            "protocol_type": "consumer",
            "protocol_name": group.assignor,
            "leader": member,
            "skip_assignment": False,
            "member_id": member,
            "members": group.rows(),
        }

    async def sync(self, intercepted: InterceptedRequest) -> Body | None:
        """The client plans, and is told of another rebalance. A plan that it made for a group before says nothing."""
        if intercepted.request.body["generation_id"] != self.generation:
            return refusal_of(intercepted.request, Error.REBALANCE_IN_PROGRESS)
        try:
            rows = intercepted.request.body["assignments"]
            plan = {row["member_id"]: self.read_plan(row["assignment"]) for row in rows}
        except ConsumerProtocolError:
            plan = None
        if self.told is not None and plan is not None and self.told.misses_topic(plan) and self.repeats < MAX_REPEATS:
            self.repeats += 1
            self.is_last_try = False
            self.stage.cluster.annotate(REPEATED, {})
            await asyncio.sleep(METADATA_S)
        elif self.plan is not None and not self.plan.done():
            self.plan.set_result(plan)
        return refusal_of(intercepted.request, Error.REBALANCE_IN_PROGRESS)

    def read_plan(self, data: bytes) -> tuple[TopicPartition, ...]:
        """An assignment, with the names of its topics in the check. Raises `ConsumerProtocolError`."""
        return tuple((self.names.get(topic, topic), number) for topic, number in decode_assignment(data))

    async def describe(self, intercepted: InterceptedRequest) -> Body | None:
        """Metadata, in which what is not there stays so, though the client may ask for it to be created."""
        body = await intercepted.pass_on()
        if body is None:
            return None
        missing = {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION, "partitions": []}
        rows = [{**row, **missing} if row["name"] in self.missing else row for row in body["topics"]]
        return {**body, "topics": rows}


@dataclass(frozen=True, slots=True)
class InventedGroup:
    """A group of a check, with the names of its topics on the wire by those in the check."""

    assignor: str
    check: AssignorCheck
    members: Sequence[GroupMember]
    topics: Mapping[str, str]
    existing: frozenset[str]
    """The topics of the check that have partitions."""

    def misses_topic(self, plan: Assignment) -> bool:
        """Whether a plan has nothing of a topic that somebody subscribes to. A leader may plan with the metadata that
        was on its way when it was told of the topic; it knows of it the next time."""
        planned = {topic for own in plan.values() for topic, _ in own}
        wanted = {topic for member in self.members for topic in member.subscription.topics}
        return not wanted & self.existing <= planned

    def rows(self) -> list[Body]:
        """The members as JoinGroup tells a leader of them."""
        versions = (*self.check.versions, *[NEWEST_VERSION] * len(self.members))
        return [
            {
                "member_id": member.id,
                "group_instance_id": member.instance_id,
                "metadata": encode_in_version(rename_topics(member.subscription, self.topics), version),
            }
            for member, version in zip(self.members, versions, strict=False)
        ]


def rename_topics(subscription: Subscription, topics: Mapping[str, str]) -> Subscription:
    """A subscription with other names of topics, in its user data as well if they are those of sticky."""
    data = subscription.user_data
    claim = decode_sticky_user_data(data)
    if claim is not None:
        owned = [(topics.get(topic, topic), number) for topic, number in claim[0]]
        data = encode_sticky_user_data(owned, None if claim[1] == NO_GENERATION else claim[1])
    return evolve(
        subscription,
        topics=tuple(topics[topic] for topic in subscription.topics),
        owned=tuple((topics[topic], number) for topic, number in subscription.owned),
        user_data=data,
    )


async def play_check(inventor: Inventor, assignor: str, check: AssignorCheck) -> None:
    """Have the client plan for all groups of a check. Raises `StageBlocked`."""
    plans: list[Assignment | None] = []
    while True:
        try:
            next(check.run(SeenPlans(plans).assign, assignor), None)
            return
        except PlanError:
            return
        except MissingPlan as missing:
            if not inventor.tells_instances and any(each.instance_id is not None for each in missing.members):
                return
            plans.append(await inventor.ask(assignor, check, missing))


async def play_checks(stage: ClientStage, *, own: bool) -> None:
    """Have the client plan for the groups of all checks of the assignors that it offers."""
    wanted = [
        (assignor, check)
        for assignor in stage.facts.protocols
        for check in PLAYED
        if (check.requirement in OWN_RULES) is own and (assignor, check.name) in CHECKS_BY_NAME
    ]
    if not wanted:
        raise NotShown("the client offers no assignor that has such groups")
    await stage.start_and_become_stable()
    join = await stage.request("JoinGroup")
    inventor = Inventor(stage, tells_instances=join.version >= INSTANCE_VERSIONS["JoinGroup"])
    inventor.begin()
    for assignor, check in wanted:
        await play_check(inventor, assignor, check)
    await stage.watch_request("JoinGroup", since=stage.mark(), seconds=2)


@FAMILY.add(*requirements_of(own=False))
async def plans_for_invented_groups(stage: ClientStage) -> None:
    """The client leads many groups, with members that are not there."""
    await play_checks(stage, own=False)


@FAMILY.add(*requirements_of(own=True), needs=("driver",))
async def plans_for_odd_groups(stage: ClientStage) -> None:
    """The client leads groups for which some assignors fail; its application may be told so."""
    await play_checks(stage, own=True)
