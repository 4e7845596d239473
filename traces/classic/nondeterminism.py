"""Every outcome of one step: over the choices the protocol leaves open and the dialects not yet decided."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.member_table import accepts, is_member
from fencepost.model.classic.core.state import Choices, Context, Group, Holder, JoinResponse, Phase, Slot
from fencepost.model.classic.dialect import NOT_BUILT, Dialect
from fencepost.model.classic.messages import JoinGroup, Request, Response
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.groups.messages import Partition, TopicNames, names_topics_by_id
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.traces.classic.matching import partition_rows
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.search.configuration import Configuration, Decisions, FreshId, Instant, cap_at, high
from fencepost.traces.verdict import Violation

REPLACEMENT_PREFIX = "join.replace.stable"
"""How the rules begin by which a static member comes back to a stable group."""
StepFunction = Callable[[Choices, Dialect], StepResult]


class DialectProbe:
    """A dialect that notes which of its open questions a step asks."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = dict(decisions)
        self.open_questions: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in self._decisions:
            return self._decisions[name]
        if name in NOT_BUILT:
            return True
        self.open_questions.append(name)
        return True

    def settle(self, question: str) -> None:
        """Answer a question that makes no difference to the step, so that it does not count as open."""
        self._decisions.setdefault(question, True)


def settle_question_of_room(context: Context, state: GroupState, request: Request) -> None:
    """A JoinGroup asks whether a static member that comes back needs room: it makes no difference where there is."""
    if isinstance(request, JoinGroup) and isinstance(context.dialect, DialectProbe):
        group = state.group if state.group is not None else Group()
        if accepts(group, request.core.member, context.max_group_size):
            context.dialect.settle("restart_needs_room")


def outcomes_over_dialects(
    run: Callable[[Dialect], StepResult], decisions: Decisions
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step in every dialect that fits what is decided; questions without effect stay open."""
    probe = DialectProbe(decisions)
    outcome = run(cast(Dialect, probe))
    return outcomes_over_questions(run, decisions, outcome, tuple(dict.fromkeys(probe.open_questions)))


def outcomes_over_questions(
    run: Callable[[Dialect], StepResult], decisions: Decisions, outcome: StepResult, questions: tuple[str, ...]
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step that has this outcome, and asks these questions, if all that is open is true."""
    if not questions:
        yield outcome, decisions
        return
    question, *others = questions
    yes = list(outcomes_over_questions(run, with_decision(decisions, question, True), outcome, tuple(others)))
    no = list(outcomes_over_dialects(run, with_decision(decisions, question, False)))
    if len(yes) == len(no) == 1 and yes[0][0] == no[0][0]:
        yield yes[0][0], decisions
        return
    yield from yes
    yield from no


def with_decision(decisions: Decisions, question: str, response: bool) -> Decisions:
    """The decisions with one more, in one order."""
    return tuple(sorted((*decisions, (question, response))))


def outcomes_over_choices(
    run: StepFunction,
    before: GroupState,
    member_id: Any,
    leaders: Iterable[Any],
    protocols: Iterable[Any],
    decisions: Decisions,
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step over leaders and protocols, taken from the responses seen or else from the group."""
    leads, names = tuple(leaders), tuple(protocols)
    first = Choices(member_id, leads[0] if leads else None, names[0] if names else None)
    outcomes = list(outcomes_over_dialects(partial(run, first), decisions))
    if not any(has_choice(before, outcome) for outcome, _ in outcomes):
        yield from outcomes
        return
    leads = leads or tuple(slot.id for slot in member_slots(outcomes))
    if any(outcome.rule.startswith(REPLACEMENT_PREFIX) for outcome, _ in outcomes):
        names = ()  # That vote only decides whether there is a rebalance; what is seen may come of a later one.
    names = names or tuple(dict.fromkeys(each.name for slot in member_slots(outcomes) for each in slot.protocols))
    seen: list[StepResult] = []
    for leader in leads or (None,):
        for name in names or (None,):
            choices = Choices(member_id, leader, name)
            chosen = outcomes if choices == first else outcomes_over_dialects(partial(run, choices), decisions)
            for outcome, decided in chosen:
                if outcome not in seen:
                    seen.append(outcome)
                    yield outcome, decided


def member_slots(outcomes: Iterable[tuple[StepResult, Decisions]]) -> list[Any]:
    """The member slots after these outcomes."""
    return [
        slot
        for outcome, _ in outcomes
        if outcome.state.group is not None
        for slot in outcome.state.group.slots
        if is_member(slot)
    ]


def has_choice(before: GroupState, outcome: StepResult) -> bool:
    """The step elected a leader or a protocol, so a choice may have mattered."""
    after = outcome.state.group
    if after is None or (before.group is None and after.phase is Phase.EMPTY):
        return False
    completed = before.group is None or after.generation != before.group.generation
    return (completed and after.phase is Phase.COMPLETING) or outcome.rule.startswith(REPLACEMENT_PREFIX)


# --- Ids that a target issued unseen, once a response shows them.


def resolve_state_ids(world: GroupState, shown: Mapping[FreshId, str]) -> GroupState:
    """The world with ids in the place of those that were not known before."""
    return evolve(
        world,
        group=resolve_group_ids(world.group, shown),
        stored=resolve_group_ids(world.stored, shown),
    )


def resolve_group_ids(group: Group | None, shown: Mapping[FreshId, str]) -> Group | None:
    """The group with known ids."""
    if group is None:
        return None

    def resolve_slot(slot: Slot) -> Slot:
        held: Any = slot.id
        known = slot.holder is not Holder.NOBODY and isinstance(held, FreshId) and held in shown
        return evolve(slot, id=shown[held]) if known else slot

    leader = shown.get(group.leader, group.leader) if isinstance(group.leader, FreshId) else group.leader
    return evolve(group, slots=tuple(resolve_slot(slot) for slot in group.slots), leader=leader)


def resolve_response_ids(response: Response, shown: Mapping[FreshId, str]) -> Response:
    """A response that was given with fresh ids, with those known now."""
    if not isinstance(response, JoinResponse):
        return response

    def resolve(token: Any) -> Any:
        return shown.get(token, token) if isinstance(token, FreshId) else token

    members = tuple(evolve(view, id=resolve(view.id)) for view in response.members)
    return evolve(response, member=resolve(response.member), leader=resolve(response.leader), members=members)


def resolve_ids(configuration: Configuration, shown: Mapping[FreshId, str]) -> Configuration:
    """The configuration with ids in the place of fresh ones that a response has shown."""
    predicted = tuple((handle, resolve_response_ids(response, shown)) for handle, response in configuration.predicted)
    return evolve(configuration, world=resolve_state_ids(configuration.world, shown), predicted=predicted)


# --- The cluster's topics as a trace shows them: their numbers of partitions, and their names by id (KIP-516).


class KnownTopics:
    """The topics as far as they are known: given by the schedule, or read from Metadata responses."""

    def __init__(self) -> None:
        self.partition_counts: dict[str, int] | None = None
        self.names: dict[str, str] = {}
        self.has_all_ids = False
        """The schedule gave the ids of all topics."""
        self.client: str | None = None
        """The client id of every request, where the schedule gave it."""
        self.revision = 0
        """How often something was learned."""

    def learn_from_annotation(self, body: Body) -> None:
        """Learn topics from an annotation of the schedule."""
        self.revision += 1
        self.partition_counts = {**(self.partition_counts or {}), **body["topics"]}
        self.client = body.get("client_id", self.client)
        if "ids" in body:
            self.has_all_ids = True
            self.names |= {topic_id: name for name, topic_id in body["ids"].items()}

    def learn_from_metadata(self, response: Body) -> None:
        """Read the ids in a response to Metadata."""
        for topic in response.get("topics") or ():
            name, topic_id = topic.get("name"), topic.get("topic_id", ZERO_UUID)
            if name and topic_id != ZERO_UUID and self.names.get(topic_id) != name:
                self.names[topic_id] = name
                self.revision += 1

    def has_unknown_ids(self, operation: Operation) -> bool:
        """The request or its response goes by ids that may be those of any topic."""
        if self.has_all_ids or not names_topics_by_id(operation.api, operation.version):
            return False
        return any(
            each not in self.names for body in (operation.body, operation.response) for each in topic_ids_in(body)
        )

    def cluster(self, settings: Settings) -> Cluster:
        """A target with these topics; what is learned of names later counts too."""
        return Cluster(settings, self.partition_counts, self.names, client=self.client)


def topic_ids_in(value: Any) -> Iterator[str]:
    """Every topic id in a message."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from topic_ids_in(each)
    elif isinstance(value, dict):
        if "topic_id" in value:
            yield value["topic_id"]
        for each in value.values():
            yield from topic_ids_in(each)


# --- Events of a group that no response shows: a restart, a clean-up of offsets.


@fast_frozen
@dataclass(frozen=True, slots=True)
class Unseen:
    """The part of a configuration that the model does not have."""

    loading: bool = False
    """The coordinator was restarted and has not yet shown that it is ready."""
    is_moved: bool = False
    """Since a move began, another node has taken the group over."""
    last_cleanup: int | None = None
    """The earliest that the last clean-up pass can have been; the next comes a period later."""
    maybe_expired: frozenset[Partition] = frozenset()
    """Offsets that a clean-up pass may have removed."""
    told_ids: frozenset[str] = frozenset()
    """Ids that static newcomers were told to join with, by mistake."""


NOTHING_UNSEEN = Unseen()


def unseen_of(configuration: Configuration) -> Unseen:
    """What may have happened unseen in this configuration."""
    unseen = configuration.unseen
    return unseen if isinstance(unseen, Unseen) else NOTHING_UNSEEN


def with_group(configuration: Configuration, group: Group | None) -> Configuration:
    """The configuration with the group in another state."""
    return evolve(configuration, world=evolve(configuration.world, group=group))


def finish_loading(configuration: Configuration, now: Instant) -> Configuration:
    """The configuration at the first response after a restart: by now the group is loaded and sessions have begun."""
    unseen = unseen_of(configuration)
    if not unseen.loading:
        return configuration
    ready = evolve(configuration, unseen=evolve(unseen, loading=False))
    group = configuration.world.group
    if group is None:
        return ready
    slots = tuple(
        evolve(slot, deadline=cap_at(slot.deadline, high(now) + slot.session_timeout)) for slot in group.slots
    )
    return with_group(ready, evolve(group, slots=slots))


# --- Which groups of a trace existed before, and which of them were seen to be gone since.
#
# A first generation is that of a new group. Whether a group that existed before is a new one may be no more than a
# guess of the search, made to explain another response.

FIRST_GENERATION = ("GEN-01",)
RECREATED_GROUP = ("GEN-13",)
LIFETIME_APIS = frozenset({"JoinGroup", "DeleteGroups", "DescribeGroups", "OffsetDelete"})
"""Requests whose responses tell that a group exists or is gone."""
DELETED_OFFSET, DELETED_BEFORE_FAILOVER = ("FETCH-13",), ("FAILOVER-22",)


@dataclass(slots=True)
class GroupLifetimes:
    """The groups that had a generation, and those of them that a response has shown to be gone since; deleted offsets.

    `names` are those of topics by their ids.
    """

    names: TopicNames = field(default_factory=dict)
    existed_at: dict[str, int] = field(default_factory=dict)
    """By group, the time of the first response that told a generation."""
    gone: set[str] = field(default_factory=set)
    deleted: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """By group and partition (`topic/0`), the requirement that an offset breaks which OffsetDelete has removed."""
    latest: Operation | None = None
    """The operation whose response is being judged; nothing follows from it for its own violations."""

    def on_response(self, operation: Operation | None) -> None:
        """Learn from the response before this one, if it is one."""
        latest, self.latest = self.latest, operation
        if latest is not None and latest.api in LIFETIME_APIS:
            self.learn(latest)

    def learn(self, operation: Operation) -> None:
        """Learn from a response."""
        body = operation.response or {}
        if operation.api == "JoinGroup" and body.get("error_code") == Error.NONE:
            group = str(operation.body.get("group_id"))
            self.existed_at.setdefault(group, operation.responded_at or operation.sent_at)
            self.gone.discard(group)
        elif operation.api == "DeleteGroups":
            absent = (Error.NONE, Error.GROUP_ID_NOT_FOUND)
            self.gone |= {row.get("group_id") for row in body.get("results") or () if row.get("error_code") in absent}
        elif operation.api == "DescribeGroups":
            self.gone |= {row.get("group_id") for row in body.get("groups") or () if row.get("group_state") == "Dead"}
        elif operation.api == "OffsetDelete":
            for (topic, number), row in partition_rows(body.get("topics"), self.names).items():
                if row.get("error_code") == Error.NONE:
                    self.deleted[str(operation.body.get("group_id")), f"{topic}/{number}"] = DELETED_OFFSET

    def on_restart(self) -> None:
        """A coordinator that was killed and started again has loaded its log, deletions included."""
        self.on_response(None)
        self.deleted = dict.fromkeys(self.deleted, DELETED_BEFORE_FAILOVER)

    def attribute(self, violation: Violation, operation: Operation) -> Violation:
        """The violation; of a first generation of a group that existed before, with the requirement about that, and of
        an offset that was deleted, with the one about its deletion.

        No requirement says anything if nothing but an error showed that the group was gone.
        """
        for each in violation.differences if self.deleted else ():
            broken = self.deleted.get((violation.group, each.place))
            if broken is not None and (each.name, each.expected) == ("committed_offset", "-1"):
                return replace(violation, requirements=broken)
        existed_at = self.existed_at.get(violation.group)
        if violation.requirements != FIRST_GENERATION or existed_at is None or existed_at > operation.sent_at:
            return violation
        found = RECREATED_GROUP if violation.group in self.gone else ()
        return replace(violation, requirements=found)
