"""Folds what requests and responses tell of a client's membership: its standings, its assignment and its debts."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fencepost.model.assignors.consumer_protocol import NEWEST_VERSION, ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.catalogue.client import MEMBER_RULES
from fencepost.model.classic.member.member import MemberState, MemberStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client.messages import (
    MOVED,
    NO_GENERATION,
    describe_news,
    describe_partitions,
    error_in,
    generation_in,
    is_contradicting,
    is_found,
    protocols_in,
    read_subscriptions,
)
from fencepost.traces.classic.client.standings import LOST, Standing
from fencepost.traces.classic.client.view import EXCHANGE_APIS, ClientView, Debt, Exchange, read_at_join
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
    """A JoinGroup arrives: the client has read what came in answer to the last exchange."""
    if view.exchange is not None:
        view.exchange.is_excused = True
    view.read_before_join, view.knowledge = read_at_join(view, operation)
    if operation.version >= 5 and view.join is None:
        view.instance = operation.body.get("group_instance_id")
    view.subscriptions, view.protocols = read_subscriptions(operation), protocols_in(operation)
    view.has_unread_subscription = view.subscriptions.keys() < view.protocols
    if view.may_have_left and not operation.body["member_id"]:
        view.installed = None  # it has left, and a JoinGroup with the id that it gets now claims nothing either
    view.join, view.growth, view.has_outgrown, view.assigned_at = operation, None, False, None
    view.last_sign = view.rebalance_told = view.left = None
    view.may_have_left = view.has_left_silently = False
    view.former_topics.clear()
    view.session_timeout = operation.body["session_timeout_ms"]
    view.rebalance_timeout = operation.body.get("rebalance_timeout_ms", view.session_timeout)


def take_sync(view: ClientView, operation: Operation, event: Event) -> None:
    """A SyncGroup arrives; one that has followed that JoinGroup already is in the place of another JoinGroup."""
    exchange = view.exchange
    if exchange is None or exchange.is_synced:
        view.debts = view.debts if exchange is None else view.debts_without("JoinGroup")
        return
    exchange.is_synced = True
    if exchange.leads:
        view.planned = {topic: view.topics[topic] for topic in subscribed_topics(view) & view.topics.keys()}
        view.has_planned = True
    view.knowledge = view.knowledge.show(exchange.sequence)


def take_sign(view: ClientView, operation: Operation, event: Event) -> None:
    """A Heartbeat or OffsetCommit arrives: all news before the membership that it carries has been read."""
    is_commit, open_one = operation.api == "OffsetCommit", view.exchange_outstanding()
    is_syncing = is_commit and open_one is not None and open_one.connection == operation.connection
    if (is_commit and view.is_no_member) or is_syncing or view.is_joining(operation):
        return
    if view.standing_of(operation) is not None:
        view.knowledge = view.knowledge.shown_by(operation)
        view.last_sign = event.time if view.last_sign is not None else None


def take_leave(view: ClientView, operation: Operation, event: Event) -> None:
    """A LeaveGroup arrives: from now on the client is in no group."""
    view.left = operation
    if view.exchange is not None:
        view.exchange.is_excused = True
    view.debts = view.debts_without("JoinGroup")
    view.last_sign = view.installed = None
    standing = Standing(is_certain=False, news="it left the group", sequence=event.sequence, time=event.time)
    view.knowledge = view.knowledge = view.knowledge.learn(standing).show(event.sequence)


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


ELSEWHERE = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.REQUEST_TIMED_OUT})
"""Errors after which a client may close its connection, whatever else is to come on it."""
MAY_REJOIN = MOVED | {Error.REBALANCE_IN_PROGRESS}
"""Errors of JoinGroup that cost no member id."""
RESETS = frozenset({"MEMBER-12", "MEMBER-13"})
"""The requirements that say that a generation is over."""
FENCED = "HBT-10"
"""The one that says that a static member is fenced."""
OVER: Mapping[int, str] = MappingProxyType(
    {Error.ILLEGAL_GENERATION: "MEMBER-12", Error.UNKNOWN_MEMBER_ID: "MEMBER-13", Error.FENCED_INSTANCE_ID: FENCED}
)
"""The requirement of each error after which a generation is over."""


def learn_join(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to JoinGroup."""
    body, error = event.body, event.body.get("error_code", 0)
    news = describe_news(operation, event)
    before = view.knowledge.latest.as_sent(operation)
    step = before.reads(operation, event)
    is_reset_late = before.requirement in RESETS | {FENCED} and may_be_read_after(view, before, operation)
    if error in MAY_REJOIN and is_reset_late:
        before = before.unsure()
    if error != Error.NONE and event.connection in view.doubtful:
        learn(view, before.unsure(), "", news, event)
    elif error == Error.NONE:
        member, generation = body["member_id"], body["generation_id"]
        leads = body["leader"] == member
        view.exchange = Exchange(
            operation, event.sequence, member, generation, leads, body.get("protocol_name") or "", event.time
        )
        view.exchange.is_excused = event.connection in view.doubtful
        sequence, time = view.told_at  # on another connection it may be read after this
        view.exchange.has_metadata = sequence >= operation.handle and event.time - time <= view.knowledge.grace
        standing = replace(before, member=step.member)
        view.exchange.skips = bool(body.get("skip_assignment"))
        view.exchange.is_late = view.has_left
        if is_reset_late:
            view.exchange.is_excused = True  # a late error has reset the client while it joined: it drops the response
            is_read = event.time - before.time > view.knowledge.grace
            view.exchange.is_reset = before.requirement == "MEMBER-13" and bool(before.member_id) and is_read
            standing = standing.unsure()
        if is_contradicting(body):
            view.exchange.is_excused = True
            standing = before.unsure()
        if view.exchange.is_late:
            view.exchange.is_excused = True
        else:
            learn(view, standing, "", news, event)
    elif step.rule in LOST:
        learn_reset(view, step, news, event, is_certain=not is_reset_late or error == Error.MEMBER_ID_REQUIRED)
    elif error == Error.REBALANCE_IN_PROGRESS:
        learn(view, before, "MEMBER-34", news, event, owes=True)
    elif error in MOVED:
        learn(view, before, "MEMBER-14", news, event, owes=True)
    else:
        learn(view, before.unsure(), "", news, event)


def may_be_read_after(view: ClientView, standing: Standing, operation: Operation) -> bool:
    """Whether a client may have learned of a standing after it sent this JoinGroup; one without a member id comes
    from a client that was reset before, and whoever joins has read what came in answer to JoinGroup or SyncGroup."""
    if standing.sequence <= max(view.last_exchange_news, view.read_before_join):
        return False
    # A client that was reset may send heartbeats as nobody, and be reset again while it joins.
    is_settled = operation.body["member_id"] == "" and standing.sequence != view.told_as_nobody
    was_under_way = standing.time + view.knowledge.grace > min(view.read_until, operation.sent_at) and not is_settled
    return was_under_way or standing.sequence >= operation.handle


def is_of_another_plan(view: ClientView, body: Mapping[str, Any]) -> bool:
    """Whether a response to SyncGroup has another protocol type, or another protocol, than JoinGroup brought."""
    protocol = view.exchange.protocol if view.exchange is not None else None
    return is_contradicting(body) or body.get("protocol_name") not in (None, "", protocol)


def learn_sync(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to SyncGroup."""
    error, news = event.body.get("error_code", 0), describe_news(operation, event)
    before = view.knowledge.latest.as_sent(operation)
    step = before.reads(operation, event)
    if view.exchange is not None and error != Error.NONE:
        view.exchange.has_failed = True
    if error == Error.NONE and view.exchange is not None and view.has_left:
        view.exchange.is_unapplied = True
    elif error != Error.NONE and event.connection in view.doubtful:
        view.is_installed_doubtful = True
        learn(view, before.unsure(), "", news, event)
    elif error == Error.NONE:
        if view.exchange is not None and is_contradicting(view.exchange.operation.response or {}):
            generation = view.exchange.generation  # it has not heeded that (MEMBER-31)
            step = replace(step, member=evolve(step.member, generation=generation))
        learn_assignment(view, before, replace(before, member=step.member), event, news)
    elif error == Error.REBALANCE_IN_PROGRESS:
        learn(view, before, "MEMBER-11", news, event, owes=True)
    elif step.rule in LOST:
        learn_reset(view, step, news, event)
    elif error in MOVED:
        learn(view, before, "MEMBER-14", news, event, owes=True)
    else:
        learn(view, before.unsure(), "", news, event)


def learn_assignment(view: ClientView, before: Standing, after: Standing, event: Event, news: str) -> None:
    """SyncGroup brings an assignment: one outside the subscription is not to be applied."""
    try:
        assignment = frozenset(decode_assignment(event.body.get("assignment") or b""))
    except ConsumerProtocolError:
        learn(view, before.unsure(), "", news, event)
        return
    subscribed = subscribed_topics(view)
    unknown = {topic for topic, _ in assignment} - (set() if view.has_unread_subscription else subscribed)
    foreign = sorted(topic for topic in unknown if not view.application.matches(topic))
    if foreign and view.has_unread_subscription:
        known = {topic for each in (*view.knowledge.former, *view.knowledge.standings) for topic, _ in each.assignment}
        is_doubtful, foreign = bool(known) and not known.issuperset(foreign), []
        if is_doubtful:
            learn_doubtful_assignment(view, after, assignment, event, news)
            return
    if foreign:
        view.foreign_topics |= set(foreign)
        if not view.is_cooperative:  # a cooperative member has what it had before
            view.installed, after = None, replace(after, assignment=assignment)
        learn(view, after, "MEMBER-20", f"{news} with {', '.join(foreign)}", event, owes=True)
        return
    version = int.from_bytes((event.body.get("assignment") or bytes(2))[:2], signed=True)
    view.has_newer_assignment = version > NEWEST_VERSION
    view.rounds += 1
    if event.connection in view.doubtful or is_refused(view, assignment) or is_of_another_plan(view, event.body):
        learn_doubtful_assignment(view, after, assignment, event, news)
        return
    # What it has unsubscribed from it has given up before JoinGroup (CALLBACK-04).
    lost = {each for each in (view.installed or frozenset()) - assignment if each[0] in subscribed}
    previous = view.installed or frozenset()
    view.is_installed_doubtful = False
    view.given_up = previous - assignment if view.is_cooperative else frozenset()
    view.installed, view.installed_generation = assignment, after.generation
    view.last_sign = event.time
    if view.exchange is not None:
        view.installed_protocol = view.exchange.protocol
    learn(view, replace(after, assignment=assignment), "", news, event)
    learn_growth_of_plan(view, subscribed, event)
    if view.is_cooperative and lost:
        told = f"{news} without {describe_partitions(lost)}"
        view.owe(Debt("COOP-03", "JoinGroup", event.time, event.sequence, told))


def is_refused(view: ClientView, assignment: frozenset[TopicPartition]) -> bool:
    """Whether the application has subscribed to other topics since JoinGroup, so that the assignment is not applied."""
    wanted = view.application.wanted
    return wanted is not None and any(topic not in wanted for topic, _ in assignment)


def learn_doubtful_assignment(
    view: ClientView, after: Standing, assignment: frozenset[TopicPartition], event: Event, news: str
) -> None:
    """An assignment comes that the client may not read or apply: it has that, or what it had before."""
    view.is_installed_doubtful, view.installed = True, None
    if view.application.is_driven:
        view.application.assignments.append(assignment)
    if view.exchange is not None:
        view.exchange.is_excused = view.exchange.has_failed = True
    learn(view, replace(after, assignment=after.assignment | assignment), "", news, event)


def learn_of_membership(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to a heartbeat or a commit; an error about a membership that is over tells nothing new."""
    error, latest = error_in(event), view.knowledge.latest
    sent = operation.body.get("member_id"), generation_in(operation)
    news = describe_news(operation, event)
    if error == Error.NONE:
        return
    if sent[1] == NO_GENERATION:
        view.told_as_nobody = event.sequence
    is_unsure = latest.member_id is None and sent[1] == latest.generation != NO_GENERATION
    if error in OVER and (is_unsure or event.connection in view.doubtful):
        view.is_installed_doubtful = True  # the client may have closed the connection that it comes on
        if view.exchange is not None:
            view.exchange.is_excused = True
        out = evolve(latest.member, state=MemberState.UNJOINED)
        learn(view, replace(latest.unsure(), member=out), OVER[error], news, event)
        return
    if not latest.is_current(operation):
        is_over = latest.generation == NO_GENERATION
        resets = error == Error.UNKNOWN_MEMBER_ID or (error == Error.ILLEGAL_GENERATION and not is_over)
        if operation.api == "OffsetCommit" and resets:
            view.is_installed_doubtful |= not is_over  # it may be reset by a commit of an older generation
            if view.exchange is not None:
                view.exchange.is_excused = True
            learn(view, latest.unsure(), latest.requirement if is_over else "", news, event)
        elif sent[0] == latest.member_id and is_overtaking(view, error, event.time):
            learn(view, latest.unsure(), latest.requirement, news, event)
        elif is_first_read(view, operation, error):
            again = latest if sent[1] != NO_GENERATION else latest.unsure()
            learn(view, again, latest.requirement, news, event)
        return
    if view.exchange is not None:
        view.exchange.is_excused = True
    if error == Error.REBALANCE_IN_PROGRESS:
        if latest.is_stable and view.exchange_outstanding() is None:
            has_kept_all = view.is_cooperative and view.rounds > 1 and not view.given_up
            requirement = "COOP-13" if has_kept_all else "MEMBER-10"
            requirement = requirement if operation.api == "Heartbeat" else "MCOMMIT-09"
            # Before its callback a member may still join; Apache Kafka's ignores the error then.
            is_joining = bool(view.application.assignments)
            is_certain = not is_joining and event.connection not in view.doubtful
            learn(view, latest, requirement, news, event, owes=is_certain)
            view.rebalance_told = event.time
    elif (step := latest.reads(operation, event)).rule in LOST:
        learn_reset(view, step, news, event)
        is_done = not view.application.assignments and event.time - latest.time > view.knowledge.grace
        if error == Error.ILLEGAL_GENERATION and latest.is_stable and not is_done:
            # Whoever is at work still on its last assignment may lose the id as well (member.md 1.2).
            view.knowledge = view.knowledge.learn(view.knowledge.latest.unsure())
    elif error in MOVED:
        learn(view, latest, "MEMBER-14", news, event)
    elif error == Error.FENCED_INSTANCE_ID and operation.api == "Heartbeat":
        view.installed, view.is_installed_doubtful = None, True
        learn(view, latest.unsure(), FENCED, news, event)


def is_overtaking(view: ClientView, error: int, time: int) -> bool:
    """Whether a client may read this error of a heartbeat before the one by which it keeps its member id: both were on
    their way at once, and it may have a thread for each."""
    latest = view.knowledge.latest
    is_fresh = latest.requirement == "MEMBER-12" and time - latest.time <= view.knowledge.grace
    return is_fresh and error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)


def is_first_read(view: ClientView, operation: Operation, error: int) -> bool:
    """Whether a client may be reset by this error of a heartbeat, though its generation is over: it sent that after the
    same news had left, which its connection may have ended before; or as nobody, beside a JoinGroup."""
    latest, requirement = view.knowledge.latest, OVER.get(error)
    if requirement is None or latest.requirement not in OVER.values() or latest.sequence >= operation.handle:
        return False
    return requirement == latest.requirement or generation_in(operation) == NO_GENERATION


def doubt_assignment(view: ClientView, event: Event) -> None:
    """A connection ends: the response to SyncGroup that left on it a moment ago, and that the application has not been
    told of, may never be read."""
    latest, application = view.knowledge.latest, view.application
    is_told = not application.assignments
    if is_told or not latest.is_stable or event.connection != view.coordinator_connection:
        return
    if event.time - latest.time <= view.knowledge.grace:
        view.installed, view.is_installed_doubtful = None, True


def learn_loss(view: ClientView, operation: Operation, event: Event) -> None:
    """The connection of a request ended before its response."""
    waited, is_member = event.time - operation.sent_at, view.last_sign is not None and not view.is_ending
    if operation.api == "Heartbeat" and is_member and waited > view.session_timeout // 2 > 0:
        told = f"a Heartbeat had no response for {waited} ms"
        view.owe(Debt("HBT-11", "FindCoordinator", event.time, event.sequence, told))
    if operation.api == "JoinGroup" and operation is not view.join:
        return  # another one has come in its place, and may have its response already
    latest = view.knowledge.latest
    if view.exchange is not None:
        view.exchange.is_excused = True
        view.exchange.has_failed |= operation.api == "SyncGroup"
    if operation.api == "JoinGroup":
        is_reset_late = latest.requirement in RESETS and may_be_read_after(view, latest, operation)
        latest = latest.unsure() if is_reset_late else latest.as_sent(operation)
    if operation.api in ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"):
        is_exchange = operation.api in EXCHANGE_APIS
        learn(view, latest, "MEMBER-14", f"the connection of its {operation.api} was closed", event, owes=is_exchange)


def learn(
    view: ClientView, standing: Standing, requirement: str, news: str, event: Event, *, owes: bool = False
) -> None:
    """The client may know of this standing from now on; it `owes` a JoinGroup if the requirement says so."""
    told = replace(standing, requirement=requirement, news=news, sequence=event.sequence, time=event.time)
    view.knowledge = view.knowledge.learn(told)
    if requirement in RESETS | {FENCED}:
        view.reset_at = event.time
    if owes:
        view.owe(Debt(requirement, "JoinGroup", event.time, event.sequence, news))


def learn_offsets(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to OffsetFetch: the client asks again for what it was not told, as an offset that is unstable."""
    groups = event.body.get("groups") or (event.body,)
    rows = (row for group in groups for topic in group.get("topics") or () for row in topic["partitions"])
    view.offsets_failed = event.time if error_in(event) else None
    if any(row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT for row in rows):
        news = f"OffsetFetch got UNSTABLE_OFFSET_COMMIT at {event.time} ms"
        view.owe(Debt("MCOMMIT-20", "OffsetFetch", event.time, event.sequence, news))


def learn_reset(view: ClientView, step: MemberStep, news: str, event: Event, *, is_certain: bool = True) -> None:
    """The generation is over: the next JoinGroup carries the id that the proved member has, or any if that is not
    certain."""
    view.installed = None
    view.is_installed_doubtful = False
    view.last_sign = None
    requirement = MEMBER_RULES[step.rule].requirements[0]
    learn(view, Standing(step.member, is_certain), requirement, news, event, owes=True)


# --- Members of which only the requests to the coordinator are known.


def begin_recorded_request(view: ClientView, operation: Operation) -> None:
    """A request of a recorded member arrives: it may have no longer, or never, what it was assigned last. It was reset,
    or its application has subscribed to other topics meanwhile, so that it refused the assignment."""
    if operation.api == "JoinGroup" and view.installed is not None:
        topics = {topic for one in read_subscriptions(operation).values() for topic in one.topics}
        if not operation.body["member_id"] or any(topic not in topics for topic, _ in view.installed):
            view.installed, view.is_installed_doubtful = None, True
    view.may_have_left = True


def end_recorded_response(view: ClientView, operation: Operation) -> None:
    """A response to a recorded member was passed on; Metadata may have come on another connection."""
    if operation.api == "JoinGroup" and view.exchange is not None:
        view.exchange.has_metadata = True
    is_stable = operation.api == "SyncGroup" and view.knowledge.latest.is_stable
    view.is_installed_doubtful |= is_stable and view.installed is None
