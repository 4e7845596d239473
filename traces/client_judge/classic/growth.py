"""Metadata that tells how many partitions topics have, and the plans that a leader owes when topics grow."""

import re
from collections.abc import Mapping

from fencepost.traces.client_judge.classic.knowledge import Phase
from fencepost.traces.client_judge.classic.state import ClientState, Debt
from fencepost.traces.events import Event


def learn_metadata(state: ClientState, event: Event) -> None:
    """Metadata tells the partitions of topics: a leader that planned with others owes another plan."""
    told = {row["name"]: len(row["partitions"]) for row in event.body.get("topics") or () if not row["error_code"]}
    if any(state.topics.get(topic) != count for topic, count in told.items()):
        state.former_topics.append((event.time, dict(state.topics)))
    state.topics.update(told)
    state.told_topics = frozenset(told)
    rows = event.body.get("topics") or ()
    for topic in rows:
        for one in topic["partitions"]:
            state.leaders[str(topic.get("name")), int(one["partition_index"])] = one.get("leader_id", -1)
    state.topic_names.update({row["topic_id"]: row["name"] for row in rows if row.get("topic_id") and row.get("name")})
    application = state.application
    if application is not None and application.pattern and not state.debts and state.exchange_outstanding() is None:
        fresh = sorted(name for name in told if re.fullmatch(application.pattern, name))
        if not set(fresh) <= subscribed_topics(state):
            news = f"Metadata told of {', '.join(fresh)}"
            state.owe(Debt("MEMBER-28", "JoinGroup", event.time, event.sequence, news))
    exchange, latest = state.exchange, state.knowledge.latest
    is_subscribed = not told.keys().isdisjoint(subscribed_topics(state))
    if is_subscribed:
        state.told_at = event.sequence, event.time
    if exchange is not None:
        exchange.told_first = exchange.told_first if exchange.metadata else state.told_topics
        exchange.metadata += 1
        exchange.has_metadata |= is_subscribed
    grown = grown_topics(state, told)
    if not grown or exchange is None or latest.phase is not Phase.STABLE:
        return
    state.growth = event
    news = f"Metadata told the partitions of {', '.join(grown)}"
    is_joining = state.exchange_outstanding() is not None  # its plan is made with these numbers
    if exchange.leads and not is_joining and not any(debt.api == "JoinGroup" for debt in state.debts.values()):
        requirement = "MEMBER-09" if exchange.skips else "MEMBER-21"
        state.owe(Debt(requirement, "JoinGroup", event.time, event.sequence, news))


def learn_growth_of_plan(state: ClientState, subscribed: set[str], event: Event) -> None:
    """The plan of a leader is in force: it owes another one if its topics have grown since it was sent."""
    exchange = state.exchange
    if exchange is None:
        return
    if exchange.leads and not exchange.skips:
        grown = grown_topics(state, state.topics)
        state.has_outgrown = bool(grown)
        if grown:
            told = f"Metadata told the partitions of {', '.join(grown)} after SyncGroup was sent"
            state.owe(Debt("MEMBER-21", "JoinGroup", event.time, event.sequence, told))
    else:
        state.has_outgrown = state.has_planned and bool(grown_topics(state, state.topics))
        state.has_planned = False
        state.planned = {topic: state.topics[topic] for topic in subscribed & state.topics.keys()}


def grown_topics(state: ClientState, told: Mapping[str, int]) -> list[str]:
    """The topics with another number of partitions than the last plan was made with; for a leader also those that were
    not there then."""
    leads = state.exchange is not None and state.exchange.leads
    fresh = subscribed_topics(state) - state.planned.keys() if leads and state.planned else set[str]()
    return sorted(
        name for name, count in told.items() if state.planned.get(name, 0 if name in fresh else count) != count
    )


def subscribed_topics(state: ClientState) -> set[str]:
    """The topics that the last JoinGroup subscribes to."""
    return {topic for one in state.subscriptions.values() for topic in one.topics}
