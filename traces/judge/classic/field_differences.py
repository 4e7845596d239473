"""The wrong fields of a response in words: their names as in the Kafka protocol, expected and observed values."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import NoResponse, Phase
from fencepost.model.errors import error_name
from fencepost.model.groups.messages import TopicNames
from fencepost.traces.events import Operation
from fencepost.traces.judge.classic.matching import fill_difference
from fencepost.traces.judge.classic.observed_response import ObservedResponse
from fencepost.traces.judge.classic.wording import format_expected
from fencepost.traces.judge.diagnosis.wording import format_value
from fencepost.traces.judge.groups.silence_watch import MISSING
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch
from fencepost.traces.judge.search.difference import DetailedDifference, DifferentValue
from fencepost.traces.verdict import FieldDifference

WIRE_NAMES = {
    "entries": "members.error_code",
    "epoch": "committed_leader_epoch",
    "error": "error_code",
    "generation": "generation_id",
    "groups": "number of rows for the group",
    "instances": "group_instance_id",
    "listed": "number of rows for the group",
    "member": "member_id",
    "offset": "committed_offset",
    "protocol": "protocol_name",
    "state": "group_state",
    "type": "group_type",
}
"""Names of fields in the Kafka protocol by those of the model, where they differ."""


def describe_differences(
    group: str, part: GroupOperation, mismatch: Mismatch, names: TopicNames
) -> tuple[FieldDifference, ...]:
    """The wrong fields of a response: why it should not have come, or not so late, and errors first."""
    operation = part.operation
    if "closed" in mismatch.fields:
        return (FieldDifference("response", "a response", "the connection was closed"),)
    if MISSING in mismatch.fields:
        observed = "none, although the coordinator answers later requests of the group"
        return (FieldDifference("response", format_expected(mismatch.expected), observed),)
    found = list(describe_time(operation, mismatch)) if "time" in mismatch.fields else []
    if mismatch.expected is not None and not isinstance(mismatch.expected, NoResponse):
        seen = ObservedResponse(
            operation.api, operation.version, operation.body, operation.response or {}, group, names
        )
        difference = DetailedDifference()
        fill_difference(mismatch.expected, seen, difference)
        found += map(describe_value, sorted(difference.values, key=lambda value: value.name != "error"))
    return tuple(dict.fromkeys(found))


def describe_time(operation: Operation, mismatch: Mismatch) -> Iterator[FieldDifference]:
    """A response that came too late, or before anything released it."""
    responded_at = operation.responded_at or 0
    if mismatch.due is not None:
        late = responded_at - mismatch.due
        yield FieldDifference("late", f"{mismatch.due} ms at the latest", f"{responded_at} ms, {late} ms late")
    elif mismatch.expected is None:
        due = release_time(mismatch.world)
        early = f", {due - responded_at} ms early" if due is not None and due > responded_at else ""
        until = f"; the join phase ends at {due} ms" if early else ""
        told = error_name((operation.response or {}).get("error_code", 0))
        yield FieldDifference("early", f"no response yet{until}", f"{told} at {responded_at} ms{early}")
    else:
        yield FieldDifference("late", f"{format_expected(mismatch.expected)} at once", f"{responded_at} ms")


def release_time(state: GroupState) -> int | None:
    """The moment at which the join phase ends by its timer; None outside a join phase and if it is not known."""
    group = state.group
    if group is None or group.phase != Phase.PREPARING:
        return None
    return group.join_deadline if isinstance(group.join_deadline, int) else None


def describe_value(value: DifferentValue) -> FieldDifference:
    """One wrong field in words."""
    name, place = WIRE_NAMES.get(value.name, value.name), ""
    if isinstance(value.place, Mapping):
        name = "metadata" if value.name == "members" else name
        place = f"member {value.place.get('member_id')!r}"
    elif value.place is not None:
        place = format_partition(value.place)
    return FieldDifference(name, format_field(value.name, value.expected), format_field(value.name, value.seen), place)


def format_field(name: str, value: Any) -> str:
    """The value of a field in words: errors by name, members by id, partitions as `topic/0`."""
    if name == "error" and isinstance(value, int):
        return error_name(value)
    if name == "entries" and isinstance(value, list):
        return f"[{', '.join(error_name(each) for each in value)}]"
    if name == "partitions" and isinstance(value, Set):
        return ", ".join(sorted(map(format_partition, value))) or "none"
    return "null" if value is None else format_value(value)


def format_partition(partition: Any) -> str:
    """A partition as `topic/0`; a topic by its name."""
    return f"{partition[0]}/{partition[1]}" if isinstance(partition, tuple) else str(partition)
