"""The classic protocol for the search: requests and timers of the model, and the actions around them."""

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.model.classic.messages.requests import EndTxn, JoinGroup, TxnOffsetCommit
from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.failover import handle_during_failover, load_in_dialect, load_on_other_node
from fencepost.traces.judge.classic.fast_path import take_fast_path
from fencepost.traces.judge.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.judge.classic.offset_expiry import maybe_expired_offsets, states_after_cleanup
from fencepost.traces.judge.classic.reduction import is_commutative, may_commute
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.unseen import Unseen, finish_loading, unseen_of
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch, Path, Response
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high

CONCURRENT_TRANSACTIONS = frozenset({51})
"""The transaction coordinator, asked beforehand, is still ending the producer's last transaction (KIP-890)."""
MAX_LOADING_MS = 120_000
"""How long after the kill a group may be loaded, as long as no response shows that it is."""


@dataclass(slots=True)
class ClassicStepper(CoordinatorStepper):
    """Takes single steps of one group of the classic protocol."""

    take_fast_path = take_fast_path
    internal_steps = load_on_other_node

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request is handled: also after a clean-up, or by a coordinator that fails."""
        yield from self.handle_in_state(configuration, part, now)
        for start in self.after_cleanup(configuration, part, now):
            yield from self.handle_in_state(start, part, now)
        if self.was_restarted:
            yield from handle_during_failover(self, configuration, part, now)

    def handle_in_state(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request is handled in this very state."""
        request, operation = part.request, part.operation
        unsettled = (
            isinstance(request, TxnOffsetCommit) and errors_in(operation.response or {}) == CONCURRENT_TRANSACTIONS
        )
        if unsettled or (isinstance(request, EndTxn) and (operation.response or {}).get("error_code")):
            # The transaction coordinator is not what is judged here.
            yield evolve(configuration, matched=configuration.matched | {operation.handle})
            return
        ready = finish_loading(configuration, now)
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
        return may_commute(part.operation.api, part.operation.response) and not unseen_of(configuration).loading

    def commutes(self, before: Configuration, part: GroupOperation, after: Configuration) -> bool:
        """The rule by which the request was handled says that it commutes."""
        rule = after.path.rule if after.path is not None else ""
        return is_commutative(before.world, part.request, rule, after.world)

    def restart(self, configuration: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations after a new coordinator has loaded its log."""
        now: Instant = TimeInterval(time, time + MAX_LOADING_MS) if self.order is Order.INTERVALS else time
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
