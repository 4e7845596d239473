"""How a scenario goes on with a target that is slow: in forming groups, and in asking other versions."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import pytest

from fencepost.adapters.target import Description, Exchange, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.context import MAX_REJOINS, ScenarioContext
from fencepost.conformance.run.requests import Blocked, Call, Member
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Order

DESCRIPTION = Description("t", Order.TOTAL, "virtual", {"JoinGroup": (0, 9)}, Settings(initial_rebalance_delay=0), "t")


class Answer(NamedTuple):
    """A response to JoinGroup, and after how many seconds it comes."""

    seconds: float
    error: int
    generation: int


class SlowGroup(ScenarioContext):
    """A group whose members get these responses, one after the other."""

    def __init__(self, answers: dict[str, Iterator[Answer]]) -> None:
        super().__init__(DESCRIPTION, None, TraceBuilder(lambda: 0), "g")  # type: ignore[arg-type]
        self.answers = answers
        self.joins = 0

    def join(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        seconds, error, generation = next(self.answers[member.label])
        loop = asyncio.get_running_loop()
        response: asyncio.Future[Any] = loop.create_future()

        def answer() -> None:
            if error == 0:
                member.id, member.generation, member.leader = member.label, generation, "A"
            response.set_result({"error_code": error})

        loop.call_later(seconds, answer)
        self.joins += 1
        return Call("JoinGroup", 9, Exchange(None, response, lambda: None), 25_000)

    async def join_new(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        return self.join(member)


def form(group: SlowGroup) -> Sequence[str]:
    """The members in the order that `form_generation` gives."""
    members = run_virtual(group.form_generation(group.member("B"), group.member("A")))
    return [member.label for member in members]


def test_how_long_a_request_waits_is_no_reason_to_give_up() -> None:
    unknown = int(Error.UNKNOWN_MEMBER_ID)
    quick, refusal = repeat(Answer(0.5, 0, 2)), Answer(9.0, unknown, -1)
    slow = {"A": [Answer(0.2, 0, 1), Answer(18.9, 0, 2)], "B": [refusal, refusal]}
    group = SlowGroup({label: chain(first, quick) for label, first in slow.items()})
    assert form(group) == ["A", "B"]


def test_members_that_are_told_to_rejoin_again_and_again_are_given_up() -> None:
    def refuse() -> Iterator[Answer]:
        while True:
            yield Answer(0.1, int(Error.REBALANCE_IN_PROGRESS), -1)

    group = SlowGroup({"A": refuse(), "B": refuse()})
    with pytest.raises(Blocked, match="REBALANCE_IN_PROGRESS while forming a group"):
        form(group)
    assert group.joins == 2 + MAX_REJOINS * 2


def test_a_request_that_is_never_answered_ends_the_wait() -> None:
    group = SlowGroup({"A": iter([Answer(0.1, 0, 1), Answer(99.0, 0, 2)]), "B": iter([Answer(99.0, 0, 1)])})
    with pytest.raises(Blocked, match="no answer to JoinGroup within 25000 ms"):
        form(group)


@pytest.mark.parametrize(("seconds", "asked"), [(0.0, 10), (15.0, 1)])
def test_a_request_that_waits_is_not_asked_in_other_versions(seconds: float, asked: int) -> None:
    def refuse(version: int) -> Call:
        group.joins += 1
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(seconds, response.set_result, {"error_code": int(Error.NONE)})
        return Call("JoinGroup", version, Exchange(None, response, lambda: None), 25_000, refuse)

    async def play() -> None:
        group.recorder = TraceBuilder(lambda: int(asyncio.get_running_loop().time() * 1000))
        await group.check_versions("JOIN-05", refuse(9))

    group = SlowGroup({})
    run_virtual(play())
    assert (group.joins, len(group.checks)) == (asked, asked)
