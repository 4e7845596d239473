"""A trace of the line protocol as its judge sees it: one job."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fencepost.model.region.rules import REGION
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.region.job_state import STATES, JobState
from fencepost.traces.judge.region.stepper import RegionStepper
from fencepost.traces.judge.search.configuration import Path
from fencepost.traces.model_transitions import TransitionFields
from fencepost.traces.operations import Operation

JOB = "job"
"""The name of the only job."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "open": ("operators", "max_poll_records"),
    "launch": ("operator", "region"),
    "crash": ("operator",),
    "restart": (),
    "retire": ("number",),
    "revoke": ("operator",),
    "assign": ("operator", "partitions", "starts"),
    "poll": ("operator", "records"),
    "take": ("operator", "permit"),
    "submit": ("operator", "permit"),
    "drain": ("operator", "error"),
    "checkpoint": ("operator", "number", "member"),
    "resume": ("operator",),
    "reset": ("operator", "number"),
    "finish": ("operator", "number"),
}
"""The fields that a request must have."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request as its group sees it; what it asks for is in its body."""

    group: str
    api: str
    operator: str


class RegionProtocol(JudgedProtocol):
    """Reads a trace of one job."""

    specification = REGION
    stepper = RegionStepper

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[JobRequest]:
        """The request; KeyError if it lacks a field."""
        body = operation.body
        for name in FIELDS[operation.api]:
            body[name]
        yield JobRequest(JOB, operation.api, body.get("operator", ""))

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the operator that the request is about."""
        request = step.request
        if step.start is None or step.outcome is None or not isinstance(request, JobRequest):
            return None
        before, after = (operator_label(state, request.operator) for state in (step.start, step.outcome.state))
        return before, request.api, step.rule, after

    def state_label(self, state: JobState) -> str:
        """How many operators are up, as text."""
        return f"{len(state.operators)} operators up"


def operator_label(state: JobState, name: str) -> str:
    """The state of an operator, as text; "job" where a request is about none."""
    if not name:
        return JOB
    operator = state.operator(name)
    return "down" if operator is None else STATES[operator.state].lower().replace("_", " ")
