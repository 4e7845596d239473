"""A trace as a sequence diagram: who sends what to whom, up to the wrong response, beside the phases of the group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fencepost.conformance.analysis.failures import (
    COMMON_FIELDS,
    MemberLabels,
    describe_fault,
    describe_fields,
    describe_value,
)
from fencepost.conformance.results import Failure
from fencepost.conformance.run.registry import protocol_named
from fencepost.model.errors import error_name
from fencepost.traces.events import Event, Header, Kind, Lookahead
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, decode_header
from fencepost.traces.history.recordings import StateChange, recording_parts
from fencepost.traces.judge.diagnosis.diagnosis import HIDDEN_FIELDS as HIDDEN_IN_RESPONSES
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.judge import Judge

MAX_STEPS = 80
"""How many steps a diagram has; earlier ones are counted."""
MAX_TEXT = 90
"""The longest text of a step, in characters."""
ROUNDS = range(2, 13, 2)
"""How many steps a round may have that is folded."""
LONG_PAUSE = 400
"""A time without a step that is told, in milliseconds."""
BARE_FIELDS = COMMON_FIELDS | {
    "retention_time_ms",
    "reason",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "protocol_name",
}
"""Fields of requests that a diagram has no room for."""


class StepKind(StrEnum):
    """What a step of a diagram shows."""

    REQUEST = "request"
    RESPONSE = "response"
    NO_RESPONSE = "no response"
    """The request was not answered while the trace lasted."""
    FAULT = "fault"
    """What the kit did to the target or to a connection."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a diagram.

    `time` is in milliseconds; `lane` is the place of the sender of the request among the lanes; `text` says what is
    sent; `request` is the sequence number of the request; `times` counts equal exchanges in a row that are folded into
    one; `is_wrong` marks the violation.
    """

    kind: StepKind
    time: int
    lane: int
    text: str
    request: int
    times: int = 1
    is_wrong: bool = False
    is_pushed: bool = False
    """The request goes from the coordinator to a member, and the response back."""

    @property
    def is_to_coordinator(self) -> bool:
        """Whether the arrow goes to the coordinator."""
        return (self.kind is StepKind.REQUEST) is not self.is_pushed


@dataclass(frozen=True, slots=True)
class SequenceDiagram:
    """The senders of requests as `lanes`, in the order in which they appear, the steps in the order of time, and how
    many earlier steps were left out."""

    lanes: tuple[str, ...]
    steps: tuple[Step, ...]
    omitted: int = 0
    target: str = "coordinator"
    """The name of the lane that requests go to."""

    def pause_before(self, place: int) -> int:
        """The milliseconds between a step and the one before it, 0 if that is no pause to tell."""
        if place == 0:
            return 0
        passed = self.steps[place].time - self.steps[place - 1].time
        return passed if passed > LONG_PAUSE else 0


def draw_sequence(
    events: Sequence[Event], wrong: int | None = None, pushed: frozenset[str] = frozenset()
) -> SequenceDiagram:
    """The diagram of a trace up to the response to the request with the sequence number `wrong`, or of all of it.
    `pushed` are the APIs of requests that the coordinator sends: there the request itself is what is wrong."""
    labels = MemberLabels(events)
    shown = list(events_until(events, wrong))
    lanes = tuple(dict.fromkeys(sender(event) for event in shown if event.kind is Kind.REQUEST))
    requests = {event.sequence: event for event in shown if event.kind is Kind.REQUEST}
    steps: list[Step] = []
    for event in shown:
        step = step_of(event, requests, lanes, labels)
        if step is not None:
            is_pushed = step.request in requests and requests[step.request].api in pushed
            judged = StepKind.REQUEST if is_pushed else StepKind.RESPONSE
            is_wrong = step.kind is judged and step.request == wrong
            steps.append(replace(step, is_wrong=is_wrong, is_pushed=is_pushed))
    if wrong in requests and not any(step.is_wrong for step in steps):
        last = steps[-1].time
        lane = lanes.index(sender(requests[wrong]))
        steps.append(Step(StepKind.NO_RESPONSE, last, lane, "no response", wrong, is_wrong=True))
    folded = fold_repeats(steps)
    return SequenceDiagram(lanes, tuple(folded[-MAX_STEPS:]), max(0, len(folded) - MAX_STEPS))


def events_until(events: Sequence[Event], wrong: int | None) -> Iterator[Event]:
    """The events up to the response to this request; all of them if there is none."""
    for event in events:
        yield event
        if wrong is not None and event.kind is Kind.RESPONSE and event.of == wrong:
            return


def sender(request: Event) -> str:
    """Who sends a request, for its lane."""
    return request.member or f"connection {request.connection}"


def step_of(event: Event, requests: dict[int, Event], lanes: Sequence[str], labels: MemberLabels) -> Step | None:
    """The step that shows an event; None for one that is not shown."""
    if event.kind is Kind.REQUEST:
        lane = sender(event)
        text = labels.rename(describe_request(event, labels))
        return Step(StepKind.REQUEST, event.time, lanes.index(lane), shorten(text), event.sequence)
    if event.kind is Kind.RESPONSE and event.of in requests:
        request = requests[event.of]
        text = labels.rename(describe_answer(event))
        return Step(StepKind.RESPONSE, event.time, lanes.index(sender(request)), shorten(text), event.of)
    if event.kind is Kind.FAULT:
        return Step(StepKind.FAULT, event.time, 0, describe_fault(event), event.sequence)
    return None


def describe_request(request: Event, labels: MemberLabels) -> str:
    """A request with the fields that differ from the defaults, without the id that its lane stands for."""
    body = dict(request.body)
    if labels.labels.get(str(body.get("member_id"))) == request.member:
        body.pop("member_id")
    shown = {name: value for name, value in body.items() if name not in BARE_FIELDS or value == ""}
    told = describe_fields(replace(request, body=shown))
    return f"{request.api} v{request.version} {told}".rstrip()


def describe_answer(response: Event) -> str:
    """The errors of a response, or the fields that it brings."""
    errors = sorted(errors_in(response.body) - {0})
    if errors:
        return ", ".join(map(error_name, errors))
    told = [
        f"{name}={describe_brought(name, value)}"
        for name, value in response.body.items()
        if name not in HIDDEN_IN_RESPONSES
        and name not in ("error_code", "protocol_type")
        and value is not False  # 0 tells something
        and value not in (None, "", b"", [], ())
    ]
    return (
        ", ".join(sorted(told, key=lambda each: each.startswith("protocol_name"))) or "OK"
    )  # what seldom matters last


def describe_brought(name: str, value: Any) -> str:
    """A field of a response; members are counted, and bytes are told by their number."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if name == "members" and isinstance(value, list | tuple):
        return f"{len(value)}"
    return describe_value(name, value)


def shorten(text: str) -> str:
    """The text, cut where it is too long."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}\N{HORIZONTAL ELLIPSIS}"


def fold_repeats(steps: Sequence[Step]) -> list[Step]:
    """The steps with equal rounds in a row as one that counts them: in a round all that is asked is answered."""
    folded: list[Step] = []
    place = 0
    while place < len(steps):
        sizes = (size for size in ROUNDS if is_repeat(folded[-size:], steps[place : place + size]))
        if size := next(sizes, 0):
            folded[-size:] = [replace(step, times=step.times + 1) for step in folded[-size:]]
            place += size
        else:
            folded.append(steps[place])
            place += 1
    return folded


def is_repeat(before: Sequence[Step], after: Sequence[Step]) -> bool:
    """Two rounds are equal, and nothing in them is wrong."""
    looks = [[(step.kind, step.lane, step.text, step.is_wrong) for step in steps] for steps in (before, after)]
    return looks[0] == looks[1] and not any(step.is_wrong for step in after) and is_round(before) and is_round(after)


def is_round(steps: Sequence[Step]) -> bool:
    """All that is asked in some steps is answered in them, and nothing else."""
    asked = [step.request for step in steps if step.kind is StepKind.REQUEST]
    answered = [step.request for step in steps if step.kind is StepKind.RESPONSE]
    return sorted(asked) == sorted(answered) and len(steps) == 2 * len(asked)


def format_duration(milliseconds: int) -> str:
    """A duration in words: 250 ms, 1.2 s, 3 min 20 s."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1_000:g} s"
    minutes, rest = divmod(milliseconds // 1_000, 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def read_excerpt(failure: Failure) -> tuple[Header, tuple[Event, ...]] | None:
    """The trace of a failure; None if it has none, or one that is none."""
    first, *lines = failure.excerpt.encode("ascii", "replace").splitlines(keepends=True) or [b""]
    if not first:
        return None
    try:
        return decode_header(first), tuple(map(decode_event, lines))
    except MalformedLineError:
        return None


def draw_excerpt(excerpt: tuple[Header, Sequence[Event]], wrong: int | None = None) -> SequenceDiagram:
    """The sequence diagram of a trace, by the protocol that its header names."""
    header, events = excerpt
    return draw_sequence(events, wrong, protocol_named(header.protocol).specification.pushed)


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase with its generation, from the step at `first` up to the one before `end`, counted from 0."""

    phase: str
    generation: int
    first: int
    end: int

    @property
    def title(self) -> str:
        """The phase in words."""
        return f"{self.phase}, generation {self.generation}" if self.generation > 0 else self.phase


def follow_phases(header: Header, events: Sequence[Event], steps: Sequence[Step]) -> tuple[PhaseSpan, ...]:
    """The phases of the group that changes most in a trace, as far as all explanations of the model agree on them.

    Nothing is said of a trace that the judge cannot read.
    """
    history = recording_parts().states()
    judge = Judge(header, on_advance=history.record_state)
    try:
        for moment in Lookahead(events).pair_operations():
            judge.on_event(moment.event, moment.operation)
        judge.finish()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ()
    changes = history.state_changes
    if not changes:
        return ()
    group, _ = Counter(change.group for change in changes).most_common(1)[0]
    return tuple(spans([change for change in changes if change.group == group], steps))


def spans(changes: Sequence[StateChange], steps: Sequence[Step]) -> Iterator[PhaseSpan]:
    """The phases by the steps that they last; those that no step falls into are left out."""
    starts = [(first_step(change, steps), change) for change in changes]
    for place, (first, change) in enumerate(starts):
        end = starts[place + 1][0] if place + 1 < len(starts) else len(steps)
        if first < end:
            yield PhaseSpan(change.phase, change.generation, first, end)


def first_step(change: StateChange, steps: Sequence[Step]) -> int:
    """The place of the first step in the new state: that of the request that led to it, or the first one later."""
    for place, step in enumerate(steps):
        if step.time > change.time or (step.time == change.time and step.request == change.sequence):
            return place
    return len(steps)
