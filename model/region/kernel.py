"""The kernel of the repaired region, for one partition: what operators, checkpoint and downstream take for next."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from fencepost.model.logic import Token, Truth, and_, ite, not_, or_
from fencepost.model.relations import KernelEvent, Relation
from fencepost.model.statement import implies

# A state is a few sets of operators and a few offsets of each. It is made of rows of the search, where tests hold its
# invariants, and of a solver's terms, where they are proved of any number of operators and records.


Operators: TypeAlias = Relation
"""A set of operators."""
Offset: TypeAlias = Callable[[Token], int]
"""An offset of each operator."""


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """A state of the kernel. An operator that is in no set but the job has nothing and does nothing."""

    job: Operators
    """Every operator."""
    keeps: Operators
    """With the partition in its offset manager."""
    sought: Operators
    """With an offset there."""
    client: Operators
    """Whose Kafka client has the partition."""
    member: Operators
    """That take themselves for members."""
    in_group: Operators
    """That the group has in its present generation."""
    owns: Operators
    """To whom the group assigned the partition."""
    fetched: Operators
    """With records fetched since the last reset, or with one that is waited for since."""
    pending: Operators
    """That wait for a reset."""
    hand: Operators
    """With a message of the partition in hand."""
    drained: Operators
    written: Operators
    """That have written the checkpoint under way."""
    wrote: Operators
    """That have written the partition into it."""
    done: Operators
    """That have been reset in the reset under way."""
    off: Offset
    """The offset manager's."""
    seek: Offset
    """The seek map's."""
    hand_off: Offset
    """Of the message in hand."""
    wrote_off: Offset
    down: int
    """Downstream's next offset."""
    snap: int
    """Downstream's next offset in the last complete checkpoint."""
    merged: int
    """What the operators resume from after a reset to it."""
    is_running: Truth
    is_checkpointing: Truth
    is_resetting: Truth
    is_wrong: Truth
    """Downstream saw an offset twice or missed one since the state that it has was restored."""


Events: TypeAlias = tuple[KernelEvent[RegionKernel], ...]
OFFSETS = ("off", "seek", "hand_off", "wrote_off")
SETS = tuple(one.name for one in fields(RegionKernel) if one.type is Relation and one.name != "job")
"""The fields that are offsets of operators, and those that are sets of them."""


def initial_kernel(job: Operators, first: int) -> RegionKernel:
    """Everything begins at this offset."""
    sets: dict[str, Any] = dict.fromkeys(SETS, job.empty())
    offsets: dict[str, Any] = dict.fromkeys(OFFSETS, lambda o: first)
    return RegionKernel(
        job,
        **sets,
        **offsets,
        down=first,
        snap=first,
        merged=first,
        is_running=True,
        is_checkpointing=False,
        is_resetting=False,
        is_wrong=False,
    )


def put(k: RegionKernel, one: Token, **changes: Any) -> RegionKernel:
    """The state with this operator in or out of sets by a condition, or with another offset."""

    def change(name: str, value: Any) -> Any:
        old = getattr(k, name)
        return (lambda o: ite(o == one, value, old(o))) if name in OFFSETS else old.put(one, there=value)

    return replace(k, **{name: change(name, value) for name, value in changes.items()})


def begin_reset(k: RegionKernel) -> RegionKernel:
    """Downstream is restored, a checkpoint under way is void, nobody has been reset."""
    return replace(
        k,
        down=k.snap,
        is_wrong=False,
        written=k.written.empty(),
        wrote=k.wrote.empty(),
        done=k.done.empty(),
        is_running=False,
        is_checkpointing=False,
        is_resetting=True,
    )


def kernel_events(k: RegionKernel, one: Token, owns: Operators, chosen: int, first: int) -> Events:
    """Every event, for one operator, a new assignment, the offset that a merge takes and the initial offset."""
    return (*group_events(k, one, owns), *thread_events(k, one), *region_events(k, one, chosen, first))


def group_events(k: RegionKernel, one: Token, owns: Operators) -> Events:
    """Kafka's part: expulsion, rebalances, callbacks."""
    is_member, polls, waits = k.member.has(one), not_(k.drained.has(one)), k.pending.has(one)
    forms = and_(
        k.in_group.every(lambda o: not_(k.member.has(o))),
        owns.every(k.in_group.has),
        owns.every(lambda o: owns.every(lambda x: o == x)),
    )
    # The group of a dead process's member has the partition for nobody.
    gone = put(k, one, in_group=False, owns=False)
    revoked = put(k, one, member=False, client=False, pending=or_(waits, k.fetched.has(one)))
    assigned_guard = and_(not_(is_member), k.in_group.has(one), or_(polls, waits))
    given = put(
        k,
        one,
        member=True,
        client=k.owns.has(one),
        keeps=k.owns.has(one),
        sought=or_(and_(waits, k.keeps.has(one), k.sought.has(one)), not_(waits)),
        off=ite(waits, k.off(one), k.seek(one)),
    )
    return (
        KernelEvent("the group ends a membership", k.in_group.has(one), gone),
        KernelEvent("joins", and_(not_(is_member), polls), put(k, one, in_group=True)),
        KernelEvent("a generation begins", forms, replace(k, owns=owns)),
        KernelEvent("revoked", and_(is_member, polls), revoked),
        KernelEvent("assigned", assigned_guard, given),
        KernelEvent(
            "requests a reset instead of seeking",
            and_(assigned_guard, not_(waits)),
            put(given, one, pending=True, sought=False, fetched=True),
        ),
    )


def thread_events(k: RegionKernel, one: Token) -> Events:
    """The two threads of an operator."""
    in_hand, drained = k.hand.has(one), k.drained.has(one)
    serves = and_(k.member.has(one), not_(k.pending.has(one)))
    takes = and_(k.is_running, not_(drained), k.fetched.has(one), k.keeps.has(one), serves, not_(in_hand))
    counts = and_(in_hand, k.keeps.has(one), serves)
    submitted = put(k, one, hand=False, off=k.hand_off(one) + 1)
    is_next = k.hand_off(one) == k.down
    seen = replace(submitted, down=ite(is_next, k.down + 1, k.down), is_wrong=or_(k.is_wrong, not_(is_next)))
    return (
        KernelEvent("fetches", and_(serves, not_(drained)), put(k, one, fetched=True)),
        KernelEvent("takes", takes, put(k, one, hand=True, hand_off=k.off(one))),
        KernelEvent("submits", and_(counts, not_(k.is_resetting)), seen),
        KernelEvent("submits into a reset", and_(counts, k.is_resetting), submitted),
        KernelEvent("drops", in_hand, put(k, one, hand=False)),
    )


def is_fit(k: RegionKernel, one: Token, *, vetoes: bool = True, checks: bool = True) -> Truth:
    """Whether an operator writes its checkpoint (H04, H05)."""
    settled = and_(not_(k.pending.has(one)), implies(k.keeps.has(one), and_(k.member.has(one), k.sought.has(one))))
    present = implies(k.member.has(one), k.in_group.has(one))
    return and_(or_(not vetoes, settled), or_(not checks, present))


def region_events(k: RegionKernel, one: Token, chosen: int, first: int) -> Events:
    """Drain, checkpoint, resume, reset."""
    all_drained = and_(k.is_running, k.job.every(k.drained.has))
    writes = put(k, one, written=True, wrote=k.keeps.has(one), wrote_off=k.off(one))
    turn = and_(k.is_checkpointing, not_(k.written.has(one)))
    complete = and_(k.is_checkpointing, k.job.every(k.written.has))
    none_wrote = k.wrote.every(lambda o: False)
    from_offsets = and_(k.wrote.has(one), chosen == k.wrote_off(one))
    from_maps = and_(none_wrote, chosen == k.seek(one))
    from_start = and_(none_wrote, chosen == first)
    whole = replace(
        k,
        merged=chosen,
        snap=k.down,
        is_running=True,
        is_checkpointing=False,
        written=k.written.empty(),
        wrote=k.wrote.empty(),
    )
    was_reset = put(
        k,
        one,
        seek=k.merged,
        off=k.merged,
        keeps=k.client.has(one),
        sought=True,
        fetched=False,
        pending=False,
        drained=False,
        done=True,
    )
    is_turn = and_(k.is_resetting, not_(k.done.has(one)))
    lost = ("keeps", "client", "member", "in_group", "owns", "fetched", "pending", "hand")
    crashed = put(begin_reset(k), one, **dict.fromkeys(lost, False))
    finished = replace(k, is_resetting=False, is_running=True, done=k.done.empty())
    fit, hasty, absent = is_fit(k, one), is_fit(k, one, vetoes=False), is_fit(k, one, checks=False)
    return (
        KernelEvent("drains", and_(k.is_running, not_(k.hand.has(one))), put(k, one, drained=True)),
        KernelEvent("all have drained", all_drained, replace(k, is_running=False, is_checkpointing=True)),
        KernelEvent("writes", and_(turn, fit), writes, "veto", and_(turn, hasty)),
        KernelEvent("writes", and_(turn, fit), writes, "membership", and_(turn, absent)),
        KernelEvent(
            "the checkpoint is complete",
            and_(complete, or_(from_offsets, from_maps)),
            whole,
            "base",
            and_(complete, or_(from_offsets, from_start)),
        ),
        KernelEvent("resumes", and_(k.is_running, k.drained.has(one)), put(k, one, drained=False)),
        KernelEvent("a reset begins", True, begin_reset(k)),
        KernelEvent("crashes", True, crashed),
        KernelEvent("is reset", and_(is_turn, not_(k.hand.has(one))), was_reset, "permit", is_turn),
        KernelEvent("the reset ends", and_(k.is_resetting, k.job.every(k.done.has)), finished),
    )


# What holds in every state of the kernel of the repaired region.


def is_current(k: RegionKernel, o: Token) -> Truth:
    """A member that the group has, or had when it wrote its checkpoint."""
    return and_(k.member.has(o), or_(k.in_group.has(o), k.written.has(o)))


def is_clean(k: RegionKernel) -> Truth:
    """Every operator with records is current, and waits for no reset."""
    return k.fetched.every(lambda o: and_(is_current(k, o), not_(k.pending.has(o))))


def holds(k: RegionKernel, o: Token) -> Truth:
    """A current member that has the partition and waits for no reset."""
    return and_(is_current(k, o), k.keeps.has(o), not_(k.pending.has(o)))


def invariants(k: RegionKernel) -> dict[str, Truth]:
    """What holds in every state, by name."""
    return {
        "region.exact": k.merged == k.snap,
        "region.one-holder": one_holder(k),
        "modes": modes(k),
        "group": group(k),
        "values": values(k),
        "base": base(k),
        "hand": hand(k),
        "written": written_parts(k),
        "reset": reset(k),
        "wrong": implies(k.is_wrong, and_(not_(k.is_resetting), not_(is_clean(k)))),
    }


def modes(k: RegionKernel) -> Truth:
    """One mode at a time; all have drained when checkpoints are written; who has written is in a checkpoint."""
    return and_(
        or_(k.is_running, k.is_checkpointing, k.is_resetting),
        not_(and_(k.is_running, or_(k.is_checkpointing, k.is_resetting))),
        not_(and_(k.is_checkpointing, k.is_resetting)),
        implies(k.is_checkpointing, k.job.every(k.drained.has)),
        k.written.every(lambda o: k.is_checkpointing),
        k.done.every(lambda o: k.is_resetting),
    )


def one_holder(k: RegionKernel) -> Truth:
    """No two current members keep the partition, unless a reset is due."""
    return k.keeps.every(lambda o: k.keeps.every(lambda x: implies(and_(holds(k, o), holds(k, x)), o == x)))


def group(k: RegionKernel) -> Truth:
    """One operator at most is assigned the partition; a member's client has it exactly if it was assigned it."""

    def of_member(o: Token) -> Truth:
        settled = and_(k.keeps.has(o), not_(k.pending.has(o)))
        return and_(
            implies(k.in_group.has(o), same(k.client.has(o), k.owns.has(o))),
            same(k.client.has(o), k.keeps.has(o)),
            implies(settled, k.sought.has(o)),
        )

    return and_(
        k.member.every(of_member),
        k.client.every(k.member.has),
        k.fetched.every(lambda o: or_(k.pending.has(o), k.member.has(o))),
        k.owns.every(lambda o: k.owns.every(lambda x: o == x)),
    )


def same(one: Truth, other: Truth) -> Truth:
    """Both hold, or neither does."""
    return and_(implies(one, other), implies(other, one))


def values(k: RegionKernel) -> Truth:
    """While no reset is due, who holds the partition goes on where downstream is."""
    quiet = and_(not_(k.is_resetting), is_clean(k))
    return implies(quiet, k.keeps.every(lambda o: implies(holds(k, o), k.off(o) == k.down)))


def base(k: RegionKernel) -> Truth:
    """While no reset is due and nobody has fetched from the partition, every seek map says where downstream is."""
    quiet = and_(not_(k.is_resetting), is_clean(k), k.fetched.every(lambda o: not_(holds(k, o))))
    return implies(quiet, k.job.every(lambda o: k.seek(o) == k.down))


def hand(k: RegionKernel) -> Truth:
    """A message in hand is the next one, of an operator that has not drained and was not reset."""

    def is_next(o: Token) -> Truth:
        counts = and_(k.keeps.has(o), k.member.has(o), not_(k.pending.has(o)))
        return implies(counts, k.hand_off(o) == k.off(o))

    return k.hand.every(lambda o: and_(k.fetched.has(o), not_(k.drained.has(o)), not_(k.done.has(o)), is_next(o)))


def written_parts(k: RegionKernel) -> Truth:
    """What was written is what the operator has."""
    return and_(
        k.written.every(
            lambda o: and_(not_(k.pending.has(o)), implies(k.keeps.has(o), and_(k.member.has(o), k.wrote.has(o))))
        ),
        k.wrote.every(lambda o: and_(k.written.has(o), k.keeps.has(o), k.wrote_off(o) == k.off(o))),
    )


def reset(k: RegionKernel) -> Truth:
    """In a reset downstream is as it was, and so is every operator that was reset."""

    def of_one(o: Token) -> Truth:
        counts = and_(k.keeps.has(o), k.member.has(o), not_(k.pending.has(o)))
        return and_(k.seek(o) == k.merged, not_(k.drained.has(o)), implies(counts, k.off(o) == k.merged))

    return and_(implies(k.is_resetting, k.down == k.snap), k.done.every(of_one))


# The kernel of a merge: who has contributed, and whether it is complete.


@dataclass(frozen=True, slots=True)
class MergeKernel:
    """The merge of one checkpoint: who has contributed, whom each contributor named, whether it is complete."""

    job: Operators
    contributed: Operators
    is_complete: Truth


def contribute_event(k: MergeKernel, one: Token, named: Operators) -> tuple[Truth, Truth, MergeKernel]:
    """A contribution that completes the merge: when it may as repaired, when as documented, and the state after it."""
    whole = MergeKernel(k.job, k.contributed.plus(one), True)
    repaired = and_(k.job.has(one), k.job.every(whole.contributed.has))
    documented = and_(k.job.has(one), named.has(one), named.every(whole.contributed.has))
    return repaired, documented, whole


def merge_invariant(k: MergeKernel) -> Truth:
    """Complete only with contributions of every operator of the job, and of nobody else."""
    return and_(k.contributed.every(k.job.has), implies(k.is_complete, k.job.every(k.contributed.has)))
