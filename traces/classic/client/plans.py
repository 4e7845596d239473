"""The plan of a leader: the assignments in its SyncGroup, held against the members in its JoinGroup response."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model.assignors.checks import CHECKS, OWN_RULES, AssignorCheck, MissingPlan, PlanError, SeenPlans
from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment, decode_subscription
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, TopicPartition
from fencepost.model.assignors.properties import ANY_ASSIGNOR, PROPERTIES, broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client.view import (
    COOPERATIVE_ASSIGNORS,
    ClientView,
    Exchange,
    blame_request,
    check_request,
    is_of_exchange,
)
from fencepost.traces.client_judge.monitors import (
    Findings,
    Seen,
    after,
    at_end,
    before,
    build_pass,
    check,
    leave_open,
)
from fencepost.traces.events import Event, Kind, Operation
from fencepost.traces.history.recordings import Ownership, OwnershipEnd

EXACT = {"range": "RANGE-01", "roundrobin": "RR-01"}
"""The assignors whose rules determine the result, with the requirement that says so."""
STATIC_FIRST = {"range": "RANGE-04", "roundrobin": "RR-05"}
"""What says that their plans begin with the static members."""
CHECKED = frozenset(check.requirement for check in CHECKS)
"""The requirements that have groups of their own."""
SHOWN_BY_MORE = frozenset({"RANGE-06", "STICKY-04"})
"""What a plan for one topic does not show to hold: it takes several topics, or a balanced group before it."""


# --- Groups that the script has invented for a leader, held against the checks of the assignor that it is told to
# use.
#
# An annotation before each response to JoinGroup says which group of which check the members in it are. The plan in
# the SyncGroup that follows is the assignment; the topics have longer names on the wire than in the check.

CHECKS_BY_NAME: Mapping[tuple[str, str], AssignorCheck] = {
    (assignor, check.name): check for check in CHECKS for assignor in check.names
}
"""The checks of each assignor, by its name and the name of the check."""
REPEATED = "group-again"
"""The annotation behind a plan that counts for nothing: the leader will be told of the group again."""
VERSIONS = "ASSIGN-08"
"""The requirement that an assignor reads subscriptions of all versions."""
PATIENCE_MS = 5_000
"""How long a leader may take for a plan."""


@dataclass(frozen=True, slots=True)
class InventedGroup:
    """A group that the leader was told, with the topics of the check by their names on the wire."""

    assignor: str
    check: str
    topics: Mapping[str, str]
    sequence: int
    time: int
    is_last_try: bool
    """Whether the leader was told of it before, and has joined again in the place of a plan."""

    @property
    def requirement(self) -> str:
        """The requirement of the check."""
        return self.check.partition(" ")[0]

    @property
    def is_odd(self) -> bool:
        """Whether it is a group for which the assignors of Apache Kafka fail."""
        return self.requirement in OWN_RULES


@dataclass(slots=True)
class Plans:
    """The plans for invented groups, by assignor and check, in their order; None where none came."""

    told: InventedGroup | None = None
    """The group that has no plan yet."""
    plans: dict[tuple[str, str], list[Assignment | None]] = field(default_factory=dict)
    generation: int | None = None
    """The generation of the response to JoinGroup that told the leader of it: only that one's plan is for it."""
    planned: InventedGroup | None = None
    """The group of the last plan."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """The sequence number of the last plan, or of the group without one."""

    @after("group internal")
    def tell(self, view: ClientView, seen: Seen) -> None:
        """The leader is told of a group, perhaps again; at another one before that it has failed then."""
        event = seen.event
        body, is_again = event.body, bool(event.body["again"])
        if self.told is not None and not is_again:
            self._add(None, self.told.sequence)
        self.told = InventedGroup(body["assignor"], body["check"], body["topics"], event.sequence, event.time, is_again)
        self.generation = None

    @before("JoinGroup request")
    def join(self, view: ClientView, seen: Seen) -> None:
        """The leader joins again: for the second time in the place of a plan, it has failed."""
        if self.told is not None and self.told.is_last_try:
            self._add(None, self.told.sequence)

    def take(self, plan: Assignment, sequence: int) -> None:
        """The leader brings a plan."""
        assert self.told is not None
        topics = self.told.topics
        own = {id: tuple((topics.get(name, name), number) for name, number in given) for id, given in plan.items()}
        self._add(own, sequence)

    @after("JoinGroup response")
    def number(self, view: ClientView, seen: Seen) -> None:
        """The response to JoinGroup tells the leader of the group."""
        if not seen.event.body.get("error_code") and self.generation is None:
            self.generation = seen.event.body["generation_id"] if self.told is not None else None

    @after(f"{REPEATED} internal")
    def repeat(self, view: ClientView, seen: Seen) -> None:
        """The last plan counts for nothing."""
        if self.planned is not None:
            self.plans[self.planned.assignor, self.planned.check].pop()
            self.told, self.planned = replace(self.planned, is_last_try=False), None

    @at_end
    def finish(self, view: ClientView, time: int) -> Findings:
        """The trace ends: each check whose groups have all been planned for holds, or does not."""
        if self.told is not None and (view.ended is not None or time - self.told.time > PATIENCE_MS):
            self._add(None, self.told.sequence)
        yield from judge_groups(self)

    @before("SyncGroup request")
    def judge_plan(self, view: ClientView, seen: Seen) -> Findings:
        """The SyncGroup of a leader arrives: its plan has every member, and is one that the assignor allows."""
        operation, exchange = seen.request, view.exchange
        if (
            exchange is None
            or exchange.sync is not None
            or not exchange.leads
            or not is_of_exchange(operation, exchange)
        ):
            return
        given = operation.body["assignments"]
        told = exchange.operation.response or {}
        if exchange.skips:
            title, observed = "A leader plans that was told to skip it", f"{len(given)} assignments"
            yield check_request(view, not given, "MEMBER-09", operation, title, "no assignments", observed)
            return
        invented = self.told if self.generation in (None, exchange.generation) else None
        members = read_members(told["members"])
        unread = len(told["members"]) - len(members)
        if view.is_recorded and unread:
            return  # a subscription of another kind
        try:
            plan = {row["member_id"]: decode_assignment(row["assignment"]) for row in given}
        except ConsumerProtocolError as error:
            yield blame_request("WIRE-01", operation, "An assignment is unreadable", "an assignment", str(error))
            return
        ids = {str(row["member_id"]) for row in told["members"]}
        missing = sorted(ids - plan.keys())
        title, expected = "The plan of the leader lacks members", f"{len(ids)} members"
        observed = f"nothing for {', '.join(missing)}"
        yield check_request(view, not missing, "MEMBER-08", operation, title, expected, observed)
        if invented is not None:
            yield from judge_invented(self, view, operation, exchange, invented, () if unread else members, plan)
            return
        if unread:
            note = (
                f"the subscriptions of {unread} members cannot be read (WIRE-01): nobody knows what they subscribe to"
            )
            for requirement in {one.requirement for one in PROPERTIES.get(exchange.protocol, ANY_ASSIGNOR)}:
                yield leave_open(requirement, operation.handle - 1, note)
        elif not missing and members:
            has_racks = any(member.subscription.rack for member in members)  # those of partitions are not recorded
            protocol = exchange.protocol if not (view.is_recorded and has_racks) else ""
            clusters = known_clusters(view, operation, exchange, members, plan)
            yield from judge_properties(view, operation, protocol, members, clusters, plan)

    def _add(self, plan: Assignment | None, sequence: int) -> None:
        assert self.told is not None
        key = self.told.assignor, self.told.check
        self.plans.setdefault(key, []).append(plan)
        self.last[key] = sequence
        self.told, self.planned = None, self.told


def judge_groups(groups: Plans) -> Findings:
    """Each check whose groups have all been planned for holds, or does not."""
    able = {assignor for (assignor, name), plans in groups.plans.items() if any(plans) and VERSIONS not in name}
    blind = {assignor for (assignor, name), plans in groups.plans.items() if None in plans and VERSIONS in name} - able
    for (assignor, name), plans in groups.plans.items():
        one = CHECKS_BY_NAME.get((assignor, name))
        if one is None:
            continue
        if None in plans and assignor in blind and VERSIONS not in name:
            note = f"{assignor} brings a plan for no invented group at all, which {VERSIONS} is about"
            yield leave_open(one.requirement, groups.last[assignor, name], note)
            continue
        try:
            wrong = next(one.run(SeenPlans(plans).assign, assignor), None)
        except PlanError as failure:
            wrong = str(failure)
        except MissingPlan:
            continue
        title, expected = f"{assignor} plans wrongly for {one.groups}", "a plan that keeps the rule"
        sequence, told = groups.last[assignor, name], f"a group: {one.groups}"
        yield check(wrong is None, one.requirement, sequence, title, expected, wrong or "", told)


# --- The plan in a SyncGroup.


def known_clusters(
    view: ClientView, operation: Operation, exchange: Exchange, members: Sequence[GroupMember], plan: Assignment
) -> tuple[ClusterTopics, ...]:
    """The partitions by which the leader may have planned: those that it was told last, or before Metadata that was on
    its way with the response to JoinGroup. It may know nothing of a topic of which Metadata told first after that. A
    recording does not show which it knows: it gives them out, or withholds them from a member that claims one of
    them."""
    if not view.is_recorded:
        known = known_topics(view, exchange, plan)
        alternatives = []
        if exchange.metadata == 2 and view.told_at[1] + view.knowledge.grace > operation.sent_at:
            alternatives.append(known_topics_at_first(view, exchange, plan))
        alternatives += (
            {
                topic: counts.get(topic, count)
                for topic, count in known.items()
                if topic in counts or time < exchange.time
            }
            for time, counts in view.former_topics
            if time + view.knowledge.grace > exchange.time
        )
        return tuple(map(ClusterTopics, (known, *alternatives)))
    given = [partition for own in plan.values() for partition in own]
    claimed = [partition for member in members for partition in member.subscription.owned]
    return ClusterTopics(count_partitions(given)), ClusterTopics(count_partitions([*given, *claimed]))


def count_partitions(partitions: Sequence[TopicPartition]) -> dict[str, int]:
    """The least numbers of partitions of topics that have all of these."""
    counts: dict[str, int] = {}
    for topic, number in partitions:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def known_topics(view: ClientView, exchange: Exchange, plan: Assignment) -> dict[str, int]:
    """The partitions of topics by which the leader plans. One that subscribes to other topics forgets the ones before,
    and may plan by Metadata that it asked for before it read who the members are: Apache Kafka's client does, and joins
    again when it learns the rest."""
    return dict(view.topics) if exchange.metadata != 1 else known_topics_at_first(view, exchange, plan)


def known_topics_at_first(view: ClientView, exchange: Exchange, plan: Assignment) -> dict[str, int]:
    """The partitions of topics that the leader knows by the first Metadata after the response to JoinGroup."""
    known = exchange.told_first | {topic for given in plan.values() for topic, _ in given}
    return {topic: count for topic, count in view.topics.items() if topic in known}


def read_members(rows: Sequence[Mapping[str, object]]) -> tuple[GroupMember, ...]:
    """The members as the leader is told of them; those that cannot be read are left out."""
    found = []
    for row in rows:
        metadata, instance = row["metadata"], row.get("group_instance_id")
        try:
            subscription = decode_subscription(metadata if isinstance(metadata, bytes) else b"")
        except ConsumerProtocolError:
            continue
        found.append(GroupMember(str(row["member_id"]), subscription, None if instance is None else str(instance)))
    return tuple(found)


def judge_properties(
    view: ClientView,
    operation: Operation,
    protocol: str,
    members: Sequence[GroupMember],
    clusters: Sequence[ClusterTopics],
    plan: Assignment,
) -> Findings:
    """The plan has the properties of its assignor, for one of the clusters that the leader may know; a group of one
    shows none of them."""
    broken, cluster = min(
        ((broken_properties(protocol, members, each, plan), each) for each in clusters), key=lambda pair: len(pair[0])
    )
    names = {one.requirement for one in PROPERTIES.get(protocol, ANY_ASSIGNOR)}
    for one in broken:
        yield blame_request(
            one.property.requirement, operation, f"The plan by {protocol} is wrong", one.property.name, one.sentence
        )
    if len(members) > 1:
        for requirement in sorted(names - {one.property.requirement for one in broken} - SHOWN_BY_MORE):
            yield build_pass(requirement, operation.handle - 1)
        if not broken and protocol in EXACT:
            yield from judge_exactly(view, operation, protocol, members, cluster, plan)


def judge_invented(
    groups: Plans,
    view: ClientView,
    operation: Operation,
    exchange: Exchange,
    told: InventedGroup,
    members: Sequence[GroupMember],
    plan: Assignment,
) -> Findings:
    """The plan is for an invented group: its check has the last word, and the other properties hold as well."""
    protocol = exchange.protocol
    if members and not told.is_odd:
        about = CHECKED | {told.requirement}
        names = {one.requirement for one in PROPERTIES.get(protocol, ANY_ASSIGNOR)} - about
        broken = broken_properties(protocol, members, ClusterTopics(known_topics(view, exchange, plan)), plan)
        for one in broken:
            if one.property.requirement in names:
                title = f"The plan by {protocol} is wrong"
                yield blame_request(one.property.requirement, operation, title, one.property.name, one.sentence)
        for requirement in sorted(names - {one.property.requirement for one in broken}):
            yield build_pass(requirement, operation.handle - 1)
    groups.take(plan, operation.handle - 1)


def judge_exactly(
    view: ClientView,
    operation: Operation,
    protocol: str,
    members: Sequence[GroupMember],
    cluster: ClusterTopics,
    plan: Assignment,
) -> Findings:
    """The plan is the one that the rules of the assignor determine; racks leave it open."""
    if any(member.subscription.rack for member in members):
        return
    expected = ASSIGNORS[protocol].assign(members, cluster)
    as_dynamic = ASSIGNORS[protocol].assign([evolve(each, instance_id=None) for each in members], cluster)
    forgets_instances = as_dynamic != expected and is_same_plan(plan, as_dynamic)
    requirement = (STATIC_FIRST if forgets_instances else EXACT)[protocol]
    title, is_equal = f"The plan by {protocol} is wrong", is_same_plan(plan, expected)
    yield check_request(view, is_equal, requirement, operation, title, describe_plan(expected), describe_plan(plan))


def is_same_plan(plan: Assignment, expected: Assignment) -> bool:
    """Whether each member has what it is expected to have."""
    return all(sorted(plan.get(id, ())) == sorted(own) for id, own in expected.items())


def describe_plan(plan: Mapping[str, Sequence[TopicPartition]]) -> str:
    """A plan in words."""
    rows = (f"'{id}' gets {', '.join(f'{topic}/{n}' for topic, n in sorted(own))}" for id, own in sorted(plan.items()))
    return "; ".join(rows)


# --- Which member of a group has which partitions, and for how long, as the requests of the members show it.
#
# A member has what its SyncGroup brought until it joins again under an eager protocol, gets another assignment,
# leaves, or is told that its membership is over. One that a generation begins without has had it until it was heard
# last.

OVER = frozenset({Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID})
"""The errors that tell a member that its membership is over."""
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"})


@dataclass(slots=True)
class Owner:
    """A member that has partitions now. Times in milliseconds."""

    generation: int
    partitions: tuple[str, ...]
    since: int
    sequence: int
    heard: int
    """When its last request came."""
    instance: str | None = None
    """The id of a static member."""


@dataclass(slots=True)
class OwnershipHistory:
    """Follows who has what in the groups of a trace, all or those chosen; each period is yielded when it is over."""

    owns_group: Callable[[str], bool] | None = None
    owners: dict[str, dict[str, Owner]] = field(default_factory=dict)
    """By group and member id."""
    time: int = 0

    def on_event(self, event: Event, operation: Operation | None) -> Iterator[Ownership]:
        """Take the next event."""
        self.time = event.time
        if event.kind is Kind.INTERNAL and event.api == "unknown":
            yield from self._end_all(event.body.get("group"), OwnershipEnd.GAP)
        if operation is None or "_findings" in operation.body or "_findings" in event.body:
            return
        group = operation.body.get("group_id")
        if not isinstance(group, str) or not (self.owns_group is None or self.owns_group(group)):
            return
        if operation.api == "LeaveGroup" and event.kind is Kind.REQUEST:
            for row in operation.body.get("members") or (operation.body,):
                yield from self._end(group, row.get("member_id"), event.time, OwnershipEnd.LEFT)
        elif operation.api in MEMBER_APIS and event.kind is Kind.REQUEST:
            yield from self._on_request(group, operation, event)
        elif operation.api in MEMBER_APIS and event.kind is Kind.RESPONSE:
            yield from self._on_response(group, operation, event)

    def finish(self) -> Iterator[Ownership]:
        """Yield what is not over at the end of the trace."""
        yield from self._end_all(None, OwnershipEnd.TRACE)

    def _on_request(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        member = operation.body.get("member_id")
        owner = self.owners.get(group, {}).get(member or "")
        if owner is not None:
            owner.heard = event.time
        if operation.api == "JoinGroup":
            names = {protocol["name"] for protocol in operation.body["protocols"]}
            if not names <= COOPERATIVE_ASSIGNORS:
                yield from self._end(group, member, event.time, OwnershipEnd.JOINED)

    def _on_response(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        body, member = event.body, operation.body.get("member_id")
        error = body.get("error_code", 0)
        if error in OVER:
            yield from self._end(group, member, event.time, OwnershipEnd.OVER)
        elif operation.api == "JoinGroup" and not error:
            yield from self._on_joined(group, operation, event)
        elif operation.api == "SyncGroup" and not error and member:
            yield from self._assign(group, member, operation, event)

    def _on_joined(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        """A member has joined: as the static member that another one was, or as the leader, who hears who is there."""
        owners, instance = self.owners.get(group, {}), operation.body.get("group_instance_id")
        for other, owner in tuple(owners.items()):
            if instance is not None and owner.instance == instance and other != event.body.get("member_id"):
                yield from self._end(group, other, event.time, OwnershipEnd.REPLACED)
        remaining = {row["member_id"] for row in event.body.get("members") or ()}
        for gone in [each for each in owners if remaining and each not in remaining]:
            yield from self._end(group, gone, owners[gone].heard, OwnershipEnd.EXPELLED)

    def _assign(self, group: str, member: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        """SyncGroup brings an assignment; one that is none of Kafka's consumers' counts as nothing."""
        yield from self._end(group, member, event.time, OwnershipEnd.REASSIGNED)
        try:
            assigned = decode_assignment(event.body.get("assignment") or b"")
        except ConsumerProtocolError:
            return
        if assigned:
            names = tuple(f"{topic}/{number}" for topic, number in sorted(assigned))
            generation = int(operation.body.get("generation_id", -1))
            instance = operation.body.get("group_instance_id")
            owner = Owner(generation, names, event.time, event.sequence, event.time, instance)
            self.owners.setdefault(group, {})[member] = owner

    def _end(self, group: str, member: Any, until: int, end: OwnershipEnd) -> Iterator[Ownership]:
        """What a member has is over."""
        owner = self.owners.get(group, {}).pop(member, None)
        if owner is not None:
            if not self.owners[group]:
                del self.owners[group]
            times = owner.since, max(owner.since, until)
            yield Ownership(group, member, owner.generation, owner.partitions, *times, end, owner.sequence)

    def _end_all(self, group: str | None, end: OwnershipEnd) -> Iterator[Ownership]:
        """What the members of a group, or of all, have is over as far as the trace shows."""
        for name in [name for name in self.owners if group in (None, name)]:
            for member in list(self.owners.get(name, ())):
                yield from self._end(name, member, self.time, end)
