"""Known bugs of clients, of their assignors and of their fetchers, put back into the reference client."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.conformance.classic.zoo.clients.assigning import assigning
from fencepost.conformance.classic.zoo.clients.commits import commit_bugs
from fencepost.conformance.classic.zoo.clients.fetching import fetching
from fencepost.conformance.classic.zoo.clients.membership import membership, subscribing
from fencepost.conformance.zoo.fault import by_id

CLIENT_BUGS = by_id([membership, subscribing, commit_bugs, fetching, assigning])
"""Every known bug of a client that is put back, by its number."""
NOT_PUT_BACK: Mapping[str, str] = MappingProxyType(
    {
        "BUG-67": "responses on a connection keep their order: none of an old generation follows that of a new one",
        "BUG-71": "a claim without a generation is that of a member of an older version",
        "BUG-82": "the reference client, as Kafka's, goes on consuming while it looks for the coordinator",
        "BUG-83": "as BUG-67",
        "BUG-88": "the reference client has one connection to the coordinator, which keeps the order of commits",
        "BUG-90": "the reference client commits positions: its application marks no records",
        "BUG-94": "no cluster leaves out a partition that OffsetFetch asks for",
        "BUG-96": "the reference client has no leader epochs",
        "BUG-99": "as BUG-96",
        "BUG-104": "as BUG-67: the response to a heartbeat never overtakes that to SyncGroup",
        "BUG-110": "the reference client speaks no version of OffsetCommit with a retention time",
        "BUG-112": "the codec decodes each shape of no assignment alike",
        "BUG-130": "the reference assignors have no score to add up",
        "BUG-131": "the loops of the reference assignors share no index",
        "BUG-132": "the reference client has no list of built-in assignors; a test of real clients compares the order",
        "BUG-137": "no coordinator lists a member twice, and no requirement says what a leader makes of it",
        "BUG-148": "the bundled log is not compacted",
        "BUG-149": "the fetcher of the reference client keeps no errors in its queue",
        "BUG-150": "a client may drop what it has buffered of a paused partition (member.md 8)",
        "BUG-153": "as BUG-67: the response to OffsetFetch never comes after that to a later SyncGroup",
        "BUG-154": "the reference client has no call that collects records over several polls",
        "BUG-156": "the reference client validates no offsets",
        "BUG-158": "as BUG-148",
        "BUG-160": "the reference client has no workers",
        "BUG-166": "the reference client fetches from leaders alone",
    }
)
"""The bugs of the list that are not put back, with the reason."""
