"""Calls of scenarios: what a response teaches, and when."""

import asyncio

import pytest

from fencepost.adapters.target import Exchange
from fencepost.conformance.run.requests import Call, Unanswered
from fencepost.traces.events import Body


def call_with(response: "asyncio.Future[Body | None]") -> Call:
    """A call of a request whose response is the future's."""
    return Call("JoinGroup", 4, Exchange(None, response, lambda: None), timeout=1_000)


async def test_a_caller_goes_on_after_what_a_response_teaches() -> None:
    """The response may be there before the call is awaited, as in process. Python 3.12 changed `asyncio.wait_for`."""
    response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    learnt: list[str] = []
    response.add_done_callback(lambda done: learnt.append((done.result() or {})["member_id"]))
    response.set_result({"error_code": 79, "member_id": "A"})
    await call_with(response)
    assert learnt == ["A"]


async def test_a_call_without_a_response_ends() -> None:
    """The wait is bounded, and does not cancel the response."""
    response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    with pytest.raises(Unanswered, match="no answer to JoinGroup within 1000 ms"):
        await call_with(response)
    assert not response.done()
