"""Violations from mismatches: the response seen, the one allowed, and the requirements violated."""

from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.core.state import Group, Holder, LeaveResponse, Phase
from fencepost.model.classic.messages.parsing import NO_TOPIC_NAMES
from fencepost.model.classic.messages.requests import LeaveGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import OffsetFetchResponse, PartitionErrors, TopicNames
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.classic.field_differences import describe_differences
from fencepost.traces.judge.classic.matching import partition_rows
from fencepost.traces.judge.classic.overdue import is_overdue, overdue_requirements
from fencepost.traces.judge.classic.recovery import OFFSET_DETAIL_FIELDS
from fencepost.traces.judge.classic.wording import format_expected, format_state, other_guards
from fencepost.traces.judge.diagnosis.wording import errors_in, format_observed
from fencepost.traces.judge.groups.silence_watch import MISSING
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch
from fencepost.traces.verdict import Violation

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


def is_waiting_for_ids(group: Group) -> bool:
    """Whether a join phase beyond the initial delay lacks nothing but the owners of pending ids."""
    members = [slot for slot in group.slots if slot.holder == Holder.MEMBER]
    is_complete = all(slot.join for slot in members)
    return group.phase is Phase.PREPARING and not group.initial and has_pending_ids(group) and is_complete


def build_violation(
    group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str], names: TopicNames = NO_TOPIC_NAMES
) -> Violation:
    """The violation that a mismatch is; `rules` are those that explain the operation as far as it is settled.

    `names` are those of topics by their ids.
    """
    operation = part.operation
    # What parked a request long ago is settled, and the search has forgotten it.
    rule = mismatch.rule or min(rules, default="")
    applied = RULES.get(rule)
    body = operation.response or {}
    allowed = format_expected(mismatch.expected)
    if "closed" in mismatch.fields:
        allowed = "an answer"
    elif "time" in mismatch.fields and mismatch.expected is not None:
        allowed += " at once"
    requirements = (
        partition_requirements(applied, part, mismatch, names)
        or stability_requirements(mismatch, errors_in(body))
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
        differences=describe_differences(group, part, mismatch, names),
        state=format_state(mismatch.world),
    )


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
    if mismatch.fields == {"generation"} and getattr(mismatch.expected, "generation", 0) == 1:
        return ("GEN-01",)
    group = mismatch.world.group
    first = group is None or group.generation == 0
    never_had_members = group is not None and group.generation == 0 and has_pending_ids(group)
    if mismatch.fields == {"protocol_type"} and applied.api in LOOKING_APIS and never_had_members:
        return ("ADMIN-34",)
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
    return applied.requirements_for(mismatch.fields)
