"""Properties of every state and every step, and witnesses: states that must occur, or the properties are vacuous."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.state import CommitResponse, Context, Group, Holder, JoinResponse, Phase, Step
from fencepost.model.classic.core.timers import expire_join, expire_sync
from fencepost.model.classic.explore.state_layout import COORDINATOR, PROCESS, CoordinatorState, ProcessState, column_of
from fencepost.model.classic.explore.step_checks import (
    ABOUT_COMMITS,
    ABOUT_STEPS,
    PROBES,
    STALE_COMMIT_REFUSED,
    has_error,
)
from fencepost.model.classic.member.member import (
    NO_GENERATION,
    MemberRequest,
    MemberState,
    PartitionCommit,
)
from fencepost.model.classic.theorems import registry, step_statements
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.errors import Error
from fencepost.model.explore.search import DEADLOCK
from fencepost.model.explore.transition_system import Check, PropertyKind
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Token
from fencepost.model.sorts import Assignment, HandleNumber
from fencepost.model.statement import Statement

LED_PHASES = (Phase.COMPLETING, Phase.STABLE)
"""The phases in which a generation has a leader whom members are told of."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property by name: where it is checked, and what it does not say."""

    name: str
    sentence: str
    covers: str
    excludes: str
    kind: PropertyKind = PropertyKind.ALWAYS
    needs: str = ""
    """What a world without has no use for the property: "another" process, "heartbeats" or "failovers"."""

    @property
    def premise(self) -> str:
        """The name of the witness that the property says something, if states show it and not steps."""
        return f"{self.name}-premise"


ONE_LEADER = Property(
    registry.ONE_LEADER.search_name,
    registry.ONE_LEADER.sentence,
    "every answer of the coordinator",
    "failover, and numbers used again when a group was deleted; a static member is the same under its next id",
)
ONE_LEADER_EVER = Property(
    "one-leader-ever",
    registry.ONE_LEADER.sentence,
    "every answer of every coordinator, across fail-overs",
    "static members, deletion",
    needs="failovers",
)
ONE_LEADER_ID = Property(
    "one-leader-id",
    "Whoever is told of a generation is told the same leader id (false: KIP-814).",
    ONE_LEADER.covers,
    "failover, and numbers used again when a group was deleted",
)
NO_STALE_COMMIT = Property(
    registry.NO_STALE_COMMIT.search_name,
    registry.NO_STALE_COMMIT.sentence,
    "every commit that the coordinator accepts",
    "commits without a generation, and transactions",
)
NO_FOREIGN_COMMIT = Property(
    registry.NO_FOREIGN_COMMIT.search_name,
    registry.NO_FOREIGN_COMMIT.sentence,
    "every commit that the coordinator accepts",
    "leaders that assign a partition which another member claims",
)
ONE_OWNER = Property(
    registry.ONE_OWNER.search_name,
    registry.ONE_OWNER.sentence,
    "every state of the coordinator",
    "leaders that assign a partition twice",
)
ONE_BELIEVER = Property(
    registry.ONE_BELIEVER.search_name,
    registry.ONE_BELIEVER.sentence,
    "every pair of processes",
    "what a process still believes by an older assignment, which zombie shows",
)
TIMERS_ANSWER = Property(
    "timers-answer",
    "Whatever is parked is answered by the timer that is armed to end the phase, if by nothing before.",
    "every state of the coordinator",
    "how long that takes",
)
NO_DEADLOCK = Property(
    DEADLOCK,
    "Something can always happen.",
    "every state",
    "livelocks (see `settles`)",
)
OUTSIDER_COMMIT = Property(
    step_statements.no_commit_without_generation.id,
    step_statements.no_commit_without_generation.sentence,
    "a commit of an outsider in every state of the coordinator",
    "commits of members without a generation: they send none",
)
LEADER_IS_MEMBER, LEADER_EXISTS, PROTOCOL_IS_COMMON = (
    Property(one.id, one.sentence, "every state of the coordinator", "fail-over, deletion")
    for one in (
        step_statements.leader_is_member,
        step_statements.generation_has_leader,
        step_statements.protocol_is_common,
    )
)


STEPS = tuple(
    Property(
        one.id,
        one.sentence,
        "every step of the coordinator"
        + (f", and {PROBES[one.id].sentence} in every state" if one.id in PROBES else ""),
        "fail-over, deletion",
        needs="heartbeats" if one is step_statements.heartbeat_is_current else "",
    )
    for one in (*ABOUT_COMMITS, *ABOUT_STEPS)
)
MEMBER_STEPS = tuple(
    Property(one.id, one.sentence, "every step of a member", "how the application behaves") for one in MEMBER_THEOREMS
)
EVERYONE_STABLE = Property(
    "everyone-stable",
    "At some point every process is a stable member of the present generation.",
    "a shortest way there",
    "that this is unavoidable",
    kind=PropertyKind.SOMETIMES,
)
ZOMBIE = Property(
    "zombie",
    "At some point a process believes that it owns what another was given.",
    "a shortest way there",
    "that it does harm: its commits are refused",
    kind=PropertyKind.SOMETIMES,
    needs="another",
)
STALE_COMMIT = Property(
    STALE_COMMIT_REFUSED,
    "At some point a member's commit under an older generation is refused.",
    "some step of the coordinator",
    "that the member notices",
    kind=PropertyKind.SOMETIMES,
)
TWO_GENERATIONS = Property(
    "two-generations",
    "At some point a member of one generation is a member of the next.",
    "a shortest way there",
    "that it learns of the next",
    kind=PropertyKind.SOMETIMES,
)
REJOINED_OWNING = Property(
    "rejoined-while-owning",
    "At some point a member has joined the next generation and still owns what an older one gave it.",
    "a shortest way there",
    "that it keeps it",
    kind=PropertyKind.SOMETIMES,
)
CLAIM_WITHHELD = Property(
    "claim-withheld",
    "At some point a leader gives nobody a partition that it would give to one member, for another claims it.",
    "some step of a leader",
    "that the claim is of the last generation",
    kind=PropertyKind.SOMETIMES,
    needs="another",
)
PROPERTIES = (
    ONE_LEADER,
    ONE_LEADER_EVER,
    NO_STALE_COMMIT,
    NO_FOREIGN_COMMIT,
    ONE_OWNER,
    ONE_BELIEVER,
    TIMERS_ANSWER,
    OUTSIDER_COMMIT,
    LEADER_IS_MEMBER,
    LEADER_EXISTS,
    PROTOCOL_IS_COMMON,
    *STEPS,
    *MEMBER_STEPS,
    NO_DEADLOCK,
    EVERYONE_STABLE,
    ZOMBIE,
    STALE_COMMIT,
    TWO_GENERATIONS,
    REJOINED_OWNING,
    CLAIM_WITHHELD,
)
"""What a search looks for, the witnesses last. The plain wording ONE_LEADER_ID is false and looked for on request."""


def violated_property(before: Group, request: MemberRequest | None, step: Step, by_id: bool = False) -> str:
    """The name of the property that a step of the coordinator breaks, empty if there is none.

    `by_id` asks for the plain wording of the first one as well.
    """
    if not keeps_one_leader(before, step, same_member):
        return ONE_LEADER.name
    if by_id and not keeps_one_leader(before, step, lambda before, old, after, new: bool(old == new)):
        return ONE_LEADER_ID.name
    if isinstance(request, PartitionCommit) and has_error(step, CommitResponse, Error.NONE):
        sender, slots = request.request.member, before.slots
        is_member = any(slot.holder == Holder.MEMBER and slot.id == sender for slot in slots)
        if not is_member or request.request.generation != before.generation:
            return NO_STALE_COMMIT.name
        if any(overlaps(request.partitions, slot.assignment) for slot in slots if slot.id != sender):
            return NO_FOREIGN_COMMIT.name
    return ""


SameMember = Callable[[Group, Token, Group, Token], bool]
"""Whether an id in a group and an id in a later group mean the same member."""


def same_member(before: Group, old: Token, after: Group, new: Token) -> bool:
    """By the id, or a static member that has come back under another one."""
    instances = [slot.instance for slot in before.slots if slot.id == old and slot.instance is not None]
    return bool(old == new or (instances and instances[0] in [s.instance for s in after.slots if s.id == new]))


def keeps_one_leader(before: Group, step: Step, same: SameMember) -> bool:
    """The leader stays while the generation does, and is the one that members are told of.

    So it holds of whole runs: within a generation, all that is told is the same.
    """
    after = step.group
    stays = before.generation == after.generation and before.phase in LED_PHASES and after.phase in LED_PHASES
    if stays and not same(before, before.leader, after, after.leader):
        return False
    told = [output.response for output in step.outputs if isinstance(output.response, JoinResponse)]
    return all(
        response.generation == after.generation
        and (response.leader == after.leader or (stays and same(before, response.leader, after, after.leader)))
        for response in told
        if response.error == Error.NONE
    )


def overlaps(mine: Assignment, theirs: Assignment | None) -> bool:
    """Some partition is in both."""
    return theirs is not None and any(one and other for one, other in zip(mine, theirs, strict=True))


def one_owner(coordinator: CoordinatorState) -> bool:
    """No partition is in the assignments of two member slots."""
    given = [slot.assignment for slot in coordinator.group.slots if slot.assignment is not None]
    return not any(overlaps(mine, theirs) for mine, theirs in combinations(given, 2))


def timers_answer(coordinator: CoordinatorState) -> bool:
    """The timer that ends the phase, fired at 0 ms, responds to every parked JoinGroup and SyncGroup."""
    group = coordinator.group
    parked = {handle for slot in group.slots for handle in (slot.join, slot.sync) if handle != 0}
    fire = expire_join if group.phase == Phase.PREPARING else expire_sync
    return parked <= {output.handle for output in fire(group, Context(now=0)).outputs}


def one_believer(one: ProcessState, other: ProcessState) -> bool:
    """ONE_BELIEVER; two processes with one instance id are one member."""
    mine, theirs = one.member, other.member
    instance = mine.settings.instance
    if instance is not None and instance == theirs.settings.instance:
        return True
    present = mine.generation != NO_GENERATION and theirs.generation != NO_GENERATION
    return not (present and mine.owned_in == theirs.owned_in and overlaps(mine.owned, theirs.owned))


def is_everyone_stable(coordinator: CoordinatorState, *processes: ProcessState) -> bool:
    """Every process is a stable member of the present generation."""
    group = coordinator.group
    return group.phase == Phase.STABLE and all(
        process.member.state == MemberState.STABLE and process.member.generation == group.generation
        for process in processes
    )


def believes_wrongly(coordinator: CoordinatorState, process: ProcessState) -> bool:
    """A process believes that it owns what the group has given to another."""
    mine = process.member
    others = [slot.assignment for slot in coordinator.group.slots if slot.id != mine.id]
    return coordinator.group.phase == Phase.STABLE and any(overlaps(mine.owned, theirs) for theirs in others)


def is_outsider_heard(coordinator: CoordinatorState) -> bool:
    """A commit without a member and a generation is accepted."""
    request = CommitRequest(HandleNumber(1), None, None, NO_GENERATION)
    return has_error(commit(coordinator.group, request, Context(now=0)), CommitResponse, Error.NONE)


def keeps_statement(statement: Statement) -> Callable[[CoordinatorState], bool]:
    """The statement holds of the group."""
    return lambda coordinator: bool(statement.holds(coordinator.group))


def is_active(coordinator: CoordinatorState) -> bool:
    """There is a generation with members."""
    return coordinator.group.phase in LED_PHASES


def is_something_assigned(coordinator: CoordinatorState) -> bool:
    """Some member was given a partition."""
    return any(slot.assignment is not None and any(slot.assignment) for slot in coordinator.group.slots)


def owns_something(process: ProcessState) -> bool:
    """The process owns a partition by some generation."""
    return process.member.generation != NO_GENERATION and any(process.member.owned)


def is_in_next_generation(coordinator: CoordinatorState, process: ProcessState) -> bool:
    """A process that was in a generation is in the next one, of which it has not heard."""
    group, member = coordinator.group, process.member
    present = any(slot.holder == Holder.MEMBER and slot.id == member.id for slot in group.slots)
    return is_active(coordinator) and present and 0 < member.generation < group.generation


def owns_in_next_generation(coordinator: CoordinatorState, process: ProcessState) -> bool:
    """A process in that position owns something still."""
    return is_in_next_generation(coordinator, process) and any(process.member.owned)


def property_checks(count: int) -> tuple[Check, ...]:
    """The properties of states and the witnesses, for `count` processes."""
    processes = [column_of(index, PROCESS) for index in range(count)]
    about_group: tuple[tuple[Property, Callable[[CoordinatorState], bool], Callable[[CoordinatorState], bool]], ...] = (
        (ONE_OWNER, one_owner, is_something_assigned),
        (TIMERS_ANSWER, timers_answer, lambda one: any(slot.join != 0 or slot.sync != 0 for slot in one.group.slots)),
        (OUTSIDER_COMMIT, lambda one: one.group.phase == Phase.EMPTY or not is_outsider_heard(one), is_outsider_heard),
        (LEADER_IS_MEMBER, keeps_statement(step_statements.leader_is_member), is_active),
        (LEADER_EXISTS, keeps_statement(step_statements.generation_has_leader), is_active),
        (PROTOCOL_IS_COMMON, keeps_statement(step_statements.protocol_is_common), is_active),
        *((one, PROBES[one.name].is_kept, PROBES[one.name].is_shown) for one in STEPS if one.name in PROBES),
    )
    found = [Check(one.name, (COORDINATOR,), holds) for one, holds, _ in about_group]
    found += [sometimes(one.premise, (COORDINATOR,), premise) for one, _, premise in about_group]
    for process in processes:
        found.append(sometimes(ONE_BELIEVER.premise, (process,), owns_something))
        found.append(sometimes(TWO_GENERATIONS.name, (COORDINATOR, process), is_in_next_generation))
        found.append(sometimes(REJOINED_OWNING.name, (COORDINATOR, process), owns_in_next_generation))
    found += [Check(ONE_BELIEVER.name, pair, one_believer) for pair in combinations(processes, 2)]
    found.append(sometimes(EVERYONE_STABLE.name, (COORDINATOR, *processes), is_everyone_stable))
    if count > 1:
        found += [sometimes(ZOMBIE.name, (COORDINATOR, process), believes_wrongly) for process in processes]
    return tuple(found)


def sometimes(name: str, columns: tuple[int, ...], happens: Callable[..., bool]) -> Check:
    """A witness."""
    return Check(name, columns, happens, PropertyKind.SOMETIMES)
