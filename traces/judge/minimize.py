"""The smallest part of a recorded trace that no behaviour of the model explains.

Causality is kept: with a request goes all that came of it, and with a member id the JoinGroup that handed it out. The
violation stays where it is: what comes before it is still explained, and the same response is wrong in the same way.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import DEFAULT_PROTOCOL, MakeProtocol, judge
from fencepost.traces.shrinker import shrink
from fencepost.traces.verdict import Violation

DEFAULT_SECONDS = 5.0
"""How long a smaller part is looked for."""
MEMBER_ID_FIELD = "member_id"
"""The field by which messages name members."""


def minimize_trace(
    header: Header,
    events: Sequence[Event],
    violation: Violation,
    seconds: float = DEFAULT_SECONDS,
    protocol: MakeProtocol = DEFAULT_PROTOCOL,
) -> tuple[Event, ...]:
    """The part of a trace that shows this violation; the trace up to the violation if no smaller part does.

    `events` begin where the trace does. What can be tried in `seconds` decides: a slow machine may find a larger part.
    """
    history = events_until_response(events, violation.sequence)
    steps = [event.sequence for event in history if is_removable(event) and event.sequence != violation.sequence]
    givers = id_issuers(history)
    needs = {event.sequence: required_requests(event, givers) for event in history if event.kind is Kind.REQUEST}
    deadline = time.monotonic() + seconds

    def part(kept: Sequence[int]) -> tuple[Event, ...]:
        chosen = {*kept, violation.sequence}
        return tuple(
            event
            for event in history
            if (event.sequence if event.of is None else event.of) in chosen or is_annotation(event)
        )

    def fails(kept: tuple[int, ...]) -> bool:
        chosen = {*kept, violation.sequence}
        return all(needs.get(one, set()) <= chosen for one in chosen) and reproduces(
            header, part(kept), violation, protocol
        )

    if not fails(tuple(steps)):
        return history
    return part(shrink(steps, fails, may_continue=lambda: time.monotonic() < deadline))


def reproduces(header: Header, events: tuple[Event, ...], violation: Violation, protocol: MakeProtocol) -> bool:
    """The first thing wrong with these events is this fault."""
    verdict = judge(header, events, protocol=protocol)
    if verdict.inconclusive or not verdict.violations:
        return False
    first = verdict.violations[0]
    return (first.sequence, first.kind, first.group) == (violation.sequence, violation.kind, violation.group)


def events_until_response(events: Sequence[Event], sequence: int) -> tuple[Event, ...]:
    """The events up to the response to a request, or to the end if there is none."""
    ends = (place for place, event in enumerate(events) if event.of == sequence and event.kind is not Kind.INTERNAL)
    return tuple(events[: next(ends, len(events)) + 1])


def is_removable(event: Event) -> bool:
    """Something that can be left out with all that came of it."""
    return event.kind is Kind.REQUEST or (event.kind is Kind.FAULT and event.of is None)


def is_annotation(event: Event) -> bool:
    """Something that was known before, and is always needed."""
    return event.kind is Kind.INTERNAL and event.of is None


def id_issuers(events: Sequence[Event]) -> Mapping[str, int]:
    """By member id, the JoinGroup whose response showed it first."""
    found: dict[str, int] = {}
    for event in events:
        given = event.body.get(MEMBER_ID_FIELD)
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup" and event.of is not None and given:
            found.setdefault(given, event.of)
    return found


def required_requests(request: Event, issuers: Mapping[str, int]) -> set[int]:
    """The requests that handed out the ids in this one."""
    return {issuers[each] for each in member_ids_in(request.body) if each in issuers} - {request.sequence}


def member_ids_in(value: Any) -> Iterator[str]:
    """Every member id in a message."""
    if isinstance(value, Mapping):
        if isinstance(value.get(MEMBER_ID_FIELD), str):
            yield value[MEMBER_ID_FIELD]
        for each in value.values():
            yield from member_ids_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from member_ids_in(each)
