"""Whatever is held open, everything else may happen meanwhile, and the shipped coordinator is not blamed for it."""

from functools import partial

import pytest

from fencepost.conformance.classic.schedules.crossing_interactions import CROSSINGS, HELD, HeldOperation
from fencepost.conformance.classic.schedules.draw import RandomDraw
from fencepost.conformance.classic.schedules.interactions import INTERACTIONS
from fencepost.conformance.classic.schedules.protocol import ScheduleDraft
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.classic.zoo.coordinator_stand import BUNDLED_SCHEDULES
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import target_bench


@pytest.mark.parametrize("held", HELD, ids=range(len(HELD)))
def test_anything_happens_while_an_operation_is_held_open(held: HeldOperation) -> None:
    draft = ScheduleDraft(RandomDraw("crossing"), BUNDLED_SCHEDULES.scope)
    draft.form_groups()
    crossed = 0
    for happen, is_possible in CROSSINGS.items():
        if is_possible(draft.builder):
            with held(draft.builder) as subject:
                before = len(draft.builder.moves)
                happen(draft.builder, subject)
            crossed += len(draft.builder.moves) > before
    assert crossed >= len(CROSSINGS) - 2
    schedule = draft.finish("crossing").schedule
    run = target_bench(BUNDLED_SCHEDULES, partial(CrashingTarget, BUNDLED_SETTINGS)).play(schedule)
    assert not run.verdict.violated


def test_each_held_operation_is_an_interaction() -> None:
    assert sum(name.startswith("cross_") for name in INTERACTIONS) == len(HELD)
