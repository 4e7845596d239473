"""What holds in every state of the kernel."""

from typing import Any

from fencepost.model.push.kernel import PushKernel, is_disjoint, is_idle


def invariants(k: PushKernel) -> dict[str, Any]:
    """Every invariant by its name; together they are inductive."""
    logic = k.logic
    return {
        "push.one-owner": one_owner(k),
        "push.stopped-first": logic.every(lambda r: logic.implies(k.start_sent(r), logic.no(k.fetching(r)))),
        "push.true-map": true_map(k),
        "plans": logic.all_of(is_disjoint(logic, k.last_plan), is_disjoint(logic, k.plan)),
        "channels": channels(k),
        "members": members(k),
        "stopping": stopping(k),
        "starting": starting(k),
    }


def one_owner(k: PushKernel) -> Any:
    """S2."""
    return is_disjoint(k.logic, lambda r, p: k.logic.all_of(k.fetching(r), k.last_plan(r, p)))


def true_map(k: PushKernel) -> Any:
    """S4: once all responses to Start are counted, and while the attempt lasts."""
    logic = k.logic
    return logic.every(
        lambda r: logic.implies(logic.all_of(k.is_starting, k.snapshot(r), k.started(r), k.attached(r)), k.fetching(r))
    )


def channels(k: PushKernel) -> Any:
    """What is under way belongs to a consumer that is attached, and who is attached has registered."""
    logic = k.logic
    under_way = (k.fetching, k.start_sent, k.stop_sent, k.stale_stop, k.stop_response, k.stale_response, k.fresh)
    registered = (k.attached, k.member, k.snapshot, k.stopped, k.started)
    return logic.every(
        lambda r: logic.all_of(
            *(logic.implies(one(r), k.attached(r)) for one in (*under_way, k.start_response)),
            *(logic.implies(one(r), k.known(r)) for one in registered),
        )
    )


def members(k: PushKernel) -> Any:
    """Who is attached to the present coordinator is a member; who is attached and not in the attempt has nothing."""
    logic = k.logic
    busy = logic.any_of(k.is_stopping, k.is_starting)
    return logic.all_of(
        logic.no(logic.all_of(k.is_stopping, k.is_starting)),
        logic.every(lambda r: logic.implies(k.fresh(r), k.member(r))),
        logic.every(lambda r: logic.implies(logic.all_of(busy, k.attached(r), logic.no(k.snapshot(r))), is_idle(k, r))),
    )


def stopping(k: PushKernel) -> Any:
    """Who has handled the Stop under way fetches nothing, and nothing makes it start."""
    logic = k.logic

    def quiet(r: Any) -> Any:
        return logic.no(logic.any_of(k.fetching(r), k.start_sent(r), k.stop_sent(r), k.stale_stop(r)))

    def answered(r: Any) -> Any:
        return logic.any_of(k.stopped(r), k.stop_response(r))

    return logic.every(
        lambda r: logic.implies(logic.all_of(k.is_stopping, answered(r), k.snapshot(r), k.attached(r)), quiet(r))
    )


def starting(k: PushKernel) -> Any:
    """Once Starts are sent, no Stop is under way to a member of the attempt, and who has answered its Start fetches."""
    logic = k.logic
    return logic.every(
        lambda r: logic.implies(
            logic.all_of(k.is_starting, k.snapshot(r), k.attached(r)),
            logic.all_of(
                logic.no(logic.any_of(k.stop_sent(r), k.stale_stop(r))),
                logic.implies(logic.any_of(k.started(r), k.start_response(r)), k.fetching(r)),
            ),
        )
    )
