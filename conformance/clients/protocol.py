"""The interface of a protocol to runs against clients: one value that names its parts."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.conformance.clients.scenario import ClientScenario
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.client_judge.judge import FollowClient


@dataclass(frozen=True, slots=True)
class ClientProtocol:
    """A protocol whose clients can be tested.

    The first of the `scenarios` is played by itself, to see what the client is. `out_of_reach` are the capabilities
    that a program without a driver does not have; `needs` has all capabilities in words that fit after "needs".
    """

    specification: Specification
    scenarios: tuple[ClientScenario, ...]
    follow: FollowClient
    needs: Mapping[str, str]
    out_of_reach: frozenset[str]
