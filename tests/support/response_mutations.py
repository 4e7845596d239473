"""Answers made wrong in one field, as a target might get it wrong; everything else of a trace stays as it is."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fencepost.model.errors import Error
from fencepost.traces.events import Event, Kind

Message: TypeAlias = dict[str, Any]
NONE, UNKNOWN, INVALID, UNAVAILABLE = 0, 25, 42, 15
LATE_BY_MS = 1_000
"""How much later than all else a late answer comes."""
ADVISORY_ON_ERROR = frozenset({"generation", "protocol", "leader", "protocol_type"})
ALWAYS_ADVISORY = frozenset({"echo", "operations", "wire"})


@dataclass(frozen=True, slots=True)
class CheckedResponse:
    """An answer that a scenario marks: its request, and what it is evidence of."""

    request: Event
    response: Event
    checks: tuple[tuple[str, frozenset[str]], ...]
    """Requirements with the fields that they look at; none means all but the soft ones."""


def checked_responses(events: tuple[Event, ...]) -> Iterator[CheckedResponse]:
    """The answers in a trace that are marked, as far as the schedule got to what the marks speak of."""
    requests = {event.sequence: event for event in events if event.kind is Kind.REQUEST}
    responses = {event.of: event for event in events if event.kind is Kind.RESPONSE}
    notes: dict[int, list[tuple[str, frozenset[str]]]] = {}
    met: set[int] = set()
    for event in events:
        if event.api == "check" and event.of in responses and event.of is not None:
            notes.setdefault(event.of, []).append((event.body["requirement"], frozenset(event.body["fields"])))
            met |= {event.of} if event.body["met"] else set()
    for sequence, marks in notes.items():
        if sequence in met:
            yield CheckedResponse(requests[sequence], responses[sequence], tuple(marks))


def is_advisory(marked: CheckedResponse, field: str) -> bool:
    """A difference in this field of this answer counts only where a mark names it."""
    if field in ALWAYS_ADVISORY:
        return True
    refused = marked.response.api == "JoinGroup" and marked.response.body["error_code"] != NONE
    soft = ADVISORY_ON_ERROR if marked.response.body.get("error_code") == 79 else ADVISORY_ON_ERROR | {"member"}
    return refused and field in soft


def violated_by(marked: CheckedResponse, field: str) -> frozenset[str]:
    """The requirements that an answer altered in this field breaks."""
    soft = is_advisory(marked, field)
    return frozenset(each for each, fields in marked.checks if field in fields or not (fields or soft))


# --- in time


def move_response(events: tuple[Event, ...], marked: CheckedResponse) -> tuple[Event, ...]:
    """The trace with the answer right behind its request, or after all else if it is there anyway."""
    rest = [event for event in events if event is not marked.response]
    asked = rest.index(marked.request) + 1
    time, place = marked.request.time, asked
    if marked.response.time == time:
        time = events[-1].time + LATE_BY_MS
        place = next(number for number, event in enumerate(rest) if event.api == "check")
    moved = [*rest[:place], replace(marked.response, time=time)]
    moved += [replace(event, time=max(event.time, time)) for event in rest[place:]]
    numbers = {event.sequence: number for number, event in enumerate(moved)}
    return tuple(
        replace(event, sequence=numbers[event.sequence], of=None if event.of is None else numbers[event.of])
        for event in moved
    )


# --- in a field


def alter_field(events: tuple[Event, ...], marked: CheckedResponse, field: str) -> tuple[Event, ...] | None:
    """The trace with the marked answer altered in this field; None if it cannot be."""
    if field == "time":
        return move_response(events, marked)
    body = copy.deepcopy(dict(marked.response.body))
    change = ALTERATIONS.get((marked.response.api, field)) or ALTERATIONS.get(("", field))
    if change is None or not change(body, marked.request):
        return None
    return tuple(replace(event, body=body) if event is marked.response else event for event in events)


def parts_with_errors(body: Message) -> Iterator[Message]:
    """The parts of a message that have an error code of their own; the innermost first."""
    for value in body.values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, dict):
                yield from parts_with_errors(each)
    if "error_code" in body:
        yield body


def group_part(body: Message, request: Event) -> Message | None:
    """What an answer says of the first group asked for."""
    asked = request.body.get("groups")
    if not asked:
        return body if not body.get("groups") else body["groups"][0]
    name = asked[0]["group_id"] if isinstance(asked[0], dict) else asked[0]
    return next((row for row in body["groups"] if row["group_id"] == name), None)


def first_row(body: Message, request: Event) -> Message | None:
    """The first partition that an answer speaks of."""
    topics = (group_part(body, request) or {}).get("topics") or ()
    return next((row for topic in topics for row in topic["partitions"]), None)


def change_error(body: Message, request: Event) -> bool:
    """Another error code, an error where there was none, or none in the place of one that may be any."""
    found = next(parts_with_errors(body), None)
    if found is None:
        return False
    if found["error_code"] in (Error.UNKNOWN_SERVER_ERROR, Error.NOT_COORDINATOR):
        found["error_code"] = NONE
        return True
    found["error_code"] = INVALID if found["error_code"] != INVALID else UNKNOWN
    return True


def change_group_error(body: Message, request: Event) -> bool:
    found = group_part(body, request)
    if found is None or "error_code" not in found:
        return change_error(body, request)
    found["error_code"] = INVALID
    return True


def whole(body: Message, request: Event) -> Message:
    """All of an answer."""
    return body


def first_member(body: Message, request: Event) -> Message | None:
    """What an answer says of the first member of the group asked for."""
    return next(iter((group_part(body, request) or {}).get("members") or ()), None)


def first_coordinator(body: Message, request: Event) -> Message:
    """What FindCoordinator says of the first key."""
    found: Message = body["coordinators"][0] if body.get("coordinators") else body
    return found


def set_in(
    part: Callable[[Message, Event], Message | None], name: str, value: Callable[[Any], Any]
) -> Callable[[Message, Event], bool]:
    """Put another value in the place of a field of this part of an answer."""

    def change(body: Message, request: Event) -> bool:
        found = part(body, request)
        if found is None or name not in found:
            return False
        found[name] = value(found[name])
        return True

    return change


def change_members(body: Message, request: Event) -> bool:
    """One member less, or one that is not there."""
    found = group_part(body, request)
    if found is None or "members" not in found:
        return False
    if found["members"]:
        found["members"].pop()
    else:
        found["members"] = [{"member_id": "ghost", "group_instance_id": None, "metadata": b""}]
    return True


def change_member(body: Message, request: Event) -> bool:
    """Another id. An id that is just made up may be any; only none at all is wrong for certain."""
    body["member_id"] = "" if body["error_code"] == Error.MEMBER_ID_REQUIRED or body["error_code"] == NONE else "ghost"
    return True


def change_partitions(body: Message, request: Event) -> bool:
    """One partition less, or one that nobody asked for."""
    found = group_part(body, request)
    if found is None:
        return False
    if found["topics"]:
        found["topics"].pop()
    else:
        row = {"partition_index": 9, "committed_offset": 1, "committed_leader_epoch": -1, "metadata": ""}
        found["topics"] = [{"name": "ghost", "partitions": [{**row, "error_code": 0}]}]
    return True


def change_groups(body: Message, request: Event) -> bool:
    """One group less."""
    rows = body.get("groups") or body.get("results") or []
    return bool(rows) and rows.pop() is not None


def change_listed(body: Message, request: Event) -> bool:
    """Every group is left out; one that is not there is said to be."""
    if body["groups"]:
        body["groups"] = []
        return True
    return False


def change_entries(body: Message, request: Event) -> bool:
    """Another error for the first entry."""
    return bool(body.get("members")) and change_error(body["members"][0], request)


def change_echo(body: Message, request: Event) -> bool:
    """An entry with another id."""
    if not body.get("members"):
        return False
    body["members"][0]["member_id"] = "ghost"
    return True


def add_finding(body: Message, request: Event) -> bool:
    """The codec found the bytes of the answer wanting."""
    body["_findings"] = ["one byte too many"]
    return True


def change_keys(body: Message, request: Event) -> bool:
    """One coordinator less."""
    return bool(body.get("coordinators")) and body["coordinators"].pop() is not None


def change_layout(body: Message, request: Event) -> bool:
    """The answer of the other versions."""
    if "coordinators" in body:
        row = body.pop("coordinators")[0]
        body |= {"error_code": row["error_code"], "node_id": row["node_id"], "host": row["host"], "port": row["port"]}
    else:
        body["coordinators"] = [{"key": request.body["key"], "node_id": body.pop("node_id")}]
    return True


ALTERATIONS: Mapping[tuple[str, str], Callable[[Message, Event], bool]] = {
    ("", "error"): change_error,
    ("DescribeGroups", "error"): change_group_error,
    ("ListGroups", "error"): set_in(whole, "error_code", lambda old: INVALID),
    ("FindCoordinator", "error"): set_in(first_coordinator, "error_code", lambda old: UNKNOWN),
    ("FindCoordinator", "node"): set_in(first_coordinator, "node_id", lambda old: 7),
    ("FindCoordinator", "home"): set_in(first_coordinator, "node_id", lambda old: 7),
    ("FindCoordinator", "keys"): change_keys,
    ("FindCoordinator", "layout"): change_layout,
    ("", "place"): set_in(whole, "error_code", lambda old: 16),
    ("", "wire"): add_finding,
    ("OffsetCommit", "accepted"): change_error,
    ("JoinGroup", "generation"): set_in(whole, "generation_id", lambda old: old + 1),
    ("JoinGroup", "leader"): set_in(whole, "leader", lambda old: "ghost"),
    ("JoinGroup", "member"): change_member,
    ("JoinGroup", "members"): change_members,
    ("JoinGroup", "instances"): set_in(first_member, "group_instance_id", lambda old: "ghost"),
    ("JoinGroup", "skip_assignment"): set_in(whole, "skip_assignment", lambda old: not old),
    ("", "protocol"): set_in(whole, "protocol_name", lambda old: "ghost"),
    ("", "protocol_type"): set_in(whole, "protocol_type", lambda old: "ghost"),
    ("SyncGroup", "assignment"): set_in(whole, "assignment", lambda old: old + b"x"),
    ("LeaveGroup", "entries"): change_entries,
    ("LeaveGroup", "echo"): change_echo,
    ("OffsetFetch", "error"): change_error,
    ("OffsetFetch", "offset"): set_in(first_row, "committed_offset", lambda old: old + 1),
    ("OffsetFetch", "metadata"): set_in(first_row, "metadata", lambda old: (old or "") + "x"),
    ("OffsetFetch", "epoch"): set_in(first_row, "committed_leader_epoch", lambda old: old + 1),
    ("", "partitions"): change_partitions,
    ("", "groups"): change_groups,
    ("DescribeGroups", "state"): set_in(
        group_part, "group_state", lambda old: "Stable" if old != "Stable" else "Empty"
    ),
    ("DescribeGroups", "members"): change_members,
    ("DescribeGroups", "instances"): set_in(first_member, "group_instance_id", lambda old: "ghost"),
    ("DescribeGroups", "assignment"): set_in(first_member, "member_assignment", lambda old: old + b"x"),
    ("DescribeGroups", "metadata"): set_in(first_member, "member_metadata", lambda old: old + b"x"),
    ("DescribeGroups", "protocol"): set_in(group_part, "protocol_data", lambda old: "ghost"),
    ("DescribeGroups", "protocol_type"): set_in(group_part, "protocol_type", lambda old: "ghost"),
    ("DescribeGroups", "operations"): set_in(group_part, "authorized_operations", lambda old: 8),
    ("DescribeGroups", "message"): set_in(group_part, "error_message", lambda old: None),
    ("ListGroups", "listed"): change_listed,
    ("ListGroups", "state"): set_in(group_part, "group_state", lambda old: "Stable" if old != "Stable" else "Empty"),
    ("ListGroups", "type"): set_in(group_part, "group_type", lambda old: "consumer"),
    ("ListGroups", "protocol_type"): set_in(group_part, "protocol_type", lambda old: "ghost"),
}
"""How to alter a field of an answer, by API ("" for all others) and field; false if this answer has it not."""
