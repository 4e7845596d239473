"""The judge learns the names of topic ids from a trace, and leaves a group undecided where it cannot."""

from typing import Any

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

T, GHOST = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"
TOLD: Body = {"topics": {"t": 1}, "ids": {"t": T}}
METADATA: Body = {"topics": [{"name": "t", "topic_id": T, "partitions": []}, {"name": "u"}]}


class TopicIdTrace:
    """A trace seen at the coordinator."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add_event(self, kind: Kind, api: str, version: int, body: Body, of: int | None = None) -> int:
        number = len(self.events)
        self.events.append(Event(number, 10 * number, 0, "", kind, api, version, body, of))
        return number

    def exchange(self, api: str, version: int, body: Body, response: Body) -> None:
        self.add_event(Kind.RESPONSE, api, version, response, self.add_event(Kind.REQUEST, api, version, body))

    def commit(self, topic: str, error: int) -> None:
        asked = [{"topic_id": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
        told = [{"topic_id": topic, "partitions": [{"partition_index": 0, "error_code": error}]}]
        self.exchange("OffsetCommit", 10, {"group_id": "g", "topics": asked}, {"topics": told})

    def fetch_by_name(self, offset: int) -> None:
        asked = [{"name": "t", "partition_indexes": [0]}]
        row = {"partition_index": 0, "committed_offset": offset, "metadata": "", "error_code": 0}
        told: dict[str, Any] = {"topics": [{"name": "t", "partitions": [row]}], "error_code": 0}
        self.exchange("OffsetFetch", 2, {"group_id": "g", "topics": asked}, told)

    def verdict(self) -> TraceVerdict:
        return judge(Header("test", Order.TOTAL, "virtual", Settings(), 10), self.events)


@pytest.mark.parametrize(("offset", "faults"), [(7, 0), (-1, 1), (8, 1)])
@pytest.mark.parametrize("learnt", ["told", "metadata"])
def test_a_commit_by_id_is_seen_by_name(learnt: str, offset: int, faults: int) -> None:
    tape = TopicIdTrace()
    if learnt == "told":
        tape.add_event(Kind.INTERNAL, "topics", 0, TOLD)
    else:
        tape.exchange("Metadata", 12, {"topics": None}, METADATA)
    tape.commit(T, 0)
    tape.fetch_by_name(offset)
    verdict = tape.verdict()
    assert (len(verdict.violations), verdict.inconclusive) == (faults, ())


@pytest.mark.parametrize(("error", "faults"), [(100, 0), (3, 1), (0, 1)])
def test_an_id_that_was_not_told_is_no_topics(error: int, faults: int) -> None:
    tape = TopicIdTrace()
    tape.add_event(Kind.INTERNAL, "topics", 0, TOLD)
    tape.commit(GHOST, error)
    assert len(tape.verdict().violations) == faults


def test_ids_that_nobody_told_leave_the_group_undecided() -> None:
    tape = TopicIdTrace()
    tape.commit(T, 0)
    tape.fetch_by_name(-1)
    verdict = tape.verdict()
    assert verdict.violations == ()
    assert verdict.inconclusive == ("group 'g', request 0: the trace does not tell which topics the ids in it are of",)
