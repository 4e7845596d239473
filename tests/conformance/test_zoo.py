"""Every known coordinator bug shows in a scenario once it is put back, and a coordinator without bugs is not blamed."""

import asyncio
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.serve.coordination import Request
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS, environments
from fencepost.conformance.classic.zoo.bugs.environments import Environment
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault, make_run_in
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import NewTarget
from fencepost.conformance.run.requests import Call
from fencepost.conformance.subject import Scenario, select_requirements
from fencepost.conformance.zoo.fault import Patch
from fencepost.model.classic.catalogue import CATALOGUE
from tests.support.bug_witnesses import WITNESSES, shown_by

RELEVANT = {
    "slow assignments": ("SYNC-*", "GEN-*"),
    "slow offsets": ("COMMIT-*", "FETCH-*", "FAILOVER-*"),
    "slow loading": ("FAILOVER-*", "STATIC-*"),
    "offsets refused for a while": ("COMMIT-*", "FETCH-*", "FAILOVER-*", "STATIC-*"),
}
"""What to look at under some circumstances; everything under the others."""


@pytest.mark.slow
@pytest.mark.parametrize("given", environments.ENVIRONMENTS, ids=lambda given: given.name)
def test_circumstances_alone_are_no_bug(given: Environment) -> None:
    with given.activate():
        report = asyncio.run(
            make_run_in(given).run(select_requirements(RELEVANT.get(given.name, ())), lambda progress: None)
        )
    assert [result.id for result in report.results if result.verdict is Verdict.FAIL] == []
    assert report.summary()[Verdict.INCONCLUSIVE] == 0


@pytest.mark.parametrize("forget", [lambda group: group.delete_groups(), lambda group: group.delete_offsets([0])])
def test_an_offset_that_is_deleted_while_it_is_written_stays_deleted(forget: Callable[[ScenarioContext], Call]) -> None:
    async def play(group: ScenarioContext) -> None:
        await group.commit(None, {1: 7})
        commit = group.commit(None, {0: 5})
        await forget(group)
        await commit
        await group.commit(None, {1: 8})
        assert (await group.fetch([0]))["groups"][0]["topics"][0]["partitions"][0]["committed_offset"] == -1

    environment = environments.SLOW_OFFSETS
    with environment.activate():
        player = NewTarget(partial(environment.make_target, BUNDLED_SETTINGS), environment.grace)
        run = run_virtual(player.play(Scenario("deleted-meanwhile", (), play), "deleted-meanwhile"))
    assert (run.blocked, run.verdict.violations) == ("", ())


@pytest.mark.parametrize("bug", COORDINATOR_BUGS.values(), ids=lambda bug: bug.id)
def test_bug_shows_once_it_is_put_back(bug: CoordinatorFault) -> None:
    scenario, requirement = WITNESSES[bug.id]
    assert requirement in shown_by(bug, scenario)


def test_every_coordinator_bug_is_here() -> None:
    assert list(COORDINATOR_BUGS) == [f"BUG-{number:02}" for number in range(1, 58)]


@pytest.mark.parametrize("bug", COORDINATOR_BUGS.values(), ids=lambda bug: bug.id)
def test_bug_says_what_it_is(bug: CoordinatorFault) -> None:
    assert bug.sentence.endswith(".") and bug.source
    assert bug.breaks and set(bug.breaks) <= set(CATALOGUE)


def test_bug_is_gone_afterwards() -> None:
    bug = COORDINATOR_BUGS["BUG-46"]
    request = Request(1, "JoinGroup", 0, "", "", {"session_timeout_ms": 700})
    with bug.activate():
        assert JoinGroup.read(request).rebalance_timeout == -1
    assert JoinGroup.read(request).rebalance_timeout == 700


def test_bug_is_gone_after_an_error() -> None:
    before = vars(Group)["all_joined"]
    with pytest.raises(ZeroDivisionError), COORDINATOR_BUGS["BUG-48"].activate():
        raise ZeroDivisionError
    assert vars(Group)["all_joined"] is before


def test_what_is_not_there_cannot_be_replaced() -> None:
    with Patch() as patch, pytest.raises(AttributeError):
        patch.replace(Group, "no_such_name", None)
    assert not hasattr(Group, "no_such_name")


def in_child(number: str, scenario: str) -> frozenset[str]:
    """The requirements that the scenario shows violated by the bug `number`, for use in a child process."""
    return shown_by(COORDINATOR_BUGS[number], scenario)


@pytest.mark.slow
def test_bug_works_in_a_process_of_its_own() -> None:
    scenario, requirement = WITNESSES["BUG-56"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(in_child, ("BUG-56", scenario))
        sound = replace(COORDINATOR_BUGS["BUG-56"], apply=lambda patch: None)
        assert requirement in there
        assert shown_by(sound, scenario) == frozenset()
