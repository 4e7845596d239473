"""Releases of Apache Kafka, told apart by the API versions that they advertise.

From the message schemas of each release's source; unstable versions are left out.
"""

from collections.abc import Mapping
from types import MappingProxyType

COMPARED_APIS = (
    "Metadata",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "TxnOffsetCommit",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
)
"""The APIs whose highest versions are compared."""

HIGHEST_VERSIONS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "2.3.1": (8, 2, 5, 3, 3, 2, 7, 5, 2, 3, 2, 1),
        "2.4.1": (9, 3, 6, 4, 4, 4, 8, 6, 2, 5, 3, 2),
        "2.5.1": (9, 3, 7, 5, 4, 4, 8, 7, 3, 5, 3, 2),
        "2.7.2": (9, 3, 7, 5, 4, 4, 8, 7, 3, 5, 4, 2),
        "2.8.2": (11, 3, 7, 5, 4, 4, 8, 7, 3, 5, 4, 2),
        "3.0.2": (11, 4, 7, 5, 4, 4, 8, 8, 3, 5, 4, 2),
        "3.1.2": (12, 4, 7, 5, 4, 4, 8, 8, 3, 5, 4, 2),
        "3.6.2": (12, 4, 9, 5, 4, 5, 8, 8, 3, 5, 4, 2),
        "3.7.2": (12, 4, 9, 5, 4, 5, 9, 9, 3, 5, 4, 2),
        "3.8.1": (12, 5, 9, 5, 4, 5, 9, 9, 4, 5, 5, 2),
        "3.9.2": (12, 6, 9, 5, 4, 5, 9, 9, 4, 5, 5, 2),
    }
)
"""The highest versions of `COMPARED_APIS`, by the last release that has exactly these."""


def latest_release(versions: Mapping[str, tuple[int, int]]) -> str:
    """The last release of Apache Kafka before 4.0 that advertises exactly these versions; "" if none does.

    `versions` are the lowest and highest version of each API.
    """
    highest = tuple(versions.get(api, (0, -1))[1] for api in COMPARED_APIS)
    return next((release for release, known in HIGHEST_VERSIONS.items() if known == highest), "")
