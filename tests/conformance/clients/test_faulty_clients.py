"""Each check of the judge can fail: every faulty client is found, and violates the requirement that it is for."""

import pytest

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.classic.zoo.client_stand import shown_by
from fencepost.conformance.clients.stage import CLIENT_SETTINGS
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client.client import ClassicClient
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Header, Order
from tests.support.client_scenarios import EAGER, play_fault, play_scenario
from tests.support.faulty_applications import FAULTY_APPLICATIONS
from tests.support.faulty_clients import FAULTY, FaultyClient
from tests.support.faulty_drivers import FAULTY_DRIVERS, Message, rewrite
from tests.support.wire_client import WireClient, tell_as_it_is


@pytest.mark.parametrize(
    "faulty", [*FAULTY, *FAULTY_DRIVERS, *FAULTY_APPLICATIONS], ids=lambda each: each.fault.id.replace(" in ", "-")
)
async def test_a_faulty_client_is_found(faulty: FaultyClient) -> None:
    run = await play_fault(faulty.fault, faulty.scenario)
    assert shown_by(run) >= set(faulty.fault.breaks), (shown_by(run), run.blocked)


async def test_a_callback_that_an_unsubscribing_client_leaves_out_is_missed_once() -> None:
    def hide_first(client: WireClient, message: Message) -> list[Message]:
        return [message] if client.count("LeaveGroup") else []

    run = await play_scenario("a-topic-that-matches-a-pattern", tell=rewrite("revoked", hide_first))
    assert run.verdict.violated == {"CALLBACK-11"}


async def test_a_commit_succeeds_only_if_it_is_sent() -> None:
    run = await play_scenario("a-commit-of-the-application", evolve(EAGER, auto_commit=False), tell=tell_as_it_is)
    header = Header("a test", Order.TOTAL, "virtual", CLIENT_SETTINGS, 1_000)
    unsent = [event for event in run.events if event.api != "OffsetCommit"]
    assert "MCOMMIT-01" not in judge_client(header, run.events, CLIENT_LABEL, ClassicClient).violated
    assert judge_client(header, unsent, CLIENT_LABEL, ClassicClient).violated == {"MCOMMIT-01"}
