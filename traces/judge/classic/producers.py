"""Transactional producers: the groups that they commit offsets of, and the effect of a new epoch on these.

The transaction coordinator is not judged. What it tells a producer is taken as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.model.classic.core.state import Choices
from fencepost.model.classic.dialect import Dialect
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import EndTxn, InitProducerId, TxnOffsetCommit
from fencepost.model.groups.offsets import on_init_producer
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from fencepost.traces.judge.search.time_interval import Instant

CONCURRENT_TRANSACTIONS = frozenset({Error.CONCURRENT_TRANSACTIONS})
"""The transaction coordinator, asked beforehand, is still ending the producer's last transaction (KIP-890)."""
FENCED = frozenset({Error.INVALID_PRODUCER_EPOCH})
ADMISSION_RULES = frozenset({"transaction.fenced", "transaction.unknown-group"})
"""Rules that refuse a transactional commit for another reason; which reason comes first is left open."""


@dataclass(slots=True)
class KnownProducers:
    """The producers in a trace."""

    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    """By group and transactional id, the producer id of the last transactional commit."""
    epochs: dict[int, int] = field(default_factory=dict)
    """By producer id, the latest epoch that InitProducerId gave."""

    def learn_commit(self, body: Body) -> None:
        """Learn from a TxnOffsetCommit. Raises `KeyError` if it is not well formed."""
        self.ids[body["group_id"], body["transactional_id"]] = body["producer_id"]

    def learn_epoch(self, response: Body) -> None:
        """Learn from the response to an InitProducerId."""
        producer, epoch = response.get("producer_id"), response.get("producer_epoch")
        if response.get("error_code") == Error.NONE and producer is not None and epoch is not None:
            self.epochs[producer] = max(self.epochs.get(producer, 0), epoch)

    def requests_in(self, operation: Operation) -> tuple[InitProducerId, ...]:
        """An InitProducerId as each group sees it that has offsets of the producer."""
        name, epoch = operation.body["transactional_id"], (operation.response or {}).get("producer_epoch", -1)
        return tuple(
            InitProducerId(group, operation.handle, producer, epoch)
            for (group, other), producer in self.ids.items()
            if other == name
        )


def is_decided_elsewhere(part: GroupOperation) -> bool:
    """Whether the transaction coordinator has refused the request, before any group was asked."""
    request, response = part.request, part.operation.response or {}
    if isinstance(request, TxnOffsetCommit):
        return errors_in(response) == CONCURRENT_TRANSACTIONS
    return isinstance(request, EndTxn) and bool(response.get("error_code"))


def ignore_request(configuration: Configuration, part: GroupOperation) -> Configuration:
    """The configuration after a request that does nothing to the group, whatever its response."""
    return evolve(configuration, matched=configuration.matched | {part.operation.handle})


def begin_epoch(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The configurations after an InitProducerId: also if it has yet to succeed, it may abort the open transaction."""
    request, response = part.request, part.operation.response or {}
    assert isinstance(request, InitProducerId)
    if response.get("error_code") == Error.NONE:
        yield from stepper.step_request(configuration, part, request, now)
        return
    yield ignore_request(configuration, part)
    known = configuration.world.epochs.get(request.producer)
    if known is not None and errors_in(response) <= CONCURRENT_TRANSACTIONS:
        context = stepper.step_context(now, Choices(), Dialect())
        begun, _, _ = on_init_producer(configuration.world, evolve(request, epoch=known + 1), context)
        if begun is not configuration.world:
            yield evolve(ignore_request(configuration, part), world=begun)


def refuse_by_epoch(
    stepper: CoordinatorStepper,
    producers: KnownProducers,
    configuration: Configuration,
    part: GroupOperation,
    now: Instant,
) -> Iterator[Configuration]:
    """More ways to refuse a transactional commit of an old epoch than the group's own knowledge of the producer.

    A transaction coordinator that is asked beforehand knows newer epochs (KIP-890). One that is not is asked after the
    member and the generation were checked.
    """
    request = part.request
    assert isinstance(request, TxnOffsetCommit)
    known = configuration.world.epochs.get(request.producer, request.epoch)
    if request.epoch < known:
        for after in stepper.step_request(configuration, part, evolve(request, epoch=known), now):
            if after.path is not None and after.path.rule in ADMISSION_RULES:
                yield after
        return
    is_old = request.epoch < producers.epochs.get(request.producer, request.epoch)
    if is_old and errors_in(part.operation.response or {}) == FENCED:
        yield ignore_request(configuration, part)
