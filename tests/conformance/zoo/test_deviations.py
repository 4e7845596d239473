"""Deviations that were found on products, and correct variants: they can be put in, and differ from what is shipped."""

import pytest

from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault, can_start, play_scenario_in
from fencepost.conformance.classic.zoo.variants import VARIANTS
from fencepost.model.classic.catalogue import CATALOGUE

EVERYTHING = [*DEVIATIONS.values(), *VARIANTS.values()]


@pytest.mark.parametrize("fault", EVERYTHING, ids=lambda fault: fault.id)
def test_it_can_be_put_in(fault: CoordinatorFault) -> None:
    assert fault.sentence
    assert can_start(fault)
    assert set(fault.breaks) <= set(CATALOGUE)


def test_no_deviation_has_the_name_of_a_variant() -> None:
    assert not DEVIATIONS.keys() & VARIANTS.keys()


@pytest.mark.parametrize(
    ("name", "scenario", "requirement"),
    [
        ("static-newcomer-needs-id", "static-member-joins-in-one-step", "STATIC-01"),
        ("session-ends-in-parked-join", "parked-join-protects-the-session", "TIMER-03"),
        ("deleted-group-comes-back", "deleted-group-stays-deleted", "FAILOVER-15"),
        ("begins-with-generation-101", "first-generation", "GEN-01"),
    ],
)
def test_a_scenario_shows_it(name: str, scenario: str, requirement: str) -> None:
    fault = {**DEVIATIONS, **VARIANTS}[name]
    with fault.activate():
        run = play_scenario_in(fault.setting, next(each for each in ALL if each.name == scenario))
    assert requirement in run.verdict.violated


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.id)
def test_a_variant_forms_and_dissolves_groups(variant: CoordinatorFault) -> None:
    names = {"last-member-leaves", "commit-in-stable", "unsynced-round-is-lost"}
    with variant.activate():
        runs = [play_scenario_in(variant.setting, each) for each in ALL if each.name in names]
    assert not {id for run in runs for id in run.verdict.violated} - set(variant.breaks)
