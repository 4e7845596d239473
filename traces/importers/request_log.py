"""Imports Kafka's request log as a trace: the clients' requests and the responses, as the brokers saw them.

A request that was not answered before the log ends has no line. Where a group shows at the end that such a request had
begun a rebalance, what it did from there on is left out.

A JoinGroup or SyncGroup that waits when its member sends the next one is never answered, and has no line either. As a
broker reads nothing from a connection while a request waits there, the next one comes on another connection. So while
a member changes its connection the state of its group is not known; and nothing is known of a group whose members use
several connections at once.
"""

import heapq
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_NAMES, body_from_json, encode_request, encode_response
from fencepost.traces.events import Body, Header, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer
from fencepost.traces.frames import GROUP_CHANGING_APIS, ConnectionDecoder, WireTrace
from fencepost.traces.importers.log_layout import parse_time, read_log_lines
from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS
from fencepost.traces.message_fields import named_groups, objects_in

# --- Lines of Kafka's request log (`kafka.request.logger` at level DEBUG or TRACE): one for each request, when it is
# done.
#
# A line has the request and the response as JSON (Kafka 2.7 and newer), the connection, and how long it took. So the
# time of the line is that of the response, and the request was received that long before.

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


QUICK_MS = 1_000
"""Requests that take longer are held in memory while a log is read: JoinGroup and SyncGroup, mostly."""
REBALANCE_ERRORS = frozenset({Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID, Error.NON_EMPTY_GROUP})
"""Errors that a JoinGroup without a line may have caused."""
REBALANCING_STATE = "PreparingRebalance"
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat"})
"""APIs that succeed only when no JoinGroup waits, or none waits any longer."""


@dataclass(frozen=True, slots=True)
class RequestLogSource:
    """The files of request logs, and facts about the cluster. `grace` is in milliseconds."""

    paths: Sequence[Path]
    settings: Settings | None = None
    """None if unknown: Kafka's defaults are assumed then, and responses that contradict only them are inconclusive."""
    grace: int = DEFAULT_GRACE_MS


@dataclass(slots=True)
class RequestLogImportResult:
    """Counts of an import: events written, lines read, requests in them, those that cannot be read, and those left out
    at the end."""

    events: int = 0
    lines: int = 0
    requests: int = 0
    undecoded: int = 0
    left_out: int = 0


@dataclass(slots=True)
class LogSurvey:
    """What has to be known of a log before its first event is written."""

    begun: float
    """Time of the first event, in milliseconds since 1970."""
    first_line: float
    """Time of the first line."""
    slow: list[LoggedRequest] = field(default_factory=list)
    """The requests that took longer than `QUICK_MS`."""
    tails: dict[str, int] = field(default_factory=dict)
    """For a group that may be in a rebalance that the log does not show: the number of the first line that shows it."""
    changes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """For a group, while its members change their connections: the numbers of a member's last line on the old one, and
    of the first on the new one."""
    parallel: set[str] = field(default_factory=set)
    """The groups with members that use several connections at once."""
    members: OrderedDict[tuple[str, str], tuple[str, int, frozenset[str]]] = field(default_factory=OrderedDict)
    """For each member its connection, the number of its last line, and the connections that it had before."""

    def is_left_out(self, request: LoggedRequest) -> bool:
        """Whether a request concerns a group of whose state the log does not show enough then."""
        number = request.number
        return any(
            number >= self.tails.get(group, number + 1)
            or group in self.parallel
            or any(last < number <= first for last, first in self.changes.get(group, ()))
            for group, _ in shown_groups(request)
        )

    def groups_found_again(self, request: LoggedRequest) -> Iterator[str]:
        """Yield the group whose member has changed its connection with this request, if any."""
        for group, _ in shown_groups(request):
            if group not in self.parallel and any(first == request.number for _, first in self.changes.get(group, ())):
                yield group

    def follow_member(self, request: LoggedRequest) -> None:
        """Note which connection a member uses."""
        if request.api not in MEMBER_APIS:
            return
        try:
            asked, told = request.bodies
        except ValueError:
            return
        # Who joins anew is told its id.
        group, member = str(asked.get("group_id")), str(asked.get("member_id") or told.get("member_id") or "")
        if not member:
            return
        connection, last, older = self.members.pop((group, member), (request.connection, request.number, frozenset()))
        if request.connection in older:
            self.parallel.add(group)
        elif request.connection != connection:
            self.changes.setdefault(group, []).append((last, request.number))
            older |= {connection}
        self.members[group, member] = request.connection, request.number, older
        if len(self.members) > MAX_CONNECTIONS:
            self.members.popitem(last=False)


class LogEvent(NamedTuple):
    """A request or its response, and the place where it belongs."""

    place: SortKey
    number: int
    is_response: bool
    request: LoggedRequest


def import_request_log(source: RequestLogSource, output: Path) -> RequestLogImportResult:
    """Write the requests and responses in these logs as a trace. The files are read twice.

    Raises `TraceError` if a file cannot be read or no file has a line of the request log, and `OSError` if the trace
    cannot be written.
    """
    counts = LineCounts()
    survey = survey_requests(read_requests(source.paths, counts))
    files = ", ".join(map(str, source.paths))
    if survey is None:
        raise TraceError(files, 0, "no line of a request log; is it that of kafka.request.logger, at level DEBUG?")
    told = {"recorder": "fencepost import request-log"}
    began = datetime(1970, 1, 1) + timedelta(milliseconds=survey.begun)
    told["began"] = began.isoformat(timespec="milliseconds")
    told |= {} if source.settings else {"settings": "assumed"}
    header = Header(files, Order.INTERVALS, "wall", source.settings or Settings(), source.grace, told)
    clock = 0
    with trace_writer(output, header) as write:
        writer = RequestLogWriter(WireTrace(write, lambda: clock), survey)
        is_first = True
        for event in in_order(read_requests(source.paths, LineCounts()), survey):
            if is_first and event.place[0] >= survey.first_line:
                writer.trace.mark_gap("the log begins")
                is_first = False
            clock = max(clock, round(event.place[0] - survey.begun))
            writer.write_event(event)
    return RequestLogImportResult(writer.trace.events, counts.lines, counts.requests, writer.undecoded, writer.left_out)


def survey_requests(requests: Iterable[LoggedRequest]) -> LogSurvey | None:
    """Look through a log; None if it has no requests."""
    survey: LogSurvey | None = None
    for request in requests:
        if survey is None:
            survey = LogSurvey(request.received[0], request.ended)
        survey.begun = min(survey.begun, request.received[0])
        if is_slow(request):
            survey.slow.append(request)
        survey.follow_member(request)
        for group, is_rebalancing in shown_groups(request):
            if is_rebalancing:
                survey.tails.setdefault(group, request.number)
            elif is_rebalancing is not None:
                survey.tails.pop(group, None)
    return survey


def is_slow(request: LoggedRequest) -> bool:
    """Whether a request took longer than `QUICK_MS`."""
    return request.duration > QUICK_MS


def shown_groups(request: LoggedRequest) -> Iterator[tuple[str, bool | None]]:
    """Yield each group that a request concerns, and whether its response shows that JoinGroup requests wait there, or
    that none does; None if it shows neither."""
    try:
        asked, told = request.bodies
    except ValueError:
        return
    if request.api in ("DescribeGroups", "ListGroups"):
        for row in objects_in(told, "groups"):
            yield str(row.get("group_id")), row.get("group_state") == REBALANCING_STATE
        return
    if request.api == "DeleteGroups":
        for row in objects_in(told, "results"):
            yield str(row.get("group_id")), row.get("error_code") == Error.NON_EMPTY_GROUP
        return
    errors = set(error_codes(told))
    for group in named_groups(asked):
        if errors & REBALANCE_ERRORS:
            yield group, True
        else:
            yield group, False if request.api in MEMBER_APIS and errors == {0} else None


def error_codes(response: Body) -> Iterator[int]:
    """Yield the error codes in a response about one group."""
    if "error_code" in response:
        yield response["error_code"]
    for topic in objects_in(response, "topics"):
        for row in objects_in(topic, "partitions"):
            yield row.get("error_code", 0)


def in_order(requests: Iterable[LoggedRequest], survey: LogSurvey) -> Iterator[LogEvent]:
    """Yield requests and responses where they belong, without those in the tails of groups."""
    early = sorted(LogEvent(each.received, each.number, False, each) for each in survey.slow)
    return heapq.merge(early, quick_events(requests))


def quick_events(requests: Iterable[LoggedRequest]) -> Iterator[LogEvent]:
    """Yield responses, and requests that are not slow, where they belong."""
    waiting: list[LogEvent] = []
    for request in requests:
        if not is_slow(request):
            heapq.heappush(waiting, LogEvent(request.received, request.number, False, request))
        heapq.heappush(waiting, LogEvent(request.responded, request.number, True, request))
        while waiting[0].place[0] < request.ended - QUICK_MS - LOG_DELAY_MS:
            yield heapq.heappop(waiting)
    while waiting:
        yield heapq.heappop(waiting)


class RequestLogWriter:
    """Writes the events of a log as those of a recorder."""

    def __init__(self, trace: WireTrace, survey: LogSurvey) -> None:
        self.trace = trace
        self.survey = survey
        self.undecoded = 0
        self.left_out = 0
        self.connections: OrderedDict[str, ConnectionDecoder] = OrderedDict()

    def write_event(self, event: LogEvent) -> None:
        """Write a request or a response; after one of a group that cannot be read, its state is unknown."""
        request = event.request
        if self.survey.is_left_out(request):
            self.left_out += event.is_response
            for group in self.survey.groups_found_again(request) if event.is_response else ():
                self.trace.mark_gap("a member changed its connection", group)
            return
        try:
            frame = request.response_frame() if event.is_response else request.request_frame()
            request.response_frame()  # both can be read, or neither is written
        except ValueError:
            self.undecoded += event.is_response
            if request.api in GROUP_CHANGING_APIS or not request.api:
                what = f"{request.api} v{request.version}" if request.api else "a line"
                self.trace.mark_gap(f"{what} cannot be read")
            return
        decoder = self.decoder_of(request.connection)
        if event.is_response:
            decoder.on_response(frame)
        else:
            decoder.on_request(frame)

    def decoder_of(self, connection: str) -> ConnectionDecoder:
        """The decoder of a connection, which is made at its first request."""
        found = self.connections.pop(connection, None) or self.trace.open_connection()
        self.connections[connection] = found
        if len(self.connections) > MAX_CONNECTIONS:
            _, oldest = self.connections.popitem(last=False)
            self.trace.close_connection(oldest.number)
        return found
