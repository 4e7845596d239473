"""The smallest part of a recorded trace that no behaviour of the model explains.

Causality is kept: with a request goes all that came of it, and with a member id the JoinGroup that handed it out. The
fault stays where it is: all that comes before it is still explained, and the same answer is wrong in the same way.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.shrinker import shrink
from fencepost.traces.verdict import Fault

SECONDS = 5.0
"""How long a smaller part is looked for."""
OWN = "member_id"
"""The field by which messages name members."""


def excerpt(header: Header, events: Sequence[Event], fault: Fault, seconds: float = SECONDS) -> tuple[Event, ...]:
    """The part of a trace that shows this fault of it; the trace up to the fault if no smaller part does.

    `events` begin where the trace does. What can be tried in `seconds` decides: a slow machine may find a larger part.
    """
    history = until(events, fault.sequence)
    steps = [event.sequence for event in history if is_step(event) and event.sequence != fault.sequence]
    givers = handed_out(history)
    needs = {event.sequence: needed(event, givers) for event in history if event.kind is Kind.REQUEST}
    deadline = time.monotonic() + seconds

    def part(kept: Sequence[int]) -> tuple[Event, ...]:
        chosen = {*kept, fault.sequence}
        return tuple(
            event
            for event in history
            if (event.sequence if event.of is None else event.of) in chosen or is_remark(event)
        )

    def fails(kept: tuple[int, ...]) -> bool:
        chosen = {*kept, fault.sequence}
        return all(needs.get(one, set()) <= chosen for one in chosen) and shows(header, part(kept), fault)

    if not fails(tuple(steps)):
        return history
    return part(shrink(steps, fails, more=lambda: time.monotonic() < deadline))


def shows(header: Header, events: tuple[Event, ...], fault: Fault) -> bool:
    """The first thing wrong with these events is this fault."""
    verdict = judge(header, events)
    if verdict.inconclusive or not verdict.faults:
        return False
    first = verdict.faults[0]
    return (first.sequence, first.kind, first.group) == (fault.sequence, fault.kind, fault.group)


def until(events: Sequence[Event], sequence: int) -> tuple[Event, ...]:
    """The events up to the answer to a request, or to the end if there is none."""
    ends = (place for place, event in enumerate(events) if event.of == sequence and event.kind is not Kind.INTERNAL)
    return tuple(events[: next(ends, len(events)) + 1])


def is_step(event: Event) -> bool:
    """Something that can be left out with all that came of it."""
    return event.kind is Kind.REQUEST or (event.kind is Kind.FAULT and event.of is None)


def is_remark(event: Event) -> bool:
    """Something that was known before, and is always needed."""
    return event.kind is Kind.INTERNAL and event.of is None


def handed_out(events: Sequence[Event]) -> Mapping[str, int]:
    """By member id the JoinGroup whose answer told of it first."""
    found: dict[str, int] = {}
    for event in events:
        given = event.body.get(OWN)
        if event.kind is Kind.ANSWER and event.api == "JoinGroup" and event.of is not None and given:
            found.setdefault(given, event.of)
    return found


def needed(request: Event, givers: Mapping[str, int]) -> set[int]:
    """The requests that handed out the ids in this one."""
    return {givers[each] for each in ids_in(request.body) if each in givers} - {request.sequence}


def ids_in(value: Any) -> Iterator[str]:
    """Every member id in a message."""
    if isinstance(value, Mapping):
        if isinstance(value.get(OWN), str):
            yield value[OWN]
        for each in value.values():
            yield from ids_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from ids_in(each)
