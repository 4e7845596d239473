"""The classic protocol for the search: requests and timers of the model, and the actions around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.model.classic.messages.requests import JoinGroup
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import InitProducerId, TxnOffsetCommit
from fencepost.traces.events import Operation, Order
from fencepost.traces.judge.classic.calm_group import CalmGroup
from fencepost.traces.judge.classic.calm_steps import CalmStep, is_calm
from fencepost.traces.judge.classic.failover import (
    handle_during_failover,
    load_in_dialect,
    move_group,
    steps_of_a_move,
)
from fencepost.traces.judge.classic.fast_path import take_fast_path
from fencepost.traces.judge.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.judge.classic.offset_expiry import maybe_expired_offsets, states_after_cleanup
from fencepost.traces.judge.classic.overdue_cleanup import READING_APIS, CleanupWatch, keep_overdue_group
from fencepost.traces.judge.classic.producers import (
    KnownProducers,
    begin_epoch,
    ignore_request,
    is_decided_elsewhere,
    refuse_by_epoch,
)
from fencepost.traces.judge.classic.reduction import is_commutative, may_commute
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.topics import KnownTopics
from fencepost.traces.judge.classic.unseen import Unseen, finish_loading, unseen_of
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch, Path, Response
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high

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
        found = self.step_request(ready, part, request, now)
        if not (self.allow_mismatches and self.is_admitted_without_id(part)):
            yield from found
            return
        for after in found:
            if after.path is not None and after.path.rule == "join.id-required":
                yield from self.admit_without_id(ready, part, now, after.mismatches[-1].expected)
            else:
                yield after

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
