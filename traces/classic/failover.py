"""Around a failover a coordinator may say that it is not ready (LAT-15), or fail to write, and then the request may or
may not have taken effect (LAT-16)."""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from fencepost.model.classic.coordinator.availability import (
    Unavailable,
    WriteFailure,
    error_response_to,
    handle_write_failure,
    refuse_unavailable,
    write_failure_error,
)
from fencepost.model.classic.coordinator.internal_actions import restart_coordinator, unload_group
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult, respond
from fencepost.model.classic.core.state import Choices, JoinResponse, SyncResponse
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Request
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import EndTxn, InitProducerId, ListGroups
from fencepost.model.wire.primitives import java_abs_hash
from fencepost.traces.classic.nondeterminism import finish_loading, outcomes_over_dialects, unseen_of
from fencepost.traces.classic.stepping import CoordinatorStepper, maybe_expired_offsets
from fencepost.traces.events import Body, Operation, Order
from fencepost.traces.judge.diagnosis.diagnosis import errors_in, format_observed
from fencepost.traces.judge.search.configuration import (
    Configuration,
    Decisions,
    GroupOperation,
    Instant,
    Path,
    TimeInterval,
    high,
)
from fencepost.traces.verdict import Violation

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


# --- Lookups of coordinators, checked against each other and against the nodes' later responses (coordinator.md 2.1).

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
"""Key types."""
NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST = 15, 16, 42
FIRST_BATCHED_VERSION = 4
"""The first version of FindCoordinator with several keys."""
OFFSETS_TOPIC = "__consumer_offsets"


COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})


class LookupCheck:
    """Remembers which node was named for which group, and where the offsets topic lives if the trace shows it.

    While groups move, and until all nodes have had time to learn of it, nothing is judged.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.leaders: dict[int, int] = {}
        self.old_nodes: dict[str, int] = {}
        """By group, the node that coordinated it before it was moved."""
        self.settled_at: float = 0
        """The time, in milliseconds, from which all nodes know who coordinates what."""
        self.broken_by: dict[int, str] = {}
        """Of requests whose node is known: the requirement that it breaks by anything but NOT_COORDINATOR; empty for
        the node named for their group."""

    def reset(self) -> None:
        """Coordinators may have moved."""
        self.nodes.clear()
        self.leaders.clear()

    def on_move(self) -> None:
        """Groups are being moved to other nodes."""
        self.reset()
        self.settled_at = math.inf

    def on_moved(self, group: str, old: int, new: int, settled_at: int) -> None:
        """The node `new` coordinates the group in the place of `old`, which all know at `settled_at`."""
        self.reset()
        self.nodes[group], self.old_nodes[group] = new, old
        self.settled_at = settled_at

    def is_sent_elsewhere(self, operation: Operation, request: Request) -> bool:
        """The request went to another node than the one named for its group, which knows nothing of it."""
        node = self.nodes.get(request.group)
        if operation.broker is None or node is None:
            return False
        is_home = node == operation.broker
        if operation.sent_at >= self.settled_at and not isinstance(request, ListGroups | EndTxn | InitProducerId):
            is_old = operation.broker == self.old_nodes.get(request.group)
            self.broken_by[operation.handle] = "" if is_home else "FAILOVER-18" if is_old else "FIND-10"
        return not is_home

    def check_response(self, operation: Operation) -> Iterable[Violation]:
        """What is wrong with a response."""
        if operation.response is None:
            return ()
        if operation.api == "FindCoordinator":
            is_settled = operation.sent_at >= self.settled_at
            return self.check_find_coordinator(operation, operation.response) if is_settled else ()
        if operation.handle in self.broken_by:
            return self.check_coordinator(operation, operation.response, self.broken_by.pop(operation.handle))
        if operation.api == "Metadata":
            self.learn_leaders(operation.response)
        elif operation.response.get("error_code") in COORDINATOR_NOT_READY:
            self.reset()
        return ()

    def check_coordinator(self, operation: Operation, response: Body, broken_by: str) -> Iterator[Violation]:
        """The response of a known node: it coordinates the group, or it says that it does not. One that does not, and
        says something else, violates `broken_by`."""
        errors = errors_in(response)
        refused = errors == {NOT_COORDINATOR}
        if not broken_by and refused:
            yield self.violation_of(operation, ("place",), "an answer of the node that was named", "FIND-01")
        elif broken_by == "FAILOVER-18" and operation.api in COMMITS and 0 in errors:
            yield self.violation_of(operation, ("accepted", "error"), "NOT_COORDINATOR", "FAILOVER-20")
        elif broken_by and not refused:
            yield self.violation_of(operation, ("error",), "NOT_COORDINATOR", broken_by)

    def check_find_coordinator(self, operation: Operation, response: Body) -> Iterator[Violation]:
        """The response to a lookup."""
        batched = operation.version >= FIRST_BATCHED_VERSION
        if ("coordinators" if batched else "node_id") not in response:
            layout = "a list of coordinators" if batched else "the node at top level"
            yield self.violation_of(operation, ("layout",), layout, "FIND-06")
            return
        keys = list(operation.body.get("coordinator_keys") or ()) if batched else [operation.body.get("key")]
        rows = response["coordinators"] if batched else [response]
        if batched and [row.get("key") for row in rows] != keys:
            yield self.violation_of(operation, ("keys",), f"one entry for each of {keys}, in order", "FIND-05")
            return
        for key, row in zip(keys, rows, strict=True):
            yield from self.check_entry(operation, operation.body.get("key_type", GROUP_KEY), key, row)

    def check_entry(self, operation: Operation, kind: int, key: Any, row: Body) -> Iterator[Violation]:
        """One entry of a response."""
        error = row.get("error_code")
        if kind not in (GROUP_KEY, TRANSACTION_KEY, SHARE_KEY):
            if error != INVALID_REQUEST:
                yield self.violation_of(operation, ("error",), "INVALID_REQUEST", "FIND-07")
            return
        if kind != GROUP_KEY:
            return
        # A coordinator may be gone for a while, but not for the empty id alone.
        if error == NOT_AVAILABLE and not (key == "" and self.nodes):
            self.reset()
            if row.get("node_id") != -1:
                yield self.violation_of(operation, ("node",), "node_id=-1 with COORDINATOR_NOT_AVAILABLE", "FIND-08")
            return
        if error != 0 or not row.get("host") or not 0 < row.get("port", -1) < 65536 or row.get("node_id", -1) < 0:
            wrong = "FIND-09" if key == "" else "FIND-01"
            yield self.violation_of(operation, ("error",), "NONE with node id, host and port", wrong)
            return
        yield from self.check_named_node(operation, key, row["node_id"])

    def check_named_node(self, operation: Operation, key: str, node: int) -> Iterator[Violation]:
        """A node was named: as before, and as the offsets topic says?"""
        if self.nodes.setdefault(key, node) != node:
            yield self.violation_of(operation, ("node",), f"node_id={self.nodes[key]} as before", "FIND-03")
        home = self.leaders.get(java_abs_hash(key) % len(self.leaders)) if self.leaders else None
        if home is not None and home != node:
            yield self.violation_of(operation, ("home",), f"node_id={home}, leader of the group's partition", "FIND-04")

    def learn_leaders(self, response: Body) -> None:
        """Where the partitions of the offsets topic are led."""
        for topic in response.get("topics") or ():
            if topic.get("name") == OFFSETS_TOPIC:
                self.leaders = {row["partition_index"]: row["leader_id"] for row in topic.get("partitions") or ()}

    @staticmethod
    def violation_of(operation: Operation, fields: tuple[str, ...], allowed: str, requirement: str) -> Violation:
        """A violation in words."""
        return Violation(
            sequence=operation.handle - 1,
            group="",
            api=operation.api,
            fields=fields,
            observed=format_observed(operation.response or {}),
            allowed=(allowed,),
            rule="find.coordinator",
            guard="",
            requirements=(requirement,),
        )


def unusual_lookup_fields(response: Body) -> set[str]:
    """The fields of a response to a lookup that are allowed, but not as Apache Kafka has them."""
    rows = response.get("coordinators") or [response]
    named = any(row.get("error_code") != 0 and row.get("node_id", -1) != -1 for row in rows)
    return ({"wire"} if response.get("_findings") else set()) | ({"node"} if named else set())
