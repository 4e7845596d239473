"""Does an answer that was seen say what the model says? Field by field, with the latitude of the protocol.

A field is named in a difference by what it is in the protocol (`error`, `generation`, `leader`, `members`, ...).
A hard difference is one the protocol forbids; a soft one is within its latitude (LAT-11 to LAT-13) and counts
only where a requirement names the field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fencepost.model.classic.core.state import (
    CommitAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    MemberView,
    Silence,
    SyncAnswer,
)
from fencepost.model.classic.messages.parsing import NO_NAMES, Body, topic_of
from fencepost.model.classic.messages.requests import Partition, TopicNames
from fencepost.model.classic.messages.responses import (
    NO_OFFSET,
    Answer,
    Described,
    Fetched,
    Listed,
    MemberDescription,
    PartitionErrors,
    Single,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import quick
from fencepost.model.logic import Token

View = TypeVar("View", MemberView, MemberDescription)
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
    ways: tuple[int, ...] = ()
    """Which of several ids that fit such a one each time was taken; the first where this says nothing."""
    forks: list[int] = field(default_factory=list)
    """How many ids fitted each time."""

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

    def way(self, count: int) -> int:
        """Which of so many ids to take."""
        self.forks.append(count)
        place = len(self.forks) - 1
        return self.ways[place] if place < len(self.ways) else 0


@quick
@dataclass(frozen=True, slots=True)
class Seen:
    """An answer as it came, and the request it belongs to. `names` are those of topics by their ids."""

    api: str
    version: int
    request: Body
    answer: Body
    group: str
    names: TopicNames = field(default_factory=lambda: NO_NAMES)


def compare(expected: Answer, seen: Seen) -> Iterator[Difference]:
    """Hold the answer of the model against the one seen. Fields missing in a broken answer count as different.

    There are several differences if ids that were not known before can be matched in several ways.
    """
    first = compared(expected, seen, ())
    yield first
    left = further(first)
    while left:
        difference = compared(expected, seen, left.pop())
        yield difference
        left += further(difference)


def compared(expected: Answer, seen: Seen, ways: tuple[int, ...]) -> Difference:
    """One way to hold the answers against each other."""
    difference = Difference(ways=ways)
    if seen.answer.get("_findings"):
        difference.soft.add("wire")
    COMPARISONS[type(expected)](expected, seen, difference)
    return difference


def further(difference: Difference) -> list[tuple[int, ...]]:
    """The ways that part from this one after those it was told to go."""
    told, forks = difference.ways, difference.forks
    return [
        (*told, *(0 for _ in forks[len(told) : place]), other)
        for place in range(len(told), len(forks))
        for other in range(1, forks[place])
    ]


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
        difference.expect("generation", expected.generation, body.get("generation_id"))
        unnamed = None if seen.version >= 7 else ""
        difference.expect("protocol", expected.protocol or unnamed, body.get("protocol_name"))
        difference.expect("leader", text(expected.leader), body.get("leader"))
        if seen.version >= 7:
            difference.expect("protocol_type", expected.protocol_type, body.get("protocol_type"))
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


def compare_members(expected: Iterable[MemberView], version: int, seen: Sequence[Body], difference: Difference) -> None:
    """The member list, as a set (LAT-04); instance ids from v5 on (JOIN-55)."""

    def fits(view: MemberView, row: Body) -> bool:
        told = (row.get("metadata"), row.get("group_instance_id") if version >= 5 else view.instance)
        return told == (view.metadata, view.instance)

    views = [view for view in expected if view.id is not None]
    for view, row in identified(views, seen, fits, difference):
        difference.require("members", view.metadata, row.get("metadata"))
        if version >= 5:
            difference.require("instances", view.instance, row.get("group_instance_id"))


def identified(
    views: Sequence[View], seen: Sequence[Body], fits: Callable[[View, Body], bool], difference: Difference
) -> Iterator[tuple[View, Body]]:
    """Each member with its row in an answer; one whose id was not shown yet takes a row that nobody has and that fits.

    A member without a row, or a row without a member, is a difference in `members`.
    """
    rows = {row.get("member_id"): row for row in seen}
    named = {difference.shown.get(view.id) if isinstance(view.id, Fresh) else view.id for view in views}
    free = [row for name, row in rows.items() if name not in named]
    if len(rows) != len(seen) or len(rows) != len(views):
        difference.hard.add("members")
        return
    for view in views:
        row = rows.get(difference.shown.get(view.id) if isinstance(view.id, Fresh) else view.id)
        if row is None and isinstance(view.id, Fresh):
            fitting = [each for each in free if fits(view, each)]
            row = fitting[difference.way(len(fitting))] if fitting else None
            if row is not None and isinstance(row.get("member_id"), str):
                free.remove(row)
                difference.shown[view.id] = row["member_id"]
        if row is None:
            difference.hard.add("members")
        else:
            yield view, row


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
    check = difference.require if expected.error == Error.NONE else difference.expect  # LAT-12
    check("entries", entries, [row.get("error_code") for row in rows])
    if not difference.hard and entries:
        asked = [(row.get("member_id"), row.get("group_instance_id")) for row in seen.request["members"]]
        echoed = [(row.get("member_id"), row.get("group_instance_id")) for row in rows]
        difference.expect("echo", asked, echoed)


def partition_rows(topics: Iterable[Body] | None, names: TopicNames) -> dict[Partition, Body]:
    """The rows of an answer by partition."""
    return {
        (text(topic_of({"name": None, **topic}, names)), row.get("partition_index", -1)): row
        for topic in topics or ()
        for row in topic.get("partitions") or ()
    }


def bare_topics(topics: Iterable[Body] | None, names: TopicNames) -> frozenset[str | None]:
    """The topics of a message that come without partitions."""
    bare = (topic for topic in topics or () if not (topic.get("partitions") or topic.get("partition_indexes")))
    return frozenset(topic_of({"name": None, **topic}, names) for topic in bare)


def compare_partitions(expected: PartitionErrors, seen: Seen, difference: Difference) -> None:
    """OffsetCommit, TxnOffsetCommit, OffsetDelete."""
    body = seen.answer
    rows = partition_rows(body.get("topics"), seen.names)
    if seen.api == "OffsetDelete":
        difference.require("error", int(expected.error), body.get("error_code"))
        if expected.error != Error.NONE:
            if rows:
                difference.soft.add("partitions")
            return
    elif expected.error != Error.NONE:
        asked = partition_rows(seen.request.get("topics"), seen.names)
        expected = PartitionErrors(dict.fromkeys(asked, expected.error))
    errors = {where: row.get("error_code") for where, row in rows.items()}
    if set(errors) != set(expected.errors):
        difference.hard.add("partitions")
    elif any(errors[where] != error for where, error in expected.errors.items()):
        difference.hard.add("error")


def fetched_bodies(version: int, body: Body, group: str) -> list[Body]:
    """What an answer to OffsetFetch says of one group; not exactly one body is a flaw of the answer."""
    return [body] if version < 8 else [row for row in body.get("groups") or () if row.get("group_id") == group]


def fetched_rows(version: int, body: Body, group: str, names: TopicNames) -> dict[Partition, Body]:
    """The rows of one group in an answer to OffsetFetch."""
    return {
        where: row
        for each in fetched_bodies(version, body, group)
        for where, row in partition_rows(each.get("topics"), names).items()
    }


def compare_fetched(expected: Fetched, seen: Seen, difference: Difference) -> None:
    """OffsetFetch, of one group among those asked."""
    bodies = fetched_bodies(seen.version, seen.answer, seen.group)
    if len(bodies) != 1:
        difference.hard.add("groups")
        return
    if seen.version >= 2:
        difference.require("error", int(expected.error), bodies[0].get("error_code"))
    rows = partition_rows(bodies[0].get("topics"), seen.names)
    asked = fetched_bodies(seen.version, seen.request, seen.group)[0]
    if bare_topics(bodies[0].get("topics"), seen.names) - bare_topics(asked.get("topics"), seen.names):
        difference.hard.add("partitions")
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
        if where in expected.nameless:
            error = Error.UNKNOWN_TOPIC_ID
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
    if not difference.hard and expected.error not in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
        difference.expect("state", expected.state, body.get("group_state"))  # LAT-12
        return
    difference.require("state", expected.state, body.get("group_state"))
    if difference.hard:
        return
    if expected.error != Error.NONE and not body.get("error_message"):
        difference.soft.add("message")  # KIP-1043
    difference.require("protocol_type", expected.protocol_type, text(body.get("protocol_type")))
    difference.require("protocol", expected.protocol, text(body.get("protocol_data")))
    if seen.version >= 3 and not seen.request.get("include_authorized_operations"):
        difference.expect("operations", UNASKED, body.get("authorized_operations"))
    members = list(body.get("members") or ())
    compare_described_members(expected.members, seen.version, members, difference)


def compare_described_members(
    expected: tuple[MemberDescription, ...], version: int, seen: Sequence[Body], difference: Difference
) -> None:
    """The described members, as a set; instance ids from v4 on (ADMIN-06)."""

    def fits(member: MemberDescription, row: Body) -> bool:
        return version < 4 or row.get("group_instance_id") == member.instance

    for member, row in identified(expected, seen, fits, difference):
        difference.require("members", member.metadata or b"", row.get("member_metadata") or b"")
        assignment = row.get("member_assignment") or b""
        if assignment or not member.any_assignment:
            difference.require("assignment", member.assignment or b"", assignment)
        if version >= 4:
            difference.require("instances", member.instance, row.get("group_instance_id"))


def compare_listed(expected: Listed, seen: Seen, difference: Difference) -> None:
    """ListGroups, for one group."""
    body = seen.answer
    difference.require("error", int(expected.error), body.get("error_code"))
    rows = [row for row in body.get("groups") or () if row.get("group_id") == seen.group]
    if expected.error != Error.NONE:
        difference.expect("listed", int(expected.listed), len(rows))  # LAT-12
        return
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
