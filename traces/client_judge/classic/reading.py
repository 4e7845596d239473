"""Fetch and OffsetFetch, held against the assignment of the client."""

from collections.abc import Iterator

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages.parsing import topic_of
from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.knowledge import Phase
from fencepost.traces.client_judge.classic.news import describe_partitions
from fencepost.traces.client_judge.classic.state import ClientState, Debt
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Body, Event, Operation

MIN_FETCHES = 8
"""So many fetches show in which order their partitions are."""
MIN_ORDERED = 3


def judge_fetch(state: ClientState, operation: Operation, event: Event) -> None:
    """A Fetch arrives."""
    wanted = frozenset(fetched_partitions(operation.body))
    if not wanted or state.join is None:
        return
    state.pay("Fetch", event.sequence)
    is_new = operation.connection not in state.fetched_on
    state.fetched_on.add(operation.connection)
    if len(wanted) >= MIN_ORDERED and state.has_delivered:
        state.has_delivered = False
        state.fetch_orders.setdefault(wanted, []).append(next(fetched_partitions(operation.body)))
    twice = wanted & fetches_outstanding(state)
    title = "A second fetch of a partition"
    state.check(
        not twice, "PREFETCH-05", operation, title, "one fetch at a time", f"two of {describe_partitions(twice)}"
    )
    if any(topic in state.foreign_topics for topic, _ in wanted):
        title, expected = "Fetch of a topic that is not subscribed", "the assignment is not applied"
        state.violate("MEMBER-20", operation, title, expected, describe_partitions(wanted))
    elif state.knowledge.latest.requirement == "MEMBER-20":
        return  # whatever it does with an assignment that it must not apply
    elif is_new:
        return  # it may have waited for its connection since before the assignment
    elif all(standing.phase is Phase.STABLE for standing in state.knowledge.standings):
        allowed = state.knowledge.allowed_partitions()
        title, expected = "Fetch of a partition that is not assigned", describe_partitions(allowed)
        state.check(wanted <= allowed, "PREFETCH-08", operation, title, expected, describe_partitions(wanted))


def judge_fetch_order(state: ClientState) -> None:
    """Fetches of the same partitions, after some of these had records, do not all begin with the same one."""
    for firsts in state.fetch_orders.values():
        if len(firsts) >= MIN_FETCHES:
            title, expected = "Fetches of the same partitions keep one order", "another partition first in some"
            observed = f"{describe_partitions(firsts[:1])} first in {len(firsts)} fetches"
            violation = build_violation("PREFETCH-10", 0, title, expected, observed)
            state.evidence.judge(len(set(firsts)) > 1, violation)


def fetched_partitions(body: Body) -> Iterator[TopicPartition]:
    """The partitions of a Fetch."""
    for topic in body.get("topics") or ():
        for row in topic["partitions"]:
            yield topic["topic"], row["partition"]


def fetches_outstanding(state: ClientState) -> frozenset[TopicPartition]:
    """The partitions that a Fetch without a response asks for."""
    fetches = (each for each in state.outstanding.values() if each.api == "Fetch")
    return frozenset(partition for fetch in fetches for partition in fetched_partitions(fetch.body))


def learn_offsets(state: ClientState, operation: Operation, event: Event) -> None:
    """The response to OffsetFetch: the client asks again for what it was not told, as an offset that is unstable."""
    groups = event.body.get("groups") or (event.body,)
    rows = [row for group in groups for topic in group.get("topics") or () for row in topic["partitions"]]
    has_failed = any(each.get("error_code") for each in (*groups, *rows))
    state.offsets_failed = event.time if has_failed else None
    if any(row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT for row in rows):
        news = f"OffsetFetch got UNSTABLE_OFFSET_COMMIT at {event.time} ms"
        state.owe(Debt("MCOMMIT-20", "OffsetFetch", event.time, event.sequence, news))


def judge_offset_fetch(state: ClientState, operation: Operation, event: Event) -> None:
    """An OffsetFetch arrives."""
    groups = operation.body.get("groups") or (operation.body,)
    topics = {topic_of(topic, state.topic_names) for group in groups for topic in group.get("topics") or ()}
    foreign = sorted(topics & state.foreign_topics)
    if foreign:
        title, expected = "OffsetFetch of a topic that is not subscribed", "the assignment is not applied"
        state.violate("MEMBER-20", operation, title, expected, ", ".join(foreign))
    state.pay("OffsetFetch", event.sequence)
