"""A rebalance, phase by phase: compute, check, stop, start, wait, write, reset (draft, 7)."""

from collections.abc import Iterable, Mapping, Sequence

from fencepost.model.frozen import evolve
from fencepost.model.logic import Token
from fencepost.model.push.dialect import Command, PushDialect
from fencepost.model.push.group import (
    ConsumerResponse,
    GroupStep,
    PingResponse,
    PushGroup,
    PushRebalance,
    RebalancePhase,
    Registration,
    Sending,
    Share,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
    assign_ranges,
    owners_of,
)

COMPUTE, CHECK, STOP, WAIT_STOP, START, WAIT_START, WRITE, RESET = RebalancePhase
Topics = Mapping[str, Sequence[Token]]
"""The partitions of each topic that exists."""


def take_request(group: PushGroup) -> GroupStep:
    """A handler thread takes the request at the head of its queue."""
    return GroupStep(evolve(group, run=PushRebalance(COMPUTE)), "rebalance.taken")


def compute_assignment(group: PushGroup, topics: Topics) -> GroupStep | None:
    """Take members and partitions, and compute who gets what (steps 1 to 1.3)."""
    run = in_phase(group, COMPUTE)
    if run is None:
        return None
    parts: dict[Token, tuple[Token, ...]] = {one.consumer: () for one in group.members}
    for topic, partitions in sorted(topics.items()):
        threads = {one.consumer: one.interest.threads_for(topic) for one in group.members}
        for consumer, part in assign_ranges(
            partitions, {who: count for who, count in threads.items() if count}
        ).items():
            parts[consumer] += part
    shares = tuple(Share(one.consumer, one.number, parts[one.consumer]) for one in group.members)
    owners = owners_of(shares, [each for _, partitions in sorted(topics.items()) for each in partitions])
    run = PushRebalance(CHECK, run.retries, shares=shares, owners=owners)
    return GroupStep(evolve(group, run=run), "rebalance.computed")


def check_necessity(group: PushGroup, recorded: tuple[Token, ...] | None, dialect: PushDialect) -> GroupStep | None:
    """Compare the map with the `recorded` owners of all partitions, None if there are none (step 3)."""
    run = in_phase(group, CHECK)
    if run is None:
        return None
    matches = recorded is not None and None not in run.owners and recorded == run.owners
    believed = not dialect.trusts_own_map_only or group.completed == run.shares
    if matches and believed:
        return GroupStep(evolve(group, run=evolve(run, phase=RESET)), "rebalance.unnecessary")
    phase = START if dialect.command is Command.RESTART else STOP
    return GroupStep(evolve(group, run=evolve(run, phase=phase)), "rebalance.necessary")


def send_stops(group: PushGroup, attempt: int, dialect: PushDialect) -> GroupStep | None:
    """Send Stop to every member of the snapshot (step 4.1). `attempt` is a number that no earlier message carries."""
    run = in_phase(group, STOP)
    if run is None:
        return None
    waits = dialect.command is Command.STOP_RESPONSE and bool(run.shares)
    pending = registrations(run.shares) if waits else frozenset()
    run = evolve(run, phase=WAIT_STOP if waits else START, attempt=attempt, pending=pending)
    completed = None if dialect.stop_voids_map else group.completed
    sendings = tuple(Sending(share.consumer, share.number, StopRequest(attempt)) for share in run.shares)
    return GroupStep(evolve(group, run=run, completed=completed), "rebalance.stopping", sendings)


def send_starts(group: PushGroup, attempt: int) -> GroupStep | None:
    """Send each member its own part with Start (step 4.2)."""
    run = in_phase(group, START)
    if run is None:
        return None
    run = evolve(run, phase=WAIT_START if run.shares else WRITE, attempt=attempt, pending=registrations(run.shares))
    sendings = tuple(Sending(one.consumer, one.number, StartRequest(attempt, one.partitions)) for one in run.shares)
    return GroupStep(evolve(group, run=run), "rebalance.starting", sendings)


def receive_response(
    group: PushGroup, consumer: Token, number: int, response: ConsumerResponse, dialect: PushDialect
) -> GroupStep:
    """Count a response of a consumer, whose channel has this registration's number, for the attempt under way."""
    run = group.run
    awaited = run is not None and is_awaited(run, response, dialect)
    if run is None or not awaited:
        return GroupStep(group, "response.ping" if isinstance(response, PingResponse) else "response.not-awaited")
    if dialect.numbers_registrations:
        counted = {one for one in run.pending if one == (consumer, number)}
    else:
        counted = {one for one in run.pending if one[0] == consumer}
    if not counted:
        return GroupStep(group, "response.not-awaited")
    pending = run.pending - counted
    if pending:
        return GroupStep(evolve(group, run=evolve(run, pending=pending)), "response.counted")
    after = START if run.phase is WAIT_STOP else WRITE
    rule = "rebalance.all-stopped" if run.phase is WAIT_STOP else "rebalance.all-started"
    return GroupStep(evolve(group, run=evolve(run, phase=after, pending=pending)), rule)


def is_awaited(run: PushRebalance, response: ConsumerResponse, dialect: PushDialect) -> bool:
    """Whether the response counts for the phase that the rebalance is in."""
    if run.phase not in (WAIT_STOP, WAIT_START):
        return False
    if isinstance(response, PingResponse):
        # PUSH-H14: without offsets it has the bytes of a successful StartResponse.
        return not dialect.types_responses and not response.offsets and run.phase is WAIT_START
    if dialect.numbers_attempts and response.attempt != run.attempt:
        return False
    if isinstance(response, StartResponse) and response.error:
        return False
    return isinstance(response, StopResponse if run.phase is WAIT_STOP else StartResponse)


def time_out_wait(group: PushGroup, max_retries: int, dialect: PushDialect) -> GroupStep | None:
    """The wait for responses has timed out: try again, or give up (step 5)."""
    run = group.run
    if run is None or run.phase not in (WAIT_STOP, WAIT_START):
        return None
    return fail_attempt(group, run, max_retries, dialect)


def fail_attempt(group: PushGroup, run: PushRebalance, max_retries: int, dialect: PushDialect) -> GroupStep:
    """The attempt has failed: one more, unless the retries are used up."""
    if run.retries < max_retries:
        again = PushRebalance(COMPUTE, run.retries + 1)
        return GroupStep(evolve(group, run=again), "rebalance.retried")
    if not dialect.releases_on_failure:
        return GroupStep(evolve(group, run=None), "rebalance.failed", ends_thread=True)
    waits = bool(group.members)
    left = evolve(group, run=None, rebalancing=waits, changed=False)
    return GroupStep(left, "rebalance.released", requests=int(waits))


def record_owners(group: PushGroup, max_retries: int, dialect: PushDialect) -> GroupStep | None:
    """Write the new owners to ZooKeeper (step 5). Repaired: only if every registration of the attempt is a member."""
    run = in_phase(group, WRITE)
    if run is None:
        return None
    gone = [one for one in run.shares if not group.has(one.consumer, one.number)]
    if dialect.numbers_registrations and gone:
        return fail_attempt(group, run, max_retries, dialect)
    done = evolve(group, run=evolve(run, phase=RESET), completed=run.shares)
    return GroupStep(done, "rebalance.recorded", owners=run.owners)


def reset_bit(group: PushGroup) -> GroupStep | None:
    """The rebalance has succeeded: clear the bit, or go on where a change was remembered."""
    if in_phase(group, RESET) is None:
        return None
    again = group.changed and bool(group.members)
    done = evolve(group, run=None, rebalancing=again, changed=False)
    return GroupStep(done, "rebalance.again" if again else "rebalance.finished", requests=int(again))


def in_phase(group: PushGroup, phase: RebalancePhase) -> PushRebalance | None:
    """The rebalance under way if it is in this phase."""
    return group.run if group.run is not None and group.run.phase is phase else None


def registrations(shares: Iterable[Share]) -> frozenset[Registration]:
    """Whose shares these are."""
    return frozenset((one.consumer, one.number) for one in shares)
