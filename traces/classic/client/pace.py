"""Recommendations about the pace of a client, as monitors: backoffs, lookups, and the order of what it fetches."""

from collections import defaultdict
from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.messages import (
    PASSING_ERRORS,
    describe_partitions,
    error_in,
    fetched_partitions,
    is_found,
    read_partition,
)
from fencepost.traces.classic.client.view import ClientView
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Findings, Seen, after, at_end, before, build_pass, check

MIN_BACKOFF_MS = 10
"""What is shorter is no backoff."""
MANY = 3
"""So many repeats at once in a row show that a client does not wait: one whose call is nearly over may repeat a request
in the next call."""
PATIENCE = {"FindCoordinator": MANY, "OffsetCommit": MANY, "OffsetFetch": MANY, "JoinGroup": 1}
"""The requests that are repeated after an error that passes, and how many repeats at once show that a client does not
wait."""


@dataclass(slots=True)
class Backoffs:
    """A client waits before it repeats a request that failed (MEMBER-17)."""

    failed: dict[str, int] = field(default_factory=dict)
    """When the last request to an API failed, if nothing came since."""
    at_once: dict[str, int] = field(default_factory=dict)
    """How many repeats in a row came at once."""

    @after(*(f"{api} response" for api in PATIENCE))
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """A request failed, or did not."""
        event, api = seen.event, seen.event.api
        passing = PASSING_ERRORS if api != "JoinGroup" else {Error.COORDINATOR_LOAD_IN_PROGRESS}
        if error_in(event) in passing:
            self.failed[api] = event.time
        else:
            self.forget(api)

    @before(*(f"{api} request" for api in PATIENCE))
    def judge_request(self, view: ClientView, seen: Seen) -> Findings:
        """A request is repeated."""
        event, api = seen.event, seen.event.api
        failed = self.failed.pop(api, None)
        if failed is None:
            return
        is_at_once = event.time - failed < MIN_BACKOFF_MS
        count = self.at_once[api] = self.at_once.get(api, 0) + 1 if is_at_once else 0
        title, expected = f"{api} is repeated at once", f"after {MIN_BACKOFF_MS} ms or more"
        observed = f"{count} times in a row after less"
        yield check(count < PATIENCE[api], "MEMBER-17", event.sequence, title, expected, observed)

    @after("command internal")
    def take_command(self, view: ClientView, seen: Seen) -> None:
        """The application asks for something: what follows may be no repeat."""
        self.forget("OffsetCommit")

    def forget(self, api: str) -> None:
        """Nothing has failed."""
        self.failed.pop(api, None)
        self.at_once.pop(api, None)


LOOKED_FOR = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch")
"""Requests after whose refusal by a node that does not coordinate the group the client looks for another one."""


@dataclass(slots=True)
class FormerCoordinators:
    """A client that has certainly read that another node coordinates looks for that before it asks again (MEMBER-39).

    `moved` is when a request was told so, and its API, if the client has not looked since; `looked` is the handle of
    the last lookup."""

    moved: tuple[int, str] | None = None
    looked: int = -1

    @before("FindCoordinator request")
    def judge_lookup(self, view: ClientView, seen: Seen) -> Findings:
        """The client looks for the coordinator."""
        if self.moved is not None:
            yield build_pass("MEMBER-39", seen.event.sequence)
        self.moved, self.looked = None, seen.request.handle

    @after("FindCoordinator response", *(f"{api} response" for api in LOOKED_FOR))
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """A node answers: a lookup, or that another one coordinates."""
        event, operation = seen.event, seen.request
        if operation.api == "FindCoordinator":
            self.moved = None if is_found(event) else self.moved
        elif (
            operation.api in LOOKED_FOR and operation.handle > self.looked and error_in(event) == Error.NOT_COORDINATOR
        ):
            self.moved = event.time, event.api

    @before("LeaveGroup request", *(f"{api} request" for api in LOOKED_FOR))
    def judge_request(self, view: ClientView, seen: Seen) -> Findings:
        """The client asks the node that it knows."""
        if self.moved is None or self.moved[0] + view.knowledge.grace >= view.awake_until:
            return
        (told_at, api), self.moved = self.moved, None
        title, expected = "A request to the former coordinator", "FindCoordinator first"
        observed = f"{seen.event.api} {seen.event.time - told_at} ms after {api} got NOT_COORDINATOR"
        news = view.knowledge.latest.news
        yield build_violation("MEMBER-39", seen.event.sequence, title, expected, observed, news)


MIN_FETCHES = 8
"""So many fetches show in which order their partitions are."""
MIN_ORDERED = 3
"""So many partitions have an order."""


@dataclass(slots=True)
class FetchOrder:
    """Fetches of the same partitions, after some of these had records, do not all begin with the same one
    (PREFETCH-10)."""

    has_delivered: bool = False
    """Some partitions had records, and others had not, since the last Fetch of which the order was noted."""
    firsts: dict[frozenset[TopicPartition], list[TopicPartition]] = field(default_factory=lambda: defaultdict(list))
    """The first partitions of fetches, by all their partitions."""

    @after("delivered internal")
    def take_delivery(self, view: ClientView, seen: Seen) -> None:
        """A Fetch response leaves: it has records of some partitions that its node leads for the client, or of all."""
        ends = set(map(read_partition, seen.event.body["ends"]))
        nodes = {view.leaders.get(partition) for partition in ends}
        wanted = sum(view.leaders.get(partition) in nodes for partition in view.installed or ())
        self.has_delivered |= len(ends) < wanted

    @before("Fetch request")
    def take_fetch(self, view: ClientView, seen: Seen) -> None:
        """A Fetch arrives."""
        order = fetched_partitions(seen.request, view.topic_names)
        if len(set(order)) >= MIN_ORDERED and self.has_delivered and view.join is not None:
            self.has_delivered = False
            self.firsts[frozenset(order)].append(order[0])

    @at_end
    def judge_order(self, view: ClientView, time: int) -> Findings:
        """Enough fetches of the same partitions show whether they keep one order."""
        for firsts in self.firsts.values():
            if len(firsts) >= MIN_FETCHES:
                title, expected = "Fetches of the same partitions keep one order", "another partition first in some"
                observed = f"{describe_partitions(firsts[:1])} first in {len(firsts)} fetches"
                yield check(len(set(firsts)) > 1, "PREFETCH-10", 0, title, expected, observed)
