"""Short traces by hand: one member of one group, its requests and responses, restarts and marks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=0)
SESSION = 10_000
LATER = 20_000
"""A time at which no member is certain that was heard of at the beginning."""
GRACE = 100
OK = {"error_code": 0}


class OneMemberTrace:
    """Builds the trace of one member, A, event by event. Times in milliseconds."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.events: list[Event] = [Event(0, 0, 0, "", Kind.INTERNAL, "topics", 0, {"topics": {"t": 4}})]

    def add_event(self, kind: Kind, time: int, api: str, body: Mapping[str, Any], **more: Any) -> int:
        number = len(self.events)
        self.events.append(Event(number, time, 1, "A", kind, api, more.pop("version", 0), body, **more))
        return number

    def exchange(
        self, time: int, api: str, body: Mapping[str, Any], response: Mapping[str, Any] | None, version: int
    ) -> int:
        """Add a request of group "g" and its response a millisecond later; no response if it is None."""
        request = self.send_request(time, api, body, version)
        if response is not None:
            self.send_response(time + 1, request, response)
        return request

    def send_request(self, time: int, api: str, body: Mapping[str, Any], version: int) -> int:
        return self.add_event(Kind.REQUEST, time, api, {"group_id": "g", **body}, version=version)

    def send_response(self, time: int, request: int, response: Mapping[str, Any]) -> None:
        asked = self.events[request]
        self.add_event(Kind.RESPONSE, time, asked.api, response, version=asked.version, of=request)

    def restart(self, time: int) -> None:
        self.add_event(Kind.FAULT, time, "restart", {})

    def add_check(self, requirement: str, request: int) -> None:
        time = self.events[-1].time
        self.add_event(Kind.INTERNAL, time, "check", {"requirement": requirement}, of=request)

    def verdict(self) -> TraceVerdict:
        return judge(Header("test", self.order, "wall", SETTINGS, GRACE), self.events)

    # --- one member, A ------------------------------------------------------------------------------------------

    def join(self, time: int, generation: int, member: str = "") -> int:
        response = {
            "error_code": 0,
            "generation_id": generation,
            "protocol_name": "p",
            "leader": "a",
            "member_id": "a",
            "members": [{"member_id": "a", "metadata": b"m"}],
        }
        return self.exchange(time, "JoinGroup", join_body(member), response, 2)

    def sync(self, time: int, generation: int, response: Mapping[str, Any] | None, given: bytes = b"plan") -> int:
        rows = [{"member_id": "a", "assignment": given}]
        body = {"generation_id": generation, "member_id": "a", "assignments": rows}
        return self.exchange(time, "SyncGroup", body, response, 1)

    def heartbeat(self, time: int, error: int, generation: int = 1, member: str = "a") -> int:
        body = {"generation_id": generation, "member_id": member}
        return self.exchange(time, "Heartbeat", body, {"error_code": error}, 1)

    def form_stable_group(self) -> "OneMemberTrace":
        self.join(10, 1)
        self.sync(20, 1, sync_response(b"plan"))
        return self


def sync_response(assignment: bytes) -> dict[str, Any]:
    return {"error_code": 0, "assignment": assignment}


def sync_error(error: int) -> dict[str, Any]:
    return {"error_code": error, "assignment": b""}


def fetch_offset(tape: OneMemberTrace, time: int, offset: int, error: int = 0) -> int:
    row = {"partition_index": 0, "committed_offset": offset, "metadata": "", "error_code": 0}
    response = {"topics": [{"name": "t", "partitions": [row]}] if not error else [], "error_code": error}
    return tape.exchange(time, "OffsetFetch", {"topics": [{"name": "t", "partition_indexes": [0]}]}, response, 2)


def commit_offset(tape: OneMemberTrace, time: int, offset: int, answered: bool, error: int = 0) -> None:
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    body = {
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": [row]}],
    }
    response = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": error}]}]}
    tape.exchange(time, "OffsetCommit", body, response if answered else None, 3)


# --- exchanges without a trace around them

ASSIGNMENT = b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
"""Partitions 0 and 1 of topic t, as the consumer protocol writes them."""


def exchange_events(
    number: int, api: str, body: dict[str, Any], response: dict[str, Any], time: int = 0
) -> list[Event]:
    """A request and its response, numbered by `number`."""
    return [
        Event(2 * number, time, 0, "A", Kind.REQUEST, api, 4, {"group_id": "g", **body}),
        Event(2 * number + 1, time, 0, "A", Kind.RESPONSE, api, 4, response, 2 * number),
    ]


def heartbeat_events(number: int, time: int = 0, member: str = "m", error: int = 0) -> list[Event]:
    return exchange_events(number, "Heartbeat", {"generation_id": 1, "member_id": member}, {"error_code": error}, time)


def join_events(number: int, generation: int, member: str = "m", leader: str = "m", time: int = 0) -> list[Event]:
    timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    response = {"error_code": 0, "generation_id": generation, "member_id": member, "leader": leader}
    return exchange_events(number, "JoinGroup", {"member_id": member, **timeouts}, response, time)


def join_body(member: str, session: int = SESSION) -> dict[str, Any]:
    """JoinGroup of one protocol, as `OneMemberTrace` sends it."""
    return {
        "session_timeout_ms": session,
        "rebalance_timeout_ms": 60_000,
        "member_id": member,
        "protocol_type": "x",
        "protocols": [{"name": "p", "metadata": b"m"}],
    }


def commit_events(number: int, generation: int, error: int = 0, offset: int = 7) -> list[Event]:
    rows = [{"partition_index": 0, "committed_offset": offset}]
    done = [{"partition_index": 0, "error_code": error}]
    claim = {"generation_id_or_member_epoch": generation, "member_id": "m"}
    request = {**claim, "topics": [{"name": "t", "partitions": rows}]}
    return exchange_events(number, "OffsetCommit", request, {"topics": [{"name": "t", "partitions": done}]})


def sync_events(number: int, member: str, assignments: Sequence[dict[str, Any]] = ()) -> list[Event]:
    request = {"member_id": member, "generation_id": 1, "assignments": list(assignments)}
    return exchange_events(number, "SyncGroup", request, {"error_code": 0, "assignment": ASSIGNMENT})


def events_at(time: int, events: list[Event]) -> list[Event]:
    return [replace(each, time=time) for each in events]
