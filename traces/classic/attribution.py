"""Violations from mismatches: the response seen, the one allowed, and the requirements violated."""

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    Group,
    Holder,
    JoinResponse,
    LeaveResponse,
    NoResponse,
    Phase,
    Slot,
    SyncResponse,
)
from fencepost.model.classic.messages import NO_TOPIC_NAMES, LeaveGroup, Response
from fencepost.model.errors import Error, error_name
from fencepost.model.groups.messages import (
    DescribeGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
    PartitionErrors,
    TopicNames,
)
from fencepost.traces.classic.matching import ObservedResponse, fill_difference, partition_rows
from fencepost.traces.classic.overdue import is_overdue, overdue_requirements
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.diagnosis.diagnosis import errors_in, format_observed, format_value
from fencepost.traces.judge.groups.group_judge import MISSING
from fencepost.traces.judge.search.configuration import (
    DetailedDifference,
    DifferentValue,
    GroupOperation,
    Mismatch,
    high,
)
from fencepost.traces.verdict import FieldDifference, Violation

# --- Words of the classic protocol: the response that the model allows, and the guard that was false.


def format_expected(response: Response | None) -> str:
    """A response of the model in words."""
    match response:
        case None:
            return "no answer yet"
        case NoResponse():
            return "no answer, or an error"
        case JoinResponse(error=Error.NONE):
            members = [view.id for view in response.members if view.id is not None]
            return (
                f"NONE, generation={response.generation}, protocol={response.protocol!r}, leader={response.leader!r}, "
                f"member_id={response.member!r}, members={members}, skip_assignment={response.skip_assignment}"
            )
        case SyncResponse(error=Error.NONE):
            return f"NONE, assignment={format_value(response.assignment or b'')}, protocol={response.protocol!r}"
        case LeaveResponse():
            return f"{response.error.name}, entries={[each.name for each in response.entries]}"
        case PartitionErrors():
            rows = {f"{topic}/{number}": error.name for (topic, number), error in response.errors.items()}
            return f"{response.error.name} {rows}"
        case OffsetFetchResponse():
            offsets = {
                f"{topic}/{number}": "unstable" if offset is None else offset.offset
                for (topic, number), offset in response.offsets.items()
            }
            return f"{response.error.name} {offsets}"
        case DescribeGroupResponse():
            return f"{response.error.name}, state={response.state}, {len(response.members)} members"
        case ListGroupsResponse():
            return f"listed, state={response.state}" if response.listed else "not listed"
        case _:
            return response.error.name


def other_guards(api: str, body: Body, applied: Rule | None) -> str:
    """The guards of all rules but the one that applied which give the errors seen."""
    codes = errors_in(body)
    wanted = [row for row in RULES.values() if row.api == api and row.error is not None and row.error in codes]
    clauses = [row.guard for row in wanted if applied is None or row.name != applied.name]
    return " or ".join(clauses) or "no rule gives such an answer"


def format_state(world: GroupState) -> str:
    """The values that guards look at, in words."""
    group = world.group
    if group is None:
        return "the group does not exist"
    members = [format_member(slot) for slot in group.slots if is_member(slot)]
    pending = [repr(slot.id) for slot in group.slots if slot.holder is Holder.PENDING]
    facts = [f"{Phase(group.phase).name.capitalize()}, generation {group.generation}"]
    facts.append(f"members {', '.join(members)}" if members else "no members")
    if group.leader is not None:
        facts.append(f"leader {group.leader!r}")
    if pending:
        facts.append(f"pending ids {', '.join(pending)}")
    return ", ".join(facts)


def format_member(slot: Slot) -> str:
    """A member by its id, and by its instance id if it is static."""
    return f"{slot.id!r} (instance {slot.instance!r})" if slot.instance is not None else repr(slot.id)


# --- The wrong fields of a response in words: their names as in the Kafka protocol, expected and observed values.

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
    group: str, part: GroupOperation, mismatch: Mismatch, names: TopicNames, client: str | None
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
            operation.api, operation.version, operation.body, operation.response or {}, group, names, client
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


# --- The requirements that a mismatch violates.

OFFSET_DETAIL_FIELDS = frozenset({"epoch", "metadata"})
"""What is stored beside an offset: wrong or not, the rest of the response means the same."""
NO_RESPONSE = {
    frozenset({"closed"}): "the connection was closed without an answer",
    frozenset({MISSING}): "no answer, although the coordinator answers later requests of the group",
}
"""What was seen instead of a response, by the field that stands for it."""
PARTITION_REQUIREMENTS = MappingProxyType(
    {
        frozenset({Error.OFFSET_METADATA_TOO_LARGE}): "COMMIT-15",
        frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID}): "COMMIT-13",
    }
)
"""Which requirement speaks of errors of single partitions in a commit."""
INSTANCE_VERSION = 5
"""The first version of JoinGroup with instance ids."""
LOOKING_APIS = frozenset({"DescribeGroups", "ListGroups"})


def has_pending_ids(group: Group) -> bool:
    """Whether the owner of an id that was issued has not come back."""
    return any(slot.holder == Holder.PENDING for slot in group.slots)


def is_emptied_with_pending_ids(group: Group | None) -> bool:
    """Whether the group is Empty although owners of ids have not come back."""
    return group is not None and group.phase is Phase.EMPTY and group.generation > 0 and has_pending_ids(group)


def is_waiting_for_ids(group: Group) -> bool:
    """Whether a join phase beyond the initial delay lacks nothing but the owners of pending ids."""
    members = [slot for slot in group.slots if slot.holder == Holder.MEMBER]
    is_complete = all(slot.join for slot in members)
    return group.phase is Phase.PREPARING and not group.initial and has_pending_ids(group) and is_complete


def has_grown(group: Group | None) -> bool:
    """Whether members came during the initial delay, each of whom may have extended it."""
    return group is not None and sum(map(is_member, group.slots)) > 1


def build_violation(
    group: str,
    part: GroupOperation,
    mismatch: Mismatch,
    rules: frozenset[str],
    names: TopicNames = NO_TOPIC_NAMES,
    client: str | None = None,
) -> Violation:
    """The violation that a mismatch is; `rules` are those that explain the operation as far as it is settled.

    `names` are those of topics by their ids, `client` is the client id of all members.
    """
    operation = part.operation
    # What parked a request long ago is settled, and the search has forgotten it.
    body = operation.response or {}
    rule = mismatch.rule or min(rules, default="")
    if is_refused_at_last(mismatch, body):
        rule = min((each for each in rules if each in RULES and RULES[each].api == operation.api), default=rule)
    applied = RULES.get(rule)
    allowed = format_expected(mismatch.expected)
    if "closed" in mismatch.fields:
        allowed = "an answer"
    elif "time" in mismatch.fields and mismatch.expected is not None:
        allowed += " at once"
    requirements = (
        partition_requirements(applied, part, mismatch, names)
        or stability_requirements(mismatch, errors_in(body))
        or retention_requirements(mismatch, part.operation)
        or entry_requirements(part, mismatch)
        or instance_requirements(part, mismatch)
        or listing_requirements(part, mismatch)
        or violated_requirements(applied, mismatch, body)
    )
    if is_overdue(mismatch):
        requirements = overdue_requirements(part, mismatch, rules)
    wait = f" after {(operation.responded_at or 0) - operation.sent_at} ms" if "time" in mismatch.fields else ""
    return Violation(
        sequence=operation.handle - 1,
        group=group,
        api=operation.api,
        fields=tuple(sorted(mismatch.fields)),
        observed=NO_RESPONSE.get(frozenset(mismatch.fields), format_observed(body) + wait),
        allowed=(allowed,),
        rule=rule,
        guard=(applied.guard if applied is not None else "")
        if is_overdue(mismatch)
        else other_guards(operation.api, body, applied),
        requirements=requirements,
        kind=violation_kind(operation, mismatch, rule, requirements),
        differences=describe_differences(group, part, mismatch, names, client),
        state=format_state(mismatch.world),
    )


def is_refused_at_last(mismatch: Mismatch, body: Body) -> bool:
    """Whether a request that was to wait is refused: the rule that has it wait says more of that than the timer that
    ends the wait."""
    applied = RULES.get(mismatch.rule)
    is_by_timer = applied is not None and not applied.api
    return is_by_timer and mismatch.fields == {"error"} and bool(errors_in(body) - {Error.NONE})


def partition_requirements(
    applied: Rule | None, part: GroupOperation, mismatch: Mismatch, names: TopicNames
) -> tuple[str, ...]:
    """The requirement about single partitions of a commit, where no other partition has the wrong error; else ().

    A wrong error of all partitions is that of the group, whatever they would have had by themselves.
    """
    expected, body = mismatch.expected, part.operation.response or {}
    if applied is None or applied.error is not Error.NONE or mismatch.fields != {"error"}:
        return ()
    if not isinstance(expected, PartitionErrors) or expected.error is not Error.NONE:
        return ()
    rows = partition_rows(body.get("topics"), names)
    seen = {where: row.get("error_code") for where, row in rows.items()}
    wrong = [(int(error), seen.get(where)) for where, error in expected.errors.items() if error != seen.get(where)]
    for errors, requirement in PARTITION_REQUIREMENTS.items():
        if wrong and all(errors & set(each) for each in wrong):
            return (requirement,)
    return ()


def stability_requirements(mismatch: Mismatch, errors: set[int]) -> tuple[str, ...]:
    """The requirement about the end of transactions, where nothing is wrong but that a fetch still waits for one."""
    expected = mismatch.expected
    if not isinstance(expected, OffsetFetchResponse) or Error.UNSTABLE_OFFSET_COMMIT not in errors:
        return ()
    had_transactions = bool(mismatch.world.epochs) and None not in expected.offsets.values()
    return ("FETCH-16",) if had_transactions else ()


def retention_requirements(mismatch: Mismatch, operation: Operation) -> tuple[str, ...]:
    """The requirement about retention and open transactions, where a fetch waits for none and the offset that was
    committed before has expired; else ()."""
    expected, world = mismatch.expected, mismatch.world
    if not isinstance(expected, OffsetFetchResponse) or mismatch.fields != {"error"}:
        return ()
    unstable = [where for where, offset in expected.offsets.items() if offset is None]
    before = [world.offsets[where].expires for where in unstable if where in world.offsets]
    now = operation.responded_at or operation.sent_at
    return ("COMMIT-34",) if any(end is not None and high(end) <= now for end in before) else ()


def entry_requirements(part: GroupOperation, mismatch: Mismatch) -> tuple[str, ...]:
    """The requirement about instance ids in a LeaveGroup, where only entries that have one get another error; else ().

    An entry that is allowed to succeed is a matter of the rule.
    """
    request, expected = part.request, mismatch.expected
    if not isinstance(request, LeaveGroup) or not isinstance(expected, LeaveResponse) or mismatch.fields != {"entries"}:
        return ()
    seen = [row.get("error_code") for row in (part.operation.response or {}).get("members") or ()]
    rows = zip(request.core.entries, expected.entries, seen, strict=False)
    wrong = [(instance, error) for (_, instance), error, observed in rows if error != observed]
    is_mismatch = len(seen) == len(expected.entries) and all(instance and error for instance, error in wrong)
    return ("LEAVE-15",) if wrong and is_mismatch else ()


def instance_requirements(part: GroupOperation, mismatch: Mismatch) -> tuple[str, ...]:
    """The requirement about unknown instance ids, where one comes with the id of a member and is let pass; else ()."""
    if not mismatch.rule.endswith(".unknown-member") or mismatch.fields != {"error"}:
        return ()
    core, group = getattr(part.request, "core", None), mismatch.world.group
    member, instance = getattr(core, "member", None), getattr(core, "instance", None)
    if instance is None or group is None or errors_in(part.operation.response or {}) != {0}:
        return ()
    members = {slot.id: slot.instance for slot in group.slots if slot.holder == Holder.MEMBER}
    return ("STATIC-07",) if member in members and instance not in members.values() else ()


def listing_requirements(part: GroupOperation, mismatch: Mismatch) -> tuple[str, ...]:
    """The requirement about leaders that ask in a version without instance ids, where one is refused for that; else ().

    The version was accepted; only a static member in the list can make it unsupported.
    """
    operation, group = part.operation, mismatch.world.group
    if operation.api != "JoinGroup" or operation.version >= INSTANCE_VERSION or group is None:
        return ()
    is_refused = errors_in(operation.response or {}) == {Error.UNSUPPORTED_VERSION}
    return ("JOIN-55",) if is_refused and any(slot.instance is not None for slot in group.slots) else ()


def violation_kind(operation: Operation, mismatch: Mismatch, rule: str, requirements: tuple[str, ...]) -> str:
    """What violations that are alike have in common: rule, fields, errors and requirements.

    A rebalance that ends at the wrong time is one kind, by whatever rule a JoinGroup waited for its end.
    """
    errors = sorted(map(int, errors_in(operation.response or {})))
    if operation.api == "JoinGroup" and "time" in mismatch.fields and errors == [0]:
        return f"round ends {'early' if mismatch.expected is None else 'late'} {requirements}"
    if mismatch.fields <= OFFSET_DETAIL_FIELDS:
        return f"{sorted(mismatch.fields)} {requirements}"
    return f"{rule} {sorted(mismatch.fields)} {errors} {requirements}"


def is_strange_refusal(api: str, mismatch: Mismatch, body: Body) -> bool:
    """Whether a request that should wait was refused with an error that no rule of the API gives."""
    refused = errors_in(body) - {0}
    known = {int(rule.error) for rule in RULES.values() if rule.api == api and rule.error is not None}
    return "error" in mismatch.fields and bool(refused) and not refused & known


def violated_requirements(applied: Rule | None, mismatch: Mismatch, body: Body) -> tuple[str, ...]:
    """The requirements that a mismatch violates, where no check says it."""
    if applied is None:
        return ()
    if "generation" in mismatch.fields <= {"generation", "time"} and getattr(mismatch.expected, "generation", 0) == 1:
        return ("GEN-01",)
    group = mismatch.world.group
    first = group is None or group.generation == 0
    never_had_members = group is not None and group.generation == 0 and has_pending_ids(group)
    if mismatch.fields == {"protocol_type"} and applied.api in LOOKING_APIS and never_had_members:
        return ("ADMIN-34",)
    if applied.api in LOOKING_APIS and mismatch.fields == {"state"} and is_emptied_with_pending_ids(group):
        return ("GEN-21",)
    if applied.api == "JoinGroup" and "time" in mismatch.fields <= {"time", "error"}:
        if is_strange_refusal(applied.api, mismatch, body):
            return ()
        # Too late where the last member was there, else too early: before the others came or the delay was over.
        # A rule with an error of its own answers at once and waits for no join phase.
        if mismatch.expected is not None:
            return ("JOIN-27",) if applied.error is None else applied.requirements[:1]
        if group is not None and is_waiting_for_ids(group):
            return ("JOIN-28",)
        return ("TIMER-16",) if first else ("JOIN-26",)
    if applied.requirements == ("TIMER-16",) and "time" in mismatch.fields and has_grown(group):
        return ("TIMER-17",)
    return applied.requirements_for(mismatch.fields)
