"""One possible state of a group at its coordinator, and what the coordinator may do next by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import (
    GroupStep,
    PushGroup,
    PushRebalance,
    RebalancePhase,
    Registration,
    Sending,
    Share,
    StartRequest,
    StartResponse,
    StopResponse,
    owners_of,
    partitions_changed,
    remove_consumer,
)
from fencepost.model.push.rebalance import (
    check_necessity,
    compute_assignment,
    receive_response,
    record_owners,
    reset_bit,
    send_starts,
    send_stops,
    take_request,
    time_out_wait,
)

Partition = tuple[str, str]
"""A topic, and a partition's name."""
PHASE = RebalancePhase
STALE = -1
"""The attempt of a response that echoes no attempt under way."""
NEVER = 1 << 62
MAX_NUMBERS = 8
"""How many of the newest attempts are remembered."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the group at a moment. Times are milliseconds of the trace; a limit that is None is not
    known, and then anything may have come of it."""

    now: int
    slack: int
    topics: Mapping[str, tuple[Partition, ...]]
    closed: frozenset[Registration] = frozenset()
    """The registrations whose channel is gone."""
    expired: frozenset[Registration] = frozenset()
    """Those whose lease may be over."""
    response_timeout: int | None = None
    backoff: int | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class PushWorld:
    """A state that explains what was seen so far; `trail` has the rules of the steps since the last observation."""

    group: PushGroup | None = None
    requests: int = 0
    """How many rebalances are queued."""
    outbox: tuple[Sending, ...] = ()
    """What was sent and not seen yet."""
    numbers: tuple[tuple[int, int], ...] = ()
    """Attempts with their numbers on the wire, as far as they are seen."""
    owners: tuple[object, ...] | None = None
    """As recorded in ZooKeeper by this coordinator."""
    changes: int = 0
    """How many changes of partitions the listener has yet to hear of."""
    since: int = 0
    """When the wait for responses began, at the earliest."""
    not_before: int = 0
    """When the next attempt may begin."""
    due: int = 0
    """When it must begin at the latest, if there is a reason for one."""
    has_failed: bool = False
    """A member has refused the attempt."""
    answers: frozenset[tuple[int, bool]] = frozenset()
    """The registrations that were handled and whose responses are not seen yet, with whether they are accepted."""
    trail: tuple[str, ...] = field(default=(), compare=False)

    def after(self, step: GroupStep) -> "PushWorld":
        """The world after a step of the group."""
        return replace(
            self,
            group=step.group,
            requests=self.requests + step.requests,
            outbox=self.outbox + step.sendings,
            trail=(*self.trail, step.rule),
        )

    def number_of(self, attempt: int) -> int | None:
        """The number of an attempt on the wire, None if it was not seen."""
        return dict(self.numbers).get(attempt)

    def holds(self, registration: Registration) -> bool:
        """Whether a channel is held for the attempt under way, and its consumer has seen that: a ping may still come
        before a Stop."""
        return (
            self.run is not None
            and bool(self.run.pending)
            and not any((each.consumer, each.number) == registration for each in self.outbox)
        )

    def next_attempt(self) -> int:
        """An attempt that nothing which was seen, or is still to be seen, belongs to."""
        sent = (getattr(each.message, "attempt", 0) for each in self.outbox)
        return 1 + max((*(attempt for attempt, _ in self.numbers), *sent), default=0)

    def attempt_of(self, number: int) -> int:
        """The attempt with this number on the wire."""
        return next((attempt for attempt, seen in self.numbers if seen == number), STALE)

    @property
    def run(self) -> PushRebalance | None:
        """The rebalance under way."""
        return None if self.group is None else self.group.run


def own_steps(world: PushWorld, at: Surroundings) -> Iterator[PushWorld]:
    """The worlds after one step that the coordinator may take by itself."""
    group = world.group
    if group is None:
        return
    if world.changes:
        yield replace(world.after(partitions_changed(group, REPAIRED)), changes=world.changes - 1)
    for member in group.members:
        if member.registration in at.expired:
            step = remove_consumer(group, member.consumer, member.number, REPAIRED)
            if step is not None:
                yield world.after(step)
    if group.run is None:
        if world.requests and at.now >= world.not_before - at.slack:
            yield replace(world.after(take_request(group)), requests=world.requests - 1)
        return
    yield from rebalance_steps(world, group, group.run, at)


def rebalance_steps(world: PushWorld, group: PushGroup, run: PushRebalance, at: Surroundings) -> Iterator[PushWorld]:
    """The worlds after the next step of the rebalance under way."""
    step: GroupStep | None
    # Where the limit is not known, each attempt may be the last one of its series.
    retries = at.retries or 0
    if run.phase is PHASE.COMPUTE:
        step = compute_assignment(group, wanted_topics(group, at)) if at.now >= world.not_before - at.slack else None
        if step is not None:
            yield world.after(step)
    elif run.phase is PHASE.CHECK:
        step = check_necessity(group, world.owners, REPAIRED)
        # A rebalance that is not necessary harms nobody.
        for each in (step, check_necessity(group, None, REPAIRED)):
            if each is not None:
                yield world.after(each)
    elif run.phase is PHASE.STOP:
        step = send_stops(group, world.next_attempt(), REPAIRED)
        if step is not None:
            sent = replace(world.after(step), since=at.now, has_failed=False, due=0)
            yield forget_closed(sent, at.closed)
    elif run.phase is PHASE.START:
        step = send_starts(group, run.attempt)
        if step is not None:
            yield forget_closed(replace(world.after(step), since=at.now), at.closed)
    elif run.phase is PHASE.WRITE:
        step = record_owners(group, retries, REPAIRED)
        if step is not None:
            written = replace(world.after(step), owners=step.owners if step.owners is not None else world.owners)
            yield wait_for_backoff(written, world.since, at) if step.owners is None else written
    elif run.phase is PHASE.RESET:
        step = reset_bit(group)
        if step is not None:
            yield world.after(step)
    elif may_give_up(world, run, at):
        step = time_out_wait(group, retries, REPAIRED)
        if step is not None:
            # In time, or at any moment since.
            is_due = at.response_timeout is not None and at.now >= world.since + at.response_timeout - at.slack
            failed_at = world.since + (at.response_timeout or 0) * (is_due and not may_fail_early(world, run, at))
            yield wait_for_backoff(world.after(step), failed_at, at)


def wanted_topics(group: PushGroup, at: Surroundings) -> dict[str, tuple[Partition, ...]]:
    """The topics that a member wants."""
    wanted = [member.interest for member in group.members]
    return {
        topic: partitions
        for topic, partitions in at.topics.items()
        if any(interest.matches(topic) for interest in wanted)
    }


def may_give_up(world: PushWorld, run: PushRebalance, at: Surroundings) -> bool:
    """Whether the wait for responses may be over without them: in time, or as one will never come. What was sent was
    seen by then."""
    if world.outbox:
        return False
    if at.response_timeout is None or may_fail_early(world, run, at):
        return True
    return at.now >= world.since + at.response_timeout - at.slack


def may_fail_early(world: PushWorld, run: PushRebalance, at: Surroundings) -> bool:
    """Whether it is certain before the end of the wait that not all responses will come."""
    return world.has_failed or bool(run.pending & at.closed)


def wait_for_backoff(world: PushWorld, failed_at: int, at: Surroundings) -> PushWorld:
    """The world in which an attempt has failed, between this moment and now."""
    if at.backoff is None:
        return replace(world, due=NEVER)
    return replace(world, not_before=failed_at + at.backoff, due=at.now + at.backoff)


def forget_closed(world: PushWorld, closed: frozenset[Registration]) -> PushWorld:
    """The world without what is sent on channels that are gone."""
    left = tuple(each for each in world.outbox if (each.consumer, each.number) not in closed)
    return world if left == world.outbox else replace(world, outbox=left)


def take_response(world: PushWorld, registration: Registration, api: str, number: int, error: int) -> PushWorld:
    """The world once a consumer's response to Stop or Start is handled; `number` is the attempt that it echoes."""
    if world.group is None:
        return world
    attempt = world.attempt_of(number)
    response = StopResponse(attempt) if api == "Stop" else StartResponse(attempt, error)
    taken = world.after(receive_response(world.group, *registration, response, REPAIRED))
    is_refusal = bool(error) and world.run is not None and world.run.attempt == attempt
    return replace(taken, has_failed=True) if is_refusal else taken


def explain_request(
    world: PushWorld, registration: Registration, api: str, number: int, partitions: tuple[object, ...] = ()
) -> PushWorld | None:
    """The world in which a Stop or Start that was seen is the next one sent on its channel; None if it cannot be."""
    place = next((n for n, each in enumerate(world.outbox) if (each.consumer, each.number) == registration), None)
    if place is None:
        return None
    message = world.outbox[place].message
    if (api == "Start") is not isinstance(message, StartRequest):
        return None
    attempt = getattr(message, "attempt", 0)
    known = world.number_of(attempt)
    if known is None and number not in dict(world.numbers).values():
        world = replace(world, numbers=(*world.numbers, (attempt, number))[-MAX_NUMBERS:])
    elif known != number:
        return None
    seen = replace(world, outbox=world.outbox[:place] + world.outbox[place + 1 :])
    return take_share(seen, registration, attempt, partitions) if isinstance(message, StartRequest) else seen


def take_share(
    world: PushWorld, registration: Registration, attempt: int, partitions: tuple[object, ...]
) -> PushWorld | None:
    """The world in which a member's share is the one that was seen: which assignment it is, is open (PUSH-34). None if
    it overlaps another one of the attempt that was seen."""
    group, run = world.group, world.run
    if group is None or run is None or run.attempt != attempt:
        return world
    unseen = {(each.consumer, each.number) for each in world.outbox if isinstance(each.message, StartRequest)}
    for share in run.shares:
        other = (share.consumer, share.number)
        if other != registration and other not in unseen and set(share.partitions) & set(partitions):
            return None
    shares = tuple(
        Share(share.consumer, share.number, partitions) if (share.consumer, share.number) == registration else share
        for share in run.shares
    )
    order = [partition for share in run.shares for partition in share.partitions]
    told = run if shares == run.shares else replace(run, shares=shares, owners=owners_of(shares, order))
    return replace(world, group=replace(group, run=told))
