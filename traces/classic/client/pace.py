"""Recommendations about the pace of a client, as monitors: backoffs, lookups, and the order of what it fetches."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.draining import is_in_part
from fencepost.traces.classic.client.joining import PASSING_ERRORS, error_in
from fencepost.traces.classic.client.news import describe_partitions
from fencepost.traces.classic.client.records import fetched_partitions
from fencepost.traces.classic.client.view import ClientView
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Finding, Findings, Seen, build_pass
from fencepost.traces.events import Operation

MIN_BACKOFF_MS = 10
"""What is shorter is no backoff."""
MANY = 3
"""So many repeats at once in a row show that a client does not wait: one whose call is nearly over may repeat a request
in the next call."""
PATIENCE = {"FindCoordinator": MANY, "OffsetCommit": MANY, "OffsetFetch": MANY, "JoinGroup": 1}
"""The requests that are repeated after an error that passes, and how many repeats at once show that a client does not
wait."""


@dataclass(frozen=True, slots=True)
class Backoffs:
    """A client waits before it repeats a request that failed."""

    requirements: ClassVar[frozenset[str]] = frozenset({"MEMBER-17"})
    observes: ClassVar[frozenset[str]] = frozenset(
        {*(f"{api} {kind}" for api in PATIENCE for kind in ("request", "response")), "command internal"}
    )
    failed: Mapping[str, int] = field(default_factory=dict)
    """When the last request to an API failed, if nothing came since."""
    at_once: Mapping[str, int] = field(default_factory=dict)
    """How many repeats in a row came at once."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        event, operation, api = seen.event, seen.operation, seen.event.api
        if operation is None:  # the application asks for something: what follows may be no repeat
            return self.forget("OffsetCommit"), ()
        if seen.name.endswith("response"):
            passing = PASSING_ERRORS if api != "JoinGroup" else {Error.COORDINATOR_LOAD_IN_PROGRESS}
            if error_in(event) in passing:
                return replace(self, failed={**self.failed, api: event.time}), ()
            return self.forget(api), ()
        if api not in self.failed:
            return self, ()
        waited = event.time - self.failed[api]
        count = self.at_once.get(api, 0) + 1 if waited < MIN_BACKOFF_MS else 0
        failed = {each: time for each, time in self.failed.items() if each != api}
        after = replace(self, failed=failed, at_once={**self.at_once, api: count})
        if count < PATIENCE[api]:
            return after, (build_pass("MEMBER-17", event.sequence),)
        title, expected = f"{api} is repeated at once", f"after {MIN_BACKOFF_MS} ms or more"
        observed = f"{count} times in a row after less"
        return after, (build_violation("MEMBER-17", event.sequence, title, expected, observed),)

    def forget(self, api: str) -> Self:
        """Nothing has failed."""
        left = [{each: value for each, value in known.items() if each != api} for known in (self.failed, self.at_once)]
        return replace(self, failed=left[0], at_once=left[1])

    def finish(self, view: ClientView, time: int) -> Findings:
        """What is not repeated shows nothing."""
        return ()


LOOKED_FOR = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch")
"""Requests after whose refusal by a node that does not coordinate the group the client looks for another one."""


@dataclass(frozen=True, slots=True)
class FormerCoordinators:
    """A client that has certainly read that another node coordinates looks for that before it asks again."""

    requirements: ClassVar[frozenset[str]] = frozenset({"MEMBER-39"})
    observes: ClassVar[frozenset[str]] = frozenset(
        {f"{api} {kind}" for api in (*LOOKED_FOR, "LeaveGroup", "FindCoordinator") for kind in ("request", "response")}
    )
    moved: tuple[int, str] | None = None
    """When a request was told so, and its API, if the client has not looked since."""
    looked: int = -1
    """The handle of the last lookup."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        event, operation = seen.event, seen.operation
        assert operation is not None
        if seen.name == "FindCoordinator request":
            findings = (build_pass("MEMBER-39", event.sequence),) if self.moved is not None else ()
            return type(self)(None, operation.handle), findings
        if seen.name == "FindCoordinator response":
            rows = event.body.get("coordinators") or (event.body,)
            return (replace(self, moved=None) if any(not row["error_code"] for row in rows) else self), ()
        if seen.name.endswith("response"):
            is_sent_since = operation.api in LOOKED_FOR and operation.handle > self.looked
            is_refused = is_sent_since and error_in(event) == Error.NOT_COORDINATOR
            return (replace(self, moved=(event.time, event.api)) if is_refused else self), ()
        if self.moved is None or self.moved[0] + view.knowledge.grace >= view.awake_until:
            return self, ()
        told_at, api = self.moved
        title, expected = "A request to the former coordinator", "FindCoordinator first"
        observed = f"{operation.api} {event.time - told_at} ms after {api} got NOT_COORDINATOR"
        found = build_violation("MEMBER-39", event.sequence, title, expected, observed, view.knowledge.latest.news)
        return replace(self, moved=None), (found,)

    def finish(self, view: ClientView, time: int) -> Findings:
        """Whoever asks nobody asks no former coordinator."""
        return ()


MIN_FETCHES = 8
"""So many fetches show in which order their partitions are."""
MIN_ORDERED = 3
"""So many partitions have an order."""


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """Fetches of the same partitions, after some of these had records, do not all begin with the same one."""

    requirements: ClassVar[frozenset[str]] = frozenset({"PREFETCH-10"})
    observes: ClassVar[frozenset[str]] = frozenset({"Fetch request", "delivered internal"})
    has_delivered: bool = False
    """Some partitions had records, and others had not, since the last Fetch of which the order was noted."""
    firsts: Mapping[frozenset[TopicPartition], tuple[TopicPartition, ...]] = field(default_factory=dict)
    """The first partitions of fetches, by all their partitions."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        if seen.operation is None:
            return replace(self, has_delivered=self.has_delivered or is_in_part(view, seen.event)), ()
        order = self.order_of(view, seen.operation)
        if len(order) < MIN_ORDERED or not self.has_delivered or view.join is None:
            return self, ()
        key = frozenset(order)
        firsts = {**self.firsts, key: (*self.firsts.get(key, ()), order[0])}
        return replace(self, has_delivered=False, firsts=firsts), ()

    def order_of(self, view: ClientView, fetch: Operation) -> list[TopicPartition]:
        """The partitions of a Fetch, each once."""
        return list(dict.fromkeys(fetched_partitions(view, fetch)))

    def finish(self, view: ClientView, time: int) -> Findings:
        """Enough fetches of the same partitions show whether they keep one order."""
        return tuple(self.judge(firsts) for firsts in self.firsts.values() if len(firsts) >= MIN_FETCHES)

    def judge(self, firsts: tuple[TopicPartition, ...]) -> Finding:
        """What the fetches of the same partitions show."""
        if len(set(firsts)) > 1:
            return build_pass("PREFETCH-10", 0)
        title, expected = "Fetches of the same partitions keep one order", "another partition first in some"
        observed = f"{describe_partitions(firsts[:1])} first in {len(firsts)} fetches"
        return build_violation("PREFETCH-10", 0, title, expected, observed)
