"""What clients see of a schedule recorded at the coordinator: requests sent earlier, answers received later."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from fencepost.traces.events import Event, Header, Kind, Order


@dataclass(frozen=True, slots=True)
class Network:
    """How long messages travel: mostly short, in milliseconds at most."""

    longest: int

    def delay(self, source: random.Random) -> int:
        """The time one message takes."""
        return source.randint(0, self.longest) if source.random() < 0.3 else source.randint(0, 2)


def seen_by_clients(
    header: Header, events: Sequence[Event], source: random.Random, network: Network
) -> tuple[Header, tuple[Event, ...]]:
    """The same schedule as an intervals trace. Nothing crosses a restart: it cuts all connections."""
    moved: list[tuple[int, int, float, Event]] = []
    span = 0
    sent: dict[int, tuple[int, int, float]] = {}
    begun = {0: 0}
    for event in events:
        if event.kind is Kind.FAULT and event.api == "restart":
            span += 1
            begun[span] = event.time
            moved.append((span, event.time, -1.0, event))
        elif event.kind is Kind.REQUEST:
            time = max(begun[span], event.time - network.delay(source)) if span else event.time - network.delay(source)
            sent[event.sequence] = (span, time, source.random())
            moved.append((*sent[event.sequence], event))
        elif event.of is not None:
            moved.append((span, event.time + network.delay(source), source.random() + 1, event))
        else:
            moved.append((span, event.time - network.longest, -1.0, event))
    return replace(header, order=Order.INTERVALS), numbered(moved, begun)


def numbered(moved: list[tuple[int, int, float, Event]], begun: dict[int, int]) -> tuple[Event, ...]:
    """The events in the order they are seen, with times that begin at 0 and an answer behind its request."""
    ends = {span - 1: time for span, time in begun.items() if span}
    cut = [(span, min(time, ends.get(span, time)), tie, event) for span, time, tie, event in moved]
    start = min((time for _, time, _, _ in cut), default=0)
    numbers, found = count(), list[Event]()
    renamed: dict[int, int] = {}
    for _, time, _, event in sorted(cut, key=lambda row: row[:3]):
        number = next(numbers)
        renamed[event.sequence] = number
        of = None if event.of is None else renamed[event.of]
        found.append(replace(event, sequence=number, time=time - min(start, 0), of=of))
    return tuple(found)
