"""JoinGroup and SyncGroup, held against the knowledge of the client."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.assignors.consumer_protocol import (
    ConsumerProtocolError,
    decode_sticky_user_data,
    decode_subscription,
)
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.messages import (
    FIRST_WITH_GENERATION,
    NO_GENERATION,
    PASSING_ERRORS,
    describe_id,
    describe_partitions,
    error_in,
    first_error,
    generation_in,
    is_contradicting,
)
from fencepost.traces.classic.client.news import MAY_REJOIN, RESETS, is_of_another_plan, subscribed_topics
from fencepost.traces.classic.client.view import EXCHANGE_APIS, ClientView, Exchange, Phase, Standing, is_of_exchange
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.events import Event, Operation

CONSUMER = "consumer"
SECOND_EXCHANGE, NO_OTHER_EXCHANGE = "A second exchange", "no other JoinGroup or SyncGroup"
MAX_REASON_LENGTH = 255
OVERTAKING_MS = 50
"""A driver's message may arrive so long before a request that was sent first: they come by different ways."""


def judge_join(view: ClientView, operation: Operation, event: Event) -> None:
    """A JoinGroup arrives: its place, its member id, its fields and its subscriptions."""
    judge_place(view, operation)
    judge_growth_of_follower(view, operation)
    judge_reason_to_join(view, operation)
    if view.join is not None:
        view.knowledge.show(view.last_exchange_news)
    read, told_at = view.loss
    is_sent_after = view.is_virtual or event.time - told_at >= OVERTAKING_MS
    view.read_before_join = max(read if is_sent_after else 0, view.knowledge.standings[0].sequence)
    judge_member_id(view, operation)
    judge_join_fields(view, operation)
    view.pay("JoinGroup", event.sequence)
    read_subscriptions(view, operation)
    if view.is_cooperative:
        judge_claims(view, operation)
    judge_memory(view, operation)
    if view.may_have_left and not operation.body["member_id"]:
        view.installed = None  # it has left, and a JoinGroup with the id that it gets now claims nothing either
    view.join, view.growth, view.has_outgrown = operation, None, False
    view.last_sign = view.rebalance_told = view.left = None
    view.may_have_left = view.has_left_silently = False
    view.former_topics.clear()
    view.session_timeout = operation.body["session_timeout_ms"]
    view.rebalance_timeout = operation.body.get("rebalance_timeout_ms", view.session_timeout)


def judge_place(view: ClientView, operation: Operation) -> None:
    """One exchange at a time, and SyncGroup after each JoinGroup that succeeded."""
    open_one = view.exchange_outstanding()
    if open_one is None:
        view.evidence.hold("MEMBER-06", operation.handle - 1)
    elif open_one.connection == operation.connection:
        what = f"{operation.api} while {open_one.api} has no response"
        view.violate("MEMBER-06", operation, SECOND_EXCHANGE, NO_OTHER_EXCHANGE, what)
        view.overlaps = True
    else:
        note = f"{operation.api} came over another connection while {open_one.api} had no response"
        view.evidence.leave_open("MEMBER-06", operation.handle - 1, note)
    exchange = view.exchange
    if operation.api != "JoinGroup" or exchange is None:
        return
    tell_unsynced(view)
    view.has_skipped_sync = not exchange.is_synced
    if not (exchange.is_synced or exchange.is_excused or exchange.has_metadata or view.overlaps):
        title, expected = "No SyncGroup after JoinGroup", f"SyncGroup of generation {exchange.generation}"
        view.unsynced = build_violation(
            requirement_of_sync(exchange), operation.handle - 1, title, expected, "another JoinGroup"
        )
    if exchange.has_failed:
        view.evidence.hold("MEMBER-16", operation.handle - 1)
    if exchange.is_unapplied:
        view.evidence.hold("MEMBER-30", operation.handle - 1)
    if exchange.is_reset:
        view.evidence.hold("MEMBER-29", operation.handle - 1)
    exchange.is_excused = True
    view.overlaps &= open_one is not None


def tell_unsynced(view: ClientView) -> None:
    """A JoinGroup came in the place of SyncGroup, and was no second exchange at once."""
    if view.unsynced is not None:
        view.evidence.violate(view.unsynced)
        view.unsynced = None


def requirement_of_sync(exchange: Exchange) -> str:
    """What says which SyncGroup follows."""
    return "MEMBER-08" if exchange.leads else "MEMBER-07"


def judge_growth_of_follower(view: ClientView, operation: Operation) -> None:
    """A follower does not join again because a topic has grown (MEMBER-21)."""
    latest, exchange = view.knowledge.latest, view.exchange
    if view.growth is None or exchange is None or exchange.leads or latest.phase is not Phase.STABLE:
        return
    if latest.member_id is None or view.may_have_left or view.has_unread_subscription:
        return  # there is another reason
    if view.growth.sequence < view.application.last_assigned:
        return  # it may have led the group when it read that
    if not latest.requirement and not view.debts and view.asked_to_end is None:
        expected = "no JoinGroup: another member leads"
        view.violate("MEMBER-21", operation, "A follower joins when a topic grows", expected, "JoinGroup")


def judge_reason_to_join(view: ClientView, operation: Operation) -> None:
    """A cooperative member that kept everything, and was told nothing, does not join again (COOP-05)."""
    exchange, latest = view.exchange, view.knowledge.latest
    if not view.is_cooperative or exchange is None or not exchange.is_synced or exchange.has_failed:
        return
    is_at_rest = latest.phase is Phase.STABLE and not latest.requirement and not view.given_up
    is_asked = bool(view.debts) or view.rebalance_told is not None or view.growth is not None or view.is_ending
    is_asked |= view.has_outgrown or view.join is not exchange.operation  # a JoinGroup that failed is repeated
    wants_more = view.application.wanted is not None or view.application.pattern
    if is_at_rest and not is_asked and not wants_more and view.rounds >= 2:
        title, expected = "A member joins again that gave up nothing", "no JoinGroup"
        view.violate("COOP-05", operation, title, expected, "JoinGroup")


def standings_at_join(view: ClientView) -> list[Standing]:
    """Those that the client may have had when it sent its JoinGroup. A stable member that was told of nothing, and
    wants nothing, does not join: whoever joins has read more."""
    found = [each for each in view.knowledge.standings if each.sequence >= view.read_before_join]
    if view.is_recorded or has_own_reason_to_join(view):
        return found
    return [each for each in found if each.phase is not Phase.STABLE or each.requirement] or found


def has_own_reason_to_join(view: ClientView) -> bool:
    """Whether a stable member may join though no response has told it to: its topics have grown, it gave something up,
    its application has asked for it or has not polled, it has left, or it has lost its connection or a response."""
    application, exchange = view.application, view.exchange
    if exchange is None or exchange.has_failed or exchange.is_unapplied or view.join is not exchange.operation:
        return True
    wants = (
        application.has_asked
        or application.has_ended
        or application.wanted is not None
        or bool(application.pattern)
        or application.unpolled_time(view.now) > view.earliest_timeout
    )
    has_grown = view.growth is not None or view.has_outgrown or bool(view.former_topics)
    is_disturbed = view.is_installed_doubtful or bool(view.given_up) or bool(view.hung_up) or bool(view.doubtful)
    is_disturbed |= view.rebalance_told is not None or view.coordinator_lost is not None or view.has_doubled
    is_out = view.may_have_left or view.has_left or view.is_ending or has_expired(view, view.now)
    return wants or has_grown or is_disturbed or is_out or view.exchange_outstanding() is not None


def judge_member_id(view: ClientView, operation: Operation) -> None:
    """The member id is the one of a standing that the client may have."""
    sent = operation.body["member_id"]
    standings = standings_at_join(view)
    if view.may_have_left and not sent:
        return
    if any(each.member_id in (None, sent) for each in standings):
        latest = standings[-1]
        if latest.member_id == sent and latest.requirement:
            view.evidence.hold(latest.requirement, operation.handle - 1)
        return
    asking = next((each for each in standings if each.requirement), None)
    if asking is not None:
        requirement = asking.requirement
        if requirement == "MEMBER-14" and not sent and has_expired(view, operation.sent_at):
            requirement = "HBT-11"
        title, expected = "JoinGroup has the wrong member_id", f"member_id = {describe_id(asking.member_id)}"
        view.violate(requirement, operation, title, expected, f"member_id = {describe_id(sent)}", asking.news)


def has_expired(view: ClientView, time: int) -> bool:
    """Whether the client's own clock of its session may have run out: it has not heard from the coordinator for so
    long."""
    return time - view.heard > view.session_timeout - view.knowledge.grace


def judge_join_fields(view: ClientView, operation: Operation) -> None:
    """Protocols in the same order in every JoinGroup, each once, and the instance id."""
    body = operation.body
    names = [protocol["name"] for protocol in body["protocols"]]
    title = "JoinGroup has the wrong protocols"
    expected, observed = f"type {CONSUMER}, and each name once", f"type {body['protocol_type']}, {', '.join(names)}"
    is_sound = body["protocol_type"] == CONSUMER and bool(names) and len(set(names)) == len(names)
    if is_sound and view.join is not None:
        known = [protocol["name"] for protocol in view.join.body["protocols"]]
        is_sound, expected = known == names, f"as before: {', '.join(known)}"
    view.check(is_sound, "MEMBER-04", operation, title, expected, observed)
    reason = body.get("reason")
    if reason:
        judge_reason(view, operation, reason)
    if operation.version >= 5:
        if view.join is None:
            view.instance = body.get("group_instance_id")
        judge_instance(view, operation)


def judge_reason(view: ClientView, operation: Operation, reason: str) -> None:
    """A reason is not too long."""
    observed = f"{len(reason)} characters"
    is_short = len(reason) <= MAX_REASON_LENGTH
    view.check(is_short, "MEMBER-33", operation, "The reason is too long", f"{MAX_REASON_LENGTH} at most", observed)


def judge_instance(view: ClientView, operation: Operation) -> None:
    """A static member's instance id is in each of its requests."""
    if view.instance is not None:
        sent = operation.body.get("group_instance_id")
        expected, observed = f"'{view.instance}'", describe_id(sent)
        title = f"{operation.api} has the wrong group_instance_id"
        view.check(sent == view.instance, "WIRE-05", operation, title, expected, observed)


def read_subscriptions(view: ClientView, operation: Operation) -> None:
    """Decode what JoinGroup carries for each protocol."""
    found: dict[str, Subscription] = {}
    for protocol in operation.body["protocols"]:
        name, metadata = protocol["name"], protocol["metadata"]
        try:
            subscription = decode_subscription(metadata)
        except ConsumerProtocolError as error:
            view.violate("WIRE-01", operation, f"The subscription for {name} is unreadable", "", str(error))
            continue
        found[name] = subscription
        view.evidence.hold("WIRE-01", operation.handle - 1)
        is_sorted = list(subscription.topics) == sorted(subscription.topics)
        is_sorted &= list(subscription.owned) == sorted(subscription.owned)
        title = f"The subscription for {name} is not sorted"
        view.check(is_sorted, "WIRE-04", operation, title, "topics and partitions sorted", "another order")
        if name == "cooperative-sticky":
            version = int.from_bytes(metadata[:2], signed=True)
            title = f"The subscription for {name} has too low a version"
            view.check(version >= 1, "WIRE-06", operation, title, "1 or later", str(version))
    view.subscriptions, view.protocols = found, frozenset(row["name"] for row in operation.body["protocols"])
    view.has_unread_subscription = found.keys() < view.protocols


def judge_claims(view: ClientView, operation: Operation) -> None:
    """A cooperative member declares its last assignment as owned."""
    if view.is_installed_doubtful or view.has_newer_assignment or view.has_unread_subscription:
        return
    subscription = next(iter(view.subscriptions.values()))
    owned, installed = frozenset(subscription.owned), view.installed
    may_be_out = view.may_have_left or any(each.member_id is None for each in standings_at_join(view))
    if may_be_out and not operation.body["member_id"]:
        return
    observed = f"owned: {describe_partitions(owned)}"
    if installed is None:
        standings = standings_at_join(view)
        is_out = all(each.generation == NO_GENERATION for each in standings)  # else it may not have read that
        if view.knowledge.former and is_out:
            title = "Partitions are declared as owned without a generation"
            view.check(not owned, "COOP-17", operation, title, "owned: nothing", observed)
        return
    gone = {partition for partition in installed if partition[0] not in subscription.topics}
    expected = f"owned: {describe_partitions(installed - gone)}"
    title = "JoinGroup declares the wrong partitions as owned"
    view.check(owned >= installed - gone, "COOP-01", operation, title, expected, observed)
    if view.given_up:
        view.check(not owned & view.given_up, "COOP-04", operation, title, expected, observed)
    view.check(owned <= installed, "WIRE-03", operation, title, expected, observed)
    metadata = operation.body["protocols"][0]["metadata"]
    if owned and int.from_bytes(metadata[:2], signed=True) >= FIRST_WITH_GENERATION:
        title = "The generation of the owned partitions is too old"
        told = view.installed_generation
        view.check(
            subscription.generation >= told, "COOP-08", operation, title, f"{told}", f"{subscription.generation}"
        )


def judge_memory(view: ClientView, operation: Operation) -> None:
    """A member that was assigned by sticky sends its assignment and the generation of that along; at first nothing."""
    subscription, installed = view.subscriptions.get("sticky"), view.installed
    if subscription is not None and subscription.user_data and view.join is None and not view.is_recorded:
        title, observed = "The first subscription for sticky has an assignment", f"{len(subscription.user_data)} bytes"
        view.violate("STICKY-18", operation, title, "no user data", observed)
    if subscription is None or installed is None or view.installed_protocol != "sticky":
        return
    claim = decode_sticky_user_data(subscription.user_data)
    told = (frozenset(claim[0]), claim[1]) if claim is not None else (frozenset[TopicPartition](), NO_GENERATION)
    title = "The subscription for sticky has forgotten the last assignment"
    expected = f"{describe_partitions(installed)} of generation {view.installed_generation}"
    observed = f"{describe_partitions(told[0])} of generation {told[1]}"
    is_right = told == (installed, view.installed_generation)
    view.check(is_right, "STICKY-18", operation, title, expected, observed)


def judge_sync(view: ClientView, operation: Operation, event: Event) -> None:
    """A SyncGroup arrives: it follows a JoinGroup that succeeded, once."""
    judge_place(view, operation)
    view.has_sign_while_waiting = False
    body, exchange = operation.body, view.exchange
    observed = f"SyncGroup of generation {body['generation_id']} as {describe_id(body['member_id'])}"
    if operation.version >= 3:
        judge_instance(view, operation)
    if exchange is None:
        view.violate("MEMBER-07", operation, "SyncGroup without a JoinGroup", "JoinGroup first", observed)
        return
    if exchange.is_synced:
        if not exchange.has_failed and (view.overlaps or view.has_skipped_sync):
            what, view.unsynced = "two JoinGroups, and a SyncGroup for each", None
            view.violate("MEMBER-06", operation, SECOND_EXCHANGE, NO_OTHER_EXCHANGE, what)
        else:
            requirement = "MEMBER-16" if exchange.has_failed else requirement_of_sync(exchange)
            view.violate(requirement, operation, "A second SyncGroup", "JoinGroup, or nothing", observed)
        view.forgive("JoinGroup")  # it has this in the place of the JoinGroup
        return
    if exchange.is_late or exchange.is_reset:
        title = f"SyncGroup after the client has {'left' if exchange.is_late else 'lost its member id'}"
        view.violate("MEMBER-29", operation, title, "no SyncGroup", observed)
    exchange.is_synced = True
    if exchange.leads:
        view.planned = {topic: view.topics[topic] for topic in subscribed_topics(view) & view.topics.keys()}
        view.has_planned = True
    view.knowledge.show(exchange.sequence)
    if exchange.time - exchange.operation.sent_at > view.rebalance_timeout:
        view.evidence.hold("MEMBER-32", operation.handle - 1)
    expected = f"generation {exchange.generation} as {describe_id(exchange.member_id)}"
    requirement = requirement_of_sync(exchange)
    if not is_of_exchange(operation, exchange):
        view.violate(requirement, operation, "SyncGroup is of another membership", expected, observed)
    elif not exchange.leads:
        given = len(body["assignments"])
        title = "A follower assigns partitions"
        view.check(not given, "MEMBER-07", operation, title, "no assignments", f"{given} assignments")


# --- The errors that an application is told of: those it waits for, none that passes, none of an older membership.

RETRIED: Mapping[str, frozenset[Error]] = MappingProxyType(
    {
        "FindCoordinator": PASSING_ERRORS,
        "OffsetFetch": PASSING_ERRORS,
        "JoinGroup": MAY_REJOIN,
        "SyncGroup": MAY_REJOIN - {Error.COORDINATOR_LOAD_IN_PROGRESS},
    }
)
"""The errors after which a poll tries again."""
REFUSED_LOOKUPS = ("FindCoordinator", "OffsetFetch")
REFUSALS = frozenset(
    {
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
    }
)
"""The errors of JoinGroup that an application is told."""


def note_error(view: ClientView, application: Application, operation: Operation, event: Event) -> None:
    """A response leaves; the state is that after it."""
    if operation.api in RETRIED:
        error = error_in(event)
        application.passing[operation.api] = Error(error).name if error in RETRIED[operation.api] else ""
    if operation.api == "FindCoordinator" and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        application.lookup_refused = event.sequence
    if first_error(event.body) == Error.FENCED_INSTANCE_ID:
        if is_late(view, operation, event.time):
            application.late_fencing = event
        else:
            application.is_fenced = True


def is_late(view: ClientView, operation: Operation, time: int) -> bool:
    """Whether a commit was made by a member that the client has certainly read before that it is no more."""
    latest = view.knowledge.latest
    sent = operation.body.get("member_id"), generation_in(operation)
    is_read = latest.requirement in RESETS and time - latest.time > view.knowledge.grace
    return operation.api == "OffsetCommit" and is_read and sent != (latest.member_id, latest.generation)


def judge_told_error(view: ClientView, application: Application, event: Event) -> None:
    """A poll fails."""
    told = re.sub("[^a-z]", "", str(event.body["error"]).lower())
    for api, name in application.passing.items():
        if name and name.replace("_", "").lower() in told and not application.has_asked_in_callback:
            title, expected = f"A poll fails since {api} has to be repeated", f"{api} again after {name}"
            violation = build_violation("MEMBER-17", event.sequence, title, expected, "a failure of the poll")
            view.evidence.violate(violation)
    application.passing.clear()
    late = application.late_fencing
    if late is not None and "fencedinstanceid" in told and not application.is_fenced:
        title, expected = "A poll fails since an older membership was fenced", "polls that go on"
        violation = build_violation("MEMBER-15", late.sequence, title, expected, "a failure of the poll")
        view.evidence.violate(violation)


def refusal_in(view: ClientView, operation: Operation, event: Event) -> str:
    """The requirement that the application is told of a response, "" if there is none."""
    api, error = operation.api, event.body.get("error_code", 0)
    if event.connection in view.doubtful:
        return ""
    if error == Error.FENCED_INSTANCE_ID and view.instance is not None:
        if api == "Heartbeat" and generation_in(operation) != view.knowledge.latest.generation:
            return ""  # it is about a membership that is over
        return "HBT-10" if api == "Heartbeat" else "MEMBER-19" if api in EXCHANGE_APIS else ""
    if api == "OffsetCommit" and is_fenced_in_background(view, operation, event):
        return "MCOMMIT-15"
    if api in REFUSED_LOOKUPS and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        # Between polls the thread of heartbeats looks for the coordinator, and drops what it is told.
        is_awaited = view.join is None if api == "FindCoordinator" else not is_about_to_join(view)
        return "MEMBER-38" if is_awaited else ""
    if api == "SyncGroup" and not error:
        return "MEMBER-31" if is_of_another_plan(view, event.body) else ""
    if api == "JoinGroup":
        return "MEMBER-18" if error in REFUSALS else "MEMBER-31" if not error and is_contradicting(event.body) else ""
    return ""


def is_about_to_join(view: ClientView) -> bool:
    """Whether the client joins, or has a reason to: nobody waits for its offsets then."""
    return view.rebalance_told is not None or view.growth is not None or view.exchange_outstanding() is not None


def is_fenced_in_background(view: ClientView, operation: Operation, event: Event) -> bool:
    """Whether a periodic commit of the membership that the client has is fenced: a later poll tells of it."""
    latest, application = view.knowledge.latest, view.application
    is_fenced = view.instance is not None and first_error(event.body) == Error.FENCED_INSTANCE_ID
    is_current = (operation.body.get("member_id"), generation_in(operation)) == (latest.member_id, latest.generation)
    is_alone = application.is_polling and view.rebalance_told is None
    return is_fenced and is_current and is_alone and application.in_callback is None
