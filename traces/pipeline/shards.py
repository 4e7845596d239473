"""Judges of shards. A shard is a trace, or the groups of one bucket of a long trace with the events about all groups.

Groups are independent of each other, so the verdict on a group does not depend on the other groups in its shard.
Lookups are an exception: they concern all groups, and have a shard of their own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from fencepost.traces.events import CLASSIC, Event, Header, Kind
from fencepost.traces.history.state_history import StateHistory
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import MAX_LOOKAHEAD, Lookahead, PairedEvent

WHOLE_TRACE = -2
"""The bucket of a shard that is a whole trace."""
LOOKUPS_SHARD = -1
"""The bucket of the shard of lookups, which is also that of events about no single group."""
UNRELATED_BUCKET = -3
"""The bucket of events that only the shard of a whole trace has."""
UNRELATED_APIS = frozenset({"ApiVersions", "Fetch", "ListOffsets", "Produce"})
UNRELATED_KINDS = frozenset({Kind.POLL, Kind.CALLBACK})


def is_unrelated(kind: str, api: str) -> bool:
    """Whether the judge of a group learns nothing from such an event. Most events of real clients are of this kind."""
    return kind in UNRELATED_KINDS or (api in UNRELATED_APIS and kind in (Kind.REQUEST, Kind.RESPONSE))


class ShardJudge:
    """The judge of one unit, and the states that it sees classic groups in. Raises `UnknownProtocol`.

    `owns_group` says which groups are in the unit; None is all of them. What concerns no single group is in the unit of
    the whole trace, or in that of lookups.
    """

    def __init__(self, header: Header, owns_group: Callable[[str], bool] | None = None) -> None:
        self.history = StateHistory()
        self.owns_group = owns_group
        self.own_events = 0
        """The number of events that were read and belong to no other shard."""
        self.judge = Judge(
            header,
            only=owns_group,
            is_shared_judged=owns_group in (None, owns_no_group),
            on_advance=self.history.record_state if header.protocol == CLASSIC else None,
        )


def owns_no_group(group: str) -> bool:
    """In the unit of lookups there is no group."""
    return False


def pair_shard_operations(events: Iterable[tuple[int, Event]]) -> Iterator[PairedEvent]:
    """As `Lookahead.pair_operations`, for a part of the events of a trace, each with its place in the whole trace.

    The lookahead is counted in places of the whole trace, so that the verdict is the same.
    """
    ahead = Lookahead(())
    waiting: deque[tuple[int, PairedEvent]] = deque()
    for place, event in events:
        while waiting and place > waiting[0][0] + MAX_LOOKAHEAD:
            yield waiting.popleft()[1]
        waiting.append((place, ahead.pair_event(event)))
    for _, moment in waiting:
        yield moment
