"""The coordinators by their dialect: Kafka's, and that of the proposal of client-side assignment."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from fencepost.adapters.bundled.classic.coordinator import Coordinator, Parts
from fencepost.adapters.bundled.proposal.loading import ProposedLoading
from fencepost.adapters.bundled.proposal.requests import ProposedHeartbeats, ProposedJoining
from fencepost.adapters.bundled.proposal.syncing import ProposedRebalancer, ProposedSyncing
from fencepost.model.classic.dialect import KAFKA, PROPOSED, Dialect


class ProposedCoordinator(Coordinator):
    """A coordinator as the proposal has it."""

    parts: ClassVar[Parts] = Parts(
        ProposedRebalancer, ProposedJoining, ProposedHeartbeats, ProposedSyncing, ProposedLoading
    )


COORDINATORS: Mapping[Dialect, type[Coordinator]] = MappingProxyType(
    {KAFKA: Coordinator, PROPOSED: ProposedCoordinator}
)
"""The bundled coordinator for a dialect of the model."""
