"""News: the standing of a client after each response, and its debts from then on."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fencepost.model.assignors.consumer_protocol import NEWEST_VERSION, ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error, error_name
from fencepost.traces.classic.client.application import Application, check_event
from fencepost.traces.classic.client.state import (
    EXCHANGE_APIS,
    NO_GENERATION,
    STEADY,
    ClientState,
    Debt,
    Exchange,
    Phase,
    Standing,
)
from fencepost.traces.events import Event, Operation

# --- Metadata that tells how many partitions topics have, and the plans that a leader owes when topics grow.


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
    """The topics that the last JoinGroup subscribes to: where that cannot be read, those that the client asks about."""
    if state.has_unread_subscription:
        return set(state.topics)
    return {topic for one in state.subscriptions.values() for topic in one.topics}


# --- The rhythm of a client's heartbeats and its clocks, held against what its application does.

PASSING_ERRORS = frozenset({Error.UNKNOWN_SERVER_ERROR, Error.COORDINATOR_LOAD_IN_PROGRESS})
"""The errors of heartbeats that may pass."""
LEAVING_MS = 3_000
"""How late a client that is not polled may leave, or stop its heartbeats."""
SLOW_MS = 3_000
"""How long an application has to do nothing to be slow."""


def note_heartbeat(state: ClientState, operation: Operation, event: Event) -> None:
    """A Heartbeat of a membership that the client has arrives."""
    rhythm, application = state.rhythm, state.application
    gap = event.time - rhythm.last
    if rhythm.failed is not None and rhythm.usual:
        waited = event.time - rhythm.failed
        title, expected = "A heartbeat that failed is not repeated soon", f"less than {rhythm.usual} ms later"
        state.check(waited < rhythm.usual, "HBT-14", operation, title, expected, f"{waited} ms later")
    elif rhythm.last and rhythm.failed is None and (application is None or application.idle_since is None):
        rhythm.gaps.append(gap)
    rhythm.failed, rhythm.last = None, event.time
    if rhythm.outage > state.rebalance_timeout > 0:
        state.evidence.hold("HBT-15", event.sequence)
        rhythm.outage = 0


def note_heartbeat_response(state: ClientState, event: Event) -> None:
    """The response to a Heartbeat leaves."""
    if event.body.get("error_code", 0) in PASSING_ERRORS:
        state.rhythm.failed = event.time


def note_lookup(state: ClientState, event: Event, is_found: bool) -> None:
    """The response to FindCoordinator leaves."""
    rhythm = state.rhythm
    if is_found and rhythm.lost_since is None:
        return
    if state.last_sign is not None:  # nobody was there to get a heartbeat
        state.last_sign = event.time
    if not is_found:
        rhythm.lost_since = event.time if rhythm.lost_since is None else rhythm.lost_since
    elif rhythm.lost_since is not None:
        rhythm.outage, rhythm.lost_since, rhythm.found_at = event.time - rhythm.lost_since, None, event.time


def is_looking_up(state: ClientState) -> bool:
    """Whether the client knows no coordinator as far as it has said: it has asked for one and was told none."""
    return state.rhythm.lost_since is not None or any(
        each.api == "FindCoordinator" for each in state.outstanding.values()
    )


def has_no_coordinator(state: ClientState, time: int) -> bool:
    """Whether the coordinator cannot be found, or does not respond: the client cannot ask it for offsets."""
    return state.rhythm.lost_since is not None or state.is_unheard(time, state.knowledge.grace)


def has_been_lost(state: ClientState, time: int) -> bool:
    """Whether the coordinator could not be found for longer than the poll interval."""
    rhythm = state.rhythm
    lost = rhythm.outage if rhythm.lost_since is None else time - rhythm.lost_since
    return lost > state.rebalance_timeout > 0


def judge_end_of_idleness(state: ClientState, application: Application, event: Event) -> None:
    """The application goes on after it has done nothing for a while: heartbeats came, or came no more."""
    if application.idle_since is None or state.join is None:
        return
    idle, rhythm = event.time - application.idle_since, state.rhythm
    silence = event.time - max(rhythm.last, application.idle_since)
    limit = state.rebalance_timeout + LEAVING_MS
    is_stable = state.knowledge.latest.phase is Phase.STABLE and state.rebalance_told is None
    is_stable &= state.exchange_outstanding() is None
    if state.instance is not None and application.has_interval and idle > limit and is_stable:
        title, expected = "A static member sends heartbeats that is not polled", f"none after {limit} ms"
        observed = f"one {idle - silence} ms after the last poll"
        check_event(state.evidence, silence >= idle - limit, "HBT-07", event, title, expected, observed)
        news = "its application did not poll"
        state.leave_silently(Standing("", requirement="HBT-08", news=news, sequence=event.sequence, time=event.time))
    elif application.has_interval and application.unpolled_time(event.time) > state.earliest_timeout:
        state.may_have_left = True
    elif SLOW_MS <= idle < state.earliest_timeout and is_stable and rhythm.usual:
        allowed = STEADY * rhythm.usual + state.knowledge.grace
        title, expected = "A slow application stops the heartbeats", f"one in {rhythm.usual} ms"
        if may_be_silent(state, event, allowed):
            return
        check_event(state.evidence, silence <= allowed, "HBT-12", event, title, expected, f"none for {silence} ms")


def note_overdue_poll(state: ClientState, application: Application, time: int) -> None:
    """A client that is held up in a poll for as long as its poll interval may leave as one that is not polled."""
    is_overdue = application.overdue_time(time) > state.earliest_timeout
    if application.has_interval and state.join is not None and is_overdue:
        state.may_have_left = True


def judge_silence_of_waiting(state: ClientState, operation: Operation, time: int) -> None:
    """Heartbeats come while SyncGroup has no response: not one in half a session timeout is unusual."""
    waited = time - operation.sent_at
    if waited > state.session_timeout / 2 and not state.has_sign_while_waiting:
        title, observed = "No heartbeat while SyncGroup has no response", f"none for {waited} ms"
        state.violate("HBT-03", operation, title, "heartbeats", observed)


def may_be_silent(state: ClientState, event: Event, milliseconds: int) -> bool:
    """Whether JoinGroup had no response until less than so long ago: before, no heartbeat was to come (HBT-04)."""
    return state.exchange is not None and event.time - state.exchange.time <= milliseconds


def note_slow_callback(state: ClientState, event: Event) -> None:
    """A callback begins; a slow one is over, and heartbeats came meanwhile."""
    takes = event.body.get("takes_ms", 0)
    state.rhythm.callback = (event.time, takes) if takes >= SLOW_MS else None


def judge_slow_callback(state: ClientState, event: Event) -> None:
    """Something happens in the application: a slow callback is over by then (HBT-12)."""
    rhythm, callback = state.rhythm, state.rhythm.callback
    rhythm.callback = None
    if callback is None or not rhythm.usual or state.knowledge.latest.phase is not Phase.STABLE:
        return
    begun, takes = callback
    if takes >= state.earliest_timeout or event.time - begun < takes:
        return
    silence, allowed = event.time - max(rhythm.last, begun), STEADY * rhythm.usual + state.knowledge.grace
    if may_be_silent(state, event, allowed):
        return
    title, expected = "A slow callback stops the heartbeats", f"one in {rhythm.usual} ms"
    check_event(state.evidence, silence <= allowed, "HBT-12", event, title, expected, f"none for {silence} ms")


def judge_clocks(state: ClientState, operation: Operation, event: Event) -> None:
    """LeaveGroup or Heartbeat arrives: a JoinGroup that has just succeeded, after longer than a clock runs, has started
    that anew. A lookup says nothing: there are clients that look up the coordinator at any time."""
    exchange = state.exchange
    clock = min(state.session_timeout, state.rebalance_timeout)
    if exchange is None or exchange.is_excused or not clock or exchange.time - exchange.operation.sent_at <= clock:
        return
    since = event.time - exchange.time
    title, expected = (
        "A clock goes on that JoinGroup has started anew",
        f"{operation.api} no sooner than after {clock} ms",
    )
    if operation.api != "Heartbeat" and since < state.knowledge.grace and not state.is_ending:
        state.violate("HBT-16", operation, title, expected, f"{operation.api} after {since} ms")
    elif operation.api == "Heartbeat" and since >= state.knowledge.grace:
        state.evidence.hold("HBT-16", event.sequence)


MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS})
ELSEWHERE = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.REQUEST_TIMED_OUT})
"""Errors after which a client may close its connection, whatever else is to come on it."""
MAY_REJOIN = MOVED | {Error.REBALANCE_IN_PROGRESS}
"""Errors of JoinGroup that cost no member id."""
PARKED_MS = 2_000
"""A JoinGroup that takes longer is one in whose time there might have been heartbeats."""
GENERATION_OVER = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID})
"""What a commit of a generation is told that is over."""
RESETS = frozenset({"MEMBER-12", "MEMBER-13"})
"""The requirements that say that a generation is over."""
FENCED = "HBT-10"
"""The one that says that a static member is fenced."""
OVER: Mapping[int, str] = MappingProxyType(
    {Error.ILLEGAL_GENERATION: "MEMBER-12", Error.UNKNOWN_MEMBER_ID: "MEMBER-13", Error.FENCED_INSTANCE_ID: FENCED}
)
"""The requirement of each error after which a generation is over."""


def learn_join(state: ClientState, operation: Operation, event: Event) -> None:
    """The response to JoinGroup."""
    body, error = event.body, event.body.get("error_code", 0)
    sent, news = operation.body["member_id"], describe_news(operation, event)
    if event.time - operation.sent_at > PARKED_MS:
        state.evidence.hold("HBT-04", event.sequence)
    before = replace(state.knowledge.latest, member_id=sent)
    is_reset_late = before.requirement in RESETS | {FENCED} and may_be_read_after(state, before, operation)
    if error in MAY_REJOIN and is_reset_late:
        before = replace(before, member_id=None)
    if error != Error.NONE and event.connection in state.doubtful:
        learn(state, replace(before, member_id=None), "", news, event)
    elif error == Error.NONE:
        member, generation = body["member_id"], body["generation_id"]
        leads = body["leader"] == member
        state.exchange = Exchange(
            operation, event.sequence, member, generation, leads, body.get("protocol_name") or "", event.time
        )
        if state.groups.told is not None and state.groups.generation is None:
            state.groups.generation = generation
        state.exchange.is_excused = event.connection in state.doubtful
        sequence, time = state.told_at  # on another connection it may be read after this
        state.exchange.has_metadata = sequence >= operation.handle and event.time - time <= state.knowledge.grace
        standing = Standing(member, generation, Phase.JOINED, before.assignment)
        state.exchange.skips = bool(body.get("skip_assignment"))
        state.exchange.is_late = state.has_left
        if is_reset_late:
            state.exchange.is_excused = True  # a late error has reset the client while it joined: it drops the response
            state.exchange.is_reset = has_read_reset(state, operation, event.time)
            standing = replace(standing, member_id=None)
        if is_contradicting(body):
            state.exchange.is_excused = True
            standing = replace(before, member_id=None)
        if state.exchange.is_late:
            state.exchange.is_excused = True
        else:
            learn(state, standing, "", news, event)
    elif error == Error.MEMBER_ID_REQUIRED:
        learn_reset(state, body["member_id"], "MEMBER-05", news, event)
    elif error == Error.UNKNOWN_MEMBER_ID:
        learn_reset(state, None if is_reset_late else "", "MEMBER-13", news, event)
    elif error == Error.REBALANCE_IN_PROGRESS:
        learn(state, before, "MEMBER-34", news, event, owes=True)
    elif error in MOVED:
        learn(state, before, "MEMBER-14", news, event, owes=True)
    else:
        learn(state, replace(before, member_id=None), "", news, event)


def may_be_read_after(state: ClientState, standing: Standing, operation: Operation) -> bool:
    """Whether a client may have learned of a standing after it sent this JoinGroup; one without a member id comes
    from a client that was reset before, and whoever joins has read what came in answer to JoinGroup or SyncGroup."""
    if standing.sequence <= max(state.last_exchange_news, state.read_before_join):
        return False
    # A client that was reset may send heartbeats as nobody, and be reset again while it joins.
    is_settled = operation.body["member_id"] == "" and standing.sequence != state.told_as_nobody
    was_under_way = standing.time + state.knowledge.grace > min(state.read_until, operation.sent_at) and not is_settled
    return was_under_way or standing.sequence >= operation.handle


def has_read_reset(state: ClientState, operation: Operation, time: int) -> bool:
    """Whether a client has certainly lost its id since it sent this JoinGroup, which still carries that."""
    latest, sent = state.knowledge.latest, operation.body["member_id"]
    return latest.requirement == "MEMBER-13" and bool(sent) and time - latest.time > state.knowledge.grace


def is_contradicting(body: Mapping[str, Any]) -> bool:
    """Whether a response has another protocol type than the one of consumers."""
    return body.get("protocol_type") not in (None, "", "consumer")


def is_of_another_plan(state: ClientState, body: Mapping[str, Any]) -> bool:
    """Whether a response to SyncGroup has another protocol type, or another protocol, than JoinGroup brought."""
    protocol = state.exchange.protocol if state.exchange is not None else None
    return is_contradicting(body) or body.get("protocol_name") not in (None, "", protocol)


def learn_sync(state: ClientState, operation: Operation, event: Event) -> None:
    """The response to SyncGroup."""
    error, news = event.body.get("error_code", 0), describe_news(operation, event)
    judge_silence_of_waiting(state, operation, event.time)
    before = replace(state.knowledge.latest, member_id=operation.body["member_id"])
    if state.exchange is not None and error != Error.NONE:
        state.exchange.has_failed = True
    if error == Error.NONE and state.exchange is not None and state.has_left:
        state.exchange.is_unapplied = True
    elif error != Error.NONE and event.connection in state.doubtful:
        state.is_installed_doubtful = True
        learn(state, replace(before, member_id=None), "", news, event)
    elif error == Error.NONE:
        if state.exchange is not None and is_contradicting(state.exchange.operation.response or {}):
            before = replace(before, generation=state.exchange.generation)  # it has not heeded that (MEMBER-31)
        learn_assignment(state, before, event, news)
    elif error == Error.REBALANCE_IN_PROGRESS:
        learn(state, before, "MEMBER-11", news, event, owes=True)
    elif error == Error.ILLEGAL_GENERATION:
        learn_reset(state, operation.body["member_id"], "MEMBER-12", news, event)
    elif error == Error.UNKNOWN_MEMBER_ID:
        learn_reset(state, "", "MEMBER-13", news, event)
    elif error in MOVED:
        learn(state, before, "MEMBER-14", news, event, owes=True)
    else:
        learn(state, replace(before, member_id=None), "", news, event)


def learn_assignment(state: ClientState, before: Standing, event: Event, news: str) -> None:
    """SyncGroup brings an assignment: one outside the subscription is not to be applied."""
    try:
        assignment = frozenset(decode_assignment(event.body.get("assignment") or b""))
    except ConsumerProtocolError:
        learn(state, replace(before, member_id=None), "", news, event)
        return
    subscribed = subscribed_topics(state)
    unknown = {topic for topic, _ in assignment} - (set() if state.has_unread_subscription else subscribed)
    foreign = sorted(topic for topic in unknown if not is_matching(state, topic))
    if foreign and state.has_unread_subscription:
        known = {
            topic for each in (*state.knowledge.former, *state.knowledge.standings) for topic, _ in each.assignment
        }
        is_doubtful, foreign = bool(known) and not known.issuperset(foreign), []
        note = "the subscription cannot be read (WIRE-01), so nobody knows what is outside of it"
        state.evidence.leave_open("MEMBER-20", event.sequence, note)
        if is_doubtful:
            learn_doubtful_assignment(state, before, assignment, event, news)
            return
    if foreign:
        state.foreign_topics |= set(foreign)
        if not state.is_cooperative:  # a cooperative member has what it had before
            state.installed, before = None, replace(before, assignment=assignment)
        applied = replace(before, phase=Phase.STABLE)
        learn(state, applied, "MEMBER-20", f"{news} with {', '.join(foreign)}", event, owes=True)
        return
    version = int.from_bytes((event.body.get("assignment") or bytes(2))[:2], signed=True)
    state.has_newer_assignment = version > NEWEST_VERSION
    state.rounds += 1
    if event.connection in state.doubtful or is_refused(state, assignment) or is_of_another_plan(state, event.body):
        learn_doubtful_assignment(state, before, assignment, event, news)
        return
    # What it has unsubscribed from it has given up before JoinGroup (CALLBACK-04).
    lost = {each for each in (state.installed or frozenset()) - assignment if each[0] in subscribed}
    previous = state.installed or frozenset()
    state.is_installed_doubtful = False
    state.given_up = previous - assignment if state.is_cooperative else frozenset()
    state.installed, state.installed_generation = assignment, before.generation
    state.last_sign = event.time
    if state.exchange is not None:
        state.installed_protocol = state.exchange.protocol
    stable = replace(before, phase=Phase.STABLE, assignment=assignment)
    learn(state, stable, "", news, event)
    learn_growth_of_plan(state, subscribed, event)
    if state.is_cooperative and lost:
        told = f"{news} without {describe_partitions(lost)}"
        state.owe(Debt("COOP-03", "JoinGroup", event.time, event.sequence, told))


def is_matching(state: ClientState, topic: str) -> bool:
    """Whether the application subscribes to a pattern that a topic matches: its leader may know that topic first."""
    pattern = state.application.pattern if state.application is not None else ""
    return bool(pattern and re.fullmatch(pattern, topic))


def is_refused(state: ClientState, assignment: frozenset[TopicPartition]) -> bool:
    """Whether the application has subscribed to other topics since JoinGroup, so that the assignment is not applied."""
    wanted = state.application.wanted if state.application is not None else None
    return wanted is not None and any(topic not in wanted for topic, _ in assignment)


def learn_doubtful_assignment(
    state: ClientState, before: Standing, assignment: frozenset[TopicPartition], event: Event, news: str
) -> None:
    """An assignment comes that the client may not read or apply: it has that, or what it had before."""
    state.is_installed_doubtful, state.installed = True, None
    if state.application is not None:
        state.application.assignments.append(assignment)
    if state.exchange is not None:
        state.exchange.is_excused = state.exchange.has_failed = True
    either = replace(before, phase=Phase.STABLE, assignment=before.assignment | assignment)
    learn(state, either, "", news, event)


def learn_of_membership(state: ClientState, operation: Operation, event: Event) -> None:
    """The response to a heartbeat or a commit; an error about a membership that is over tells nothing new."""
    error, latest = first_error(event.body), state.knowledge.latest
    sent = operation.body.get("member_id"), generation_in(operation)
    news = describe_news(operation, event)
    if error == Error.NONE:
        return
    if sent[1] == NO_GENERATION:
        state.told_as_nobody = event.sequence
    is_unsure = latest.member_id is None and sent[1] == latest.generation != NO_GENERATION
    if error in OVER and (is_unsure or event.connection in state.doubtful):
        learn_doubtful_end(state, OVER[error], news, event)
        return
    if sent != (latest.member_id, latest.generation):
        is_over = latest.generation == NO_GENERATION
        resets = error == Error.UNKNOWN_MEMBER_ID or (error in GENERATION_OVER and not is_over)
        if operation.api == "OffsetCommit" and resets:
            state.is_installed_doubtful |= not is_over  # it may be reset by a commit of an older generation
            if state.exchange is not None:
                state.exchange.is_excused = True
            learn(state, replace(latest, member_id=None), latest.requirement if is_over else "", news, event)
        elif sent[0] == latest.member_id and is_overtaking(state, error, event.time):
            learn(state, replace(latest, member_id=None), latest.requirement, news, event)
        elif is_first_read(state, operation, error):
            again = latest if sent[1] != NO_GENERATION else replace(latest, member_id=None)
            learn(state, again, latest.requirement, news, event)
        return
    if state.exchange is not None:
        state.exchange.is_excused = True
    if error == Error.REBALANCE_IN_PROGRESS:
        if latest.phase is Phase.STABLE and state.exchange_outstanding() is None:
            has_kept_all = state.is_cooperative and state.rounds > 1 and not state.given_up
            requirement = "COOP-13" if has_kept_all else "MEMBER-10"
            requirement = requirement if operation.api == "Heartbeat" else "MCOMMIT-09"
            # Before its callback a member may still join; Apache Kafka's ignores the error then.
            is_joining = state.application is not None and bool(state.application.assignments)
            is_certain = not is_joining and event.connection not in state.doubtful
            learn(state, latest, requirement, news, event, owes=is_certain)
            state.rebalance_told = event.time
    elif error == Error.ILLEGAL_GENERATION:
        learn_reset(state, str(latest.member_id), "MEMBER-12", news, event)
        if is_completing(state, latest, event.time):  # whoever is in the middle of that may lose the id as well
            state.knowledge.learn(replace(state.knowledge.latest, member_id=None))
    elif error == Error.UNKNOWN_MEMBER_ID:
        learn_reset(state, "", "MEMBER-13", news, event)
    elif error in MOVED:
        learn(state, latest, "MEMBER-14", news, event)
    elif error == Error.FENCED_INSTANCE_ID and operation.api == "Heartbeat":
        state.installed, state.is_installed_doubtful = None, True
        learn(state, replace(latest, member_id=None), FENCED, news, event)


def learn_doubtful_end(state: ClientState, requirement: str, news: str, event: Event) -> None:
    """An error comes after which the generation is over, on a connection that the client may have closed."""
    latest, state.is_installed_doubtful = state.knowledge.latest, True
    if state.exchange is not None:
        state.exchange.is_excused = True
    learn(state, replace(latest, member_id=None, phase=Phase.OUT), requirement, news, event)


def is_overtaking(state: ClientState, error: int, time: int) -> bool:
    """Whether a client may read this error of a heartbeat before the one by which it keeps its member id: both were on
    their way at once, and it may have a thread for each."""
    latest = state.knowledge.latest
    is_fresh = latest.requirement == "MEMBER-12" and time - latest.time <= state.knowledge.grace
    return is_fresh and error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)


def is_first_read(state: ClientState, operation: Operation, error: int) -> bool:
    """Whether a client may be reset by this error of a heartbeat, though its generation is over: it sent that after the
    same news had left, which its connection may have ended before; or as nobody, beside a JoinGroup."""
    latest, requirement = state.knowledge.latest, OVER.get(error)
    if requirement is None or latest.requirement not in OVER.values() or latest.sequence >= operation.handle:
        return False
    return requirement == latest.requirement or generation_in(operation) == NO_GENERATION


def is_completing(state: ClientState, latest: Standing, time: int) -> bool:
    """Whether the client may be at work still on the assignment that it was told last (member.md 1.2)."""
    has_called = state.application is None or not state.application.assignments
    return latest.phase is Phase.STABLE and not (has_called and time - latest.time > state.knowledge.grace)


def learn_loss(state: ClientState, operation: Operation, event: Event) -> None:
    """The connection of a request ended before its response."""
    is_known = operation.connection in state.hung_up or operation.connection in state.doubtful
    if operation.api == "JoinGroup" and not state.is_ending and not is_known:
        judge_patience(state, operation, event.time)
    if operation.api == "JoinGroup" and operation is not state.join:
        return  # another one has come in its place, and may have its response already
    latest = state.knowledge.latest
    if state.exchange is not None:
        state.exchange.is_excused = True
        state.exchange.has_failed |= operation.api == "SyncGroup"
    if operation.api == "JoinGroup":
        is_reset_late = latest.requirement in RESETS and may_be_read_after(state, latest, operation)
        latest = replace(latest, member_id=None if is_reset_late else operation.body["member_id"])
    if operation.api in ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"):
        is_exchange = operation.api in EXCHANGE_APIS
        learn(state, latest, "MEMBER-14", f"the connection of its {operation.api} was closed", event, owes=is_exchange)


def judge_patience(state: ClientState, operation: Operation, time: int) -> None:
    """The client has waited for the response to its JoinGroup for longer than the rebalance timeout, or not."""
    waited, timeout = time - operation.sent_at, state.rebalance_timeout
    title, expected = "JoinGroup is given up", f"more than {timeout} ms"
    state.check(waited > timeout, "MEMBER-32", operation, title, expected, f"after {waited} ms")


def learn(
    state: ClientState, standing: Standing, requirement: str, news: str, event: Event, *, owes: bool = False
) -> None:
    """The client may know of this standing from now on; it `owes` a JoinGroup if the requirement says so."""
    told = replace(standing, requirement=requirement, news=news, sequence=event.sequence, time=event.time)
    state.knowledge.learn(told)
    if requirement in RESETS | {FENCED}:
        state.reset_at = event.time
    if owes:
        state.owe(Debt(requirement, "JoinGroup", event.time, event.sequence, news))


def learn_reset(state: ClientState, member_id: str | None, requirement: str, news: str, event: Event) -> None:
    """The generation is over; the next JoinGroup carries this member id, or either if it is None."""
    state.installed = None
    state.is_installed_doubtful = False
    state.last_sign = None
    learn(state, Standing(member_id, NO_GENERATION), requirement, news, event, owes=True)


def generation_in(operation: Operation) -> int:
    """The generation that a Heartbeat, SyncGroup or OffsetCommit carries."""
    body = operation.body
    return int(body.get("generation_id", body.get("generation_id_or_member_epoch", NO_GENERATION)))


def first_error(body: Mapping[str, Any]) -> int:
    """The error of a response, or the first one of its partitions; 0 if there is none."""
    if "error_code" in body:
        return int(body["error_code"])
    errors = (row["error_code"] for topic in body.get("topics") or () for row in topic.get("partitions") or ())
    return next((int(error) for error in errors if error), 0)


def describe_news(operation: Operation, event: Event) -> str:
    """A response in words."""
    return f"{operation.api} got {error_name(first_error(event.body))} at {event.time} ms"


def describe_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in words, sorted."""
    return ", ".join(f"{topic}/{number}" for topic, number in sorted(partitions)) or "nothing"
