"""Random traces, some with answers made wrong, and what the judge says of them without a pipeline."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import TraceVerdict, Violation
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import random_trace

ERROR_CODES = (0, 16, 22, 25, 27, 82)


def altered_trace(seed: int, steps: int = 40) -> tuple[Header, Sequence[Event]]:
    """A random trace: every fourth as clients see it, of the others most with a wrong answer or two."""
    source = random.Random(seed)
    if seed % 4 == 3:  # in these, a wrong answer may take the judge minutes
        header, events = random_trace(source, steps // 3, 10)
        return as_seen_by_clients(replace(header, grace=24), tuple(without_late_responses(events)), source, 12)
    header, events = random_trace(source, steps)
    if seed % 5 == 4:  # it begins in the middle
        remark = Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "a recording begins"})
        later = (
            replace(each, sequence=each.sequence + 1, of=None if each.of is None else each.of + 1)
            for each in events[4:]
        )
        events = tuple(without_orphans([remark, *later]))
    if seed % 5 == 1:
        events = (*events, *lookup_events(events[-1].sequence + 1, events[-1].time))
    responses = [
        place for place, event in enumerate(events) if event.kind is Kind.RESPONSE and event.api in ALTERED_APIS
    ]
    wrong = set(source.sample(responses, min(len(responses), seed % 4)))
    return header, [alter_error(event, source) if place in wrong else event for place, event in enumerate(events)]


ALTERED_APIS = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})


def without_late_responses(events: Iterable[Event]) -> Iterator[Event]:
    """The events without the answers that come over a connection that is gone."""
    gone: set[int | None] = set()
    for event in events:
        if event.kind is Kind.FAULT:
            gone.add(event.of)
        if event.kind is not Kind.RESPONSE or event.of not in gone:
            yield event


def lookup_events(sequence: int, time: int) -> Iterator[Event]:
    """Who coordinates a group, asked three times and answered in two ways, and once more after it has moved."""
    asked = {"key": "g", "key_type": 0}
    for place, node in enumerate((1, 1, 2, None, 2)):
        number = sequence + 2 * place
        if node is None:
            body = {"group_id": "g", "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
            yield Event(number, time, 0, "A", Kind.REQUEST, "Heartbeat", 4, body)
            refusal = {"error_code": int(Error.NOT_COORDINATOR)}  # as it is read from a file
            yield Event(number + 1, time, 0, "A", Kind.RESPONSE, "Heartbeat", 4, refusal, number)
            continue
        found = {"error_code": 0, "error_message": None, "node_id": node, "host": "h", "port": 9092}
        yield Event(number, time, 0, "A", Kind.REQUEST, "FindCoordinator", 3, asked)
        yield Event(number + 1, time, 0, "A", Kind.RESPONSE, "FindCoordinator", 3, found, number)


def without_orphans(events: Sequence[Event]) -> Iterator[Event]:
    """The events without those about requests that are not there."""
    sent = {event.sequence for event in events if event.kind is Kind.REQUEST}
    return (event for event in events if event.of is None or event.of in sent)


def alter_error(event: Event, source: random.Random) -> Event:
    """The answer with another error."""
    code = source.choice(ERROR_CODES)
    if "topics" not in event.body:
        return replace(event, body={**event.body, "error_code": code})
    topics = [
        {**topic, "partitions": [{**row, "error_code": code} for row in topic["partitions"]]}
        for topic in event.body["topics"]
    ]
    return replace(event, body={**event.body, "topics": topics})


def write_in_parts(folder: Path, header: Header, events: Sequence[Event], count: int) -> list[Path]:
    """The trace as a recording in so many parts: each but the first begins with the requests that are in flight."""
    size = -(-len(events) // count)
    paths: list[Path] = []
    numbers: dict[int, int] = {}
    in_flight: dict[int, Event] = {}
    for number, start in enumerate(range(0, len(events), size)):
        written = list(in_flight.values())
        if number:
            first = events[start]
            written.append(Event(first.sequence + number - 1, first.time, 0, "", Kind.INTERNAL, "continued", 0, {}))
        for event in events[start : start + size]:
            numbers[event.sequence] = event.sequence + number
            of = None if event.of is None else numbers[event.of]
            written.append(replace(event, sequence=event.sequence + number, of=of))
            if event.kind is Kind.REQUEST:
                in_flight[event.sequence] = written[-1]
            elif event.kind is Kind.RESPONSE and event.of is not None:
                in_flight.pop(event.of, None)
        told = {"recording": folder.name, "part": str(number + 1)}
        paths.append(folder / f"r.{number + 1:04}.jsonl")
        write_trace(paths[-1], replace(header, implementation=told), written)
    return paths


VerdictSummary = tuple[Counter[Violation], Counter[str], Counter[str], Counter[str], dict[str, bool]]


def summarize_verdicts(verdicts: Iterable[TraceVerdict]) -> VerdictSummary:
    """Everything that verdicts on parts of a trace say together, in no order."""
    faults: Counter[Violation] = Counter()
    rules, transitions, doubts = Counter[str](), Counter[str](), Counter[str]()
    decisions: dict[str, bool] = {}
    for each in verdicts:
        faults.update(each.violations)
        rules.update(each.rules)
        transitions.update({str(step): times for step, times in each.transitions.items()})
        doubts.update(each.inconclusive)
        decisions.update(each.decisions)
    return faults, rules, transitions, doubts, decisions


def judge_alone(header: Header, events: Sequence[Event]) -> VerdictSummary:
    """What `fencepost judge` finds."""
    return summarize_verdicts([Judge(header).judge_events(events)])
