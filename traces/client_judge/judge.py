"""Judges the client of a trace: a protocol follows it, and collects evidence for each requirement."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from fencepost.model.catalogue.requirement import Level, Requirement
from fencepost.traces.events import CLASSIC, SAVED, Event, Header, Kind, Lookahead, Operation
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict, Violation, without_remarks


class FollowedClient(Protocol):
    """A protocol's part of the judge: it follows one client and collects evidence."""

    def on_request(self, operation: Operation, event: Event) -> None:
        """The client sent a request."""

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response left the cluster: from now on the client may know of it."""

    def on_loss(self, operation: Operation, event: Event) -> None:
        """The connection ended before the response."""

    def on_other(self, event: Event) -> None:
        """Something happened beside the client's requests."""

    def on_end(self, time: int) -> None:
        """The trace ends; time in milliseconds."""

    def verdict(self, events: int) -> TraceVerdict:
        """What was found in so many events."""
        ...


FollowClient: TypeAlias = Callable[[Header, str], FollowedClient]
"""Begins to follow the client that has this label in the trace of this header."""


class ClientJudge:
    """Judges one client, event by event."""

    def __init__(self, header: Header, label: str, follow: FollowClient) -> None:
        self._client = follow(header, label)
        self._label = label
        self._pairs = Lookahead(())
        self._events = 0
        self._time = 0

    def on_event(self, event: Event) -> None:
        """Take the next event of the trace."""
        operation = self._pairs.pair_event(event).operation
        self._events += 1
        self._time = event.time
        if operation is None or operation.member != self._label:
            self._client.on_other(event)
        elif event.kind is Kind.REQUEST:
            self._client.on_request(operation, event)
        elif event.kind is Kind.RESPONSE:
            self._client.on_response(operation, event)
        elif event.kind is Kind.FAULT:
            self._client.on_loss(operation, event)

    def finish(self) -> TraceVerdict:
        """The verdict, if nothing more was seen after the last event."""
        self._client.on_end(self._time)
        return self._client.verdict(self._events)


def is_client_trace(header: Header) -> bool:
    """Whether a trace is one of a client under test: its cluster is scripted, and nothing to judge."""
    return header.implementation.get("subject") == "client"


def is_recording(header: Header) -> bool:
    """Whether a trace shows real members of consumer groups: it was recorded, or imported."""
    return "recorder" in header.implementation and header.protocol == CLASSIC


def is_driven_trace(header: Header) -> bool:
    """Whether a trace of a client has its application in it."""
    return "driver" in header.implementation


def judge_client(header: Header, events: Iterable[Event], label: str, follow: FollowClient) -> TraceVerdict:
    """The verdict on the client with this label in a trace, which ends with its last event. An excerpt is judged by the
    requirements that it was made for: what it leaves out would be missed by others."""
    judge = ClientJudge(header, label, follow)
    made_for: frozenset[str] | None = None
    for event in events:
        judge.on_event(event)
        if event.api == SAVED and event.body.get("left_out"):
            made_for = frozenset(event.body["requirements"])
    verdict = judge.finish()
    if made_for is None:
        return verdict
    violations = tuple(each for each in verdict.violations if made_for & set(each.requirements))
    checks = tuple(each for each in verdict.check_results if each.requirement in made_for)
    return replace(verdict, violations=violations, check_results=checks)


# --- The findings of a trace about the requirements of a client: violations, and results of checks.


def build_violation(
    requirement: str, sequence: int, title: str, expected: str, observed: str, told: str = ""
) -> Violation:
    """The violation by a request that a client must not send as it did, or did not send. `told` says what the client
    knew, in words."""
    return Violation(
        sequence,
        group="",
        api="",
        fields=(),
        observed=observed,
        allowed=(expected,),
        rule="",
        guard="",
        requirements=(requirement,),
        kind=f"{requirement}: {title}",
        tolerated=True,
        state=told,
        title=title,
    )


@dataclass(slots=True)
class Evidence:
    """Collects what is found of some requirements. A broken recommendation is no violation: it is unusual. Of
    violations that are alike the first is kept. Once it is closed, nothing is added any more."""

    requirements: Mapping[str, Requirement]
    violations: list[Violation] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    is_closed: bool = False

    def close(self) -> None:
        """From now on nothing is expected of the client."""
        self.is_closed = True

    def drop_remarks(self) -> None:
        """Forget the recommendations that are not kept."""
        self.checks = without_remarks(self.checks)

    def hand_out(self) -> list[CheckResult]:
        """The checks since the last time."""
        checks, self.checks = self.checks, []
        return checks

    def take(self, findings: Iterable[Violation | CheckResult]) -> None:
        """Take what a monitor has found."""
        for each in findings:
            if isinstance(each, Violation):
                self._violate(each)
            else:
                self._add_check(each)

    def _violate(self, violation: Violation) -> None:
        if violation.requirement not in self.requirements:
            return
        if self.requirements[violation.requirement].level is Level.SHOULD:
            note = f"{violation.title}: expected {violation.allowed[0]}, observed {violation.observed}"
            self._add_check(CheckResult(violation.requirement, violation.sequence, CheckStatus.UNUSUAL, note))
        elif not self.is_closed and all(
            (each.requirement, each.title) != (violation.requirement, violation.title) for each in self.violations
        ):
            self.violations.append(violation)

    def _add_check(self, result: CheckResult) -> None:
        if not self.is_closed and result.requirement in self.requirements:
            self.checks.append(result)
