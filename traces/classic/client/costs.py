"""What a client pays for news that should cost it nothing, and what it does not use: monitors of its next JoinGroup.

Both rest on the same proof. A stable member that was told of nothing, and whose application asks for nothing, has no
reason to join. If it does so all the same, the one piece of news that is left is its reason.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from fencepost.model.assignors.consumer_protocol import NEWEST_VERSION
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.joining import error_in, has_own_reason_to_join
from fencepost.traces.classic.client.membership import is_over, patience_for
from fencepost.traces.classic.client.news import describe_news, describe_partitions
from fencepost.traces.classic.client.records import fetched_partitions
from fencepost.traces.classic.client.view import ClientView, Phase
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Finding, Findings, Seen, build_pass
from fencepost.traces.verdict import CheckResult, CheckStatus

PASSING_ERRORS = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS})


def joins_for(view: ClientView, seen: Seen, sequence: int) -> bool:
    """Whether a JoinGroup arrives for which there is no other reason than the event with this sequence number."""
    if seen.name != "JoinGroup request" or has_own_reason_to_join(view):
        return False
    latest = view.knowledge.latest
    return latest.phase is Phase.STABLE and not latest.requirement and latest.sequence <= sequence


@dataclass(frozen=True, slots=True)
class OffsetErrors:
    """An OffsetFetch whose error says that the coordinator moves or loads is repeated, and costs no generation."""

    requirements: ClassVar[frozenset[str]] = frozenset({"MEMBER-14"})
    observes: ClassVar[frozenset[str]] = frozenset({"OffsetFetch response", "JoinGroup request"})
    failed: int = -1
    """The sequence number of the first response with such an error since the last JoinGroup or success, -1 for none."""
    told: str = ""
    """That response in words."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        event, operation = seen.event, seen.operation
        assert operation is not None
        if seen.name == "OffsetFetch response":
            if error_in(event) not in PASSING_ERRORS:
                return type(self)(), ()
            if self.failed >= 0:
                return self, ()
            name = Error(error_in(event)).name
            return type(self)(event.sequence, f"OffsetFetch got {name} at {event.time} ms"), ()
        if self.failed < 0 or not joins_for(view, seen, self.failed):
            return type(self)(), ()
        title, expected = "An OffsetFetch that fails costs the generation", "OffsetFetch again, and no JoinGroup"
        return type(self)(), (build_violation("MEMBER-14", event.sequence, title, expected, "JoinGroup", self.told),)

    def finish(self, view: ClientView, time: int) -> Findings:
        """Whoever has not joined has paid nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class NewerAssignments:
    """An assignment in a version to come is read by the part that is known, and used."""

    requirements: ClassVar[frozenset[str]] = frozenset({"WIRE-02"})
    observes: ClassVar[frozenset[str]] = frozenset({"SyncGroup response", "Fetch request", "JoinGroup request"})
    partitions: frozenset[TopicPartition] = frozenset()
    """Those of such an assignment, of which none was fetched yet."""
    sequence: int = -1
    since: int = 0
    told: str = ""
    """The response with it in words."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        event, operation = seen.event, seen.operation
        assert operation is not None
        if seen.name == "SyncGroup response":
            version = int.from_bytes((event.body.get("assignment") or bytes(2))[:2], signed=True)
            if version <= NEWEST_VERSION or not view.installed:
                return type(self)(), ()
            told = f"{describe_news(operation, event)} in version {version}"
            return type(self)(view.installed, event.sequence, event.time, told), ()
        if not self.partitions:
            return self, ()
        if seen.name == "Fetch request":
            is_used = not self.partitions.isdisjoint(fetched_partitions(view, operation))
            return (type(self)(), (build_pass("WIRE-02", event.sequence),)) if is_used else (self, ())
        if joins_for(view, seen, self.sequence):
            return type(self)(), (self.find_unused(event.sequence, "JoinGroup"),)
        return type(self)(), ()

    def finish(self, view: ClientView, time: int) -> Findings:
        """An assignment that is never used is a violation once its time has passed."""
        waited = time - self.since
        if not self.partitions or is_over(view):
            return ()
        if waited > patience_for(view, "Fetch") and not view.is_unheard(time, view.knowledge.grace):
            return (self.find_unused(self.sequence, f"none for {waited} ms"),)
        return (CheckResult("WIRE-02", self.sequence, CheckStatus.INCONCLUSIVE, f"{self.told}, {waited} ms ago"),)

    def find_unused(self, sequence: int, observed: str) -> Finding:
        """The violation by a client that does not use the assignment."""
        title, expected = "An assignment of a newer version is not used", describe_partitions(self.partitions)
        return build_violation("WIRE-02", sequence, title, f"Fetch of {expected}", observed, self.told)
