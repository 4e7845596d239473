"""A schedule recorded at the coordinator, as clients see it: requests sent earlier, responses received later."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.traces.events import Event, Header, Kind, Order


@dataclass(slots=True)
class ClientView:
    """Takes the events of one schedule and says when clients see them; messages travel up to `max_delay` milliseconds.

    Nothing crosses a restart: it cuts all connections. Nobody uses a member id before an answer has shown it.
    """

    source: random.Random
    max_delay: int
    restart_time: int | None = None
    first_shown: dict[str, int] = field(default_factory=dict)

    def pick_delay(self) -> int:
        """The time one message takes; mostly it is short."""
        return self.source.randint(0, self.max_delay if self.source.random() < 0.3 else min(2, self.max_delay))

    def observation_time(self, event: Event) -> int:
        """When clients see the event."""
        if event.kind is Kind.REQUEST:
            known = [self.first_shown[each] for each in strings_in(event.body) if each in self.first_shown]
            known += [] if self.restart_time is None else [self.restart_time]
            return max([event.time - self.pick_delay(), *known])
        if event.kind is Kind.FAULT and event.api == "restart":
            self.restart_time = event.time
        if event.of is None:
            return event.time - (self.max_delay if event.kind is Kind.INTERNAL else 0)
        new = [each for each in strings_in(event.body) if each not in self.first_shown]
        self.first_shown |= dict.fromkeys(new, event.time)
        return event.time + (0 if new else self.pick_delay())


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a message; some of them are member ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings_in(each)


def as_seen_by_clients(
    header: Header, events: Sequence[Event], source: random.Random, longest: int
) -> tuple[Header, tuple[Event, ...]]:
    """The same schedule as an intervals trace."""
    clients = ClientView(source, longest)
    moved = [(clients.observation_time(event), event) for event in events]
    restarts = [event.time for event in events if event.kind is Kind.FAULT and event.api == "restart"]
    cut = [(min([time, *(each for each in restarts if each >= event.time)]), event) for time, event in moved]
    start = min((time for time, _ in cut), default=0)
    renamed: dict[int, int] = {}
    found: list[Event] = []
    for number, (time, event) in enumerate(sorted(cut, key=lambda row: (row[0], row[1].sequence))):
        renamed[event.sequence] = number
        of = None if event.of is None else renamed[event.of]
        found.append(replace(event, sequence=number, time=time - min(start, 0), of=of))
    return replace(header, order=Order.INTERVALS), tuple(found)
