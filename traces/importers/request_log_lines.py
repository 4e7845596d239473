"""Lines of Kafka's request log (`kafka.request.logger` at level DEBUG or TRACE): one for each request, when it is done.

A line has the request and the response as JSON (Kafka 2.7 and newer), the connection, and how long it took. So the time
of the line is that of the response, and the request was received that long before.
"""

import heapq
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost.model.wire.codec import API_NAMES, encode_request, encode_response
from fencepost.model.wire.kafka_json import body_from_json
from fencepost.traces.events import Body
from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.importers.log_files import parse_time, read_log_lines

MARK = "Completed request:"
MAX_LINE_CHARACTERS = 64 << 20
"""Longer lines are cut, and cannot be read then."""
LOG_DELAY_MS = 1.0
"""How long after a response its line may be written: the request was received so much earlier than it seems."""
MAX_BACKWARDS_MS = 60_000
"""How far the time may fall from a line to the next: several threads write, and clocks are corrected."""
MAX_CONNECTIONS = 100_000
"""Maximum number of connections of which the last response is remembered."""
LOGGED_APIS = frozenset(API_NAMES.values()) - {"Produce"}
"""The APIs that are read. Produce concerns no group, and holds nothing but records."""

SortKey = tuple[float, int, float]
"""The place of an event: its time in milliseconds; 0 if only its time counts, else 1 with the number of the line before
which, or after which, it has to be."""


@dataclass(frozen=True)
class LoggedRequest:
    """A line of the log: a request and its response. Times are in milliseconds since 1970, in the zone of the log."""

    number: int
    """Of the line, among all that were read."""
    ended: float
    duration: float
    connection: str
    api: str
    """Empty if the line is damaged."""
    version: int
    correlation: int
    client: str | None
    request: Any
    response: Any
    received: SortKey = (0.0, 0, 0.0)
    """Where its request belongs."""

    @property
    def responded(self) -> SortKey:
        """Where its response belongs: in the order of the lines."""
        return (self.ended, 1, float(self.number))

    @cached_property
    def bodies(self) -> tuple[Body, Body]:
        """The bodies of the request and the response. Raises `ValueError` if the kit cannot read them."""
        return (
            body_from_json(self.api + "Request", self.version, self.request),
            body_from_json(self.api + "Response", self.version, self.response),
        )

    def request_frame(self) -> bytes:
        """The request as it was on the wire, without its length. Raises `ValueError`."""
        return encode_request(self.api, self.version, self.correlation, self.client, self.bodies[0])

    def response_frame(self) -> bytes:
        """The response as it was on the wire, without its length. Raises `ValueError`."""
        return encode_response(self.api, self.version, self.correlation, self.bodies[1])


@dataclass(slots=True)
class LineCounts:
    """How many lines were read, and how many of them are of requests."""

    lines: int = 0
    requests: int = 0


def read_requests(paths: Sequence[Path], counts: LineCounts) -> Iterator[LoggedRequest]:
    """Yield the clients' requests in these logs, in the order in which they were done: parts of the log of one broker,
    and logs of several.

    Requests that brokers forward to each other are left out, and those of APIs that the kit does not know. Raises
    `TraceError` if a file cannot be read, or if its time falls by more than `MAX_BACKWARDS_MS`.
    """
    logs = (read_lines_in_order(path, counts) for path in paths)
    last_responses: OrderedDict[str, SortKey] = OrderedDict()
    for number, (ended, told) in enumerate(heapq.merge(*logs, key=lambda each: each[0])):
        done = parse_request(number, ended, told)
        if done is None:
            yield LoggedRequest(number, ended, 0.0, "", "", 0, 0, None, None, None, (ended, 1, float(number)))
        elif done.api in LOGGED_APIS and not told.get("isForwarded"):
            since = last_responses.pop(done.connection, None)
            received = (done.ended - done.duration - LOG_DELAY_MS, 0, float(number))
            # A broker handles the requests of one connection one after the other.
            place = received if since is None else max(received, (since[0], 1, since[2] + 0.5))
            done = replace(done, received=place)
            last_responses[done.connection] = done.responded
            if len(last_responses) > MAX_CONNECTIONS:
                last_responses.popitem(last=False)
            yield done


def read_lines_in_order(path: Path, counts: LineCounts) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the time and the JSON of each line of a request; the time never falls. Raises `TraceError`."""
    latest = 0.0
    for number, row in read_log_lines(path, MAX_LINE_CHARACTERS):
        counts.lines += 1
        start = row.find(MARK)
        time = parse_time(row) if start >= 0 else None
        if time is None:
            continue
        counts.requests += 1
        now = milliseconds(time)
        if now < latest - MAX_BACKWARDS_MS:
            fall = round((latest - now) / 1_000)
            raise TraceError(
                str(path), number, f"{fall} s before an earlier line: were clocks set back? Cut the log here"
            )
        latest = max(latest, now)
        yield latest, parse_json(row[start + len(MARK) :])


def parse_json(text: str) -> Mapping[str, Any]:
    """The JSON object at the beginning of a text; empty if there is none."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def parse_request(number: int, ended: float, told: Mapping[str, Any]) -> LoggedRequest | None:
    """The request that a line tells of; None if the line is not in the form of Kafka's request log."""
    try:
        header = told["requestHeader"]
        key, version, correlation = (
            int(header[name]) for name in ("requestApiKey", "requestApiVersion", "correlationId")
        )
        return LoggedRequest(
            number,
            ended,
            float(told["totalTimeMs"]),
            str(told["connection"]),
            API_NAMES.get(key, ""),
            version,
            correlation,
            header.get("clientId"),
            told["request"],
            told["response"],
        )
    except (KeyError, TypeError, ValueError):
        return None


def milliseconds(time: datetime) -> float:
    """A time of no zone in milliseconds since 1970."""
    return (time - datetime(1970, 1, 1)).total_seconds() * 1_000
