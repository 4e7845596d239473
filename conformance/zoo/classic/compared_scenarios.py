"""Scenarios that compare a mutant with the shipped coordinator where those of the kit, tours and random schedules
seldom go: three to six members, open transactions with something in between, retention in parts, commits of every kind.

They check no requirement; only their traces are compared. Each ends in a look at all that the group holds.
"""

from collections.abc import Iterator
from functools import partial

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.zoo.classic.compared_members import (
    CHANGES_OF_MEMBERS,
    GROUP_SIZES,
    change_members,
    extend_initial_delay,
)
from fencepost.conformance.zoo.classic.compared_offsets import (
    BETWEEN,
    HOLDERS,
    STATES,
    Act,
    act_in_transaction,
    commit_in_every_way,
    expire_at_a_pass,
    fence_producers,
    wait_out_retention,
)


def comparison_scenarios() -> Iterator[Scenario]:
    """All scenarios of this module."""
    for size in GROUP_SIZES:
        for number, change in enumerate(CHANGES_OF_MEMBERS):
            yield scenario(f"{size}-members-{number}", partial(change_members, size, change))
    for number, between in enumerate(BETWEEN):
        for committed in (True, False):
            yield scenario(f"transaction-{number}-{committed}", partial(act_in_transaction, between, committed))
    for number, hold in enumerate(HOLDERS):
        yield scenario(f"retention-in-parts-{number}", partial(wait_out_retention, hold))
    for offset in (-1, 0, 1):
        yield scenario(f"expiry-at-a-pass-{offset}", partial(expire_at_a_pass, offset))
    for number, arrive in enumerate(STATES):
        yield scenario(f"commits-of-every-kind-{number}", partial(commit_in_every_way, arrive))
    for steps in range(1, 7):
        yield scenario(f"initial-delay-{steps}", partial(extend_initial_delay, steps))
    yield scenario("fenced-producers", fence_producers)


def scenario(name: str, play: Act) -> Scenario:
    """A scenario of this module, without requirements."""

    async def run(group: ScenarioContext) -> None:
        await play(group)

    return Scenario(f"compare-{name}", (), run)
