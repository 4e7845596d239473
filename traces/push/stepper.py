"""The steps of a group at its push coordinator: what it does by itself, and what its consumers see and answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.model.frozen import evolve
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import (
    GroupStep,
    PushGroup,
    PushRebalance,
    RegisterRequest,
    Registration,
    Sending,
    Share,
    StartRequest,
    StartResponse,
    StopResponse,
    check_necessity,
    compute_assignment,
    owners_of,
    partitions_changed,
    receive_response,
    record_owners,
    register_consumer,
    remove_consumer,
    reset_bit,
    send_starts,
    send_stops,
    take_request,
    time_out_wait,
    trigger_rebalance,
)
from fencepost.model.push.group import RebalancePhase as Phase
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Instant, Path, ResponseDifference
from fencepost.traces.judge.search.stepper import Stepper, Timer

# A possible state of a group, with what its coordinator has sent and nobody has seen yet.


Partition = tuple[str, str]
"""A topic, and a partition's name."""
WAITING = (Phase.WAIT_STOP, Phase.WAIT_START)
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
    """A possible state of a group at its coordinator."""

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

    def after(self, step: GroupStep) -> "PushWorld":
        """The world after a step of the group."""
        requests, outbox = self.requests + step.requests, self.outbox + step.sendings
        return replace(self, group=step.group, requests=requests, outbox=outbox)

    def number_of(self, attempt: int) -> int | None:
        """The number of an attempt on the wire, None if it was not seen."""
        return dict(self.numbers).get(attempt)

    def holds(self, registration: Registration) -> bool:
        """Whether a channel is held for the attempt under way, and its consumer has seen that: a ping may still come
        before a Stop."""
        unseen = {(each.consumer, each.number) for each in self.outbox}
        return self.run is not None and bool(self.run.pending) and registration not in unseen

    def next_attempt(self) -> int:
        """An attempt that nothing which was seen, or is still to be seen, belongs to."""
        sent = (getattr(each.message, "attempt", 0) for each in self.outbox)
        return 1 + max((*(attempt for attempt, _ in self.numbers), *sent), default=0)

    @property
    def run(self) -> PushRebalance | None:
        """The rebalance under way."""
        return None if self.group is None else self.group.run

    def without(self, closed: frozenset[Registration]) -> "PushWorld":
        """The world without what is sent on channels that are gone."""
        left = tuple(each for each in self.outbox if (each.consumer, each.number) not in closed)
        return self if left == self.outbox else replace(self, outbox=left)


# What the coordinator may do next by itself.


def own_steps(world: PushWorld, at: Surroundings) -> Iterator[tuple[PushWorld, GroupStep | None]]:
    """The steps that the coordinator may take by itself (None: not in this state), each with the world that it is taken
    in, where what the step does not say is as it will be after it."""
    group = world.group
    if group is None:
        return
    if world.changes:
        yield replace(world, changes=world.changes - 1), partitions_changed(group, REPAIRED)
    for member in group.members:
        if member.registration in at.expired:
            yield world, remove_consumer(group, member.consumer, member.number, REPAIRED)
    if group.run is not None:
        yield from rebalance_steps(world, group, group.run, at)
    elif world.requests and at.now >= world.not_before - at.slack:
        yield replace(world, requests=world.requests - 1), take_request(group)


def rebalance_steps(
    world: PushWorld, group: PushGroup, run: PushRebalance, at: Surroundings
) -> Iterator[tuple[PushWorld, GroupStep | None]]:
    """The next steps of the rebalance under way."""
    # Where the limit is not known, each attempt may be the last one of its series.
    retries = at.retries or 0
    if run.phase is Phase.COMPUTE:
        if at.now >= world.not_before - at.slack:
            yield world, compute_assignment(group, wanted_topics(group, at))
    elif run.phase is Phase.CHECK:
        yield world, check_necessity(group, world.owners, REPAIRED)
        # A rebalance that is not necessary harms nobody.
        yield world, check_necessity(group, None, REPAIRED)
    elif run.phase is Phase.STOP:
        begun = replace(world, since=at.now, has_failed=False, due=0)
        yield begun, send_stops(group, world.next_attempt(), REPAIRED)
    elif run.phase is Phase.START:
        yield replace(world, since=at.now), send_starts(group, run.attempt)
    elif run.phase is Phase.WRITE:
        step = record_owners(group, retries, REPAIRED)
        if step is not None and step.owners is not None:
            yield replace(world, owners=step.owners), step
        else:
            yield wait_for_backoff(world, world.since, at), step
    elif run.phase is Phase.RESET:
        yield world, reset_bit(group)
    elif may_give_up(world, run, at):
        # In time, or at any moment since.
        is_due = at.response_timeout is not None and at.now >= world.since + at.response_timeout - at.slack
        failed_at = world.since + (at.response_timeout or 0) * (is_due and not may_fail_early(world, run, at))
        yield wait_for_backoff(world, failed_at, at), time_out_wait(group, retries, REPAIRED)


def wanted_topics(group: PushGroup, at: Surroundings) -> dict[str, tuple[Partition, ...]]:
    """The topics that a member wants."""
    wanted = [member.interest for member in group.members]
    known = at.topics.items()
    return {topic: partitions for topic, partitions in known if any(interest.matches(topic) for interest in wanted)}


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


def must_wait(world: PushWorld, at: Surroundings) -> bool:
    """Whether the coordinator need not do anything yet: waits are over only once their time is known to be."""
    run = world.run
    if run is not None and run.phase in WAITING:
        return at.response_timeout is None or at.now < world.since + at.response_timeout
    return (run is None or run.phase is Phase.COMPUTE) and at.now < world.due


# What consumers answer and see.


def take_response(
    world: PushWorld, registration: Registration, api: str, number: int, error: int
) -> tuple[PushWorld, str]:
    """The world once a consumer's response to Stop or Start is handled, and the rule; `number` is the attempt that it
    echoes."""
    if world.group is None:
        return world, ""
    attempt = next((attempt for attempt, seen in world.numbers if seen == number), STALE)
    response = StopResponse(attempt) if api == "Stop" else StartResponse(attempt, error)
    step = receive_response(world.group, *registration, response, REPAIRED)
    taken = world.after(step)
    is_refusal = bool(error) and taken.run is not None and taken.run.attempt == attempt
    return replace(taken, has_failed=True) if is_refusal else taken, step.rule


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


# The steps as the search takes them.


@dataclass(frozen=True, slots=True)
class PendingRegistration:
    """A registration as its group sees it, and what may become of it for reasons outside its group."""

    request: RegisterRequest
    may_be_accepted: bool
    may_be_refused: bool


@dataclass(slots=True)
class PushStepper(Stepper):
    """Takes the steps of one group. Nearly all of them are spontaneous: a registration is the only request that a
    coordinator answers."""

    at: Surroundings = field(default_factory=lambda: Surroundings(0, 0, {}))
    """The present moment."""

    def initial_state(self) -> PushWorld:
        """Nobody is registered."""
        return PushWorld()

    def armed_timers(self, state: PushWorld) -> Sequence[Timer]:
        """None: what time allows, `own_steps` know."""
        return ()

    def handle_timer(self, configuration: Configuration, timer: Timer, now: Instant) -> Iterator[Configuration]:
        """Raises NotImplementedError: there are no timers."""
        raise NotImplementedError

    def internal_steps(self, configuration: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        """The configurations after one step that the coordinator may take by itself."""
        for before, step in own_steps(configuration.world, self.at):
            if step is not None:
                yield advance(configuration, before.after(step).without(self.at.closed), step.rule)

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a registration: refused, or as the group takes it."""
        pending: PendingRegistration = part.request
        world, request, handle = configuration.world, pending.request, part.operation.handle
        if pending.may_be_refused:
            yield respond(configuration, handle, is_accepted=False)
        if pending.may_be_accepted:
            has_topics = any(request.interest.matches(topic) for topic in self.at.topics)
            # The bounds of session timeouts are looked at before: here the group alone is asked.
            group, step, rule, error = register_consumer(world.group, request, has_topics, 0, REPAIRED)
            told = respond(advance(configuration, replace(world, group=group), rule), handle, is_accepted=not error)
            yield told if step is None else advance(told, told.world.after(step), step.rule)
            if step is None and not error and group is not None:
                # A rebalance of nothing is not asked for, and harms nobody.
                asked = trigger_rebalance(group, REPAIRED)
                yield advance(told, told.world.after(asked), asked.rule)

    def compare_response(self, part: GroupOperation, expected: bool) -> Iterator[ResponseDifference]:
        """Which error a refusal has is left to the coordinator."""
        difference = ResponseDifference()
        error = (part.operation.response or {}).get("error_code", 0)
        difference.require_equal("error_code", expected, not error)
        yield difference


def advance(configuration: Configuration, world: PushWorld, rule: str) -> Configuration:
    """The configuration after a step."""
    return evolve(configuration, world=world, path=Path(rule, 0, configuration.path))


def respond(configuration: Configuration, handle: int, *, is_accepted: bool) -> Configuration:
    """The configuration in which a registration has its response, which is to be seen."""
    return evolve(configuration, predicted=tuple(sorted((*configuration.predicted, (handle, is_accepted)))))
