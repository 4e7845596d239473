"""The kernel of a merge: who has contributed, and whether it is complete."""

from dataclasses import dataclass
from typing import Any

from fencepost.model.kernel_logic import KernelLogic, Set


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
