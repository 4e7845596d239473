"""What holds in every state of the kernel, and the theorems among it."""

from typing import Any

import z3

from fencepost.model.proofs.push.kernel import PARTITION, REGISTRATION, PushKernel, for_all, is_disjoint

THEOREMS = {
    "push.one-owner": "No partition is fetched by two consumers of a group, whoever dies, stalls or fails over.",
    "push.barrier": "No consumer is sent a Start before every other one of the group has stopped.",
    "push.stopped-first": "No consumer gets a Start while it fetches.",
    "push.true-map": "When owners are recorded, every live member of the attempt fetches what it was given.",
}


def invariants(k: PushKernel) -> dict[str, Any]:
    """Every invariant by its name; together they are inductive."""
    return {
        "push.one-owner": one_owner(k),
        "push.stopped-first": for_all(lambda r: z3.Implies(k.start_sent(r), z3.Not(k.fetching(r)))),
        "push.true-map": true_map(k),
        "plans": z3.And(is_disjoint(k.last_plan), is_disjoint(k.plan)),
        "channels": channels(k),
        "members": members(k),
        "stopping": stopping(k),
        "starting": starting(k),
    }


def one_owner(k: PushKernel) -> Any:
    """S2."""
    one, other = z3.FreshConst(REGISTRATION), z3.FreshConst(REGISTRATION)
    partition = z3.FreshConst(PARTITION)
    fetched = [z3.And(k.fetching(r), k.last_plan(r, partition)) for r in (one, other)]
    return z3.ForAll([one, other, partition], z3.Implies(z3.And(*fetched), one == other))


def true_map(k: PushKernel) -> Any:
    """S4: once all responses to Start are counted, and while the attempt lasts."""
    return for_all(
        lambda r: z3.Implies(z3.And(k.is_starting, k.snapshot(r), k.started(r), k.attached(r)), k.fetching(r))
    )


def channels(k: PushKernel) -> Any:
    """What is under way belongs to a consumer that is attached, and who is attached has registered."""
    under_way = (k.fetching, k.start_sent, k.stop_sent, k.stale_stop, k.stop_response, k.stale_response)
    return for_all(
        lambda r: z3.And(
            *(z3.Implies(one(r), k.attached(r)) for one in (*under_way, k.start_response)),
            z3.Implies(z3.Or(k.attached(r), k.member(r), k.snapshot(r), k.fresh(r)), k.known(r)),
            z3.Implies(z3.Or(k.stopped(r), k.started(r)), k.known(r)),
        )
    )


def members(k: PushKernel) -> Any:
    """Who registered with the present coordinator and is attached is a member; a rebalance began with all attached."""
    busy = z3.Or(k.is_stopping, k.is_starting)

    def idle(r: Any) -> Any:
        return z3.Not(z3.Or(k.fetching(r), k.start_sent(r)))

    return z3.And(
        z3.Not(z3.And(k.is_stopping, k.is_starting)),
        for_all(lambda r: z3.Implies(z3.And(k.attached(r), k.fresh(r)), k.member(r))),
        for_all(lambda r: z3.Implies(z3.And(busy, k.attached(r), z3.Not(k.snapshot(r))), idle(r))),
    )


def stopping(k: PushKernel) -> Any:
    """Who has handled the Stop under way fetches nothing, and nothing makes it start."""

    def quiet(r: Any) -> Any:
        return z3.Not(z3.Or(k.fetching(r), k.start_sent(r), k.stop_sent(r), k.stale_stop(r)))

    def answered(r: Any) -> Any:
        return z3.Or(k.stopped(r), k.stop_response(r))

    return for_all(lambda r: z3.Implies(z3.And(k.is_stopping, answered(r), k.snapshot(r), k.attached(r)), quiet(r)))


def starting(k: PushKernel) -> Any:
    """Once Starts are sent, no Stop is under way to a member of the attempt, and who has answered its Start fetches."""
    return for_all(
        lambda r: z3.Implies(
            z3.And(k.is_starting, k.snapshot(r), k.attached(r)),
            z3.And(
                z3.Not(z3.Or(k.stop_sent(r), k.stale_stop(r))),
                z3.Implies(z3.Or(k.started(r), k.start_response(r)), k.fetching(r)),
            ),
        )
    )
