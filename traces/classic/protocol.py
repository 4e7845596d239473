"""The classic protocol as the judge of a trace sees it: topics, lookups, and the steps that coordinators log."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fencepost.model.classic.catalogue import CLASSIC, RULES
from fencepost.model.classic.messages import Request, read_requests
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.groups.messages import EndTxn, InitProducerId, ListGroups
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import encode_body
from fencepost.traces.classic.attribution import build_violation
from fencepost.traces.classic.belief import believe
from fencepost.traces.classic.calm_group import CALM_APIS, transition_fields
from fencepost.traces.classic.failover import LookupCheck, unusual_lookup_fields
from fencepost.traces.classic.log_steps import LogStepCheck
from fencepost.traces.classic.nondeterminism import GroupLifetimes, KnownTopics
from fencepost.traces.classic.overdue import READING_APIS, STAYS, CleanupWatch
from fencepost.traces.classic.partial_trace import LIMITS_OF_ERRORS, ClassicPartialGroup
from fencepost.traces.classic.stepper import ClassicStepper, KnownProducers
from fencepost.traces.events import Body, Event, Header, Operation, Order
from fencepost.traces.judge.diagnosis.diagnosis import Belief, Diagnosis, errors_in
from fencepost.traces.judge.groups.group_judge import SILENCE_GRACE_MS, GroupJudge, OperationRecord, TraceContext
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol, TraceGap
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch, Path
from fencepost.traces.judge.search.search import Search
from fencepost.traces.verdict import CheckResult, TransitionFields, Violation

UNAVAILABLE_RULES = frozenset(name for name in RULES if name.startswith("gate."))
"""Rules by which a coordinator is excused around a failover."""
UNAVAILABLE_REQUIREMENTS = frozenset(
    requirement for name in UNAVAILABLE_RULES for requirement in RULES[name].requirements
) | {"FAILOVER-11"}
"""The requirements that responses by these rules put to the test."""


class ClassicProtocol(JudgedProtocol):
    """Reads one trace of the classic protocol."""

    specification = CLASSIC
    varying_fields = frozenset({"member"})
    """What Apache Kafka itself has in different ways: the member id beside an error is the one sent, or none
    (LAT-11)."""
    collective_apis = frozenset({"JoinGroup"})
    independent_fields = frozenset(
        {
            "assignment",
            "client_host",
            "client_id",
            "epoch",
            "generation",
            "instances",
            "leader",
            "members",
            "metadata",
            "protocol",
            "protocol_type",
            "skip_assignment",
            "time",
            "type",
        }
    )

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.topics = KnownTopics()
        self.lookup = LookupCheck()
        self.log_steps = LogStepCheck(is_doubtful="doubt" in header.implementation)
        self.lifetimes = GroupLifetimes(self.topics.names)
        self.producers = KnownProducers()
        self.cleanups = CleanupWatch(header)

    # --- groups -------------------------------------------------------------------------------------------------

    def repeatable_group(self, operation: Operation) -> str | None:
        """The group of a request of which a calm group has many."""
        if operation.api not in CALM_APIS or operation.broker is not None:
            return None
        group = operation.body.get("group_id")
        return group if isinstance(group, str) else None

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Sequence[Request]:
        """The request as each group sees it that it concerns."""
        api = operation.api
        if api == "TxnOffsetCommit":
            self.producers.learn_commit(operation.body)
        if api == "InitProducerId":
            found: Sequence[Request] = self.producers.requests_in(operation)
        else:
            if api == "EndTxn":
                self.producers.end_transaction(operation.body["producer_id"])
            found = read_requests(api, operation.version, operation.body, operation.handle, groups, self.topics.names)
        if api not in READING_APIS:
            for request in found:
                self.cleanups.observe(request.group, operation)
        return found

    def new_stepper(self, group: str, settings: Settings) -> ClassicStepper:
        """A stepper in a cluster with the topics known; names learned later count, too."""
        cluster = self.topics.cluster(settings)
        return ClassicStepper(
            group,
            self.header.order,
            self.header.grace,
            cluster=cluster,
            producers=self.producers,
            cleanups=self.cleanups,
            topics=self.topics,
            is_delay_told="initial_rebalance_delay" not in self.header.not_told,
        )

    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        """The mismatch in words, and the requirements that it violates."""
        violation = build_violation(group, part, mismatch, rules, self.topics.names, self.topics.client)
        is_shown = violation.rule in ("describe.unknown-group", "list.unknown-group")
        was_deleted = group in self.lifetimes.gone
        if is_shown and not was_deleted and self.cleanups.is_idle(group, self.header.settings, part.operation.sent_at):
            return replace(violation, requirements=STAYS)
        return self.lifetimes.attribute(violation, part.operation)

    def believe(self, diagnosis: Diagnosis, part: GroupOperation, search: Search, time: int) -> Belief | None:
        """Where to go on after what a diagnosis has found."""
        return believe(diagnosis, part, search, time)

    def undecidable_reason(self, part: GroupOperation) -> str:
        """The ids of its topics may not be known."""
        topics = self.topics
        if not topics.has_all_ids and topics.has_unknown_ids(part.operation):
            return "the trace does not tell which topics the ids in it are of"
        return ""

    def silence_grace(self) -> int:
        """None on virtual time. Elsewhere a response may be held up by the network and by busy machines."""
        return 0 if self.header.clock == "virtual" else SILENCE_GRACE_MS + self.header.grace

    def is_handled_by_coordinator(self, part: GroupOperation) -> bool:
        """Transactions end elsewhere, and any node lists groups."""
        if isinstance(part.request, ListGroups):
            return self.header.order is Order.TOTAL
        return not isinstance(part.request, EndTxn | InitProducerId)

    def is_sign_of_life(self, part: GroupOperation) -> bool:
        """A coordinator that is not ready may have forgotten what was parked."""
        response = part.operation.response
        if response is None or errors_in(response) & COORDINATOR_NOT_READY:
            return False
        return self.is_handled_by_coordinator(part)

    def excuse_for(self, part: GroupOperation) -> str:
        """A coordinator in the real world may say at any time that it is not ready (LAT-15)."""
        seen = errors_in(part.operation.response or {})
        if seen and self.header.clock == "wall" and seen <= COORDINATOR_NOT_READY:
            return "the target said that it was not ready"
        unknown = [name for code, names in LIMITS_OF_ERRORS.items() if code in seen for name in names]
        refused = sorted(self.header.not_told.intersection(unknown))
        return f"the target refuses what is beyond {refused[0]}, which nobody told" if refused else ""

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the group that a step of the model is."""
        if step.start is None or step.outcome is None:
            return None
        return transition_fields(step.start, step.request, step.outcome)

    # --- the trace ----------------------------------------------------------------------------------------------

    def check_message(self, event: Event) -> None:
        """Encode the message. Raises ValueError if that fails."""
        message = {name: value for name, value in event.body.items() if not name.startswith("_")}
        encode_body(event.api + event.kind.capitalize(), event.version, message)

    def is_sent_elsewhere(self, operation: Operation, request: Request) -> bool:
        """The request went to another node than the one named for its group."""
        return self.lookup.is_sent_elsewhere(operation, request)

    def check_response(self, operation: Operation, record: OperationRecord) -> Iterable[Violation]:
        """What is wrong with a response to FindCoordinator, or of a node that is not the coordinator."""
        if operation.response is not None:
            if operation.api == "Metadata":
                self.topics.learn_from_metadata(operation.response)
            elif operation.api == "FindCoordinator":
                record.unusual_fields |= unusual_lookup_fields(operation.response)
            elif operation.api == "InitProducerId":
                self.producers.learn_epoch(operation.response)
            elif operation.api == "AddOffsetsToTxn" and operation.response.get("error_code") == Error.NONE:
                self.producers.learn_addition(operation.body)
            self.lifetimes.on_response(operation)
        return self.lookup.check_response(operation)

    def on_unpaired_response(self, body: Body) -> None:
        """An error may be all that shows here that coordinators have moved."""
        if body.get("error_code") in COORDINATOR_NOT_READY:
            self.lookup.reset()

    def on_annotation(self, event: Event) -> Iterator[Violation]:
        """Learn the topics, or check a step that a coordinator logs."""
        if event.api == "topics":
            self.topics.learn_from_annotation(event.body)
        elif event.api == "step":
            yield from self.log_steps.check_step(event)

    def on_restart(self) -> None:
        """Coordinators may have moved."""
        self.lookup.reset()
        self.lifetimes.on_restart()

    def on_move(self) -> None:
        """Coordinators are moving."""
        self.lookup.on_move()

    def on_moved(self, event: Event) -> None:
        """The node of a group is known again, once all nodes have had time to learn of it."""
        body = event.body
        self.lookup.on_moved(body["group"], body["old"], body["new"], event.time + self.header.grace)

    def on_gap(self) -> None:
        """Nothing is known of coordinators and their steps."""
        self.lookup.reset()
        self.log_steps.reset()

    def check_results(self) -> tuple[CheckResult, ...]:
        """The requirements that logged steps put to the test and kept."""
        return self.log_steps.check_results()

    def partial_group(
        self, trace: TraceContext, group: str, gap: TraceGap, judge: GroupJudge | None = None
    ) -> ClassicPartialGroup:
        """A group that is followed again once its state shows."""
        return ClassicPartialGroup(trace, group, gap, judge)

    # --- checks -------------------------------------------------------------------------------------------------

    def is_check_affected(self, fields: frozenset[str], violation: Violation) -> bool:
        """Whether the violation is in what the check is about."""
        wrong = set(violation.fields) - {"error"}
        return bool(fields & wrong or (not fields and wrong - self.independent_fields))

    def is_check_excused(self, requirement: str, rules: frozenset[str]) -> bool:
        """Whether the coordinator was not available, and the requirement is not about that."""
        return bool(UNAVAILABLE_RULES & rules) and requirement not in UNAVAILABLE_REQUIREMENTS
