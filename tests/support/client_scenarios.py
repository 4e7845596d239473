"""Scenarios for clients, played with the reference client in this process."""

from typing import Any

from fencepost.adapters.classic.client.driver import ReferenceSubject
from fencepost.conformance.classic.clients import CLASSIC_CLIENTS, SCENARIOS
from fencepost.conformance.classic.zoo.clients import reference
from fencepost.conformance.classic.zoo.clients.reference import KINDS
from fencepost.conformance.clients.run import ClientRun
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer
from fencepost.conformance.plan import Plan
from fencepost.conformance.subject import ScenarioRun
from fencepost.conformance.zoo.fault import Fault
from fencepost.model.classic.member.settings import ClientSettings
from tests.support.wire_client import Tamper, Tell, WireSubject, send_as_it_is

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
EAGER, COOPERATIVE = KINDS["eager"], KINDS["cooperative"]


def make_run(
    *patterns: str, tamper: Tamper = send_as_it_is, settings: ClientSettings = EAGER, **options: Any
) -> ClientRun:
    """A run on the reference client, of the requirements that match one of the patterns; `options` are the plan's."""
    subject = WireSubject(settings, tamper)
    player = ClientPlayer(subject, "reference", CLASSIC_CLIENTS.judge, subject.start_cluster, 30.0, clock="virtual")
    return ClientRun(Plan("reference", patterns, **options), ("reference",), CLASSIC_CLIENTS, player, at_once=1)


async def play_scenario(
    name: str, settings: ClientSettings = EAGER, tamper: Tamper = send_as_it_is, tell: Tell | None = None
) -> ScenarioRun:
    """Play a scenario with the reference client, some of whose requests are tampered with; it is driven if there is a
    function that tells what its driver says."""
    return await play_subject(name, WireSubject(settings, tamper, tell))


async def play_fault(fault: Fault[ClientSettings], name: str) -> ScenarioRun:
    """Play a scenario with the reference client that has a fault."""
    with fault.activate():
        return await play_subject(name, reference.make_subject(fault.setting))


async def play_subject(name: str, subject: WireSubject | ReferenceSubject) -> ScenarioRun:
    """Play a scenario with this client."""
    settings = subject.settings
    names = tuple(strategy.name for strategy in settings.strategies)
    is_static = settings.instance is not None
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout, is_static)
    player = ClientPlayer(
        subject, "reference", CLASSIC_CLIENTS.judge, subject.start_cluster, 30.0, clock="virtual", facts=facts
    )
    return await player.play(BY_NAME[name])
