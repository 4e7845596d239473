"""Traces of groups in which for long stretches members only show that they are alive and commit, and altered ones.

Between the stretches anything happens that a random client does. The alterations are what a judge might miss that
remembers what calm groups do: other errors, restarts, other topics, fenced members, deadlines that are just reached.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from tests.support.altered_traces import alter_error, without_late_responses
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import IDS, TOPICS, Body, RandomClient, RandomMember

SETTINGS = (
    Settings(100, 5_000, 0, 6, 20, 4_000, 700, new_member_timeout=2_000),
    Settings(100, 5_000, 0, 100, 20, 100_000, 50_000),
)
SESSION_MS = 3_000
"""The session timeout of members that gather."""
PAUSES_MS = (0, 1, 1, 5, 30)
DELAYS_MS = (1, 700, SESSION_MS - 31, SESSION_MS - 1, SESSION_MS, SESSION_MS + 1, 2 * SESSION_MS)
"""How much later an alteration lets the rest of a trace happen."""
TRAVEL_MS = 3
"""How long a message travels between a client and the coordinator, at most."""


class CalmClient(RandomClient):
    """A random client with stretches in which members do the same again and again."""

    async def run(self, steps: int) -> None:
        """So many stretches."""
        oddities: list[Callable[[], object]] = [
            *(self.join, self.sync, self.leave, self.heartbeat, self.commit, self.fetch, self.describe),
            *(self.delete_offsets, self.transaction, self.end, self.drop, self.list_groups),
        ]
        for _ in range(steps):
            await self.gather()
            if self.is_likely(0.04):
                await self.restart()
            for _ in range(self.source.randint(20, 250)):
                if self.is_likely(0.02):
                    self.source.choice(oddities)()
                self.show_life(self.pick_member())
                self.process_responses()
                await asyncio.sleep(self.source.choice(PAUSES_MS) / 1_000)
            if self.is_likely(0.3):
                self.source.choice(oddities)()
                await self.wait()
        self.process_responses()

    def show_life(self, actor: RandomMember) -> None:
        """The actor heartbeats or commits, as the same every time."""
        if actor.generation < 1:
            return
        membership = {"group_id": "g", "member_id": actor.id}
        if self.is_likely(0.7):
            self.send("Heartbeat", 4, membership | {"generation_id": actor.generation}, actor)
            return
        version = 10 if actor.label < "C" else 8
        row: Body = {"partition_index": self.source.choice((0, 1)), "committed_offset": self.source.randint(0, 99)}
        row |= {"committed_metadata": self.source.choice(("", "note")), "committed_leader_epoch": -1}
        topics = [{**self.topic_key("t", version), "partitions": [row]}]
        body = membership | {"generation_id_or_member_epoch": actor.generation, "topics": topics}
        self.send("OffsetCommit", version, body, actor)


def calm_trace(source: random.Random, stretches: int) -> tuple[Header, tuple[Event, ...]]:
    """A trace with so many calm stretches, seen at the coordinator."""
    settings = source.choice(SETTINGS)

    async def main() -> tuple[Event, ...]:
        target = InProcessTarget(settings, topics=TOPICS)
        await target.open()
        loop = asyncio.get_running_loop()
        recorder = TraceBuilder(lambda: round(loop.time() * 1_000))
        await CalmClient(source, target, recorder, 0).run(stretches)
        events = recorder.events
        await target.close()
        return events

    return Header("calm", Order.TOTAL, "virtual", settings, 0), run_virtual(main())


# --- alterations ---------------------------------------------------------------------------------------------------

Alteration = Callable[[list[Event], random.Random], list[Event]]


def places_of(events: Sequence[Event], kind: Kind, *apis: str) -> list[int]:
    """Where events of this kind are."""
    return [place for place, event in enumerate(events) if event.kind is kind and (not apis or event.api in apis)]


def insert(events: list[Event], source: random.Random, kind: Kind, api: str, body: Mapping[str, Any]) -> list[Event]:
    """The events with another one somewhere, about no request."""
    place = source.randrange(1, len(events))
    return [*events[:place], Event(-1, events[place].time, 0, "", kind, api, 0, body), *events[place:]]


def wrong_error(events: list[Event], source: random.Random) -> list[Event]:
    """A response has another error."""
    place = source.choice(places_of(events, Kind.RESPONSE, "Heartbeat", "OffsetCommit"))
    return [*events[:place], alter_error(events[place], source), *events[place + 1 :]]


def other_throttle(events: list[Event], source: random.Random) -> list[Event]:
    """A response throttles."""
    place = source.choice(places_of(events, Kind.RESPONSE, "Heartbeat", "OffsetCommit"))
    body = {**events[place].body, "throttle_time_ms": source.choice((0, 7))}
    return [*events[:place], replace(events[place], body=body), *events[place + 1 :]]


def restart(events: list[Event], source: random.Random) -> list[Event]:
    """The target was restarted, perhaps with another size limit."""
    return insert(events, source, Kind.FAULT, "restart", source.choice(({}, {"max_group_size": source.randint(1, 6)})))


def move(events: list[Event], source: random.Random) -> list[Event]:
    """The group is about to be moved, and perhaps was."""
    begun = insert(events, source, Kind.FAULT, "move", {"group": "g"})
    place = next(place for place, event in enumerate(begun) if event.api == "move")
    end = insert(begun[place:], source, Kind.FAULT, "moved", {"group": source.choice("gh"), "old": 0, "new": 1})
    return begun[:place] + end if source.random() < 0.7 else begun


def gap(events: list[Event], source: random.Random) -> list[Event]:
    """The trace does not show everything."""
    return insert(events, source, Kind.INTERNAL, "unknown", {"reason": "altered"})


def late_topics(events: list[Event], source: random.Random) -> list[Event]:
    """The topics are told later."""
    topics = next(event for event in events if event.api == "topics")
    return insert([event for event in events if event is not topics], source, Kind.INTERNAL, "topics", topics.body)


def other_topics(events: list[Event], source: random.Random) -> list[Event]:
    """Ids become those of other topics, or a difference of the reference coordinators is decided."""
    names = source.sample(sorted(IDS), len(IDS))
    ids = {name: IDS[other] for name, other in zip(sorted(IDS), names, strict=True)}
    decisions = {"sync_in_stable_keeps_session": source.random() < 0.5}
    body = source.choice(({"topics": TOPICS, "ids": ids}, {"topics": {"t": 1}}, {"topics": {}, "decisions": decisions}))
    return insert(events, source, Kind.INTERNAL, "topics", body)


def metadata(events: list[Event], source: random.Random) -> list[Event]:
    """A response to Metadata names the topics in another way."""
    place, topics = source.randrange(1, len(events)), [{"name": "u", "topic_id": IDS[source.choice(("t", "u"))]}]
    asked = Event(-1, events[place].time, 0, "", Kind.REQUEST, "Metadata", 12, {"topics": None})
    told = replace(asked, kind=Kind.RESPONSE, body={"topics": topics}, of=-1)
    return [*events[:place], asked, told, *events[place:]]


def pause(events: list[Event], source: random.Random) -> list[Event]:
    """From some event on everything happens later."""
    place, delay = source.randrange(1, len(events)), source.choice(DELAYS_MS)
    return events[:place] + [replace(event, time=event.time + delay) for event in events[place:]]


def late_response(events: list[Event], source: random.Random) -> list[Event]:
    """A response comes later, or not at all."""
    place = source.choice(places_of(events, Kind.RESPONSE, "Heartbeat", "OffsetCommit"))
    rest, later = events[place + 1 :], min(len(events) - place - 1, source.randint(0, 12))
    if not later:
        return events[:place] + rest
    moved = replace(events[place], time=rest[later - 1].time)
    return [*events[:place], *rest[:later], moved, *rest[later:]]


def other_sender(events: list[Event], source: random.Random) -> list[Event]:
    """A request is of another generation, version or member, or names an instance: somebody who may be fenced."""
    place = source.choice(places_of(events, Kind.REQUEST, "Heartbeat", "OffsetCommit"))
    event = events[place]
    name = "generation_id" if event.api == "Heartbeat" else "generation_id_or_member_epoch"
    change: Body = source.choice(
        (
            {"group_instance_id": source.choice("ij")},
            {"member_id": source.choice(("", "nobody", None))},
            {name: event.body.get(name, 0) + source.choice((-1, 1))},
            {"group_id": "h"},
            {"member_id": ["malformed"]},
        )
    )
    version = event.version if source.random() < 0.8 else event.version - 1
    return [*events[:place], replace(event, body={**event.body, **change}, version=version), *events[place + 1 :]]


def routed(events: list[Event], source: random.Random) -> list[Event]:
    """A request was sent to some node."""
    place = source.choice(places_of(events, Kind.REQUEST, "Heartbeat", "OffsetCommit"))
    event = events[place]
    where = Event(-1, event.time, 0, "", Kind.INTERNAL, "routed", 0, {"broker": source.choice((0, 1))}, event.sequence)
    return [*events[: place + 1], where, *events[place + 1 :]]


def closed(events: list[Event], source: random.Random) -> list[Event]:
    """The target closed a connection in place of a response."""
    place = source.choice(places_of(events, Kind.RESPONSE, "Heartbeat", "OffsetCommit"))
    fault = replace(events[place], kind=Kind.FAULT, api=source.choice(("closed", "drop")), body={})
    return [*events[:place], fault, *events[place + 1 :]]


ALTERATIONS: tuple[Alteration, ...] = (
    *(wrong_error, other_throttle, restart, move, gap, late_topics, other_topics, metadata),
    *(pause, late_response, other_sender, routed, closed),
)


def altered_calm_trace(seed: int, stretches: int = 6) -> tuple[Header, tuple[Event, ...]]:
    """A calm trace with up to three alterations, every third as clients see it; equal seeds make equal traces. One in
    which nobody shows that it is alive stays as it is."""
    source = random.Random(seed)
    if seed % 3 == 2:  # overlapping operations may take the judge long
        header, events = calm_trace(source, stretches // 2)
        far = replace(header, grace=4 * TRAVEL_MS)
        header, events = as_seen_by_clients(far, tuple(without_late_responses(events)), source, TRAVEL_MS)
    else:
        header, events = calm_trace(source, stretches)
        header = replace(header, grace=source.choice((0, 0, 40)))
    altered = list(events)
    for alter in source.sample(ALTERATIONS, source.choice((0, 1, 1, 2, 3))):
        if places_of(altered, Kind.RESPONSE, "Heartbeat", "OffsetCommit"):
            altered = renumber(alter(altered, source))
    return header, tuple(altered)


def renumber(events: Iterable[Event]) -> list[Event]:
    """The events with sequence numbers in order; a response right after an inserted request belongs to it."""
    numbers: dict[int, int] = {}
    found = []
    for number, event in enumerate(events):
        of = None if event.of is None else numbers.get(event.of, number)
        numbers[event.sequence] = number
        found.append(replace(event, sequence=number, of=of))
    return found
