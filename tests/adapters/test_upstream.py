"""A real cluster behind the script of test-client. The bundled server, on a socket, is that cluster."""

from dataclasses import replace

import pytest

from fencepost.adapters.bundled.classic.coordinator import VERSIONS
from fencepost.adapters.client.cluster import CLIENT_LABEL, ScriptedCluster, start_cluster
from fencepost.adapters.serve.server import Server
from fencepost.adapters.serve.versions import OFFERED_VERSIONS
from fencepost.adapters.target import TargetError
from fencepost.conformance.clients.classic import CLASSIC_CLIENTS
from fencepost.conformance.clients.play import CLIENT_SETTINGS, ClientPlay, ClientScenarioRun
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.verdict import PASSING
from tests.support.client_scenarios import BY_NAME, EAGER
from tests.support.wire_client import WireSubject

pytestmark = pytest.mark.real_time


async def play_before(upstream: Server, name: str) -> ClientScenarioRun:
    """Play a scenario with the reference client before a cluster."""
    subject = WireSubject(EAGER)

    async def start(settings: Settings) -> ScriptedCluster:
        return await start_cluster(settings, upstream.address)

    play = ClientPlay(subject, "reference", CLASSIC_CLIENTS.follow, start, 30.0)
    names = tuple(strategy.name for strategy in EAGER.strategies)
    return await play.play(BY_NAME[name], ClientFacts(names, EAGER.session_timeout, EAGER.rebalance_timeout))


async def start_upstream() -> Server:
    """The cluster, at a free port."""
    server = Server(CLIENT_SETTINGS, None)
    await server.listen("127.0.0.1", 0)
    return server


async def test_a_scenario_is_played_before_a_cluster_and_cleaned_up() -> None:
    server = await start_upstream()
    run = await play_before(server, "a-heartbeat-of-a-forgotten-member")
    left = await server.ask("ListGroups", VERSIONS["ListGroups"][1], {"states_filter": [], "types_filter": []})
    await server.close()
    assert (run.blocked, run.not_shown, run.verdict.violations) == ("", "", ())
    held = {check.requirement for check in run.verdict.check_results if check.status in PASSING}
    assert "MEMBER-13" in held
    assert left["groups"] == []


async def test_the_client_is_offered_what_can_be_read_and_stays_with_the_kit() -> None:
    server = await start_upstream()
    run = await play_before(server, "a-heartbeat-of-a-forgotten-member")
    await server.close()
    responses = [event for event in run.events if event.kind is Kind.RESPONSE and event.member == CLIENT_LABEL]
    offered = next(event.body["api_keys"] for event in responses if event.api == "ApiVersions")
    assert len(offered) == len(OFFERED_VERSIONS)
    told = next(event.body["brokers"] for event in responses if event.api == "Metadata")
    assert server.address[1] not in [row["port"] for row in told]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a-coordinator-that-moves", "a real cluster does not move a group at the kit's word"),
        ("a-topic-that-grows", "the kit adds no partitions to a topic of a real cluster"),
    ],
)
async def test_what_a_cluster_does_not_do_is_not_shown(name: str, reason: str) -> None:
    server = await start_upstream()
    run = await play_before(server, name)
    await server.close()
    assert run.not_shown == reason
    assert replace(run.verdict, check_results=(), events=0).violations == ()


async def test_no_cluster_is_one_clear_line() -> None:
    server = await start_upstream()
    address = server.address
    await server.close()
    with pytest.raises(TargetError, match=rf"{address[1]}.*is the broker running"):
        await start_cluster(CLIENT_SETTINGS, address)
