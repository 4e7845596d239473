"""Scenarios for clients, played with the reference client in this process."""

from typing import Any

from fencepost.conformance.clients.classic import CLASSIC_CLIENTS, SCENARIOS
from fencepost.conformance.clients.play import ClientPlay
from fencepost.conformance.clients.run import ClientPlan, ClientRun
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, RANGE, ROUND_ROBIN, ClientSettings, ResetPolicy
from tests.support.wire_client import Tamper, Tell, WireSubject, send_as_it_is

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
EAGER = ClientSettings(
    strategies=(RANGE, ROUND_ROBIN),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    request_timeout=10_000,
    reset_policy=ResetPolicy.EARLIEST,
)
COOPERATIVE = ClientSettings(
    strategies=(COOPERATIVE_STICKY,),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    request_timeout=10_000,
    reset_policy=ResetPolicy.EARLIEST,
)


def make_run(
    *patterns: str, tamper: Tamper = send_as_it_is, settings: ClientSettings = EAGER, **options: Any
) -> ClientRun:
    """A run on the reference client, of the requirements that match one of the patterns; `options` are the plan's."""
    subject = WireSubject(settings, tamper)
    play = ClientPlay(subject, "reference", CLASSIC_CLIENTS.follow, subject.start_cluster, 30.0, clock="virtual")
    plan = ClientPlan(("reference",), patterns, at_once=1, **options)
    return ClientRun(plan, CLASSIC_CLIENTS, play)


async def play_scenario(
    name: str, settings: ClientSettings = EAGER, tamper: Tamper = send_as_it_is, tell: Tell | None = None
) -> ScenarioRun:
    """Play a scenario with the reference client, some of whose requests are tampered with; it is driven if there is a
    function that tells what its driver says."""
    subject = WireSubject(settings, tamper, tell)
    play = ClientPlay(subject, "reference", CLASSIC_CLIENTS.follow, subject.start_cluster, 30.0, clock="virtual")
    names = tuple(strategy.name for strategy in settings.strategies)
    is_static = settings.instance is not None
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout, is_static)
    return await play.play(BY_NAME[name], facts)
