"""Changes of Apache Kafka's coordinator within the same versions of its APIs, each read in the source before and after.

What a new version of an API brought needs no entry: a target that lacks the version is not asked.
"""

from fencepost.model.catalogue.requirement import Change

STATIC_REBALANCE = Change("2.5.0", "KAFKA-9801")
"""A static member that is replaced in CompletingRebalance starts a rebalance."""
STORED_REPLACEMENT = Change("2.6.1", "KAFKA-10284")
"""The replacement of a static member is stored."""
SYNC_TIMEOUT = Change("2.8.1", "KAFKA-12890")
"""A member that does not sync is removed at the rebalance timeout."""
KNOWN_INSTANCE = Change("3.0.0", "commit 5dae3648abd, pull request 9958")
"""An instance id that no member has is refused by every API, not by JoinGroup alone."""
OLD_LEADERS = Change("3.3.2", "KAFKA-14422")
"""A leader that asks in a version without instance ids is answered beside static members."""
TIMEOUTS_OF_A_REJOIN = Change("3.3.2", "KAFKA-14009")
"""A rejoin replaces the timeouts of the member."""
PARTIAL_COMMIT = Change("3.7.1", "KAFKA-16371")
"""A partition refused with OFFSET_METADATA_TOO_LARGE is not left pending."""
STATE_FILTER_CASE = Change("3.8.0", "KAFKA-16095")
"""Filters on states ignore case."""
