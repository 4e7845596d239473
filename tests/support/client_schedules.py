"""Random schedules, played with the reference client in this process."""

from functools import partial

from fencepost.adapters.classic.client.driver import ReferenceSubject
from fencepost.conformance.classic.clients import CLASSIC_CLIENTS, DRIVEN_CLIENTS
from fencepost.conformance.classic.clients.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer
from fencepost.conformance.run.play import Bench
from fencepost.model.classic.member.settings import ClientSettings
from tests.support.client_scenarios import EAGER
from tests.support.wire_client import Tamper, WireSubject, send_as_it_is, tell_as_it_is


def facts_about(settings: ClientSettings) -> ClientFacts:
    """What a scenario would show of a client with these settings."""
    names = tuple(strategy.name for strategy in settings.strategies)
    return ClientFacts(names, settings.session_timeout, settings.rebalance_timeout)


def protocol_for(is_driven: bool) -> ClientProtocol:
    return DRIVEN_CLIENTS if is_driven else CLASSIC_CLIENTS


def make_play(settings: ClientSettings, tamper: Tamper | None, is_driven: bool) -> ClientPlayer:
    """A play with the reference client, tampered with if there is something to tamper."""
    reference = ReferenceSubject(settings, is_driven)
    wired = WireSubject(settings, tamper or send_as_it_is, tell_as_it_is if is_driven else None)
    judge = protocol_for(is_driven).judge
    subject = reference if tamper is None else wired
    return ClientPlayer(
        subject,
        "reference",
        judge,
        subject.start_cluster,
        30.0,
        clock="virtual",
        is_driven=is_driven,
        facts=facts_about(settings),
    )


def make_bench(settings: ClientSettings = EAGER, tamper: Tamper | None = None, *, is_driven: bool = True) -> Bench:
    """A bench with the reference client, some of whose requests are tampered with."""
    make = partial(make_play, settings, tamper, is_driven)
    return Bench(ClassicClientSchedules(is_driven), make, protocol_for(is_driven).judge)
