"""Compares a response that was seen with that of the model, field by field, within the latitude of the protocol.

A field is named in a difference by what it is in the protocol (`error`, `generation`, `leader`, `members`, ...).
A hard difference is one the protocol forbids; a soft one is within its latitude (LAT-11 to LAT-13) and counts
only where a requirement names the field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fencepost.model.classic.coordinator.group_protocol import CLASSIC, STATE_NAMES
from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    MemberView,
    NoResponse,
    Phase,
    SyncResponse,
)
from fencepost.model.classic.messages import NO_TOPIC_NAMES, Body, Response, topic_of
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.admin import DEAD
from fencepost.model.groups.messages import (
    NO_OFFSET,
    DescribeGroupResponse,
    ErrorResponse,
    ListGroupsResponse,
    MemberDescription,
    OffsetFetchResponse,
    Partition,
    PartitionErrors,
    TopicNames,
)
from fencepost.traces.judge.search.configuration import FreshId, ResponseDifference, differences_over_choices

# --- A response as it came, and what of it is allowed beyond the response of the model.

PARTITION_APIS = frozenset({"OffsetCommit", "OffsetDelete", "TxnOffsetCommit"})
"""The APIs that refuse partitions which do not exist."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class ObservedResponse:
    """A response as it came, and the request it belongs to. `names` are those of topics by their ids, `client` is the
    client id of all members, None where it is not known."""

    api: str
    version: int
    request: Body
    response: Body
    group: str
    names: TopicNames = field(default_factory=lambda: NO_TOPIC_NAMES)
    client: str | None = None


def missing_partitions(response: Body, names: TopicNames) -> frozenset[Partition]:
    """The partitions of which a response says that they do not exist."""
    return frozenset(
        (topic.get("name") or names.get(topic.get("topic_id", ""), ""), row["partition_index"])
        for topic in response.get("topics") or ()
        for row in topic["partitions"]
        if row["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
    )


def is_refused_in_any_way(expected: JoinResponse, observed: ObservedResponse) -> bool:
    """Whether a pending id came with an instance id and got an error, whichever (JOIN-14)."""
    request, error = observed.request, observed.response.get("error_code")
    named = request.get("member_id") and request.get("group_instance_id") is not None
    return bool(expected.error == Error.UNKNOWN_SERVER_ERROR and named and error and error not in COORDINATOR_NOT_READY)


def is_nothing_elsewhere(row: Body) -> bool:
    """Whether a row says that there is no offset in the place that version 0 reads, which is not the group's."""
    return row.get("error_code") == Error.UNKNOWN_TOPIC_OR_PARTITION and row.get("committed_offset") == -1


def is_case_decisive(expected: ListGroupsResponse, observed: ObservedResponse) -> bool:
    """Whether a filter names the state or the type of the group in another case only."""
    states, types = observed.request.get("states_filter") or (), observed.request.get("types_filter") or ()
    in_another_case = (bool(states) and expected.state not in states) or (bool(types) and CLASSIC not in types)
    return expected.listed and in_another_case


View = TypeVar("View", MemberView, MemberDescription)
OPERATIONS_NOT_REQUESTED = -2147483648
"""Authorized operations where the request does not ask for them (KIP-430)."""


def compare_responses(expected: Response, observed: ObservedResponse) -> Iterator[ResponseDifference]:
    """Compare the response of the model with the one seen. Fields missing in a broken response count as different.

    There are several differences if ids that were not known before can be matched in several ways.
    """
    return differences_over_choices(lambda choices: compare_with_choices(expected, observed, choices))


def compare_with_choices(
    expected: Response, observed: ObservedResponse, choices: tuple[int, ...]
) -> ResponseDifference:
    """Compare the responses in one way."""
    return fill_difference(expected, observed, ResponseDifference(choices=choices))


def fill_difference(
    expected: Response, observed: ObservedResponse, difference: ResponseDifference
) -> ResponseDifference:
    """Return the difference with the fields in which the responses differ."""
    if observed.response.get("_findings"):
        difference.advisory.add("wire")
    COMPARISONS[type(expected)](expected, observed, difference)
    return difference


def text_or_empty(value: str | None) -> str:
    """A string field; null where the empty string belongs is a finding of the wire format, not of the protocol."""
    return value or ""


def compare_join(expected: JoinResponse, observed: ObservedResponse, difference: ResponseDifference) -> None:
    """JoinGroup."""
    body = observed.response
    if is_refused_in_any_way(expected, observed):
        difference.expect_equal("error", int(expected.error), body.get("error_code"))  # JOIN-14
    else:
        difference.require_equal("error", int(expected.error), body.get("error_code"))
    if difference.required:
        return
    if expected.error == Error.MEMBER_ID_REQUIRED:
        difference.require_equal("member", expected.member, body.get("member_id"))
    elif expected.error != Error.NONE:
        difference.expect_equal("member", text_or_empty(expected.member), body.get("member_id"))
    if expected.error != Error.NONE:
        if body.get("members"):
            difference.require("members", [], [row.get("member_id") for row in body["members"]])
        difference.expect_equal("generation", expected.generation, body.get("generation_id"))
        unnamed = None if observed.version >= 7 else ""
        difference.expect_equal("protocol", expected.protocol or unnamed, body.get("protocol_name"))
        difference.expect_equal("leader", text_or_empty(expected.leader), body.get("leader"))
        if observed.version >= 7:
            difference.expect_equal("protocol_type", expected.protocol_type, body.get("protocol_type"))
        return
    difference.require_equal("member", expected.member, body.get("member_id"))
    difference.require_equal("generation", expected.generation, body.get("generation_id"))
    difference.require_equal("protocol", expected.protocol, body.get("protocol_name"))
    if observed.version >= 7:
        difference.require_equal("protocol_type", expected.protocol_type, body.get("protocol_type"))
    compare_members(expected.members, observed.version, body.get("members") or (), difference)
    difference.require_equal("leader", expected.leader, body.get("leader"))
    if observed.version >= 9:
        difference.require_equal("skip_assignment", expected.skip_assignment, body.get("skip_assignment"))


def compare_members(
    expected: Iterable[MemberView], version: int, seen: Sequence[Body], difference: ResponseDifference
) -> None:
    """The member list, as a set (LAT-04); instance ids from v5 on (JOIN-55)."""

    def fits(view: MemberView, row: Body) -> bool:
        told = (row.get("metadata"), row.get("group_instance_id") if version >= 5 else view.instance)
        return told == (view.metadata, view.instance)

    views = [view for view in expected if view.id is not None]
    for view, row in match_members(views, seen, fits, difference):
        difference.require_equal("members", view.metadata, row.get("metadata"), row)
        if version >= 5:
            difference.require_equal("instances", view.instance, row.get("group_instance_id"), row)


def match_members(
    views: Sequence[View], seen: Sequence[Body], fits: Callable[[View, Body], bool], difference: ResponseDifference
) -> Iterator[tuple[View, Body]]:
    """Each member with its row in a response; one whose id is fresh takes a row that fits and is no other member's.

    A member without a row, or a row without a member, is a difference in `members`.
    """
    rows = {row.get("member_id"): row for row in seen}
    named = {difference.fresh_ids.get(view.id) if isinstance(view.id, FreshId) else view.id for view in views}
    free = [row for name, row in rows.items() if name not in named]
    if len(rows) != len(seen) or len(rows) != len(views):
        difference.require("members", [view.id for view in views], [row.get("member_id") for row in seen])
        return
    for view in views:
        row = rows.get(difference.fresh_ids.get(view.id) if isinstance(view.id, FreshId) else view.id)
        if row is None and isinstance(view.id, FreshId):
            fitting = [each for each in free if fits(view, each)]
            row = fitting[difference.choose(len(fitting))] if fitting else None
            if row is not None and isinstance(row.get("member_id"), str):
                free.remove(row)
                difference.fresh_ids[view.id] = row["member_id"]
        if row is None:
            difference.require("members", [each.id for each in views], list(rows))
        else:
            yield view, row


def compare_sync(expected: SyncResponse, observed: ObservedResponse, difference: ResponseDifference) -> None:
    """SyncGroup."""
    body = observed.response
    difference.require_equal("error", int(expected.error), body.get("error_code"))
    if difference.required:
        return
    difference.require_equal("assignment", expected.assignment or b"", body.get("assignment") or b"")
    if observed.version >= 5:
        check = difference.require_equal if expected.error == Error.NONE else difference.expect_equal
        check("protocol_type", expected.protocol_type, body.get("protocol_type"))
        check("protocol", expected.protocol, body.get("protocol_name"))


def compare_error(
    expected: HeartbeatResponse | ErrorResponse, observed: ObservedResponse, difference: ResponseDifference
) -> None:
    """A response with nothing but an error; DeleteGroups has one for each group."""
    body = observed.response
    if observed.api == "DeleteGroups":
        rows = [row for row in body.get("results") or () if row.get("group_id") == observed.group]
        if len(rows) != 1:
            difference.require("groups", 1, len(rows))
            return
        body = rows[0]
    difference.require_equal("error", int(expected.error), body.get("error_code"))


def compare_leave(expected: LeaveResponse, observed: ObservedResponse, difference: ResponseDifference) -> None:
    """LeaveGroup; below v3 the only entry's error is the response's."""
    body = observed.response
    entries = [int(error) for error in expected.entries]
    if observed.version < 3:
        single = entries[0] if entries and expected.error == Error.NONE else int(expected.error)
        difference.require_equal("error", single, body.get("error_code"))
        return
    difference.require_equal("error", int(expected.error), body.get("error_code"))
    rows = body.get("members") or ()
    check = difference.require_equal if expected.error == Error.NONE else difference.expect_equal  # LAT-12
    check("entries", entries, [row.get("error_code") for row in rows])
    if not difference.required and entries:
        asked = [(row.get("member_id"), row.get("group_instance_id")) for row in observed.request["members"]]
        echoed = [(row.get("member_id"), row.get("group_instance_id")) for row in rows]
        if expected.error == Error.NONE and asked != echoed:
            difference.require("echo", asked, echoed)


def partition_rows(topics: Iterable[Body] | None, names: TopicNames) -> dict[Partition, Body]:
    """The rows of a response by partition."""
    return {
        (text_or_empty(topic_of({"name": None, **topic}, names)), row.get("partition_index", -1)): row
        for topic in topics or ()
        for row in topic.get("partitions") or ()
    }


def bare_topics(topics: Iterable[Body] | None, names: TopicNames) -> frozenset[str | None]:
    """The topics of a message that come without partitions."""
    bare = (topic for topic in topics or () if not (topic.get("partitions") or topic.get("partition_indexes")))
    return frozenset(topic_of({"name": None, **topic}, names) for topic in bare)


def compare_partitions(expected: PartitionErrors, observed: ObservedResponse, difference: ResponseDifference) -> None:
    """OffsetCommit, TxnOffsetCommit, OffsetDelete."""
    body = observed.response
    rows = partition_rows(body.get("topics"), observed.names)
    if observed.api == "OffsetDelete":
        difference.require_equal("error", int(expected.error), body.get("error_code"))
        if expected.error != Error.NONE:
            if rows:
                difference.advisory.add("partitions")
            return
    elif expected.error != Error.NONE:
        asked = partition_rows(observed.request.get("topics"), observed.names)
        expected = PartitionErrors(dict.fromkeys(asked, expected.error))
    errors = {where: row.get("error_code") for where, row in rows.items()}
    if set(errors) != set(expected.errors):
        difference.require("partitions", expected.errors.keys(), errors.keys())
        return
    for where, error in expected.errors.items():
        difference.require_equal("error", int(error), errors[where], where)


def offset_fetch_bodies(version: int, body: Body, group: str) -> list[Body]:
    """What a response to OffsetFetch says of one group; not exactly one body is a flaw of the response."""
    return [body] if version < 8 else [row for row in body.get("groups") or () if row.get("group_id") == group]


def offset_fetch_rows(version: int, body: Body, group: str, names: TopicNames) -> dict[Partition, Body]:
    """The rows of one group in a response to OffsetFetch."""
    return {
        where: row
        for each in offset_fetch_bodies(version, body, group)
        for where, row in partition_rows(each.get("topics"), names).items()
    }


def compare_offset_fetch(
    expected: OffsetFetchResponse, observed: ObservedResponse, difference: ResponseDifference
) -> None:
    """OffsetFetch, of one group among those asked."""
    bodies = offset_fetch_bodies(observed.version, observed.response, observed.group)
    if len(bodies) != 1:
        difference.require("groups", 1, len(bodies))
        return
    if observed.version >= 2:
        difference.require_equal("error", int(expected.error), bodies[0].get("error_code"))
    rows = partition_rows(bodies[0].get("topics"), observed.names)
    asked = offset_fetch_bodies(observed.version, observed.request, observed.group)[0]
    bare = bare_topics(bodies[0].get("topics"), observed.names)
    if bare - bare_topics(asked.get("topics"), observed.names):
        difference.require("partitions", "no topic without partitions", bare)
    if expected.error != Error.NONE:
        # Below v2 there is no other place for an error than the partitions, each of those that are asked for.
        for topic in asked.get("topics") or () if observed.version < 2 else ():
            for where in ((topic["name"], index) for index in topic["partition_indexes"]):
                difference.require_equal("error", int(expected.error), rows.get(where, {}).get("error_code"), where)
        return
    if set(rows) != set(expected.offsets):
        difference.require("partitions", expected.offsets.keys(), rows.keys())
        return
    for where, offset in expected.offsets.items():
        row = rows[where]
        if observed.version == 0 and is_nothing_elsewhere(row):
            difference.advisory.add("error")  # FETCH-14
            continue
        error = Error.NONE if offset is not None else Error.UNSTABLE_OFFSET_COMMIT
        if where in expected.nameless:
            error = Error.UNKNOWN_TOPIC_ID
        value = NO_OFFSET if offset is None else offset
        difference.require_equal("error", int(error), row.get("error_code"), where)
        difference.require_equal("offset", value.offset, row.get("committed_offset"), where)
        difference.require_equal("metadata", value.metadata, text_or_empty(row.get("metadata")), where)
        if row.get("metadata") is None:
            difference.advisory.add("metadata")  # COMMIT-16: null does not come back
        if observed.version >= 5:
            difference.require_equal("epoch", value.epoch, row.get("committed_leader_epoch"), where)


def compare_describe_group(
    expected: DescribeGroupResponse, observed: ObservedResponse, difference: ResponseDifference
) -> None:
    """DescribeGroups, of one group among those asked."""
    rows = [row for row in observed.response.get("groups") or () if row.get("group_id") == observed.group]
    asked = observed.request["groups"].count(observed.group)
    if len(rows) != asked:
        difference.require("groups", asked, len(rows))
        return
    body = rows[0]
    if not expected.is_stored and body.get("group_state") == DEAD:
        return  # LAT-21
    difference.require_equal("error", int(expected.error), body.get("error_code"))
    if not difference.required and expected.error not in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
        difference.expect_equal("state", expected.state, body.get("group_state"))  # LAT-12
        return
    difference.require_equal("state", expected.state, body.get("group_state"))
    if difference.required:
        return
    if expected.error != Error.NONE and not body.get("error_message"):
        difference.advisory.add("message")  # KIP-1043
    difference.require_equal("protocol_type", expected.protocol_type, text_or_empty(body.get("protocol_type")))
    difference.require_equal("protocol", expected.protocol, text_or_empty(body.get("protocol_data")))
    if observed.version >= 3 and not observed.request.get("include_authorized_operations"):
        difference.expect_equal("operations", OPERATIONS_NOT_REQUESTED, body.get("authorized_operations"))
    compare_described_members(expected, observed, list(body.get("members") or ()), difference)


def compare_described_members(
    expected: DescribeGroupResponse, observed: ObservedResponse, seen: Sequence[Body], difference: ResponseDifference
) -> None:
    """The described members, as a set; instance ids from v4 on (ADMIN-06), and in Stable their clients (ADMIN-03).

    A host has the form that the target gives it.
    """
    version = observed.version

    def fits(member: MemberDescription, row: Body) -> bool:
        return version < 4 or row.get("group_instance_id") == member.instance

    for member, row in match_members(expected.members, seen, fits, difference):
        if observed.client is not None and expected.state == STATE_NAMES[Phase.STABLE]:
            difference.require_equal("client_id", observed.client, row.get("client_id"), row)
            if not row.get("client_host"):
                difference.require("client_host", "the host of the client", row.get("client_host"), row)
        difference.require_equal("metadata", member.metadata or b"", row.get("member_metadata") or b"", row)
        assignment = row.get("member_assignment") or b""
        if assignment or not member.any_assignment:
            difference.require_equal("assignment", member.assignment or b"", assignment, row)
        if version >= 4:
            difference.require_equal("instances", member.instance, row.get("group_instance_id"), row)


def compare_list_groups(
    expected: ListGroupsResponse, observed: ObservedResponse, difference: ResponseDifference
) -> None:
    """ListGroups, for one group."""
    body = observed.response
    difference.require_equal("error", int(expected.error), body.get("error_code"))
    rows = [row for row in body.get("groups") or () if row.get("group_id") == observed.group]
    if expected.error != Error.NONE:
        difference.expect_equal("listed", int(expected.listed), len(rows))  # LAT-12
        return
    if not rows and not expected.is_stored:
        return  # LAT-21
    if not rows and is_case_decisive(expected, observed):
        difference.expect_equal("listed", int(expected.listed), len(rows))  # ADMIN-33
        return
    difference.require_equal("listed", int(expected.listed), len(rows))
    if difference.required or not expected.listed:
        return
    difference.require_equal("protocol_type", expected.protocol_type, text_or_empty(rows[0].get("protocol_type")))
    if observed.version >= 4:
        difference.require_equal("state", expected.state, rows[0].get("group_state"))
    if observed.version >= 5:
        difference.require_equal("type", "classic", text_or_empty(rows[0].get("group_type")).lower())


def compare_silence(expected: NoResponse, observed: ObservedResponse, difference: ResponseDifference) -> None:
    """A request that lost its place: no response, an error, or the newer one's response (LAT-09, LAT-10)."""
    if observed.response.get("error_code") not in (
        Error.UNKNOWN_MEMBER_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.ILLEGAL_GENERATION,
    ):
        difference.require("error", "an error", observed.response.get("error_code"))


COMPARISONS: Mapping[type, Callable[[Any, ObservedResponse, ResponseDifference], None]] = {
    JoinResponse: compare_join,
    SyncResponse: compare_sync,
    HeartbeatResponse: compare_error,
    LeaveResponse: compare_leave,
    CommitResponse: compare_error,
    PartitionErrors: compare_partitions,
    OffsetFetchResponse: compare_offset_fetch,
    DescribeGroupResponse: compare_describe_group,
    ListGroupsResponse: compare_list_groups,
    ErrorResponse: compare_error,
    NoResponse: compare_silence,
}
"""How to compare each kind of response."""
