"""The link between the model and its kernel: each step of a coordinator or a member is some actions of the kernel.

A shadow of the run is kept: the kernel that it has reached. Each step of the run says which actions it is; their guards
have to hold, and afterwards what can be read off the run has to be what the kernel says. This is a check of the steps
that are taken, not a proof of all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import CommitResponse, CoreResponse, Group, JoinResponse, Phase
from fencepost.model.classic.kernel.actions import ACTIONS, Kernel, adopt
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberState, PartitionCommit, SentRequest
from fencepost.model.classic.theorems.kernel_statements import INVARIANTS, SORTS, element_names
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Token
from fencepost.model.relations import FiniteRelation, finite_relation
from fencepost.model.sorts import PartitionFlags


def elements_of(kernel: Kernel) -> dict[str, set[Token]]:
    """Everything that occurs in a finite kernel, by sort."""
    columns = {
        "registered": "m",
        "owned": "mp",
        "syncing": "m",
        "stable": "m",
        "believed": "mg",
        "joined": "gm",
        "led": "gm",
        "claimed": "gmp",
        "published": "g",
        "assigned": "gmp",
        "sent": "mgp",
        "accepted": "mgp",
    }
    found: dict[str, set[Token]] = {"generation": {kernel.current}, "member": set(), "partition": set()}
    for name, letters in columns.items():
        relation = getattr(kernel, name)
        assert isinstance(relation, FiniteRelation)
        for each in relation:
            for letter, element in zip(letters, each, strict=True):
                found[SORTS[letter]].add(element)
    return found


def violated_invariants(kernel: Kernel) -> list[str]:
    """The invariants that a finite kernel breaks; it looks at all combinations, so it is for small ones."""
    known = elements_of(kernel)
    return [
        claim.__name__
        for claim in INVARIANTS
        if not all(claim(kernel, *each) for each in product(*(known[SORTS[name]] for name in element_names(claim))))
    ]


KernelAction: TypeAlias = tuple[str, tuple[Any, ...]]
"""An action of the kernel and its arguments."""


class RefinementError(Exception):
    """A step that no action of the kernel explains: the action, and the guard or relation that does not fit."""


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """How metadata and assignments name partitions."""

    claims: Callable[[Token], Iterable[Token]]
    """Of the metadata of a member."""
    assigned: Callable[[Token, Token], Iterable[Token]]
    """Of an assignment, and the member that has it."""


def true_indices(parts: PartitionFlags | None) -> Iterator[int]:
    """The partitions that are true."""
    return (index for index, held in enumerate(parts or ()) if held)


FLAG_READER = PartitionReader(true_indices, lambda assignment, owner: true_indices(assignment))
"""Of members of the model, whose metadata and assignments have a truth value for each partition."""
OPAQUE_READER = PartitionReader(lambda metadata: (), lambda assignment, owner: (owner,) if assignment else ())
"""Of members whose bytes mean nothing: an assignment is one partition that nobody else can have."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """The kernel that a run has reached, and who stands behind its member ids.

    A static member stays the same person under its next id; the one before stands for nobody any more.
    """

    kernel: Kernel = field(default_factory=Kernel)
    identities: Mapping[Token, Token] = field(default_factory=dict)

    def identity_of(self, member: Token) -> Token:
        """Who stands behind a member id, None for nobody."""
        return self.identities.get(member, member)


def take_actions(run: KernelRun, actions: Iterable[KernelAction]) -> KernelRun:
    """The shadow after some actions; raises RefinementError where a guard is false."""
    kernel = run.kernel
    for name, arguments in actions:
        move = ACTIONS[name](kernel, *arguments)
        for guard, holds in move.guards.items():
            if not holds:
                raise RefinementError(f"{name}{arguments}: {guard}: no")
        kernel = move.after
    return evolve(run, kernel=kernel)


def require_agreement(what: str, kernel: object, model: object) -> None:
    """Raise RefinementError unless both are the same."""
    if kernel != model:
        raise RefinementError(f"{what}: {kernel} in the kernel, {model} in the model")


# --- the coordinator


def follow_coordinator(
    run: KernelRun,
    before: Group,
    after: Group,
    responses: Iterable[CoreResponse] = (),
    sender: Token = None,
    reader: PartitionReader = FLAG_READER,
) -> KernelRun:
    """The shadow after a step of the coordinator, `sender` being who sent the request that it handled, if any."""
    run, heirs = replace_identities(run, before, after)
    run = take_actions(run, (("lose", (person,)) for person in heirs))
    completions = {
        response.generation: response
        for response in responses
        if isinstance(response, JoinResponse)
        and response.error == Error.NONE
        and response.generation > before.generation
    }
    if after.generation > before.generation:
        joined = [response for response in responses if isinstance(response, JoinResponse)]
        for generation in sorted({*completions, after.generation}):
            run = take_actions(run, [completion_action(run, generation, before, after, joined, reader)])
    run = take_actions(run, membership_actions(run, after, sender, reader))
    require_agreement("current", run.kernel.current, after.generation)
    require_agreement("open", run.kernel.open, after.phase == Phase.COMPLETING)
    require_agreement("registered", run.kernel.registered, registered_members(run, after))
    return run


def replace_identities(run: KernelRun, before: Group, after: Group) -> tuple[KernelRun, list[Token]]:
    """The shadow in which replaced ids stand for nobody and their heirs for the same persons; these persons."""
    old = {slot.instance: slot.id for slot in before.slots if is_member(slot) and slot.instance is not None}
    persons = dict(run.identities)
    heirs: list[Token] = []
    for slot in after.slots:
        gone = old.get(slot.instance) if is_member(slot) and slot.instance is not None else None
        if gone is not None and gone != slot.id:
            heirs.append(run.identity_of(gone))
            persons[slot.id], persons[gone] = run.identity_of(gone), None
    return evolve(run, identities=persons) if heirs else run, heirs


def registered_members(run: KernelRun, group: Group) -> FiniteRelation:
    """The members of the group."""
    return finite_relation(*((run.identity_of(slot.id),) for slot in group.slots if is_member(slot)))


def completion_action(
    run: KernelRun,
    generation: int,
    before: Group,
    after: Group,
    responses: Iterable[JoinResponse],
    reader: PartitionReader,
) -> KernelAction:
    """The end of the join phase of a generation, as its answers and the group after it show it."""
    last = generation == after.generation
    if last and after.phase == Phase.EMPTY:
        return "complete-empty", (generation,)
    mine = [response for response in responses if response.error == Error.NONE and response.generation == generation]
    members = {(run.identity_of(response.member),) for response in mine}
    slots = after.slots if last else before.slots
    members |= registered_members(run, after).tuples if last else set()
    leader = mine[0].leader if mine else after.leader
    protocol = mine[0].protocol if mine else after.protocol
    claims = finite_relation(
        *(
            (run.identity_of(slot.id), partition)
            for slot in slots
            if is_member(slot) and (run.identity_of(slot.id),) in members
            for partition in reader.claims(metadata_for(slot, protocol))
        )
    )
    return "complete", (generation, run.identity_of(leader), finite_relation(*members), claims)


def membership_actions(run: KernelRun, after: Group, sender: Token, reader: PartitionReader) -> Iterator[KernelAction]:
    """What else changed, within the generation: who is a member, and whether an assignment is awaited."""
    known, present = run.kernel.registered, registered_members(run, after)
    come = present.minus(known)
    if not known.every(present.has):
        yield "unregister", (known.minus(present),)
    elif run.kernel.open and after.phase == Phase.STABLE:
        yield "publish", (run.identity_of(sender), assignment_relation(run, after, reader))
    elif run.kernel.open and after.phase != Phase.COMPLETING:
        yield "prepare", ()
    if come.tuples:
        yield "register", (come,)


def assignment_relation(run: KernelRun, group: Group, reader: PartitionReader) -> FiniteRelation:
    """Who has which partition, as the group's members have it."""
    owners = ((run.identity_of(slot.id), slot.assignment) for slot in group.slots if is_member(slot))
    return finite_relation(
        *((owner, partition) for owner, given in owners for partition in reader.assigned(given, owner))
    )


def follow_commit(
    run: KernelRun, request: CommitRequest, response: CommitResponse, partitions: Iterable[Token]
) -> KernelRun:
    """The shadow after a commit of these partitions was answered; commits without a generation claim no membership."""
    if response.error != Error.NONE or request.generation < 0:
        return run
    sender = run.identity_of(request.member)
    if sender is None:
        raise RefinementError(f"accept: {request.member} has been replaced")
    return take_actions(run, (("accept", (sender, request.generation, partition)) for partition in partitions))


def begin_kernel_run(group: Group, reader: PartitionReader = FLAG_READER) -> KernelRun:
    """The shadow of a coordinator that begins with this group, or is watched from here on; it has no other past."""
    bare = KernelRun()
    members = registered_members(bare, group)
    if group.phase == Phase.COMPLETING:
        before = KernelRun(Kernel(current=group.generation - 1))
        return take_actions(before, [completion_action(before, group.generation, group, group, (), reader)])
    if group.phase != Phase.STABLE:
        return KernelRun(Kernel(current=group.generation, registered=members))
    move = adopt(Kernel(), group.generation, group.leader, members, assignment_relation(bare, group, reader))
    if not all(move.guards.values()):
        raise RefinementError(f"adopt: {move.guards}")
    return KernelRun(move.after)


# --- a member


def follow_member(run: KernelRun, before: Member, after: Member, sent: Iterable[SentRequest] = ()) -> KernelRun:
    """The shadow after a step of a member process. A process whose id was replaced counts for nobody."""
    was, now = run.identity_of(before.id), run.identity_of(after.id)
    had, has = before.generation != NO_GENERATION, after.generation != NO_GENERATION
    if was is not None and (was != now or (had and not has)):
        run = take_actions(run, [("lose", (was,))])
    if now is None:
        return run
    commits = [each.request for each in sent if isinstance(each.request, PartitionCommit) and each.when]
    run = take_actions(run, member_actions(now, before, after, commits))
    for each in commits:
        for partition in true_indices(each.partitions):
            if not run.kernel.sent.has(now, each.request.generation, partition):
                raise RefinementError(f"commit: {now} sends {partition} in {each.request.generation}")
    kernel = run.kernel
    require_agreement(
        "owned", kernel.owned.suffixes(now), finite_relation(*((part,) for part in true_indices(after.owned) if has))
    )
    require_agreement(
        "believed", kernel.believed.suffixes(now), finite_relation((after.generation,)) if has else finite_relation()
    )
    require_agreement("syncing", kernel.syncing.has(now), after.state == MemberState.COMPLETING_REBALANCE)
    require_agreement("stable", kernel.stable.has(now), after.state == MemberState.STABLE)
    return run


def member_actions(
    identity: Token, before: Member, after: Member, commits: Iterable[PartitionCommit]
) -> Iterator[KernelAction]:
    """What a step of a member is."""
    states = (before.state, after.state)
    if states == (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE):
        yield "join-answered", (identity, after.generation)
    elif states == (MemberState.COMPLETING_REBALANCE, MemberState.STABLE):
        yield "sync-answered", (identity, after.generation)
    elif after.state == MemberState.PREPARING_REBALANCE and after.generation != NO_GENERATION:
        yield "shrink", (identity, finite_relation(*((part,) for part in true_indices(after.owned))))
    elif states == (MemberState.STABLE, MemberState.STABLE):
        for each in commits:
            for partition in true_indices(each.partitions):
                yield "commit", (identity, each.request.generation, partition)
