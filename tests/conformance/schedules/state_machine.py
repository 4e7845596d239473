"""The interactions as a Hypothesis state machine, which holds a coordinator against the model."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fencepost.conformance.classic.schedules.protocol import ScheduleDraft
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import Bench
from fencepost.conformance.run.schedule import ScheduleScope

SCOPE = ScheduleScope(BUNDLED_SETTINGS, cuts=True)
Item = TypeVar("Item")


class HypothesisDraw:
    """Draws values as Hypothesis does, which shrinks them."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def choose(self, options: Sequence[Item]) -> Item:
        return self.data.draw(st.sampled_from(options))

    def choose_some(self, options: Sequence[Item], most: int | None = None) -> list[Item]:
        return self.data.draw(
            st.lists(
                st.sampled_from(options), min_size=1, max_size=min(most or len(options), len(options)), unique=True
            )
        )


class InteractionMachine(RuleBasedStateMachine):
    """Draws one schedule and plays it on a bench, which a subclass names."""

    bench: Bench
    draft: ScheduleDraft | None = None

    @initialize(data=st.data())
    def form_groups(self, data: st.DataObject) -> None:
        self.draft = ScheduleDraft(HypothesisDraw(data), SCOPE)
        self.draft.form_groups()

    @rule(data=st.data())
    def interact(self, data: st.DataObject) -> None:
        assert self.draft is not None
        self.draft.builder.draw = HypothesisDraw(data)
        self.draft.add_interaction()

    def teardown(self) -> None:
        if self.draft is None:
            return
        try:
            schedule = self.draft.finish("machine").schedule
        finally:
            self.draft.simulation.close()  # also if Hypothesis gives the schedule up
        verdict = self.bench.play(schedule).verdict
        assert (verdict.violations, verdict.inconclusive) == ((), ())
