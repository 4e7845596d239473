"""The classic protocol for the search: requests and timers of the model, and the actions around them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.model.classic.core.state import Choices, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import EndTxn, InitProducerId, TxnOffsetCommit
from fencepost.model.groups.offsets import on_init_producer
from fencepost.traces.classic.calm_group import CalmGroup, CalmStep, is_calm, take_fast_path
from fencepost.traces.classic.failover import handle_during_failover, load_in_dialect, move_group, steps_of_a_move
from fencepost.traces.classic.nondeterminism import (
    KnownTopics,
    Unseen,
    finish_loading,
    outcomes_over_dialects,
    unseen_of,
    with_group,
)
from fencepost.traces.classic.overdue import READING_APIS, CleanupWatch, keep_overdue_group
from fencepost.traces.classic.stepping import (
    CoordinatorStepper,
    is_commutative,
    may_commute,
    maybe_expired_offsets,
    states_after_cleanup,
)
from fencepost.traces.events import Body, Operation, Order
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.search.configuration import (
    Configuration,
    GroupOperation,
    Instant,
    Mismatch,
    Path,
    Response,
    TimeInterval,
    high,
)

# --- Transactional producers: the groups that they commit offsets of, and the effect of a new epoch on these.
#
# The transaction coordinator is not judged. What it tells a producer is taken as it is.

CONCURRENT_TRANSACTIONS = frozenset({Error.CONCURRENT_TRANSACTIONS})
"""The transaction coordinator, asked beforehand, is still ending the producer's last transaction (KIP-890)."""
FENCED = frozenset({Error.INVALID_PRODUCER_EPOCH})
ADMISSION_RULES = frozenset({"transaction.fenced", "transaction.unknown-group"})
"""Rules that refuse a transactional commit for another reason; which reason comes first is left open."""


@dataclass(slots=True)
class KnownProducers:
    """The producers in a trace."""

    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    """By group and transactional id, the producer id that last committed in a transaction or added the group to one."""
    added: set[tuple[str, int]] = field(default_factory=set)
    """Groups that a producer has added to its transaction, with nothing sent since that ends it."""
    epochs: dict[int, int] = field(default_factory=dict)
    """By producer id, the latest epoch that InitProducerId gave."""

    def learn_commit(self, body: Body) -> None:
        """Learn from a TxnOffsetCommit. Raises `KeyError` if it is not well formed."""
        self.ids[body["group_id"], body["transactional_id"]] = body["producer_id"]

    def learn_addition(self, body: Body) -> None:
        """Learn from an AddOffsetsToTxn that has succeeded."""
        self.learn_commit(body)
        self.added.add((body["group_id"], body["producer_id"]))

    def end_transaction(self, producer: int) -> None:
        """Learn that the transaction of a producer may be over."""
        self.added = {each for each in self.added if each[1] != producer}

    def learn_epoch(self, response: Body) -> None:
        """Learn from the response to an InitProducerId."""
        producer, epoch = response.get("producer_id"), response.get("producer_epoch")
        if response.get("error_code") == Error.NONE and producer is not None and epoch is not None:
            self.epochs[producer] = max(self.epochs.get(producer, 0), epoch)

    def requests_in(self, operation: Operation) -> tuple[InitProducerId, ...]:
        """An InitProducerId as each group sees it that the producer has used."""
        response = operation.response or {}
        name, epoch = operation.body["transactional_id"], response.get("producer_epoch", -1)
        found = tuple(
            InitProducerId(group, operation.handle, producer, epoch, (group, producer) in self.added)
            for (group, other), producer in self.ids.items()
            if other == name
        )
        if response.get("error_code") == Error.NONE:
            for request in found:
                self.end_transaction(request.producer)
        return found


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
    stepper: "ClassicStepper", configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """The configurations after an InitProducerId: also if it has yet to succeed, it may abort the open transaction."""
    request, response = part.request, part.operation.response or {}
    assert isinstance(request, InitProducerId)
    if response.get("error_code") == Error.NONE:
        yield from stepper.step_request(configuration, part, request, now)
        return
    yield ignore_request(configuration, part)
    known = configuration.world.epochs.get(request.producer, stepper.producers.epochs.get(request.producer))
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


def may_wait(part: GroupOperation, others: Iterable[GroupOperation]) -> bool:
    """Whether a SyncGroup that is refused, or has no response, fits a leader whose assignments are being stored.

    The SyncGroup has no response if one of `others` takes its place, or takes its member away.
    """
    if not isinstance(part.request, SyncGroup):
        return False
    if part.operation.response is not None:
        return errors_in(part.operation.response) != {Error.NONE}
    member, requests = part.request.core.member, [other.request for other in others if other is not part]
    return any(
        isinstance(each, LeaveGroup) or (isinstance(each, SyncGroup) and each.core.member == member)
        for each in requests
    )


MAX_LOADING_MS = 120_000
"""How long after the kill a group may be loaded, as long as no response shows that it is."""


@dataclass(slots=True)
class ClassicStepper(CoordinatorStepper):
    """Takes single steps of one group of the classic protocol."""

    producers: KnownProducers = field(default_factory=KnownProducers)
    cleanups: CleanupWatch | None = None
    topics: KnownTopics = field(default_factory=KnownTopics)
    calm: CalmGroup | None = None

    take_fast_path = take_fast_path
    internal_steps = steps_of_a_move

    def learn_step(self, before: Configuration, part: GroupOperation, after: Configuration) -> None:
        """Learn the step if the group is calm."""
        if self.was_restarted or not is_calm(before, after):
            return
        calm = self.calm
        if calm is None or calm.topics_revision != self.topics.revision or not calm.follow(before):
            calm = self.calm = CalmGroup(before, self.topics.revision)
        calm.meet(self, before, part, after)
        calm.advance_to(after)

    def repeat_step(self, configuration: Configuration, operation: Operation) -> CalmStep | None:
        """The step of a calm group, as long as no other coordinator may have taken it over."""
        calm = self.calm
        if calm is None or self.was_restarted or calm.topics_revision != self.topics.revision:
            return None
        if configuration is not calm.configuration and not calm.follow(configuration):
            return None
        step = calm.repeat(self, operation)
        if step is not None and self.cleanups is not None and operation.api not in READING_APIS:
            self.cleanups.observe(self.group, operation)
        return step

    def catch_up(self, configuration: Configuration) -> Configuration:
        """The configuration after the steps that were repeated."""
        return configuration if self.calm is None else self.calm.catch_up()

    def copy(self) -> "ClassicStepper":
        """As `Stepper.copy`."""
        twin = CoordinatorStepper.copy(self)
        assert isinstance(twin, ClassicStepper)
        twin.calm = None
        return twin

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request is handled: also after a clean-up, or by a coordinator that fails."""
        kept = [configuration]
        if self.cleanups is not None and self.cleanups.is_overdue(
            configuration, self.group, self.cluster.settings, now
        ):
            # A group that is still there is no explanation; a diagnosis may go on from it.
            kept = list(keep_overdue_group(self, configuration, part, now)) if self.allow_mismatches else []
        for start in kept:
            yield from self.handle_in_state(start, part, now)
        for start in self.after_cleanup(configuration, part, now):
            yield from self.handle_in_state(start, part, now)
        if self.was_restarted:
            yield from handle_during_failover(self, configuration, part, now)

    def handle_in_state(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request is handled in this very state."""
        if is_decided_elsewhere(part):
            yield ignore_request(configuration, part)
            return
        request, ready = part.request, finish_loading(configuration, now)
        if isinstance(request, InitProducerId):
            yield from begin_epoch(self, ready, part, now)
            return
        if isinstance(request, TxnOffsetCommit):
            yield from refuse_by_epoch(self, self.producers, ready, part, now)
        if isinstance(request, JoinGroup) and request.core.member in unseen_of(ready).told_ids:
            yield from self.admit_as_told(ready, part, now)
        if self.order is Order.INTERVALS and may_wait(part, self.open_operations.values()):
            yield from self.park_leader(ready, part, now)
        found = self.step_request(ready, part, request, now)
        if not (self.allow_mismatches and self.is_admitted_without_id(part)):
            yield from found
            return
        for after in found:
            if after.path is not None and after.path.rule == "join.id-required":
                yield from self.admit_without_id(ready, part, now, after.mismatches[-1].expected)
            else:
                yield after

    def admit_as_told(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a static newcomer comes with the id that it should not have needed."""
        unseen, core = unseen_of(configuration), part.request.core
        rest = evolve(configuration, unseen=evolve(unseen, told_ids=unseen.told_ids - {core.member}))
        return self.step_request(rest, part, evolve(part.request, core=evolve(core, member=None)), now)

    def park_leader(self, configuration: Configuration, part: GroupOperation, now: Instant) -> Iterator[Configuration]:
        """The configurations after the leader's SyncGroup waits as a follower's does: its assignments are not stored
        before a rebalance, its next SyncGroup or that it leaves."""
        group = configuration.world.group
        if group is None or group.phase is not Phase.COMPLETING or part.request.core.member != group.leader:
            return
        led_by_nobody = with_group(configuration, evolve(group, leader=None))
        for after in self.step_request(led_by_nobody, part, part.request, now):
            yield with_group(after, evolve(after.world.group, leader=group.leader))

    @staticmethod
    def is_admitted_without_id(part: GroupOperation) -> bool:
        """A dynamic member without an id was let in although its version has it ask for one first."""
        if not isinstance(part.request, JoinGroup) or part.operation.response is None:
            return False
        core = part.request.core
        new = core.requires_id and core.member is None and core.instance is None
        return new and part.operation.response.get("error_code") == 0

    def admit_without_id(
        self, configuration: Configuration, part: GroupOperation, now: Instant, expected: Response | None
    ) -> Iterator[Configuration]:
        """The configurations after such a member is let in: wrong, but one can go on from there."""
        wrong = Mismatch(
            part.operation.handle,
            frozenset({"error"}),
            expected,
            "join.id-required",
            configuration.world,
            is_certain=True,
        )
        request = evolve(part.request, core=evolve(part.request.core, requires_id=False))
        noted = evolve(configuration, mismatches=(*configuration.mismatches, wrong))
        return self.step_request(noted, part, request, now)

    def after_cleanup(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a clean-up pass that the request may find has taken place."""
        for state in states_after_cleanup(configuration, part, high(now), self.cluster):
            unseen = evolve(unseen_of(configuration), last_cleanup=configuration.clock)
            path = Path("clean-up", 0, configuration.path)
            yield evolve(configuration, world=state, unseen=unseen, path=path)

    def may_commute(self, configuration: Configuration, part: GroupOperation) -> bool:
        """The coordinator is ready, and the response is one that a request may get that commutes."""
        is_settled = not (unseen_of(configuration).loading or self.is_moving)
        return is_settled and may_commute(part.operation.api, part.operation.response)

    def commutes(self, before: Configuration, part: GroupOperation, after: Configuration) -> bool:
        """The rule by which the request was handled says that it commutes."""
        rule = after.path.rule if after.path is not None else ""
        return is_commutative(before.world, part.request, rule, after.world)

    def move(self, configuration: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations after another node has loaded the group, which it may have done unseen."""
        unseen = unseen_of(configuration)
        if unseen.is_moved:
            yield evolve(configuration, unseen=evolve(unseen, is_moved=False))
        else:
            latest = time if self.order is Order.TOTAL else time + MAX_LOADING_MS
            yield from move_group(self, configuration, latest)

    def restart(self, configuration: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations after a new coordinator has loaded its log."""
        now: Instant = TimeInterval(time, time + MAX_LOADING_MS) if self.order is Order.INTERVALS else time
        if self.cleanups is not None:
            self.cleanups.restarted_at = high(now)
        retention = self.cluster.settings.offsets_retention
        load = load_in_dialect(self, configuration.world, now)
        for outcome, decisions in outcomes_over_dialects(load, configuration.decisions):
            doubtful = maybe_expired_offsets(configuration, outcome.state, time, retention)
            yield Configuration(
                outcome.state,
                clock=time,
                decisions=decisions,
                unseen=Unseen(loading=True, maybe_expired=doubtful),
                unusual=configuration.unusual,
                path=Path(outcome.rule, 0, configuration.path, configuration.world, outcome),
            )
