"""The kernel of the repaired push coordinator: who may fetch, who is told to stop or to start."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from fencepost.model.logic import Token, Truth, and_, not_, or_
from fencepost.model.relations import FiniteRelation, KernelEvent, Relation, is_exclusive
from fencepost.model.statement import implies

# A state is a few sets of registrations. Attempts are known by two names: the one under way, and the one whose Starts
# were sent last. All earlier ones are alike: their Stops and responses are *stale*. The same events run on finite
# sets, where tests hold the handlers against them, and in a proof on sets of any size.


Registrations: TypeAlias = Relation
"""A set of registrations."""
Plan: TypeAlias = Relation
"""(r, p): registration r is to fetch partition p."""
NOBODY = FiniteRelation()


@dataclass(frozen=True, slots=True)
class PushKernel:
    """A state of the kernel; at first nobody has registered."""

    known: Registrations = NOBODY
    """Registered at some time."""
    attached: Registrations = NOBODY
    """With a channel that it has not given up."""
    fresh: Registrations = NOBODY
    """Registered with the present coordinator, and attached."""
    member: Registrations = NOBODY
    """Of the group at the present coordinator."""
    snapshot: Registrations = NOBODY
    """The members of the attempt under way."""
    stopped: Registrations = NOBODY
    """Whose response to the Stop under way was counted."""
    started: Registrations = NOBODY
    """Whose response to the Start under way was counted."""
    fetching: Registrations = NOBODY
    """Running the fetchers of the last Start it was sent."""
    start_sent: Registrations = NOBODY
    """With a Start in its channel."""
    stop_sent: Registrations = NOBODY
    stale_stop: Registrations = NOBODY
    stop_response: Registrations = NOBODY
    stale_response: Registrations = NOBODY
    start_response: Registrations = NOBODY
    """Of the attempt whose Starts were sent last."""
    last_plan: Plan = NOBODY
    """Of that attempt."""
    plan: Plan = NOBODY
    """Of the attempt under way."""
    is_stopping: Truth = False
    is_starting: Truth = False


PLANS = ("last_plan", "plan")
SETS = tuple(one.name for one in fields(PushKernel) if one.default is NOBODY and one.name not in PLANS)
"""The fields that are plans, and those that are sets."""
Events: TypeAlias = tuple[KernelEvent[PushKernel], ...]


def with_one(k: PushKernel, one: Token, *names: str) -> PushKernel:
    """The registration is in these sets."""
    sets: dict[str, Any] = {name: getattr(k, name).plus(one) for name in names}
    return replace(k, **sets)


def without_one(k: PushKernel, one: Token, *names: str) -> PushKernel:
    """The registration is in none of these sets."""
    sets: dict[str, Any] = {name: getattr(k, name).without(one) for name in names}
    return replace(k, **sets)


def empty_sets(k: PushKernel, *names: str) -> PushKernel:
    """Nobody is in these sets."""
    sets: dict[str, Any] = {name: getattr(k, name).empty() for name in names}
    return replace(k, **sets)


def kernel_events(k: PushKernel, one: Token, plan: Plan, snapshot: Registrations) -> Events:
    """Every event that is about this registration, or begins an attempt with this plan for this snapshot."""
    return (*membership_events(k, one), *attempt_events(k, plan, snapshot), *channel_events(k, one))


def membership_events(k: PushKernel, one: Token) -> Events:
    """Registration, giving up, removal, failover."""
    lost = ("attached", "fresh", "fetching", "start_sent", "stop_sent", "stale_stop")
    answers = ("stop_response", "stale_response", "start_response")
    forgotten = empty_sets(k, "fresh", "member", "snapshot", "stopped", "started", "stop_sent", *answers)
    failed = replace(forgotten, stale_stop=k.stale_stop.plus_all((), k.stop_sent), is_stopping=False, is_starting=False)
    may_go = and_(k.member.has(one), not_(k.attached.has(one)))
    return (
        KernelEvent("register", not_(k.known.has(one)), with_one(k, one, "known", "attached", "fresh", "member")),
        KernelEvent("give up", k.attached.has(one), without_one(k, one, *lost, *answers)),
        KernelEvent("remove", may_go, without_one(k, one, "member"), "lease", k.member.has(one)),
        KernelEvent("fail over", True, failed),
    )


def is_idle(k: PushKernel, one: Token) -> Truth:
    """The registration fetches nothing, and no Start is under way to it."""
    return not_(or_(k.fetching.has(one), k.start_sent.has(one)))


def attempt_events(k: PushKernel, plan: Plan, snapshot: Registrations) -> Events:
    """An attempt begins with its Stops, goes on to its Starts, and ends."""
    begun = replace(
        empty_sets(k, "stopped", "started", "stop_response", "start_response"),
        snapshot=snapshot,
        plan=plan,
        stop_sent=snapshot.common(k.attached),
        stale_stop=k.stale_stop.plus_all((), k.stop_sent),
        stale_response=k.stale_response.plus_all((), k.stop_response),
        is_stopping=True,
        is_starting=False,
    )
    planned = and_(snapshot.every(k.known.has), plan.every(lambda r, p: snapshot.has(r)), is_exclusive(plan))
    settled = k.attached.every(lambda r: or_(snapshot.has(r), is_idle(k, r)))
    starts = replace(
        empty_sets(k, "started", "start_response"),
        last_plan=k.plan,
        start_sent=k.start_sent.plus_all((), k.snapshot.common(k.attached)),
        is_stopping=False,
        is_starting=True,
    )
    all_stopped = k.snapshot.every(k.stopped.has)
    ended = replace(k, is_stopping=False, is_starting=False)
    return (
        KernelEvent("begin", and_(planned, settled), begun, "wait after an election", planned),
        KernelEvent("send starts", and_(k.is_stopping, all_stopped), starts, "barrier", k.is_stopping),
        KernelEvent("end", True, ended),
    )


def channel_events(k: PushKernel, one: Token) -> Events:
    """A consumer handles what it is sent, in order, and its responses arrive."""
    idle = without_one(k, one, "fetching")
    again = with_one(idle, one, "stale_response")
    late = with_one(without_one(k, one, "start_sent"), one, "fetching")
    unread = without_one(k, one, "stop_response")
    dropped = without_one(k, one, "stale_response")
    unasked = without_one(k, one, "start_response")
    awaited = and_(k.is_stopping, k.snapshot.has(one))
    # Requests are handled in the order in which they were sent: the Stop under way comes after all of these.
    first = and_(k.stop_sent.has(one), not_(or_(k.start_sent.has(one), k.stale_stop.has(one))))
    stopped = with_one(without_one(idle, one, "stop_sent"), one, "stop_response")
    stopping = and_(k.stop_response.has(one), awaited)
    starting = and_(k.start_response.has(one), k.is_starting)
    stale = k.stale_stop.has(one)
    return (
        KernelEvent("handle Stop", first, stopped),
        KernelEvent("handle the last stale Stop", stale, without_one(again, one, "stale_stop")),
        KernelEvent("handle a stale Stop", stale, again),
        KernelEvent("handle a stale Stop that nobody awaits", stale, without_one(idle, one, "stale_stop")),
        KernelEvent("handle Start", k.start_sent.has(one), with_one(late, one, "start_response")),
        KernelEvent("handle Start without a response that counts", k.start_sent.has(one), late),
        KernelEvent("count a response to Stop", stopping, with_one(unread, one, "stopped")),
        KernelEvent("drop a response to Stop", k.stop_response.has(one), unread),
        KernelEvent("drop a stale response", k.stale_response.has(one), dropped),
        KernelEvent(
            "count a stale response",
            False,
            with_one(dropped, one, "stopped"),
            "attempt numbers",
            and_(k.stale_response.has(one), awaited),
        ),
        KernelEvent("count a response to Start", starting, with_one(unasked, one, "started")),
        KernelEvent("drop a response to Start", k.start_response.has(one), unasked),
    )


# What holds in every state of the kernel.


def invariants(k: PushKernel) -> dict[str, Truth]:
    """Every invariant by its name; together they are inductive."""
    return {
        "push.one-owner": one_owner(k),
        "push.stopped-first": k.start_sent.every(lambda r: not_(k.fetching.has(r))),
        "push.true-map": true_map(k),
        "plans": and_(is_exclusive(k.last_plan), is_exclusive(k.plan)),
        "channels": channels(k),
        "members": members(k),
        "stopping": stopping(k),
        "starting": starting(k),
    }


def one_owner(k: PushKernel) -> Truth:
    """S2."""

    def apart(r: Token, p: Token, x: Token, q: Token) -> Truth:
        return implies(and_(k.fetching.has(r), k.fetching.has(x), p == q), r == x)

    return k.last_plan.every(lambda r, p: k.last_plan.every(lambda x, q: apart(r, p, x, q)))


def true_map(k: PushKernel) -> Truth:
    """S4: once all responses to Start are counted, and while the attempt lasts; who is started has its plan."""
    is_started = k.started.every(
        lambda r: implies(and_(k.is_starting, k.snapshot.has(r), k.attached.has(r)), k.fetching.has(r))
    )

    def is_given(r: Token) -> Truth:
        return and_(k.is_starting, not_(is_idle(k, r)))

    return and_(
        is_started,
        k.plan.every(lambda r, p: implies(is_given(r), k.last_plan.has(r, p))),
        k.last_plan.every(lambda r, p: implies(is_given(r), k.plan.has(r, p))),
    )


def channels(k: PushKernel) -> Truth:
    """What is under way belongs to a consumer that is attached, and who is attached has registered."""
    stops = (k.stop_sent, k.stale_stop, k.stop_response, k.stale_response)
    under_way = (k.fetching, k.start_sent, k.start_response, *stops, k.fresh)
    registered = (k.attached, k.member, k.snapshot, k.stopped, k.started)
    return and_(*(one.every(k.attached.has) for one in under_way), *(one.every(k.known.has) for one in registered))


def members(k: PushKernel) -> Truth:
    """Who is attached to the present coordinator is a member; who is attached and not in the attempt has nothing."""
    busy = or_(k.is_stopping, k.is_starting)
    return and_(
        not_(and_(k.is_stopping, k.is_starting)),
        k.fresh.every(k.member.has),
        k.attached.every(lambda r: implies(and_(busy, not_(k.snapshot.has(r))), is_idle(k, r))),
    )


def stopping(k: PushKernel) -> Truth:
    """Who has handled the Stop under way fetches nothing, and nothing makes it start."""

    def is_quiet(r: Token) -> Truth:
        return and_(is_idle(k, r), not_(or_(k.stop_sent.has(r), k.stale_stop.has(r))))

    def has_answered(r: Token) -> Truth:
        return and_(k.is_stopping, or_(k.stopped.has(r), k.stop_response.has(r)), k.attached.has(r))

    return k.snapshot.every(lambda r: implies(has_answered(r), is_quiet(r)))


def starting(k: PushKernel) -> Truth:
    """Once Starts are sent, no Stop is under way to a member of the attempt, and who has answered its Start fetches."""

    def is_told(r: Token) -> Truth:
        return and_(
            not_(or_(k.stop_sent.has(r), k.stale_stop.has(r))),
            implies(or_(k.started.has(r), k.start_response.has(r)), k.fetching.has(r)),
        )

    return k.snapshot.every(lambda r: implies(and_(k.is_starting, k.attached.has(r)), is_told(r)))
