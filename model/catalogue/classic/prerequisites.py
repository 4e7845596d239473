"""The prerequisites of requirements: a requirement may refine others, which have to hold first.

Where one of those is broken, a violation of the requirement shows nothing more. A timeout says nothing of a target that
does not time at all; which of two checks comes first says nothing where one of them is not made.
"""

from collections.abc import Mapping
from types import MappingProxyType

PREREQUISITES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "FIND-02": ("ADMIN-01",),
        "JOIN-03": ("JOIN-02",),
        "JOIN-12": ("TIMER-01",),
        "JOIN-19": ("JOIN-16",),
        "JOIN-20": ("JOIN-17",),
        "JOIN-26": ("JOIN-44",),
        "JOIN-27": ("JOIN-31",),
        "JOIN-28": ("JOIN-07", "LEAVE-07"),
        "JOIN-35": ("JOIN-32", "TIMER-01"),
        "JOIN-38": ("STATIC-18",),
        "JOIN-41": ("JOIN-23",),
        "JOIN-42": ("JOIN-44", "TIMER-27", "TIMER-03"),
        "JOIN-44": ("TIMER-03",),
        "JOIN-45": ("JOIN-44",),
        "JOIN-47": ("JOIN-31",),
        "JOIN-53": ("JOIN-23",),
        "SYNC-17": ("SYNC-16",),
        "SYNC-24": ("SYNC-10",),
        "HB-10": ("TIMER-01",),
        "HB-13": ("TIMER-11", "TIMER-12"),
        "HB-14": ("STATIC-06", "STATIC-07"),
        "COMMIT-14": ("TIMER-01",),
        "COMMIT-20": ("TIMER-01",),
        "COMMIT-21": ("STATIC-06", "STATIC-07"),
        "FETCH-08": ("TIMER-01",),
        "FETCH-14": ("FETCH-03",),
        "FETCH-15": ("ADMIN-01", "ADMIN-15"),
        "ADMIN-10": ("TIMER-01",),
        "ADMIN-33": ("ADMIN-12",),
        "STATIC-05": ("STATIC-02", "STATIC-08"),
        "STATIC-09": ("STATIC-08",),
        "STATIC-11": ("STATIC-08",),
        "STATIC-12": ("STATIC-08",),
        "STATIC-13": ("STATIC-08",),
        "TIMER-02": ("TIMER-01", "TIMER-24"),
        "TIMER-04": ("HB-07",),
        "TIMER-06": ("JOIN-44",),
        "TIMER-08": ("JOIN-28",),
        "TIMER-09": ("JOIN-44",),
        "TIMER-10": ("JOIN-44",),
        "TIMER-11": ("HB-07",),
        "TIMER-13": ("TIMER-11", "TIMER-12"),
        "TIMER-21": ("TIMER-01", "TIMER-05", "TIMER-24"),
        "TIMER-22": ("TIMER-01",),
        "TIMER-27": ("JOIN-44",),
        "FAILOVER-01": ("FAILOVER-02", "FAILOVER-12"),
        "FAILOVER-03": ("FAILOVER-02",),
        "FAILOVER-04": ("FAILOVER-02",),
        "FAILOVER-05": ("FAILOVER-02",),
        "FAILOVER-07": ("FAILOVER-02",),
        "FAILOVER-13": ("FAILOVER-02",),
        "FAILOVER-16": ("FAILOVER-02",),
        "FAILOVER-17": ("FAILOVER-02", "JOIN-44"),
        "FAILOVER-19": ("FAILOVER-02", "JOIN-44"),
        "FAILOVER-21": ("FAILOVER-02",),
        "GEN-15": ("HB-04", "SYNC-04", "COMMIT-04"),
        "GEN-19": ("STATIC-18",),
        "GEN-20": ("GEN-06", "STATIC-18"),
    }
)
"""Requirements by the id of one that presumes them. Only what a scenario of it cannot do without is named."""
