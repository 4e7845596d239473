"""The prerequisites of requirements: a requirement may presume others, which have to hold first.

Where one of those is broken, a violation of the requirement shows nothing more. There are four reasons, and each entry
has one of them in the sentences of both requirements:

- It says more of what the other one says: which sessions expire, of what is to expire at all.
- It is about a state or an event that the other one brings about: members of a group that came back after a failover.
- It shows only by the other one: that a request does not extend the session shows by the session's expiry.
- It says which of two checks comes first, and the other one is one of these checks, which the order alone cannot break.

Prerequisites of prerequisites count, so that an entry names the nearest ones only.
"""

from collections.abc import Mapping
from types import MappingProxyType

PREREQUISITES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # what comes into being, and what does not, shows by descriptions
        "FIND-02": ("ADMIN-01",),
        "FETCH-15": ("ADMIN-01", "ADMIN-15"),
        # admission
        "JOIN-03": ("JOIN-02",),
        "JOIN-13": ("TIMER-08", "LEAVE-10"),
        "JOIN-19": ("JOIN-16", "JOIN-17"),
        "JOIN-20": ("JOIN-17",),
        "JOIN-35": ("JOIN-32", "TIMER-01"),
        "JOIN-41": ("JOIN-23",),
        "JOIN-53": ("JOIN-23",),
        # the join phase: it begins, waits for pending ids, and ends by its timeout
        "JOIN-27": ("JOIN-31",),
        "JOIN-28": ("JOIN-07", "LEAVE-07"),
        "TIMER-20": ("JOIN-07",),
        "JOIN-47": ("JOIN-31",),
        "TIMER-08": ("JOIN-28",),
        "JOIN-26": ("JOIN-44",),
        "JOIN-42": ("JOIN-44", "TIMER-27"),
        "JOIN-45": ("JOIN-44",),
        "TIMER-06": ("JOIN-44",),
        "TIMER-09": ("JOIN-44",),
        "TIMER-10": ("JOIN-44",),
        "TIMER-27": ("JOIN-44",),
        # the sync phase, and its timeout
        "SYNC-08": ("SYNC-04", "SYNC-05"),
        "SYNC-17": ("SYNC-16",),
        "SYNC-20": ("SYNC-04",),
        "SYNC-24": ("SYNC-10",),
        "TIMER-04": ("SYNC-10",),
        "TIMER-12": ("TIMER-11",),
        "TIMER-13": ("TIMER-11",),
        "TIMER-14": ("TIMER-11",),
        "HB-13": ("JOIN-44", "TIMER-12"),
        "STATIC-22": ("TIMER-12",),
        # sessions: their expiry, whose it is, and what extends them
        "TIMER-02": ("TIMER-01", "TIMER-24"),
        "TIMER-21": ("TIMER-01", "TIMER-05", "TIMER-24"),
        "TIMER-22": ("TIMER-01",),
        "TIMER-24": ("TIMER-01",),
        "STATIC-21": ("TIMER-01",),
        "STATIC-23": ("TIMER-01", "LEAVE-04"),
        "JOIN-12": ("TIMER-01",),
        "HB-10": ("TIMER-01",),
        "COMMIT-14": ("TIMER-01",),
        "COMMIT-20": ("TIMER-01",),
        "FETCH-08": ("TIMER-01",),
        "ADMIN-10": ("TIMER-01",),
        # commits, fetches and filters
        "COMMIT-29": ("COMMIT-05",),
        "FETCH-04": ("FETCH-01",),
        "FETCH-07": ("FETCH-01",),
        "FETCH-09": ("FETCH-01",),
        "FETCH-14": ("FETCH-03",),
        "ADMIN-33": ("ADMIN-12",),
        # static members: instance ids, replacement, and members that are kept
        "HB-14": ("STATIC-06", "STATIC-07"),
        "COMMIT-21": ("STATIC-06", "STATIC-07"),
        "STATIC-05": ("STATIC-02",),
        "STATIC-09": ("STATIC-08",),
        "STATIC-10": ("STATIC-08",),
        "STATIC-11": ("STATIC-08",),
        "STATIC-12": ("STATIC-08",),
        "STATIC-13": ("STATIC-08",),
        "JOIN-38": ("STATIC-18",),
        "GEN-19": ("STATIC-18",),
        "GEN-20": ("GEN-06", "STATIC-18"),
        # generations
        "GEN-15": ("HB-04", "SYNC-04", "COMMIT-04"),
        # failover: first of all, the group comes back
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
        "STATIC-28": ("FAILOVER-02",),
        "SYNC-25": ("FAILOVER-02",),
    }
)
"""The nearest prerequisites of requirements, by the id of the one that presumes them."""
