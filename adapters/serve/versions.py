"""The APIs and versions that the broker offers."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.adapters.bundled.classic.coordinator import VERSIONS as COORDINATED

OFFERED_VERSIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        **COORDINATED,
        # Above these, partitions go by topic id or fetch sessions matter, which the in-memory log has no use for.
        "Produce": (3, 9),
        "Fetch": (4, 11),
        "ListOffsets": (1, 7),
        "Metadata": (0, 12),
        "ApiVersions": (0, 4),
        "CreateTopics": (2, 7),
        "DescribeConfigs": (1, 4),
        "AddPartitionsToTxn": (0, 3),
        # Above these a client expects a new producer epoch with every transaction (KIP-890).
        "EndTxn": (0, 4),
        "TxnOffsetCommit": (0, 4),
    }
)
"""Lowest and highest version of every API. All of JoinGroup to FindCoordinator down to 0 or 1, since aiokafka speaks
the old versions only; Produce must be there or librdkafka does not fetch."""
