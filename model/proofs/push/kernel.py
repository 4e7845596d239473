"""The kernel of the repaired push coordinator: who may fetch, who is told to stop or to start.

Registrations and partitions are uninterpreted sorts, a state is a few sets of registrations, so that every question is
in a decidable fragment. Attempts are known by two names: the one under way, and the one whose Starts were sent last.
All earlier ones are alike: their Stops and responses are *stale*.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import z3

REGISTRATION = z3.DeclareSort("Registration")
PARTITION = z3.DeclareSort("Partition")
Set = Callable[[Any], Any]
"""A set of registrations, by the condition of being in it."""
Plan = Callable[[Any, Any], Any]
"""Which registration is to fetch which partition."""


@dataclass(frozen=True, slots=True)
class PushKernel:
    """A state of the kernel."""

    known: Set
    """Registered at some time."""
    attached: Set
    """With a channel that it has not given up."""
    fresh: Set
    """Registered with the present coordinator."""
    member: Set
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


def any_kernel(label: str = "") -> PushKernel:
    """Any state."""

    def relation(name: str, *sorts: Any) -> Any:
        return z3.Function(f"{name}{label}", *sorts, z3.BoolSort())

    sets = {name: relation(name, REGISTRATION) for name in SETS}
    plans = {name: relation(name, REGISTRATION, PARTITION) for name in ("last_plan", "plan")}
    phases = {name: z3.Bool(f"{name}{label}") for name in ("is_stopping", "is_starting")}
    return PushKernel(**sets, **plans, **phases)


def nobody(registration: Any) -> Any:
    """The empty set."""
    return z3.BoolVal(False)


def initial_kernel() -> PushKernel:
    """Nobody has registered."""
    nothing: Any = lambda registration, partition: z3.BoolVal(False)  # noqa: E731
    no = z3.BoolVal(False)
    return PushKernel(**dict.fromkeys(SETS, nobody), last_plan=nothing, plan=nothing, is_stopping=no, is_starting=no)


def with_one(members: Set, one: Any) -> Set:
    """The set with a registration."""
    return lambda r: z3.Or(r == one, members(r))


def without_one(members: Set, one: Any) -> Set:
    """The set without a registration."""
    return lambda r: z3.And(r != one, members(r))


def either(one: Set, other: Set) -> Set:
    """The union."""
    return lambda r: z3.Or(one(r), other(r))


def both(one: Set, other: Set) -> Set:
    """The intersection."""
    return lambda r: z3.And(one(r), other(r))


def for_all(claim: Callable[[Any], Any]) -> Any:
    """The claim holds of every registration."""
    one = z3.FreshConst(REGISTRATION)
    return z3.ForAll([one], claim(one))


def is_disjoint(plan: Plan) -> Any:
    """The plan gives no partition to two registrations."""
    one, other = z3.FreshConst(REGISTRATION), z3.FreshConst(REGISTRATION)
    partition = z3.FreshConst(PARTITION)
    return z3.ForAll(
        [one, other, partition], z3.Implies(z3.And(plan(one, partition), plan(other, partition)), one == other)
    )


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """Something that happens: when it may, and the state after it. `repair` names the guard that the draft lacks, and
    `drafted` is the condition without it."""

    name: str
    guard: Any
    after: PushKernel
    repair: str = ""
    drafted: Any = None


def kernel_events(k: PushKernel) -> tuple[KernelEvent, ...]:
    """Every event, for any registration that it may be about."""
    one = z3.Const("one", REGISTRATION)
    return (*membership_events(k, one), *attempt_events(k), *channel_events(k, one))


def membership_events(k: PushKernel, one: Any) -> tuple[KernelEvent, ...]:
    """Registration, giving up, removal, failover."""
    registered = replace(
        k,
        known=with_one(k.known, one),
        attached=with_one(k.attached, one),
        fresh=with_one(k.fresh, one),
        member=with_one(k.member, one),
    )
    lost = ("attached", "fetching", "start_sent", "stop_sent", "stale_stop", "stop_response", "stale_response")
    kept: dict[str, Any] = {name: without_one(getattr(k, name), one) for name in (*lost, "start_response")}
    gone = replace(k, **kept)
    removed = replace(k, member=without_one(k.member, one))
    no = z3.BoolVal(False)
    failed = replace(k, fresh=nobody, member=nobody, snapshot=nobody, is_stopping=no, is_starting=no)
    return (
        KernelEvent("register", z3.Not(k.known(one)), registered),
        KernelEvent("give up", k.attached(one), gone),
        KernelEvent("remove", z3.And(k.member(one), z3.Not(k.attached(one))), removed, "lease", k.member(one)),
        KernelEvent("fail over", z3.BoolVal(True), failed),
    )


def attempt_events(k: PushKernel) -> tuple[KernelEvent, ...]:
    """An attempt begins with its Stops, goes on to its Starts, and ends."""
    plan = z3.Function("new_plan", REGISTRATION, PARTITION, z3.BoolSort())
    no, yes = z3.BoolVal(False), z3.BoolVal(True)
    told = both(k.member, k.attached)
    begun = replace(
        k,
        snapshot=k.member,
        stopped=nobody,
        plan=plan,
        stop_sent=told,
        stale_stop=either(k.stale_stop, k.stop_sent),
        stop_response=nobody,
        stale_response=either(k.stale_response, k.stop_response),
        is_stopping=yes,
        is_starting=no,
    )
    planned = z3.And(is_disjoint(plan), for_all(lambda r: z3.Implies(z3.Not(k.member(r)), nothing_planned(plan, r))))
    settled = for_all(lambda r: z3.Implies(k.attached(r), k.fresh(r)))
    starts = replace(
        k,
        last_plan=k.plan,
        start_sent=either(k.start_sent, both(k.snapshot, k.attached)),
        started=nobody,
        start_response=nobody,
        is_stopping=no,
        is_starting=yes,
    )
    all_stopped = for_all(lambda r: z3.Implies(k.snapshot(r), k.stopped(r)))
    ended = replace(k, is_stopping=no, is_starting=no)
    return (
        KernelEvent("begin", z3.And(planned, settled), begun, "wait after an election", planned),
        KernelEvent("send starts", z3.And(k.is_stopping, all_stopped), starts, "barrier", k.is_stopping),
        KernelEvent("end", yes, ended),
    )


def nothing_planned(plan: Plan, one: Any) -> Any:
    """The plan gives a registration nothing."""
    partition = z3.FreshConst(PARTITION)
    return z3.ForAll([partition], z3.Not(plan(one, partition)))


def channel_events(k: PushKernel, one: Any) -> tuple[KernelEvent, ...]:
    """A consumer handles what it is sent, in order, and its responses arrive."""
    stopped = replace(
        k,
        fetching=without_one(k.fetching, one),
        stop_sent=without_one(k.stop_sent, one),
        stop_response=with_one(k.stop_response, one),
    )
    stale = replace(
        k,
        fetching=without_one(k.fetching, one),
        stale_stop=without_one(k.stale_stop, one),
        stale_response=with_one(k.stale_response, one),
    )
    started = replace(
        k,
        fetching=with_one(k.fetching, one),
        start_sent=without_one(k.start_sent, one),
        start_response=with_one(k.start_response, one),
    )
    counted = replace(k, stopped=with_one(k.stopped, one), stop_response=without_one(k.stop_response, one))
    miscounted = replace(k, stopped=with_one(k.stopped, one), stale_response=without_one(k.stale_response, one))
    ignored = replace(k, stale_response=without_one(k.stale_response, one))
    confirmed = replace(k, started=with_one(k.started, one), start_response=without_one(k.start_response, one))
    awaited = z3.And(k.is_stopping, k.snapshot(one))
    # Requests are handled in the order in which they were sent: the Stop under way comes after all of these.
    first = z3.And(k.stop_sent(one), z3.Not(k.start_sent(one)), z3.Not(k.stale_stop(one)))
    return (
        KernelEvent("handle Stop", first, stopped),
        KernelEvent("handle a stale Stop", k.stale_stop(one), stale),
        KernelEvent("handle Start", k.start_sent(one), started),
        KernelEvent("count a response to Stop", z3.And(k.stop_response(one), awaited), counted),
        KernelEvent(
            "drop a stale response",
            k.stale_response(one),
            ignored,
        ),
        KernelEvent(
            "count a stale response",
            z3.BoolVal(False),
            miscounted,
            "attempt numbers",
            z3.And(k.stale_response(one), awaited),
        ),
        KernelEvent("count a response to Start", z3.And(k.start_response(one), k.is_starting), confirmed),
    )
