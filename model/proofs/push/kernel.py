"""The kernel on sets of any size: registrations and partitions are uninterpreted sorts.

A state is a few sets, so that every question is in a decidable fragment.
"""

from typing import Any

import z3

from fencepost.model.proofs.kernel_logic import SymbolicLogic
from fencepost.model.push.kernel import SETS, KernelEvent, PushKernel, kernel_events

REGISTRATION = z3.DeclareSort("Registration")
PARTITION = z3.DeclareSort("Partition")


def any_kernel() -> PushKernel:
    """Any state."""

    def relation(name: str, *sorts: Any) -> Any:
        return z3.Function(name, *sorts, z3.BoolSort())

    sets = {name: relation(name, REGISTRATION) for name in SETS}
    plans = {name: relation(name, REGISTRATION, PARTITION) for name in ("last_plan", "plan")}
    phases = {name: z3.Bool(name) for name in ("is_stopping", "is_starting")}
    return PushKernel(SymbolicLogic(REGISTRATION, PARTITION), **sets, **plans, **phases)


def any_events(kernel: PushKernel) -> tuple[KernelEvent, ...]:
    """Every event, for any registration that it may be about and any plan."""
    plan = z3.Function("new_plan", REGISTRATION, PARTITION, z3.BoolSort())
    snapshot = z3.Function("new_snapshot", REGISTRATION, z3.BoolSort())
    return kernel_events(kernel, z3.Const("one", REGISTRATION), plan, snapshot)


def can_happen(event: KernelEvent) -> bool:
    """Whether the guard is anything but false."""
    return not z3.is_false(z3.simplify(event.guard))
