"""Held-out faults of fetchers, in the order in which their statements were drawn."""

from collections.abc import Iterator

from fencepost.adapters.client.reference.client import ReferenceClient
from fencepost.adapters.client.reference.fetcher import Fetcher, ReturnedRecords
from fencepost.conformance.zoo.classic.clients.bug import ClientBugFamily, Side
from fencepost.conformance.zoo.mutation.patching import Patch
from fencepost.model.classic.member.client import Client

fetchers = ClientBugFamily(Side.FETCHER)


@fetchers.add("HELDOUT-17", "member.md 6.6: until m records are gathered or the queue is empty", "POLL-04")
def a_poll_returns_one_partition(patch: Patch) -> None:
    """A poll returns records of one partition, though there is room for those of the next."""
    drain = Fetcher.drain

    def drain_one(fetcher: Fetcher, client: Client) -> Iterator[ReturnedRecords]:
        for taken in drain(fetcher, client):
            yield taken
            if taken.offsets:
                return

    patch.replace(Fetcher, "drain", drain_one)


@fetchers.add("HELDOUT-18", "member.md 6.7: it waits for the unanswered fetch at its leader only", "PREFETCH-03")
def one_fetch_holds_all_leaders_up(patch: Patch) -> None:
    """While a Fetch to one leader has no response, none is sent to another."""
    is_fetching = ReferenceClient.is_fetching
    patch.replace(
        ReferenceClient, "is_fetching", lambda client, node: any(is_fetching(client, each) for each in [*client.links])
    )


@fetchers.add("HELDOUT-19", "member.md 6.6: no unanswered fetch at that broker", "PREFETCH-05")
def fetches_overlap(patch: Patch) -> None:
    """A Fetch is sent to a leader that owes the response to another, for the same partitions."""
    patch.replace(ReferenceClient, "is_fetching", lambda client, node: False)
    patch.replace(ReferenceClient, "partitions_in_flight", lambda client: set())


@fetchers.add("HELDOUT-20", "member.md 6.5: every poll starts at the first partition", "POLL-05")
def every_poll_starts_at_the_first_partition(patch: Patch) -> None:
    """Every poll starts at the first partition of those that have records."""
    drain = Fetcher.drain

    def drain_from_first(fetcher: Fetcher, client: Client) -> Iterator[ReturnedRecords]:
        rows = sorted(fetcher.queue, key=lambda completed: completed.partition)
        fetcher.queue.clear()
        fetcher.queue.extend(rows)
        yield from drain(fetcher, client)

    patch.replace(Fetcher, "drain", drain_from_first)


PASSED_OVER = {
    "6.6 when fetches are sent": "latitude",
    "6.6 a comparison of offsets that broke on gaps": "the bundled log has no gaps, as for BUG-148",
    "6.7 drain rule that avoids starvation": "a property of rules",
    "6.4 obligation of T2": "a proof",
    "6.7 H2 as a rational comparison": "the reference client has no heuristic",
    "6.1 the limit is over all partitions": "BUG-152",
    "6.3 AT is fairer per record": "a property of rules",
    "6.5 AT with heuristic 2": "the reference client has no heuristic",
    "6.7 T, x[p] and N": "a definition",
    "6.2 where the next poll starts": "latitude",
    "6.4 a natural number falls strictly": "a proof",
    "6.5 the same schedules with AFTER": "a property of rules",
}
