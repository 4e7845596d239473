"""Adversarial schedules with a stale commit: random traces in which a refused commit of an old generation is accepted.

Members come, go, expire, return and ask with old generations, coordinators restart; so there often is no moment between
the commit's generation and the commit at which the trace shows that the group has a member.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Kind
from tests.support.random_client import random_trace

STEPS = 60
"""Length of a random trace."""
COMMIT_GENERATION = "generation_id_or_member_epoch"


@dataclass(frozen=True, slots=True)
class StaleCommit:
    """A conformant trace, the same with a stale commit that is accepted, and the number of that response."""

    header: Header
    conformant: Sequence[Event]
    violating: Sequence[Event]
    sequence: int


def stale_commit(seed: int) -> StaleCommit:
    """The schedule of a seed: the first random trace with a commit that was refused for its older generation.

    Of several such commits it is the one that was sent longest after the last member had joined.
    """
    source = random.Random(f"stale commits {seed}")
    while True:
        header, events = random_trace(source, STEPS)
        refused = list(refused_commits(events))
        if refused:
            wrong = max(refused, key=lambda each: each[0])[1]
            violating = [accept(event) if event is wrong else event for event in events]
            return StaleCommit(header, events, violating, wrong.sequence)


def refused_commits(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """The responses that refuse a commit because a member had joined a later generation before it was sent.

    Each with the time in ms that had passed since then.
    """
    requests = {event.sequence: event for event in events if event.kind is Kind.REQUEST}
    current: dict[str, tuple[int, int]] = {}
    known: dict[int, tuple[int, int]] = {}
    for event in events:
        if event.kind is Kind.REQUEST:
            known[event.sequence] = current.get(event.body.get("group_id", ""), (-1, 0))
        elif event.kind is Kind.RESPONSE and event.of is not None:
            asked = requests[event.of].body
            if event.api == "JoinGroup" and event.body["error_code"] == Error.NONE:
                current[asked["group_id"]] = event.body["generation_id"], event.time
            elif event.api == "OffsetCommit" and 0 <= asked.get(COMMIT_GENERATION, -1) < known[event.of][0]:
                rows = [row for topic in event.body["topics"] for row in topic["partitions"]]
                if any(row["error_code"] == Error.ILLEGAL_GENERATION for row in rows):
                    yield requests[event.of].time - known[event.of][1], event


def accept(event: Event) -> Event:
    """The response to a commit without its errors."""
    topics = [
        {**topic, "partitions": [{**row, "error_code": 0} for row in topic["partitions"]]}
        for topic in event.body["topics"]
    ]
    return replace(event, body={**event.body, "topics": topics})
