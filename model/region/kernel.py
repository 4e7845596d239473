"""The kernel of the repaired region, for one partition: what operators, checkpoint and downstream take for next."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from fencepost.model.kernel_logic import KernelEvent, KernelLogic, Set

# The kernel of the repaired region, for one partition: what operators, checkpoint and downstream take for next.
#
# A state is a few sets of operators and a few offsets of each. It is made of rows of the search, where tests hold its
# invariants, and of a solver's terms, where they are proved of any number of operators and records.


Offset = Callable[[Any], Any]
"""An offset of each operator."""


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """A state of the kernel. An operator that is in none of the sets has nothing and does nothing."""

    logic: KernelLogic
    keeps: Set
    """With the partition in its offset manager."""
    sought: Set
    """With an offset there."""
    client: Set
    """Whose Kafka client has the partition."""
    member: Set
    """That take themselves for members."""
    in_group: Set
    """That the group has in its present generation."""
    owns: Set
    """To whom the group assigned the partition."""
    fetched: Set
    """With records fetched since the last reset, or with one that is waited for since."""
    pending: Set
    """That wait for a reset."""
    hand: Set
    """With a message of the partition in hand."""
    drained: Set
    written: Set
    """That have written the checkpoint under way."""
    wrote: Set
    """That have written the partition into it."""
    done: Set
    """That have been reset in the reset under way."""
    off: Offset
    """The offset manager's."""
    seek: Offset
    """The seek map's."""
    hand_off: Offset
    """Of the message in hand."""
    wrote_off: Offset
    down: Any
    """Downstream's next offset."""
    snap: Any
    """Downstream's next offset in the last complete checkpoint."""
    merged: Any
    """What the operators resume from after a reset to it."""
    is_running: Any
    is_checkpointing: Any
    is_resetting: Any
    is_wrong: Any
    """Downstream saw an offset twice or missed one since the state that it has was restored."""


Events = tuple[KernelEvent[RegionKernel], ...]
OFFSETS = ("off", "seek", "hand_off", "wrote_off")
SETS = tuple(each.name for each in fields(RegionKernel) if each.type in (Set, "Set") and each.name not in OFFSETS)
"""The fields that are offsets of operators, and those that are sets of them."""


def initial_kernel(logic: KernelLogic, first: Any) -> RegionKernel:
    """Everything begins at this offset."""
    sets: dict[str, Any] = dict.fromkeys(SETS, logic.nobody)
    offsets: dict[str, Any] = dict.fromkeys(OFFSETS, lambda o: first)
    no, yes = logic.any_of(), logic.all_of()
    return RegionKernel(
        logic,
        **sets,
        **offsets,
        down=first,
        snap=first,
        merged=first,
        is_running=yes,
        is_checkpointing=no,
        is_resetting=no,
        is_wrong=no,
    )


def put(k: RegionKernel, one: Any, **changes: Any) -> RegionKernel:
    """The state with this operator in or out of sets by a condition, or with another offset."""

    def changed(old: Offset, value: Any) -> Offset:
        return lambda o: k.logic.choose(k.logic.same(o, one), value, old(o))

    made: dict[str, Any] = {name: changed(getattr(k, name), value) for name, value in changes.items()}
    return replace(k, **made)


def begin_reset(k: RegionKernel) -> RegionKernel:
    """Downstream is restored, a checkpoint under way is void, nobody has been reset."""
    no, yes, nobody = k.logic.any_of(), k.logic.all_of(), k.logic.nobody
    return replace(
        k,
        down=k.snap,
        is_wrong=no,
        written=nobody,
        wrote=nobody,
        done=nobody,
        is_running=no,
        is_checkpointing=no,
        is_resetting=yes,
    )


def kernel_events(k: RegionKernel, one: Any, owns: Set, chosen: Any, first: Any) -> Events:
    """Every event, for one operator, a new assignment, the offset that a merge takes and the initial offset."""
    return (*group_events(k, one, owns), *thread_events(k, one), *region_events(k, one, chosen, first))


def group_events(k: RegionKernel, one: Any, owns: Set) -> Events:
    """Kafka's part: expulsion, rebalances, callbacks."""
    logic = k.logic
    yes, no = logic.all_of(), logic.any_of()
    polls = logic.no(k.drained(one))
    forms = logic.all_of(
        logic.every(lambda o: logic.implies(k.in_group(o), logic.no(k.member(o)))),
        logic.every(lambda o: logic.implies(owns(o), k.in_group(o))),
        logic.every(lambda o: logic.every(lambda x: logic.implies(logic.all_of(owns(o), owns(x)), logic.same(o, x)))),
    )
    # The group of a dead process's member has the partition for nobody.
    gone = put(k, one, in_group=no, owns=no)
    revoked = put(k, one, member=no, client=no, pending=logic.any_of(k.pending(one), k.fetched(one)))
    assigned_guard = logic.all_of(logic.no(k.member(one)), k.in_group(one), logic.any_of(polls, k.pending(one)))
    waits = k.pending(one)
    given = put(
        k,
        one,
        member=yes,
        client=k.owns(one),
        keeps=k.owns(one),
        sought=logic.any_of(logic.all_of(waits, k.keeps(one), k.sought(one)), logic.no(waits)),
        off=logic.choose(waits, k.off(one), k.seek(one)),
    )
    return (
        KernelEvent("the group ends a membership", k.in_group(one), gone),
        KernelEvent("joins", logic.all_of(logic.no(k.member(one)), polls), put(k, one, in_group=yes)),
        KernelEvent("a generation begins", forms, replace(k, owns=owns)),
        KernelEvent("revoked", logic.all_of(k.member(one), polls), revoked),
        KernelEvent("assigned", assigned_guard, given),
        KernelEvent(
            "requests a reset instead of seeking",
            logic.all_of(assigned_guard, logic.no(waits)),
            put(given, one, pending=yes, sought=no, fetched=yes),
        ),
    )


def thread_events(k: RegionKernel, one: Any) -> Events:
    """The two threads of an operator."""
    logic = k.logic
    yes, no = logic.all_of(), logic.any_of()
    permit = logic.all_of(k.is_running, logic.no(k.drained(one)))
    fetches = logic.all_of(k.member(one), logic.no(k.drained(one)), logic.no(k.pending(one)))
    takes = logic.all_of(
        permit, k.fetched(one), k.keeps(one), k.member(one), logic.no(k.pending(one)), logic.no(k.hand(one))
    )
    counts = logic.all_of(k.hand(one), k.keeps(one), k.member(one), logic.no(k.pending(one)))
    submitted = put(k, one, hand=no, off=k.hand_off(one) + 1)
    wrong = logic.any_of(k.is_wrong, logic.no(logic.same(k.hand_off(one), k.down)))
    seen = replace(
        submitted, down=logic.choose(logic.same(k.hand_off(one), k.down), k.down + 1, k.down), is_wrong=wrong
    )
    return (
        KernelEvent("fetches", fetches, put(k, one, fetched=yes)),
        KernelEvent("takes", takes, put(k, one, hand=yes, hand_off=k.off(one))),
        KernelEvent("submits", logic.all_of(counts, logic.no(k.is_resetting)), seen),
        KernelEvent("submits into a reset", logic.all_of(counts, k.is_resetting), submitted),
        KernelEvent("drops", k.hand(one), put(k, one, hand=no)),
    )


def is_fit(k: RegionKernel, one: Any, *, vetoes: bool = True, checks: bool = True) -> Any:
    """Whether an operator writes its checkpoint (H04, H05)."""
    logic = k.logic
    settled = logic.all_of(
        logic.no(k.pending(one)), logic.implies(k.keeps(one), logic.all_of(k.member(one), k.sought(one)))
    )
    present = logic.implies(k.member(one), k.in_group(one))
    return logic.all_of(settled if vetoes else logic.all_of(), present if checks else logic.all_of())


def region_events(k: RegionKernel, one: Any, chosen: Any, first: Any) -> Events:
    """Drain, checkpoint, resume, reset."""
    logic = k.logic
    yes, no, nobody = logic.all_of(), logic.any_of(), logic.nobody
    all_drained = logic.all_of(k.is_running, logic.every(k.drained))
    writes = put(k, one, written=yes, wrote=k.keeps(one), wrote_off=k.off(one))
    turn = logic.all_of(k.is_checkpointing, logic.no(k.written(one)))
    complete = logic.all_of(k.is_checkpointing, logic.every(k.written))
    none_wrote = logic.every(lambda o: logic.no(k.wrote(o)))
    from_offsets = logic.all_of(k.wrote(one), logic.same(chosen, k.wrote_off(one)))
    from_maps = logic.all_of(none_wrote, logic.same(chosen, k.seek(one)))
    from_start = logic.all_of(none_wrote, logic.same(chosen, first))
    whole = replace(k, merged=chosen, snap=k.down, is_running=yes, is_checkpointing=no, written=nobody, wrote=nobody)
    was_reset = put(
        k,
        one,
        seek=k.merged,
        off=k.merged,
        keeps=k.client(one),
        sought=yes,
        fetched=no,
        pending=no,
        drained=no,
        done=yes,
    )
    is_turn = logic.all_of(k.is_resetting, logic.no(k.done(one)))
    crashed = put(
        begin_reset(k), one, keeps=no, client=no, member=no, in_group=no, owns=no, fetched=no, pending=no, hand=no
    )
    finished = replace(k, is_resetting=no, is_running=yes, done=nobody)
    return (
        KernelEvent("drains", logic.all_of(k.is_running, logic.no(k.hand(one))), put(k, one, drained=yes)),
        KernelEvent("all have drained", all_drained, replace(k, is_running=no, is_checkpointing=yes)),
        KernelEvent(
            "writes",
            logic.all_of(turn, is_fit(k, one)),
            writes,
            "veto",
            logic.all_of(turn, is_fit(k, one, vetoes=False)),
        ),
        KernelEvent(
            "writes",
            logic.all_of(turn, is_fit(k, one)),
            writes,
            "membership",
            logic.all_of(turn, is_fit(k, one, checks=False)),
        ),
        KernelEvent(
            "the checkpoint is complete",
            logic.all_of(complete, logic.any_of(from_offsets, from_maps)),
            whole,
            "base",
            logic.all_of(complete, logic.any_of(from_offsets, from_start)),
        ),
        KernelEvent("resumes", logic.all_of(k.is_running, k.drained(one)), put(k, one, drained=no)),
        KernelEvent("a reset begins", yes, begin_reset(k)),
        KernelEvent("crashes", yes, crashed),
        KernelEvent("is reset", logic.all_of(is_turn, logic.no(k.hand(one))), was_reset, "permit", is_turn),
        KernelEvent("the reset ends", logic.all_of(k.is_resetting, logic.every(k.done)), finished),
    )


# What holds in every state of the kernel of the repaired region.


def is_current(k: RegionKernel, o: Any) -> Any:
    """A member that the group has, or had when it wrote its checkpoint."""
    return k.logic.all_of(k.member(o), k.logic.any_of(k.in_group(o), k.written(o)))


def is_clean(k: RegionKernel) -> Any:
    """Every operator with records is current, and waits for no reset."""
    logic = k.logic
    return logic.every(lambda o: logic.implies(k.fetched(o), logic.all_of(is_current(k, o), logic.no(k.pending(o)))))


def holds(k: RegionKernel, o: Any) -> Any:
    """A current member that has the partition and waits for no reset."""
    return k.logic.all_of(is_current(k, o), k.keeps(o), k.logic.no(k.pending(o)))


def invariants(k: RegionKernel) -> dict[str, Any]:
    """What holds in every state, by name."""
    return {
        "region.exact": k.logic.same(k.merged, k.snap),
        "region.one-holder": one_holder(k),
        "modes": modes(k),
        "group": group(k),
        "values": values(k),
        "base": base(k),
        "hand": hand(k),
        "written": written_parts(k),
        "reset": reset(k),
        "wrong": k.logic.implies(k.is_wrong, k.logic.all_of(k.logic.no(k.is_resetting), k.logic.no(is_clean(k)))),
    }


def modes(k: RegionKernel) -> Any:
    """One mode at a time; all have drained when checkpoints are written; who has written is in a checkpoint."""
    logic = k.logic
    pairs = (
        (k.is_running, k.is_checkpointing),
        (k.is_running, k.is_resetting),
        (k.is_checkpointing, k.is_resetting),
    )
    return logic.all_of(
        logic.any_of(k.is_running, k.is_checkpointing, k.is_resetting),
        *(logic.no(logic.all_of(*pair)) for pair in pairs),
        logic.every(
            lambda o: logic.all_of(
                logic.implies(k.is_checkpointing, k.drained(o)),
                logic.implies(k.written(o), k.is_checkpointing),
                logic.implies(k.done(o), k.is_resetting),
            )
        ),
    )


def one_holder(k: RegionKernel) -> Any:
    """No two current members keep the partition, unless a reset is due."""
    logic = k.logic

    def apart(o: Any, x: Any) -> Any:
        both = logic.all_of(
            is_current(k, o), k.keeps(o), is_current(k, x), k.keeps(x), logic.no(k.pending(o)), logic.no(k.pending(x))
        )
        return logic.implies(both, logic.same(o, x))

    return logic.every(lambda o: logic.every(lambda x: apart(o, x)))


def group(k: RegionKernel) -> Any:
    """One operator at most is assigned the partition; a member's client has it exactly if it was assigned it."""
    logic = k.logic

    def of_one(o: Any) -> Any:
        return logic.all_of(
            logic.implies(logic.all_of(k.member(o), k.in_group(o)), logic.same(k.client(o), k.owns(o))),
            logic.implies(k.member(o), logic.same(k.client(o), k.keeps(o))),
            logic.implies(k.client(o), k.member(o)),
            logic.implies(logic.all_of(k.member(o), k.keeps(o), logic.no(k.pending(o))), k.sought(o)),
            logic.implies(logic.all_of(k.fetched(o), logic.no(k.pending(o))), k.member(o)),
            logic.every(lambda x: logic.implies(logic.all_of(k.owns(o), k.owns(x)), logic.same(o, x))),
        )

    return logic.every(of_one)


def values(k: RegionKernel) -> Any:
    """While no reset is due, who holds the partition goes on where downstream is."""
    logic = k.logic
    quiet = logic.all_of(logic.no(k.is_resetting), is_clean(k))
    return logic.implies(quiet, logic.every(lambda o: logic.implies(holds(k, o), logic.same(k.off(o), k.down))))


def base(k: RegionKernel) -> Any:
    """While no reset is due and nobody has fetched from the partition, every seek map says where downstream is."""
    logic = k.logic
    quiet = logic.all_of(logic.no(k.is_resetting), is_clean(k))
    fetched = logic.every(lambda o: logic.no(logic.all_of(holds(k, o), k.fetched(o))))
    return logic.implies(logic.all_of(quiet, fetched), logic.every(lambda o: logic.same(k.seek(o), k.down)))


def hand(k: RegionKernel) -> Any:
    """A message in hand is the next one, of an operator that has not drained and was not reset."""
    logic = k.logic
    return logic.every(
        lambda o: logic.all_of(
            logic.implies(k.hand(o), logic.all_of(k.fetched(o), logic.no(k.drained(o)), logic.no(k.done(o)))),
            logic.implies(
                logic.all_of(k.hand(o), k.keeps(o), k.member(o), logic.no(k.pending(o))),
                logic.same(k.hand_off(o), k.off(o)),
            ),
        )
    )


def written_parts(k: RegionKernel) -> Any:
    """What was written is what the operator has."""
    logic = k.logic
    return logic.every(
        lambda o: logic.all_of(
            logic.implies(k.written(o), logic.all_of(logic.no(k.pending(o)), logic.implies(k.keeps(o), k.member(o)))),
            logic.implies(k.wrote(o), logic.all_of(k.written(o), k.keeps(o), logic.same(k.wrote_off(o), k.off(o)))),
            logic.implies(logic.all_of(k.written(o), k.keeps(o)), k.wrote(o)),
        )
    )


def reset(k: RegionKernel) -> Any:
    """In a reset downstream is as it was, and so is every operator that was reset."""
    logic = k.logic

    def of_one(o: Any) -> Any:
        at = logic.implies(
            logic.all_of(k.keeps(o), k.member(o), logic.no(k.pending(o))), logic.same(k.off(o), k.merged)
        )
        return logic.implies(k.done(o), logic.all_of(logic.same(k.seek(o), k.merged), logic.no(k.drained(o)), at))

    return logic.all_of(logic.implies(k.is_resetting, logic.same(k.down, k.snap)), logic.every(of_one))


# The kernel of a merge: who has contributed, and whether it is complete.


@dataclass(frozen=True, slots=True)
class MergeKernel:
    """The merge of one checkpoint: who has contributed, whom each contributor named, whether it is complete."""

    logic: KernelLogic
    job: Set
    contributed: Set
    is_complete: Any


def contribute_event(k: MergeKernel, one: Any, named: Set) -> tuple[Any, Any, MergeKernel]:
    """A contribution that completes the merge: when it may as repaired, when as documented, and the state after it."""
    logic = k.logic
    after = logic.with_one(k.contributed, one)
    member = k.job(one)
    repaired = logic.every(lambda o: logic.implies(k.job(o), after(o)))
    documented = logic.all_of(named(one), logic.every(lambda o: logic.implies(named(o), after(o))))
    whole = MergeKernel(logic, k.job, after, logic.all_of())
    return logic.all_of(member, repaired), logic.all_of(member, documented), whole


def merge_invariant(k: MergeKernel) -> Any:
    """Complete only with contributions of every operator of the job, and of nobody else."""
    logic = k.logic
    return logic.all_of(
        logic.every(lambda o: logic.implies(k.contributed(o), k.job(o))),
        logic.implies(k.is_complete, logic.every(lambda o: logic.implies(k.job(o), k.contributed(o)))),
    )
