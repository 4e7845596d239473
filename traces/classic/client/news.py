"""Folds what requests and responses tell of a client's membership: its standings, its assignment and its debts."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.model.assignors.consumer_protocol import NEWEST_VERSION, ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.messages import (
    describe_partitions,
    error_in,
    generation_in,
    is_contradicting,
    is_found,
    protocols_in,
    read_subscriptions,
)
from fencepost.traces.classic.client.standings import EXCHANGE_APIS, Tidings
from fencepost.traces.classic.client.view import ClientView, Debt, Exchange, is_of_exchange, standings_at_join
from fencepost.traces.events import Event, Operation

# --- Metadata that tells how many partitions topics have, and the plans that a leader owes when topics grow.


def learn_metadata(view: ClientView, operation: Operation, event: Event) -> None:
    """Metadata tells the partitions of topics: a leader that planned with others owes another plan."""
    told = {row["name"]: len(row["partitions"]) for row in event.body.get("topics") or () if not row["error_code"]}
    if any(view.topics.get(topic) != count for topic, count in told.items()):
        view.former_topics.append((event.time, dict(view.topics)))
    view.topics.update(told)
    rows = event.body.get("topics") or ()
    for topic in rows:
        for one in topic["partitions"]:
            view.leaders[str(topic.get("name")), int(one["partition_index"])] = one.get("leader_id", -1)
    view.topic_names.update({row["topic_id"]: row["name"] for row in rows if row.get("topic_id") and row.get("name")})
    application = view.application
    if application.pattern and not view.debts and view.exchange_outstanding() is None:
        fresh = sorted(name for name in told if re.fullmatch(application.pattern, name))
        if not set(fresh) <= subscribed_topics(view):
            news = f"Metadata told of {', '.join(fresh)}"
            view.owe(Debt("MEMBER-28", "JoinGroup", event.time, event.sequence, news))
    exchange, latest = view.exchange, view.knowledge.latest
    is_subscribed = not told.keys().isdisjoint(subscribed_topics(view))
    if is_subscribed:
        view.told_at = event.sequence, event.time
    if exchange is not None:
        exchange.told_first = exchange.told_first if exchange.metadata else frozenset(told)
        exchange.metadata += 1
        exchange.has_metadata |= is_subscribed
    grown = grown_topics(view, told)
    if not grown or exchange is None or not latest.is_stable:
        return
    view.growth = event
    news = f"Metadata told the partitions of {', '.join(grown)}"
    is_joining = view.exchange_outstanding() is not None  # its plan is made with these numbers
    if exchange.leads and not is_joining and not any(debt.api == "JoinGroup" for debt in view.debts.values()):
        requirement = "MEMBER-09" if exchange.skips else "MEMBER-21"
        view.owe(Debt(requirement, "JoinGroup", event.time, event.sequence, news))


def learn_growth_of_plan(view: ClientView, subscribed: set[str], event: Event) -> None:
    """The plan of a leader is in force: it owes another one if its topics have grown since it was sent."""
    exchange = view.exchange
    if exchange is None:
        return
    if exchange.leads and not exchange.skips:
        grown = grown_topics(view, view.topics)
        view.has_outgrown = bool(grown)
        if grown:
            told = f"Metadata told the partitions of {', '.join(grown)} after SyncGroup was sent"
            view.owe(Debt("MEMBER-21", "JoinGroup", event.time, event.sequence, told))
    else:
        view.has_outgrown = view.has_planned and bool(grown_topics(view, view.topics))
        view.has_planned = False
        view.planned = {topic: view.topics[topic] for topic in subscribed & view.topics.keys()}


def grown_topics(view: ClientView, told: Mapping[str, int]) -> list[str]:
    """The topics with another number of partitions than the last plan was made with; for a leader also those that were
    not there then."""
    leads = view.exchange is not None and view.exchange.leads
    fresh = subscribed_topics(view) - view.planned.keys() if leads and view.planned else set[str]()
    return sorted(
        name for name, count in told.items() if view.planned.get(name, 0 if name in fresh else count) != count
    )


def subscribed_topics(view: ClientView) -> set[str]:
    """The topics that the last JoinGroup subscribes to: where that cannot be read, those that the client asks about."""
    if view.has_unread_subscription:
        return set(view.topics)
    return {topic for one in view.subscriptions.values() for topic in one.topics}


# --- Requests.


def take_join(view: ClientView, operation: Operation, event: Event) -> None:
    """A JoinGroup arrives: the client is in one of the standings that send it."""
    standings, sender = standings_at_join(view, operation), operation.body["member_id"]
    fitting = [each for each in standings if each.member_id == sender] or standings
    view.knowledge = view.knowledge.narrow(lambda each: each in fitting, lambda each: each.join(operation))
    if operation.version >= 5 and view.join is None:
        view.instance = operation.body.get("group_instance_id")
    view.subscriptions, view.protocols = read_subscriptions(operation), protocols_in(operation)
    view.has_unread_subscription = view.subscriptions.keys() < view.protocols
    view.join, view.growth, view.has_outgrown, view.assigned_at = operation, None, False, None
    view.last_sign = view.rebalance_told = view.left = view.lost_at = None
    view.has_left_silently = False
    view.former_topics.clear()
    view.session_timeout = operation.body["session_timeout_ms"]
    view.rebalance_timeout = operation.body.get("rebalance_timeout_ms", view.session_timeout)


def take_sync(view: ClientView, operation: Operation, event: Event) -> None:
    """A SyncGroup arrives; a second one is in the place of another JoinGroup, but what it is told counts."""
    exchange = view.exchange
    if exchange is None:
        return
    if exchange.sync is not None:
        view.debts = view.debts_without("JoinGroup")
        if not is_of_exchange(operation, exchange):
            return
    exchange.sync = operation
    if exchange.leads:
        view.planned = {topic: view.topics[topic] for topic in subscribed_topics(view) & view.topics.keys()}
        view.has_planned = True
    view.knowledge = view.knowledge.narrow(exchange.is_next_in, lambda each: each.sync(operation))


def take_sign(view: ClientView, operation: Operation, event: Event) -> None:
    """A Heartbeat or OffsetCommit arrives: the client has the membership that it carries."""
    is_commit, open_one = operation.api == "OffsetCommit", view.exchange_outstanding()
    is_syncing = is_commit and open_one is not None and open_one.connection == operation.connection
    if (is_commit and view.is_no_member) or is_syncing or view.is_joining(operation):
        return
    sent = operation.body["member_id"], generation_in(operation)
    if view.standing_of(operation) is not None:
        view.knowledge = view.knowledge.narrow(lambda each: each.sends(*sent))
        if view.last_sign is not None and not is_commit:
            view.last_sign = event.time


def take_leave(view: ClientView, operation: Operation, event: Event) -> None:
    """A LeaveGroup arrives: from now on the client is in no group."""
    view.left = operation
    view.leave("", "it left the group", event)


def take_lookup(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to FindCoordinator leaves."""
    found = is_found(event)
    view.has_found |= found
    if found and view.lost_since is None:
        return
    if view.last_sign is not None:  # nobody was there to get a heartbeat
        view.last_sign = event.time
    if not found:
        view.lost_since = event.time if view.lost_since is None else view.lost_since
    else:
        view.lost_since, view.found_at = None, event.time


# --- Responses.


def learn_join(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to JoinGroup."""
    body, (sequence, time) = event.body, view.told_at
    if not error_in(event):
        member, generation, protocol = body["member_id"], body["generation_id"], body.get("protocol_name") or ""
        leads, skips = body["leader"] == member, bool(body.get("skip_assignment"))
        # On another connection Metadata may be read after this.
        has_metadata = sequence >= operation.handle and event.time - time <= view.knowledge.grace
        told = operation, event.sequence, event.time
        view.exchange = Exchange(*told, member, generation, leads, protocol, skips, has_metadata)
    news = Tidings(operation, event, is_open=is_contradicting(body))
    if not error_in(event) and view.exchange is not None:
        known = view.knowledge.settle(event.time).tell(news)
        view.exchange.is_dropped = not any(map(view.exchange.is_next_in, known.standings))
    view.tell(news)


def is_of_another_plan(view: ClientView, body: Mapping[str, Any]) -> bool:
    """Whether a response to SyncGroup has another protocol type, or another protocol, than JoinGroup brought."""
    protocol = view.exchange.protocol if view.exchange is not None else None
    return is_contradicting(body) or body.get("protocol_name") not in (None, "", protocol)


def learn_sync(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to SyncGroup: an assignment outside the subscription is not to be applied."""
    news = Tidings(operation, event)
    if error_in(event):
        view.tell(news)
        return
    try:
        assignment = frozenset(decode_assignment(event.body.get("assignment") or b""))
    except ConsumerProtocolError:
        view.tell(replace(news, is_open=True))
        return
    protocol, is_other = view.exchange.protocol if view.exchange else "", is_of_another_plan(view, event.body)
    news = replace(news, assignment=assignment, protocol=protocol, is_open=is_other)
    foreign = foreign_topics(view, assignment)
    if foreign and view.has_unread_subscription:
        standings = (*view.knowledge.former.values(), *view.knowledge.standings)
        known = {topic for each in standings for topic, _ in each.assignment or ()}
        news = replace(news, is_open=news.is_open or (bool(known) and not known.issuperset(foreign)))
    elif foreign:
        view.foreign_topics |= set(foreign)
        view.tell(replace(news, asks="MEMBER-20"))
        return
    learn_assignment(view, replace(news, is_open=news.is_open or is_refused(view, assignment)), assignment)


def foreign_topics(view: ClientView, assignment: frozenset[TopicPartition]) -> list[str]:
    """The topics of an assignment that are not subscribed."""
    known = set[str]() if view.has_unread_subscription else subscribed_topics(view)
    return sorted(topic for topic in {topic for topic, _ in assignment} - known if not view.application.matches(topic))


def learn_assignment(view: ClientView, news: Tidings, assignment: frozenset[TopicPartition]) -> None:
    """SyncGroup brings an assignment that a client may apply."""
    event, previous, subscribed = news.event, view.installed or frozenset(), subscribed_topics(view)
    version = int.from_bytes((event.body.get("assignment") or bytes(2))[:2], signed=True)
    view.has_newer_assignment = version > NEWEST_VERSION
    view.rounds += 1
    view.tell(news)
    application = view.application
    if application.is_driven and any(each.assignment is assignment for each in view.knowledge.standings):
        application.assignments.append(assignment)
        if not application.has_callbacks:
            application.positions.clear()  # it begins again at what is committed
    if view.installed != assignment:
        return
    view.given_up = previous - assignment if view.is_cooperative else frozenset()
    view.last_sign = event.time
    learn_growth_of_plan(view, subscribed, event)
    # What it has unsubscribed from it has given up before JoinGroup (CALLBACK-04).
    lost = {each for each in previous - assignment if each[0] in subscribed}
    if view.is_cooperative and lost:
        told = f"{news.words} without {describe_partitions(lost)}"
        view.owe(Debt("COOP-03", "JoinGroup", event.time, event.sequence, told))


def is_refused(view: ClientView, assignment: frozenset[TopicPartition]) -> bool:
    """Whether the application has subscribed to other topics since JoinGroup, so that the assignment is not applied."""
    wanted = view.application.wanted
    return wanted is not None and any(topic not in wanted for topic, _ in assignment)


def learn_of_membership(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to a heartbeat or a commit: an error may ask the client to join."""
    error, latest, asks = error_in(event), view.knowledge.latest, ""
    if error == Error.NONE:
        return
    is_rebalance = error == Error.REBALANCE_IN_PROGRESS and latest.is_stable and view.exchange_outstanding() is None
    if is_rebalance and latest.is_current(operation):
        has_kept_all = view.is_cooperative and view.rounds > 1 and not view.given_up
        asks = "COOP-13" if has_kept_all else "MEMBER-10"
        asks = asks if operation.api == "Heartbeat" else "MCOMMIT-09"
        view.rebalance_told = event.time
    # Whoever is at work still on its last assignment may lose the id as well, or take no notice (member.md 1.2); and a
    # thread of its own may read an error before one that was on its way at once.
    is_fresh = event.time - latest.time <= view.knowledge.grace and error != Error.REBALANCE_IN_PROGRESS
    is_open = bool(view.application.assignments) or (
        is_fresh and (latest.is_stable or latest.requirement == "MEMBER-12")
    )
    view.tell(Tidings(operation, event, asks=asks, is_open=is_open))


def learn_loss(view: ClientView, operation: Operation, event: Event) -> None:
    """The connection of a request ended before its response."""
    waited, is_member = event.time - operation.sent_at, view.last_sign is not None and not view.is_ending
    if operation.api == "Heartbeat" and is_member and waited > view.session_timeout // 2 > 0:
        told = f"a Heartbeat had no response for {waited} ms"
        view.owe(Debt("HBT-11", "FindCoordinator", event.time, event.sequence, told))
    if operation.api in (*EXCHANGE_APIS, "Heartbeat", "OffsetCommit"):
        view.tell(Tidings(operation, event, is_loss=True))


def learn_offsets(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to OffsetFetch: the client asks again for what it was not told, as an offset that is unstable."""
    groups = event.body.get("groups") or (event.body,)
    rows = (row for group in groups for topic in group.get("topics") or () for row in topic["partitions"])
    view.offsets_failed = event.time if error_in(event) else None
    if any(row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT for row in rows):
        news = f"OffsetFetch got UNSTABLE_OFFSET_COMMIT at {event.time} ms"
        view.owe(Debt("MCOMMIT-20", "OffsetFetch", event.time, event.sequence, news))


# --- Members of which only the requests to the coordinator are known.


def begin_recorded_request(view: ClientView, operation: Operation, event: Event) -> None:
    """A JoinGroup of a recorded member arrives: it may have no longer, or never, what it was assigned last. It was
    reset, or its application has subscribed to other topics meanwhile, so that it refused the assignment."""
    if operation.api != "JoinGroup":
        return
    topics = {topic for one in read_subscriptions(operation).values() for topic in one.topics}
    if not operation.body["member_id"]:
        view.may_leave("it was reset", event)
    elif any(topic not in topics for topic, _ in view.installed or ()):
        view.knowledge = view.knowledge.also(lambda each: replace(each, assignment=None))


def end_recorded_response(view: ClientView, operation: Operation) -> None:
    """A response to a recorded member was passed on; Metadata may have come on another connection."""
    if operation.api == "JoinGroup" and view.exchange is not None:
        view.exchange.has_metadata = True
