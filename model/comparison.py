"""Does an answer that was seen say what the model says? Field by field, with the latitude of the protocol.

A field is named in a difference by what it is in the protocol (`error`, `generation`, `leader`, `members`, ...).
A hard difference is one the protocol forbids; a soft one is within its latitude (LAT-11 to LAT-13) and counts
only where a requirement names the field.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.answers import (
    NO_OFFSET,
    Answer,
    Described,
    Fetched,
    Listed,
    MemberDescription,
    PartitionErrors,
    Single,
)
from fencepost.model.core.logic import Token
from fencepost.model.core.values import (
    CommitAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    MemberView,
    Silence,
    SyncAnswer,
)
from fencepost.model.errors import Error
from fencepost.model.reading import Body
from fencepost.model.requests import Partition

UNASKED = -2147483648
"""Authorized operations when nobody asked for them (KIP-430)."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """An id that the target made up and has not shown yet, by the handle of the request that brought it about."""

    handle: int


@dataclass(slots=True)
class Difference:
    """What differs, and which ids that were not known before the answer shows."""

    hard: set[str] = field(default_factory=set)
    soft: set[str] = field(default_factory=set)
    shown: dict[Fresh, str] = field(default_factory=dict)

    def require(self, name: str, expected: Token, seen: Token) -> None:
        """The field has to be as expected; a fresh id takes the value seen."""
        if isinstance(expected, Fresh):
            known = self.shown.setdefault(expected, seen)
            if known != seen or not isinstance(seen, str) or not seen:
                self.hard.add(name)
        elif expected != seen:
            self.hard.add(name)

    def expect(self, name: str, expected: Token, seen: Token) -> None:
        """The field should be as expected."""
        if expected != seen:
            self.soft.add(name)


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer as it came, and the request it belongs to."""

    api: str
    version: int
    request: Body
    answer: Body
    group: str


def compare(expected: Answer, seen: Seen) -> Difference:
    """Hold the answer of the model against the one seen. Fields missing in a broken answer count as different."""
    difference = Difference()
    if seen.answer.get("_findings"):
        difference.soft.add("wire")
    COMPARISONS[type(expected)](expected, seen, difference)
    return difference


def text(value: str | None) -> str:
    """A string field; null where the empty string belongs is a finding of the wire format, not of the protocol."""
    return value or ""


def compare_join(expected: JoinAnswer, seen: Seen, difference: Difference) -> None:
    """JoinGroup."""
    body = seen.answer
    difference.require("error", int(expected.error), body.get("error_code"))
    if difference.hard:
        return
    if expected.error == Error.MEMBER_ID_REQUIRED:
        difference.require("member", expected.member, body.get("member_id"))
    elif expected.error != Error.NONE:
        difference.expect("member", text(expected.member), body.get("member_id"))
    if expected.error != Error.NONE:
        if body.get("members"):
            difference.hard.add("members")
        difference.expect("generation", -1, body.get("generation_id"))
        difference.expect("protocol", None if seen.version >= 7 else "", body.get("protocol_name"))
        difference.expect("leader", "", body.get("leader"))
        if seen.version >= 7:
            difference.expect("protocol_type", None, body.get("protocol_type"))
        return
    difference.require("member", expected.member, body.get("member_id"))
    difference.require("generation", expected.generation, body.get("generation_id"))
    difference.require("protocol", expected.protocol, body.get("protocol_name"))
    if seen.version >= 7:
        difference.require("protocol_type", expected.protocol_type, body.get("protocol_type"))
    compare_members(expected.members, seen.version, body.get("members") or (), difference)
    difference.require("leader", expected.leader, body.get("leader"))
    if seen.version >= 9:
        difference.require("skip_assignment", expected.skip_assignment, body.get("skip_assignment"))


def compare_members(expected: Iterable[MemberView], version: int, seen: Iterable[Body], difference: Difference) -> None:
    """The member list, as a set (LAT-04); instance ids from v5 on (JOIN-55)."""
    views = [view for view in expected if view.id is not None]
    rows = {row.get("member_id"): row for row in seen}
    if len(rows) != len(list(seen)):
        difference.hard.add("members")
        return
    unknown = [row for name, row in rows.items() if all(view.id != name for view in views)]
    for view in views:
        row = matched(view, rows, unknown, version, difference)
        if row is None:
            difference.hard.add("members")
            continue
        difference.require("members", view.metadata, row.get("metadata"))
        if version >= 5:
            difference.require("instances", view.instance, row.get("group_instance_id"))
    if unknown:
        difference.hard.add("members")


def matched(
    view: MemberView, rows: Mapping[Any, Body], unknown: list[Body], version: int, difference: Difference
) -> Body | None:
    """The row of this member; for an id not shown yet the first row that fits takes it."""
    if not isinstance(view.id, Fresh):
        return rows.get(view.id)
    name = difference.shown.get(view.id)
    for row in unknown:
        fits = row.get("metadata") == view.metadata and (version < 5 or row.get("group_instance_id") == view.instance)
        if row.get("member_id") == name or (name is None and fits):
            difference.shown.setdefault(view.id, row["member_id"])
            unknown.remove(row)
            return row
    return None


def compare_sync(expected: SyncAnswer, seen: Seen, difference: Difference) -> None:
    """SyncGroup."""
    body = seen.answer
    difference.require("error", int(expected.error), body.get("error_code"))
    if difference.hard:
        return
    difference.require("assignment", expected.assignment or b"", body.get("assignment") or b"")
    if seen.version >= 5:
        check = difference.require if expected.error == Error.NONE else difference.expect
        check("protocol_type", expected.protocol_type, body.get("protocol_type"))
        check("protocol", expected.protocol, body.get("protocol_name"))


def compare_error(expected: HeartbeatAnswer | Single, seen: Seen, difference: Difference) -> None:
    """An answer with nothing but an error; DeleteGroups has one for each group."""
    body = seen.answer
    if seen.api == "DeleteGroups":
        rows = [row for row in body.get("results") or () if row.get("group_id") == seen.group]
        if len(rows) != 1:
            difference.hard.add("groups")
            return
        body = rows[0]
    difference.require("error", int(expected.error), body.get("error_code"))


def compare_leave(expected: LeaveAnswer, seen: Seen, difference: Difference) -> None:
    """LeaveGroup; below v3 the only entry's error is the answer's."""
    body = seen.answer
    entries = [int(error) for error in expected.entries]
    if seen.version < 3:
        single = entries[0] if entries and expected.error == Error.NONE else int(expected.error)
        difference.require("error", single, body.get("error_code"))
        return
    difference.require("error", int(expected.error), body.get("error_code"))
    rows = body.get("members") or ()
    difference.require("entries", entries, [row.get("error_code") for row in rows])
    if not difference.hard and entries:
        asked = [(row.get("member_id"), row.get("group_instance_id")) for row in seen.request["members"]]
        echoed = [(row.get("member_id"), row.get("group_instance_id")) for row in rows]
        difference.expect("echo", asked, echoed)


def partition_rows(topics: Iterable[Body] | None) -> dict[Partition, Body]:
    """The rows of an answer by partition."""
    return {
        (text(topic.get("name")), row.get("partition_index", -1)): row
        for topic in topics or ()
        for row in topic.get("partitions") or ()
    }


def compare_partitions(expected: PartitionErrors, seen: Seen, difference: Difference) -> None:
    """OffsetCommit, TxnOffsetCommit, OffsetDelete."""
    body = seen.answer
    rows = partition_rows(body.get("topics"))
    if seen.api == "OffsetDelete":
        difference.require("error", int(expected.error), body.get("error_code"))
        if expected.error != Error.NONE:
            if rows:
                difference.soft.add("partitions")
            return
    elif expected.error != Error.NONE:
        asked = partition_rows(seen.request.get("topics"))
        expected = PartitionErrors(dict.fromkeys(asked, expected.error))
    errors = {where: row.get("error_code") for where, row in rows.items()}
    if set(errors) != set(expected.errors):
        difference.hard.add("partitions")
    elif any(errors[where] != error for where, error in expected.errors.items()):
        difference.hard.add("error")


def compare_fetched(expected: Fetched, seen: Seen, difference: Difference) -> None:
    """OffsetFetch, of one group among those asked."""
    body = seen.answer
    if seen.version >= 8:
        mine = [row for row in body.get("groups") or () if row.get("group_id") == seen.group]
        if len(mine) != 1:
            difference.hard.add("groups")
            return
        body = mine[0]
    if seen.version >= 2:
        difference.require("error", int(expected.error), body.get("error_code"))
    rows = partition_rows(body.get("topics"))
    if expected.error != Error.NONE:
        # Below v2 there is no other place for an error than the partitions.
        if seen.version < 2 and any(row.get("error_code") != expected.error for row in rows.values()):
            difference.hard.add("error")
        return
    if set(rows) != set(expected.offsets):
        difference.hard.add("partitions")
        return
    for where, offset in expected.offsets.items():
        row = rows[where]
        error = Error.NONE if offset is not None else Error.UNSTABLE_OFFSET_COMMIT
        value = NO_OFFSET if offset is None else offset
        difference.require("error", int(error), row.get("error_code"))
        difference.require("offset", value.offset, row.get("committed_offset"))
        difference.require("metadata", value.metadata, text(row.get("metadata")))
        if row.get("metadata") is None:
            difference.soft.add("metadata")  # COMMIT-16: null does not come back
        if seen.version >= 5:
            difference.require("epoch", value.epoch, row.get("committed_leader_epoch"))


def compare_described(expected: Described, seen: Seen, difference: Difference) -> None:
    """DescribeGroups, of one group among those asked."""
    rows = [row for row in seen.answer.get("groups") or () if row.get("group_id") == seen.group]
    if len(rows) != seen.request["groups"].count(seen.group):
        difference.hard.add("groups")
        return
    body = rows[0]
    difference.require("error", int(expected.error), body.get("error_code"))
    difference.require("state", expected.state, body.get("group_state"))
    if difference.hard:
        return
    difference.require("protocol_type", expected.protocol_type, text(body.get("protocol_type")))
    difference.require("protocol", expected.protocol, text(body.get("protocol_data")))
    if seen.version >= 3 and not seen.request.get("include_authorized_operations"):
        difference.expect("operations", UNASKED, body.get("authorized_operations"))
    members = list(body.get("members") or ())
    compare_described_members(expected.members, seen.version, members, difference)


def compare_described_members(
    expected: tuple[MemberDescription, ...], version: int, seen: list[Body], difference: Difference
) -> None:
    """The described members, as a set; instance ids from v4 on (ADMIN-06)."""
    rows = {row.get("member_id"): row for row in seen}
    unknown = [row for name, row in rows.items() if all(member.id != name for member in expected)]
    if len(rows) != len(seen) or len(rows) != len(expected):
        difference.hard.add("members")
        return
    for member in expected:
        if isinstance(member.id, Fresh) and member.id not in difference.shown and unknown:
            difference.shown[member.id] = unknown.pop()["member_id"]
        row = rows.get(difference.shown.get(member.id, "") if isinstance(member.id, Fresh) else member.id)
        if row is None:
            difference.hard.add("members")
            continue
        difference.require("members", member.metadata or b"", row.get("member_metadata") or b"")
        assignment = row.get("member_assignment") or b""
        if assignment or not member.any_assignment:
            difference.require("assignment", member.assignment or b"", assignment)
        if version >= 4:
            difference.require("instances", member.instance, row.get("group_instance_id"))


def compare_listed(expected: Listed, seen: Seen, difference: Difference) -> None:
    """ListGroups, for one group."""
    body = seen.answer
    difference.require("error", 0, body.get("error_code"))
    rows = [row for row in body.get("groups") or () if row.get("group_id") == seen.group]
    difference.require("listed", int(expected.listed), len(rows))
    if difference.hard or not expected.listed:
        return
    difference.require("protocol_type", expected.protocol_type, text(rows[0].get("protocol_type")))
    if seen.version >= 4:
        difference.require("state", expected.state, rows[0].get("group_state"))
    if seen.version >= 5:
        difference.require("type", "classic", text(rows[0].get("group_type")).lower())


def compare_silence(expected: Silence, seen: Seen, difference: Difference) -> None:
    """A request that lost its place: no answer, an error, or the newer one's answer (LAT-09, LAT-10)."""
    if seen.answer.get("error_code") not in (
        Error.UNKNOWN_MEMBER_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.ILLEGAL_GENERATION,
    ):
        difference.hard.add("error")


COMPARISONS: Mapping[type, Callable[[Any, Seen, Difference], None]] = {
    JoinAnswer: compare_join,
    SyncAnswer: compare_sync,
    HeartbeatAnswer: compare_error,
    LeaveAnswer: compare_leave,
    CommitAnswer: compare_error,
    PartitionErrors: compare_partitions,
    Fetched: compare_fetched,
    Described: compare_described,
    Listed: compare_listed,
    Single: compare_error,
    Silence: compare_silence,
}
"""How to compare each kind of answer."""
