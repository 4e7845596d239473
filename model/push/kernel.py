"""The kernel of the repaired push coordinator: who may fetch, who is told to stop or to start."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from fencepost.model.kernel_logic import KernelEvent, KernelLogic, Set

# The kernel of the repaired push coordinator: who may fetch, who is told to stop or to start.
#
# A state is a few sets of registrations. Attempts are known by two names: the one under way, and the one whose Starts
# were sent last. All earlier ones are alike: their Stops and responses are *stale*. The same events run on finite
# sets, where tests hold the handlers against them, and in a proof on sets of any size.


Plan = Callable[[Any, Any], Any]
"""Which registration is to fetch which partition."""


@dataclass(frozen=True, slots=True)
class PushKernel:
    """A state of the kernel."""

    logic: KernelLogic
    known: Set
    """Registered at some time."""
    attached: Set
    """With a channel that it has not given up."""
    fresh: Set
    """Registered with the present coordinator, and attached."""
    member: Set
    """Of the group at the present coordinator."""
    snapshot: Set
    """The members of the attempt under way."""
    stopped: Set
    """Whose response to the Stop under way was counted."""
    started: Set
    """Whose response to the Start under way was counted."""
    fetching: Set
    """Running the fetchers of the last Start it was sent."""
    start_sent: Set
    """With a Start in its channel."""
    stop_sent: Set
    stale_stop: Set
    stop_response: Set
    stale_response: Set
    start_response: Set
    """Of the attempt whose Starts were sent last."""
    last_plan: Plan
    """Of that attempt."""
    plan: Plan
    """Of the attempt under way."""
    is_stopping: Any
    is_starting: Any


SETS = tuple(each.name for each in fields(PushKernel) if each.type in (Set, "Set"))
"""The fields that are sets."""


def initial_kernel(logic: KernelLogic) -> PushKernel:
    """Nobody has registered."""

    def nothing(registration: Any, partition: Any) -> Any:
        return logic.any_of()

    no = logic.any_of()
    sets: dict[str, Any] = dict.fromkeys(SETS, logic.nobody)
    return PushKernel(logic, **sets, last_plan=nothing, plan=nothing, is_stopping=no, is_starting=no)


def is_disjoint(logic: KernelLogic, plan: Plan) -> Any:
    """The plan gives no partition to two registrations."""

    def apart(one: Any, other: Any) -> Any:
        return logic.every_partition(
            lambda p: logic.implies(logic.all_of(plan(one, p), plan(other, p)), logic.same(one, other))
        )

    return logic.every(lambda one: logic.every(lambda other: apart(one, other)))


def kernel_events(k: PushKernel, one: Any, plan: Plan, snapshot: Set) -> tuple[KernelEvent[PushKernel], ...]:
    """Every event that is about this registration, or begins an attempt with this plan for this snapshot."""
    return (*membership_events(k, one), *attempt_events(k, plan, snapshot), *channel_events(k, one))


def membership_events(k: PushKernel, one: Any) -> tuple[KernelEvent[PushKernel], ...]:
    """Registration, giving up, removal, failover."""
    logic, no = k.logic, k.logic.any_of()
    registered = replace(
        k,
        known=logic.with_one(k.known, one),
        attached=logic.with_one(k.attached, one),
        fresh=logic.with_one(k.fresh, one),
        member=logic.with_one(k.member, one),
    )
    lost = ("attached", "fresh", "fetching", "start_sent", "stop_sent", "stale_stop")
    answers = ("stop_response", "stale_response", "start_response")
    kept: dict[str, Any] = {name: logic.without_one(getattr(k, name), one) for name in (*lost, *answers)}
    removed = replace(k, member=logic.without_one(k.member, one))
    forgotten: dict[str, Any] = dict.fromkeys(
        ("fresh", "member", "snapshot", "stopped", "started", "stop_sent", *answers), logic.nobody
    )
    stale = logic.union(k.stale_stop, k.stop_sent)
    failed = replace(k, **forgotten, stale_stop=stale, is_stopping=no, is_starting=no)
    return (
        KernelEvent("register", logic.no(k.known(one)), registered),
        KernelEvent("give up", k.attached(one), replace(k, **kept)),
        KernelEvent("remove", logic.all_of(k.member(one), logic.no(k.attached(one))), removed, "lease", k.member(one)),
        KernelEvent("fail over", logic.all_of(), failed),
    )


def is_idle(k: PushKernel, one: Any) -> Any:
    """The registration fetches nothing, and no Start is under way to it."""
    return k.logic.no(k.logic.any_of(k.fetching(one), k.start_sent(one)))


def attempt_events(k: PushKernel, plan: Plan, snapshot: Set) -> tuple[KernelEvent[PushKernel], ...]:
    """An attempt begins with its Stops, goes on to its Starts, and ends."""
    logic = k.logic
    no, yes = logic.any_of(), logic.all_of()
    begun = replace(
        k,
        snapshot=snapshot,
        stopped=logic.nobody,
        started=logic.nobody,
        plan=plan,
        stop_sent=logic.intersection(snapshot, k.attached),
        stale_stop=logic.union(k.stale_stop, k.stop_sent),
        stop_response=logic.nobody,
        stale_response=logic.union(k.stale_response, k.stop_response),
        start_response=logic.nobody,
        is_stopping=yes,
        is_starting=no,
    )
    planned = logic.every(
        lambda r: logic.all_of(
            logic.implies(snapshot(r), k.known(r)),
            logic.any_of(snapshot(r), logic.every_partition(lambda p: logic.no(plan(r, p)))),
        )
    )
    planned = logic.all_of(planned, is_disjoint(logic, plan))
    settled = logic.every(lambda r: logic.implies(k.attached(r), logic.any_of(snapshot(r), is_idle(k, r))))
    starts = replace(
        k,
        last_plan=k.plan,
        start_sent=logic.union(k.start_sent, logic.intersection(k.snapshot, k.attached)),
        started=logic.nobody,
        start_response=logic.nobody,
        is_stopping=no,
        is_starting=yes,
    )
    all_stopped = logic.every(lambda r: logic.implies(k.snapshot(r), k.stopped(r)))
    ended = replace(k, is_stopping=no, is_starting=no)
    return (
        KernelEvent("begin", logic.all_of(planned, settled), begun, "wait after an election", planned),
        KernelEvent("send starts", logic.all_of(k.is_stopping, all_stopped), starts, "barrier", k.is_stopping),
        KernelEvent("end", yes, ended),
    )


def channel_events(k: PushKernel, one: Any) -> tuple[KernelEvent[PushKernel], ...]:
    """A consumer handles what it is sent, in order, and its responses arrive."""
    logic = k.logic
    idle = logic.without_one(k.fetching, one)
    stopped = replace(
        k,
        fetching=idle,
        stop_sent=logic.without_one(k.stop_sent, one),
        stop_response=logic.with_one(k.stop_response, one),
    )
    again = replace(k, fetching=idle, stale_response=logic.with_one(k.stale_response, one))
    stale = replace(again, stale_stop=logic.without_one(k.stale_stop, one))
    deaf = replace(stale, stale_response=k.stale_response)
    late = replace(k, fetching=logic.with_one(k.fetching, one), start_sent=logic.without_one(k.start_sent, one))
    started = replace(late, start_response=logic.with_one(k.start_response, one))
    unread = replace(k, stop_response=logic.without_one(k.stop_response, one))
    dropped = replace(k, stale_response=logic.without_one(k.stale_response, one))
    unasked = replace(k, start_response=logic.without_one(k.start_response, one))
    counted = logic.with_one(k.stopped, one)
    awaited = logic.all_of(k.is_stopping, k.snapshot(one))
    # Requests are handled in the order in which they were sent: the Stop under way comes after all of these.
    first = logic.all_of(k.stop_sent(one), logic.no(logic.any_of(k.start_sent(one), k.stale_stop(one))))
    stopping = logic.all_of(k.stop_response(one), awaited)
    starting = logic.all_of(k.start_response(one), k.is_starting)
    return (
        KernelEvent("handle Stop", first, stopped),
        KernelEvent("handle the last stale Stop", k.stale_stop(one), stale),
        KernelEvent("handle a stale Stop", k.stale_stop(one), again),
        KernelEvent("handle a stale Stop that nobody awaits", k.stale_stop(one), deaf),
        KernelEvent("handle Start", k.start_sent(one), started),
        KernelEvent("handle Start without a response that counts", k.start_sent(one), late),
        KernelEvent("count a response to Stop", stopping, replace(unread, stopped=counted)),
        KernelEvent("drop a response to Stop", k.stop_response(one), unread),
        KernelEvent("drop a stale response", k.stale_response(one), dropped),
        KernelEvent(
            "count a stale response",
            logic.any_of(),
            replace(dropped, stopped=counted),
            "attempt numbers",
            logic.all_of(k.stale_response(one), awaited),
        ),
        KernelEvent("count a response to Start", starting, replace(unasked, started=logic.with_one(k.started, one))),
        KernelEvent("drop a response to Start", k.start_response(one), unasked),
    )


# What holds in every state of the kernel.


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
    """S4: once all responses to Start are counted, and while the attempt lasts; who is started has its plan."""
    logic = k.logic

    def is_given(r: Any, p: Any) -> Any:
        busy = logic.any_of(k.fetching(r), k.start_sent(r))
        return logic.implies(logic.all_of(k.is_starting, busy), logic.same(k.last_plan(r, p), k.plan(r, p)))

    def is_true(r: Any) -> Any:
        return logic.implies(logic.all_of(k.is_starting, k.snapshot(r), k.started(r), k.attached(r)), k.fetching(r))

    return logic.every(lambda r: logic.all_of(is_true(r), logic.every_partition(lambda p: is_given(r, p))))


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
