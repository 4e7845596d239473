"""What holds in every state of the kernel of the repaired region."""

from typing import Any

from fencepost.model.region.kernel import RegionKernel


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
        same = logic.all_of(logic.implies(k.client(o), k.owns(o)), logic.implies(k.owns(o), k.client(o)))
        kept = logic.all_of(logic.implies(k.client(o), k.keeps(o)), logic.implies(k.keeps(o), k.client(o)))
        return logic.all_of(
            logic.implies(logic.all_of(k.member(o), k.in_group(o)), same),
            logic.implies(k.member(o), kept),
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
