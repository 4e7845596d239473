"""The tables that a judge makes of a corpus for questions: rebalances, memberships, owners, and what is wrong.

Their columns have types and a clock, so SQL needs no more. `views.sql` has the questions, and CORPUS.md the columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from fencepost.traces.events import Header
from fencepost.traces.history.builder import ChangeCause, HoldKind, MemberSpan, PhaseHold, TimelineRebalance
from fencepost.traces.history.recordings import Ownership
from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.files import make_schema
from fencepost.traces.pipeline.rows import began_us

REBALANCES, MEMBERSHIPS, OWNERSHIP, FINDINGS = "rebalances", "memberships", "ownership", "findings"
SCHEMAS: Mapping[str, pa.Schema] = {
    REBALANCES: make_schema(
        "trace string, at instant, time int64, group string, old_generation int32, generation int32, cause string, "
        "culprit string, reason string, timeout int64, join_ms int64, sync_ms int64, ms int64, is_over bool, "
        "outcome string, members int32, came string, gone string, awaited string, held string, held_ms int64"
    ),
    MEMBERSHIPS: make_schema(
        "trace string, at instant, group string, member string, instance string, client string, since int64, "
        "until int64, came instant, went instant, why string, reason string, timeout int64"
    ),
    OWNERSHIP: make_schema(
        "trace string, at instant, group string, member string, generation int32, partition string, since int64, "
        "until int64, ended string, sequence int64"
    ),
    FINDINGS: make_schema(
        "trace string, at instant, time int64, sequence int64, group string, kind string, requirement string, "
        "api string, title string, observed string, allowed string"
    ),
}
MAX_CLIENT_CUT = len("-01234567-89ab-cdef-0123-456789abcdef")
"""Of what follows the client id, or the instance id, in the member ids that Apache Kafka issues."""


class TableRow(NamedTuple):
    """A row of one of the tables of `SCHEMAS`."""

    table: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StoryTeller:
    """Makes rows of what happened in one trace, which began at `began`, in microseconds since 1970; None if unknown."""

    trace: str
    began: int | None

    @classmethod
    def of(cls, trace: str, header: Header) -> "StoryTeller":
        """The teller of the trace with this header."""
        return cls(trace, began_us(header))

    def clock(self, time: int | None) -> int | None:
        """The instant of a time in the trace."""
        return None if time is None or self.began is None else self.began + time * 1_000

    def tell(self, group: str, told: TimelineRebalance | MemberSpan) -> TableRow:
        """The row of a rebalance, or of a membership."""
        return self.rebalance(group, told) if isinstance(told, TimelineRebalance) else self.membership(group, told)

    def rebalance(self, group: str, told: TimelineRebalance) -> TableRow:
        """The row of a rebalance. What it took is counted up to the end of the trace if it was not over."""
        holds = [hold for hold in (told.join_hold, told.sync_hold) if hold is not None]
        hold = max(holds, key=lambda each: (each.kind is HoldKind.AWAITED, *rank_of(each)), default=None)
        waited = holds[-1].waited if told.ended is None and holds else 0
        joined = told.joined if told.joined is not None else told.ended
        join_ms = waited if joined is None else joined - told.began
        end = told.ended if told.ended is not None else (joined or told.began) + waited
        values = (
            *(self.trace, self.clock(told.began), told.began, encodable_text(group)),
            *(told.old_generation, told.generation, *cause_cells(told.cause)),
            *(join_ms, end - told.began - join_ms, end - told.began, told.ended is not None, told.phase or None),
            *(told.members, names(told.came), names([name for name, _ in told.gone]), *hold_cells(hold)),
        )
        return TableRow(REBALANCES, values)

    def membership(self, group: str, told: MemberSpan) -> TableRow:
        """The row of a membership. A client that no message names is read out of the member id."""
        client = told.client or client_in(told.member, told.instance)
        names_of_member = map(encodable_text, (group, told.member, told.instance, client))
        times = (told.since, told.until, self.clock(told.since), self.clock(told.until))
        why, _, reason, timeout = (None,) * 4 if told.end is None else cause_cells(told.end)
        return TableRow(
            MEMBERSHIPS, (self.trace, self.clock(told.since), *names_of_member, *times, why, reason, timeout)
        )

    def ownership(self, period: Ownership) -> Iterator[TableRow]:
        """The rows of a period, one for each partition."""
        for partition in period.partitions:
            owner = map(encodable_text, (period.group, period.member_id))
            what = (period.generation, encodable_text(partition), period.since, period.until, period.end.value)
            yield TableRow(OWNERSHIP, (self.trace, self.clock(period.since), *owner, *what, period.sequence))

    def finding(self, kind: str, sequence: int, time: int | None, *texts: str | None) -> TableRow:
        """The row of a violation, found at `time`; the texts are group, requirement, API, title, observed, allowed."""
        group, *words = map(encodable_text, texts)
        return TableRow(FINDINGS, (self.trace, self.clock(time), time, sequence, group, kind, *words))

    def note(self, kind: str, reason: str) -> TableRow:
        """The row of what is no violation: something that could not be judged, and why."""
        return TableRow(FINDINGS, (self.trace, *(None,) * 4, kind, None, None, encodable_text(reason), None, None))


def names(members: Sequence[str]) -> str | None:
    """Some members in one cell; None for nobody."""
    return encodable_text(", ".join(members)) if members else None


def rank_of(hold: PhaseHold) -> tuple[bool, int]:
    """How much a hold tells: one that names members comes first, and of these the longest."""
    return bool(hold.members), hold.waited


def cause_cells(cause: ChangeCause) -> tuple[str, str | None, str | None, int | None]:
    """The cells of a cause: its kind, the members, the reason in the words of the source, and the timeout."""
    return cause.kind.value, names(cause.members), encodable_text(cause.detail) or None, cause.timeout


def hold_cells(hold: PhaseHold | None) -> tuple[str | None, str | None, int | None]:
    """The cells of what held a rebalance up most: who was awaited, what for, and how long."""
    return (None, None, None) if hold is None else (names(hold.members), hold.kind.value, hold.waited)


def client_in(member: str, instance: str | None) -> str | None:
    """The client id in a member id as Apache Kafka issues it; None where there is none, or the instance id is there."""
    name = member[:-MAX_CLIENT_CUT]
    is_issued = member[len(name) :].count("-") == 5 and member[len(name) :].startswith("-")
    return name if name and is_issued and name != instance else None
