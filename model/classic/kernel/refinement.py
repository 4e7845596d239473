"""The link between the model and its kernel: each step of a coordinator or a member is some actions of the kernel.

A shadow of the run is kept: the kernel that it has reached. Each step of the run says which actions it is; their
guards have to hold, and afterwards what can be read off the run has to be what the kernel says. This is a check of
the steps that are taken, not a proof of all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import CommitAnswer, CommitRequest, CoreAnswer, Group, JoinAnswer, Phase
from fencepost.model.classic.kernel.actions import ACTIONS, Finite, Kernel, adopt, finite
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberState, PartitionCommit, Parts, Sent
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.model.logic import Token

Action: TypeAlias = tuple[str, tuple[Any, ...]]
"""An action of the kernel and its arguments."""


class NotRefined(Exception):
    """A step that no action of the kernel explains: the action, and the guard or relation that does not fit."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How metadata and assignments name partitions."""

    claims: Callable[[Token], Iterable[Token]]
    """Of the metadata of a member."""
    assigned: Callable[[Token, Token], Iterable[Token]]
    """Of an assignment, and the member that has it."""


def indices(parts: Parts | None) -> Iterator[int]:
    """The partitions that are true."""
    return (index for index, held in enumerate(parts or ()) if held)


PARTS = Reading(indices, lambda assignment, owner: indices(assignment))
"""Of members of the model, whose metadata and assignments have a truth value for each partition."""
SHARES = Reading(lambda metadata: (), lambda assignment, owner: (owner,) if assignment else ())
"""Of members whose bytes mean nothing: an assignment is one partition that nobody else can have."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """The kernel that a run has reached, and who stands behind its member ids.

    A static member stays the same person under its next id; the one before stands for nobody any more.
    """

    kernel: Kernel = field(default_factory=Kernel)
    persons: Mapping[Token, Token] = field(default_factory=dict)

    def person(self, member: Token) -> Token:
        """Who stands behind a member id, None for nobody."""
        return self.persons.get(member, member)


def taken(shadow: Shadow, actions: Iterable[Action]) -> Shadow:
    """The shadow after some actions; raises NotRefined where a guard is false."""
    kernel = shadow.kernel
    for name, arguments in actions:
        move = ACTIONS[name](kernel, *arguments)
        for guard, holds in move.guards.items():
            if not holds:
                raise NotRefined(f"{name}{arguments}: {guard}: no")
        kernel = move.after
    return alter(shadow, kernel=kernel)


def agree(what: str, kernel: object, model: object) -> None:
    """Raise NotRefined unless both are the same."""
    if kernel != model:
        raise NotRefined(f"{what}: {kernel} in the kernel, {model} in the model")


# --- the coordinator


def coordinated(
    shadow: Shadow,
    before: Group,
    after: Group,
    answers: Iterable[CoreAnswer] = (),
    sender: Token = None,
    reading: Reading = PARTS,
) -> Shadow:
    """The shadow after a step of the coordinator, `sender` being who sent the request that it handled, if any."""
    shadow, heirs = succeeded(shadow, before, after)
    shadow = taken(shadow, (("lose", (person,)) for person in heirs))
    completions = {
        answer.generation: answer
        for answer in answers
        if isinstance(answer, JoinAnswer) and answer.error == Error.NONE and answer.generation > before.generation
    }
    if after.generation > before.generation:
        joined = [answer for answer in answers if isinstance(answer, JoinAnswer)]
        for generation in sorted({*completions, after.generation}):
            shadow = taken(shadow, [completion(shadow, generation, before, after, joined, reading)])
    shadow = taken(shadow, changes(shadow, after, sender, reading))
    agree("current", shadow.kernel.current, after.generation)
    agree("open", shadow.kernel.open, after.phase == Phase.COMPLETING)
    agree("registered", shadow.kernel.registered, registered(shadow, after))
    return shadow


def succeeded(shadow: Shadow, before: Group, after: Group) -> tuple[Shadow, list[Token]]:
    """The shadow in which replaced ids stand for nobody and their heirs for the same persons; these persons."""
    old = {slot.instance: slot.id for slot in before.slots if is_member(slot) and slot.instance is not None}
    persons = dict(shadow.persons)
    heirs: list[Token] = []
    for slot in after.slots:
        gone = old.get(slot.instance) if is_member(slot) and slot.instance is not None else None
        if gone is not None and gone != slot.id:
            heirs.append(shadow.person(gone))
            persons[slot.id], persons[gone] = shadow.person(gone), None
    return alter(shadow, persons=persons) if heirs else shadow, heirs


def registered(shadow: Shadow, group: Group) -> Finite:
    """The members of the group."""
    return finite(*((shadow.person(slot.id),) for slot in group.slots if is_member(slot)))


def completion(
    shadow: Shadow, generation: int, before: Group, after: Group, answers: Iterable[JoinAnswer], reading: Reading
) -> Action:
    """The end of the join phase of a generation, as its answers and the group after it show it."""
    last = generation == after.generation
    if last and after.phase == Phase.EMPTY:
        return "complete-empty", (generation,)
    mine = [answer for answer in answers if answer.error == Error.NONE and answer.generation == generation]
    members = {(shadow.person(answer.member),) for answer in mine}
    slots = after.slots if last else before.slots
    members |= registered(shadow, after).tuples if last else set()
    leader = mine[0].leader if mine else after.leader
    protocol = mine[0].protocol if mine else after.protocol
    claims = finite(
        *(
            (shadow.person(slot.id), partition)
            for slot in slots
            if is_member(slot) and (shadow.person(slot.id),) in members
            for partition in reading.claims(metadata_for(slot, protocol))
        )
    )
    return "complete", (generation, shadow.person(leader), finite(*members), claims)


def changes(shadow: Shadow, after: Group, sender: Token, reading: Reading) -> Iterator[Action]:
    """What else changed, within the generation: who is a member, and whether an assignment is awaited."""
    known, present = shadow.kernel.registered, registered(shadow, after)
    come = present.less(known)
    if not known.every(present.has):
        yield "unregister", (known.less(present),)
    elif shadow.kernel.open and after.phase == Phase.STABLE:
        yield "publish", (shadow.person(sender), assignment(shadow, after, reading))
    elif shadow.kernel.open and after.phase != Phase.COMPLETING:
        yield "prepare", ()
    if come.tuples:
        yield "register", (come,)


def assignment(shadow: Shadow, group: Group, reading: Reading) -> Finite:
    """Who has which partition, as the group's members have it."""
    owners = ((shadow.person(slot.id), slot.assignment) for slot in group.slots if is_member(slot))
    return finite(*((owner, partition) for owner, given in owners for partition in reading.assigned(given, owner)))


def judged(shadow: Shadow, request: CommitRequest, answer: CommitAnswer, partitions: Iterable[Token]) -> Shadow:
    """The shadow after a commit of these partitions was answered; commits without a generation claim no membership."""
    if answer.error != Error.NONE or request.generation < 0:
        return shadow
    sender = shadow.person(request.member)
    if sender is None:
        raise NotRefined(f"accept: {request.member} has been replaced")
    return taken(shadow, (("accept", (sender, request.generation, partition)) for partition in partitions))


def begun(group: Group, reading: Reading = PARTS) -> Shadow:
    """The shadow of a coordinator that begins with this group, or is watched from here on; it has no other past."""
    bare = Shadow()
    members = registered(bare, group)
    if group.phase == Phase.COMPLETING:
        before = Shadow(Kernel(current=group.generation - 1))
        return taken(before, [completion(before, group.generation, group, group, (), reading)])
    if group.phase != Phase.STABLE:
        return Shadow(Kernel(current=group.generation, registered=members))
    move = adopt(Kernel(), group.generation, group.leader, members, assignment(bare, group, reading))
    if not all(move.guards.values()):
        raise NotRefined(f"adopt: {move.guards}")
    return Shadow(move.after)


# --- a member


def moved(shadow: Shadow, before: Member, after: Member, sent: Iterable[Sent] = ()) -> Shadow:
    """The shadow after a step of a member process. A process whose id was replaced counts for nobody."""
    was, now = shadow.person(before.id), shadow.person(after.id)
    had, has = before.generation != NO_GENERATION, after.generation != NO_GENERATION
    if was is not None and (was != now or (had and not has)):
        shadow = taken(shadow, [("lose", (was,))])
    if now is None:
        return shadow
    commits = [each.request for each in sent if isinstance(each.request, PartitionCommit) and each.when]
    shadow = taken(shadow, member_actions(now, before, after, commits))
    for each in commits:
        for partition in indices(each.partitions):
            if not shadow.kernel.sent.has(now, each.request.generation, partition):
                raise NotRefined(f"commit: {now} sends {partition} in {each.request.generation}")
    kernel = shadow.kernel
    agree("owned", kernel.owned.at(now), finite(*((part,) for part in indices(after.owned) if has)))
    agree("believed", kernel.believed.at(now), finite((after.generation,)) if has else finite())
    agree("syncing", kernel.syncing.has(now), after.state == MemberState.COMPLETING_REBALANCE)
    agree("stable", kernel.stable.has(now), after.state == MemberState.STABLE)
    return shadow


def member_actions(
    person: Token, before: Member, after: Member, commits: Iterable[PartitionCommit]
) -> Iterator[Action]:
    """What a step of a member is."""
    states = (before.state, after.state)
    if states == (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE):
        yield "join-answered", (person, after.generation)
    elif states == (MemberState.COMPLETING_REBALANCE, MemberState.STABLE):
        yield "sync-answered", (person, after.generation)
    elif after.state == MemberState.PREPARING_REBALANCE and after.generation != NO_GENERATION:
        yield "shrink", (person, finite(*((part,) for part in indices(after.owned))))
    elif states == (MemberState.STABLE, MemberState.STABLE):
        for each in commits:
            for partition in indices(each.partitions):
                yield "commit", (person, each.request.generation, partition)
