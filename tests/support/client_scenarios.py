"""Scenarios for clients, played with the reference client in this process."""

from typing import Any

from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ClientPlace
from fencepost.conformance.clients.classic import CLASSIC_CLIENTS, SCENARIOS
from fencepost.conformance.clients.play import ClientPlay, ClientScenarioRun
from fencepost.conformance.clients.run import ClientPlan, ClientRun
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, RANGE, ROUND_ROBIN, ClientSettings, ResetPolicy
from fencepost.model.settings import Settings
from tests.support.wire_client import Tamper, WireClient, send_as_it_is

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
EAGER = ClientSettings(
    strategies=(RANGE, ROUND_ROBIN),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    reset_policy=ResetPolicy.EARLIEST,
)
COOPERATIVE = ClientSettings(
    strategies=(COOPERATIVE_STICKY,),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    reset_policy=ResetPolicy.EARLIEST,
)


class WireSubject:
    """Starts a client in this process on the cluster that was made last."""

    def __init__(self, settings: ClientSettings, tamper: Tamper) -> None:
        self.settings = settings
        self.tamper = tamper
        self.clusters: list[ScriptedCluster] = []

    async def start_cluster(self, settings: Settings) -> ScriptedCluster:
        self.clusters.append(ScriptedCluster(settings))
        return self.clusters[-1]

    async def start(self, place: ClientPlace) -> WireClient:
        return await WireClient(self.clusters[-1], self.settings, self.tamper).start(place)


def make_run(
    *patterns: str, tamper: Tamper = send_as_it_is, settings: ClientSettings = EAGER, **options: Any
) -> ClientRun:
    """A run on the reference client, of the requirements that match one of the patterns; `options` are the plan's."""
    subject = WireSubject(settings, tamper)
    play = ClientPlay(subject, "reference", CLASSIC_CLIENTS.follow, subject.start_cluster, 30.0, clock="virtual")
    plan = ClientPlan(("reference",), patterns, at_once=1, **options)
    return ClientRun(plan, CLASSIC_CLIENTS, play)


async def play_scenario(
    name: str, settings: ClientSettings = EAGER, tamper: Tamper = send_as_it_is
) -> ClientScenarioRun:
    """Play a scenario with the reference client, some of whose requests are tampered with."""
    subject = WireSubject(settings, tamper)
    play = ClientPlay(subject, "reference", CLASSIC_CLIENTS.follow, subject.start_cluster, 30.0, clock="virtual")
    names = tuple(strategy.name for strategy in settings.strategies)
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout)
    return await play.play(BY_NAME[name], facts)
