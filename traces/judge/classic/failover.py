"""Around a failover a coordinator may say that it is not ready (LAT-15), or fail to write, and then the request may or
may not have taken effect (LAT-16)."""

from collections.abc import Callable, Iterator
from itertools import product

from fencepost.model.classic.coordinator.availability import Unavailable, error_response_to, refuse_unavailable
from fencepost.model.classic.coordinator.internal_actions import restart_coordinator, unload_group
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult, respond
from fencepost.model.classic.coordinator.write_failures import WriteFailure, handle_write_failure, write_failure_error
from fencepost.model.classic.core.state import Choices, JoinResponse, SyncResponse
from fencepost.model.classic.dialect import Dialect
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.judge.classic.offset_expiry import maybe_expired_offsets
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.unseen import finish_loading, unseen_of
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, Decisions, GroupOperation, Path
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high

FAILED_WRITE_ERRORS = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.UNKNOWN_SERVER_ERROR})
"""Errors of a request that may have taken effect (LAT-16)."""
REFUSALS = frozenset(Error) - {Error.NONE}
"""Errors that may end a parked request when its group goes to another node; Apache Kafka has NOT_COORDINATOR."""
UNINFORMATIVE_RULES = frozenset({"gate.loading.heartbeat", "gate.loading.sync", "gate.elsewhere.list"})
"""Rules of the gate that say nothing of it."""


def handle_during_failover(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The request as handled by a coordinator that is not ready, or whose log fails."""
    if not stepper.was_restarted or part.operation.response is None:
        return
    errors = errors_in(part.operation.response)
    if unseen_of(configuration).loading or errors & COORDINATOR_NOT_READY:
        yield from prefer_usual(
            handle_when_unavailable(stepper, configuration, part, now), configuration
        ) or handle_when_not_ready(stepper, configuration, part, now)
    if errors & FAILED_WRITE_ERRORS:
        yield from handle_with_failed_write(stepper, configuration, part, now)


def prefer_usual(configurations: Iterator[Configuration], before: Configuration) -> list[Configuration]:
    """The configurations in which nothing is unusual, or else all of them."""
    kept = list(configurations)
    return [each for each in kept if each.unusual == before.unusual] or kept


def handle_when_unavailable(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The request meets a coordinator that does not look at the group: what it may say then, and only then."""
    for gate in Unavailable:

        def run(dialect: Dialect, gate: Unavailable = gate) -> StepResult:
            context = stepper.step_context(now, Choices(), dialect)
            return refuse_unavailable(configuration.world, part.request, gate, context, stepper.cluster)

        for outcome, decisions in outcomes_over_dialects(run, configuration.decisions):
            by_gate = outcome.rule.startswith("gate.") and outcome.rule not in UNINFORMATIVE_RULES
            if unseen_of(configuration).loading or by_gate:
                yield from match_refusal(stepper, configuration, part, outcome, decisions)


def handle_when_not_ready(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The request gets one of the errors in place of any other response (LAT-15)."""
    for error in COORDINATOR_NOT_READY:

        def run(dialect: Dialect, error: Error = error) -> StepResult:
            told = error_response_to(part.request, error, dialect, stepper.cluster)
            return respond(configuration.world, part.request, told, "gate.not-ready")

        for outcome, decisions in outcomes_over_dialects(run, configuration.decisions):
            yield from match_refusal(stepper, configuration, part, outcome, decisions)


def match_refusal(
    stepper: CoordinatorStepper,
    configuration: Configuration,
    part: GroupOperation,
    outcome: StepResult,
    decisions: Decisions,
) -> Iterator[Configuration]:
    """The configuration after such a response, if it is the one seen."""
    number = part.operation.handle
    (reply,) = outcome.replies
    for difference in stepper.compare_response(part, reply.response):
        if not difference.required:
            trail = Path(outcome.rule, number, configuration.path)
            after = evolve(configuration, matched=configuration.matched | {number}, decisions=decisions, path=trail)
            yield stepper.take_over(after, number, difference)


def handle_with_failed_write(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The request is handled, but its write fails; it may be on the log all the same (LAT-16)."""
    ready = finish_loading(configuration, now)
    choices = Choices(
        stepper.member_id_for(part.operation), None, ready.world.group.protocol if ready.world.group else None
    )
    seen = errors_in(part.operation.response or {}) & FAILED_WRITE_ERRORS
    for failure, taken in product(WriteFailure, (False, True)):

        def run(dialect: Dialect, failure: WriteFailure = failure, taken: bool = taken) -> StepResult:
            context = stepper.step_context(now, choices, dialect)
            outcome = None
            if write_failure_error(failure, part.request, dialect) in seen:
                outcome = handle_write_failure(
                    ready.world, part.request, failure, context, stepper.cluster, reached_log=taken
                )
            return outcome or StepResult(ready.world, (), "")

        for outcome, decisions in outcomes_over_dialects(run, configuration.decisions):
            if outcome.replies:
                for after in stepper.apply_outcome(ready, outcome, part.operation.handle, now):
                    yield evolve(after, decisions=decisions)


def steps_of_a_move(
    stepper: CoordinatorStepper, configuration: Configuration, time: int, wanted: int
) -> Iterator[Configuration]:
    """The group goes to another node and is loaded there, unseen: while the trace says that groups are being moved, and
    where a request that was parked is sent there."""
    if stepper.is_moving:
        if not unseen_of(configuration).is_moved:
            for after in move_group(stepper, configuration, time):
                yield evolve(after, unseen=evolve(unseen_of(after), is_moved=True))
        return
    part, group = stepper.open_operations.get(wanted), configuration.world.group
    if not stepper.was_restarted or part is None or group is None or part.operation.response is None:
        return
    parked = any(wanted in (slot.join, slot.sync) for slot in group.slots)
    if parked and errors_in(part.operation.response) == {Error.NOT_COORDINATOR}:
        yield from move_group(stepper, configuration, time)


def move_group(stepper: CoordinatorStepper, configuration: Configuration, time: int) -> Iterator[Configuration]:
    """The configurations after the group went to another node, by `time`, and was loaded there."""
    now: Instant = (
        time if stepper.order is Order.TOTAL else TimeInterval(configuration.clock, max(configuration.clock, time))
    )
    retention = stepper.cluster.settings.offsets_retention
    unloaded = accept_refusals(stepper, unload_group(configuration.world))
    for gone in stepper.apply_outcome(configuration, unloaded, 0, now):
        for outcome, decisions in outcomes_over_dialects(
            load_in_dialect(stepper, configuration.world, now), configuration.decisions
        ):
            yield evolve(
                gone,
                world=outcome.state,
                decisions=decisions,
                unseen=evolve(
                    unseen_of(gone),
                    loading=True,
                    maybe_expired=maybe_expired_offsets(configuration, outcome.state, high(now), retention),
                ),
                path=Path(outcome.rule, 0, gone.path),
            )


def accept_refusals(stepper: CoordinatorStepper, outcome: StepResult) -> StepResult:
    """The outcome of unloading a group, with the error that each parked request was refused with (FAILOVER-11)."""
    replies = tuple(accept_refusal(stepper, reply) for reply in outcome.replies)
    return evolve(outcome, replies=replies)


def accept_refusal(stepper: CoordinatorStepper, reply: Reply) -> Reply:
    """The response to a parked request, with the error that was seen, if it is one."""
    part = stepper.open_operations.get(reply.handle)
    error = (part.operation.response or {}).get("error_code", 0) if part is not None else 0
    if error not in REFUSALS or not isinstance(reply.response, JoinResponse | SyncResponse):
        return reply
    return evolve(reply, response=evolve(reply.response, error=Error(error)))


def load_in_dialect(stepper: CoordinatorStepper, world: GroupState, now: Instant) -> Callable[[Dialect], StepResult]:
    """Loading this world, in whatever dialect."""
    return lambda dialect: restart_coordinator(world, stepper.step_context(now, Choices(), dialect))
