"""Incarnations of groups across the parts of a recording: the queries examine several files as one trace.

Each file numbers its incarnations anew, as it does not show who was a member before it. Together the files do: a member
whose commit or SyncGroup is accepted has been in the group since it joined, for no id is issued twice. So what such a
member and an incarnation span is one incarnation, and so is what overlaps with it, within one term of the coordinator.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.model.errors import COORDINATOR_NOT_READY

NOT_READY = pa.array(sorted(map(int, COORDINATOR_NOT_READY)), pa.int32())
JOINED_COLUMNS = ("group", "incarnation", "generation", "sequence", "of", "member_id", "leader", "kind", "api", "error")
"""What the incarnations of a recording are joined by."""
PART_FACTOR = 1 << 32
"""Incarnations of part N are numbered from N times this on."""
Row: TypeAlias = dict[str, Any]


class Span(NamedTuple):
    """A time between two sequence numbers, in which a group was one incarnation."""

    begin: int
    end: int
    incarnation: int | None
    """The number that a file gives it; None for one that a member shows."""


def ends_term(events: pa.Table | pa.RecordBatch) -> pa.Array:
    """The events after which nothing is certain that was before. One without a group is about all groups."""
    kind, api = events["kind"], events["api"]
    is_restart = pc.and_(pc.equal(kind, "fault"), pc.is_in(api, pa.array(["restart", "moved"])))
    is_unknown = pc.and_(pc.equal(kind, "internal"), pc.equal(api, "unknown"))
    is_refusal = pc.and_(pc.equal(kind, "response"), pc.is_in(events["error"], NOT_READY))
    return pc.or_(pc.or_(is_restart, is_unknown), is_refusal)


def number_parts(events: pa.Table, part: int) -> pa.Table:
    """The events of a part of a recording, with other numbers of incarnations than those of other parts have."""
    numbers = pc.add(events["incarnation"], part * PART_FACTOR)
    return events.set_column(events.schema.get_field_index("incarnation"), "incarnation", numbers)


def join_incarnations(events: pa.Table) -> pa.Table:
    """The events of all parts of a recording but for those that end a term, with the `incarnation` of the whole."""
    is_end = ends_term(events)
    ends = events.filter(is_end).select(["group", "sequence", "of"]).to_pylist()
    others = events.filter(pc.invert(is_end))
    rows: dict[str, list[Row]] = defaultdict(list)
    every = others.select(list(JOINED_COLUMNS)).to_pylist()
    for row in every:
        rows[row["group"]].append(row)
    for group, mine in rows.items():
        join_group(mine, [end for end in ends if end["group"] in (None, group)])
    joined = pa.array([row["incarnation"] for row in every], pa.int64())
    return others.set_column(others.schema.get_field_index("incarnation"), "incarnation", joined)


def join_group(rows: Sequence[Row], ends: Iterable[Row]) -> None:
    """Give the events of a group the incarnation of the whole; `ends` are those that end its terms.

    An event of which it is not certain, for it was under way when a term ended, is of no incarnation.
    """
    marks = sorted(mark for end in ends for mark in {place_of(end), end["sequence"]})  # it ended between the two
    terms: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        term = bisect_right(marks, place_of(row))
        if term != bisect_right(marks, row["sequence"]):
            row["incarnation"] = None
        if row["incarnation"] is not None:
            terms[term].append(row)
    for known in terms.values():
        first = first_incarnations([*numbered_spans(known), *member_spans(known)])
        for row in known:
            row["incarnation"] = first[row["incarnation"]]


def numbered_spans(rows: Iterable[Row]) -> Iterator[Span]:
    """Yield the span of each incarnation that a file numbers."""
    times: dict[int, list[int]] = defaultdict(list)
    begins: dict[int, int] = {}
    for row in rows:
        incarnation, place = row["incarnation"], place_of(row)
        begins[incarnation] = min(place, begins.get(incarnation, place))
        times[incarnation] += [row["of"]] if row["of"] is not None else []
    for incarnation, begin in begins.items():
        yield Span(begin, max(begin, *times[incarnation], begin), incarnation)


def member_spans(rows: Iterable[Row]) -> Iterator[Span]:
    """Yield the span of each member, from when it joined to its last request. An id that joins an earlier generation
    than before was issued again, to another member."""
    members: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=place_of):
        members[row["member_id"]].append(row)
    for mine in members.values():
        highest = -1
        begin: int | None = None
        end: int | None = None
        for row in mine:
            if is_join(row):
                if row["generation"] < highest:
                    yield from known_span(begin, end)
                    begin = end = None
                highest = max(highest, row["generation"])
                begin = place_of(row) if begin is None else begin
            if row["of"] is not None:
                end = row["of"] if end is None else max(end, row["of"])
        yield from known_span(begin, end)


def known_span(begin: int | None, end: int | None) -> Iterator[Span]:
    """Yield the span between two places, if there is one."""
    if begin is not None and end is not None and begin <= end:
        yield Span(begin, end, None)


def first_incarnations(spans: Iterable[Span]) -> Mapping[int, int]:
    """For each incarnation that a file numbers, the first of those that are one with it, as their spans overlap."""
    found: dict[int, int] = {}
    together: list[int] = []
    reached = -1

    def close() -> None:
        found.update(dict.fromkeys(together, min(together, default=0)))
        together.clear()

    for span in sorted(spans, key=lambda each: (each.begin, each.end)):
        if span.begin > reached:
            close()
        reached = max(reached, span.end)
        together += [span.incarnation] if span.incarnation is not None else []
    close()
    return found


def place_of(row: Row) -> int:
    """Where an event counts: that a member joined, from the response on, all else from the request on."""
    sequence: int = row["sequence"]
    return sequence if row.get("leader") is not None or row["of"] is None else row["of"]


def is_join(row: Row) -> bool:
    """Whether an event that is looked at is a JoinGroup response which admits a member: no other has a leader."""
    return row["leader"] is not None
