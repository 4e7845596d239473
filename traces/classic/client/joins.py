"""JoinGroup and SyncGroup, held against what the client may know of its membership: monitors."""

from dataclasses import dataclass

from fencepost.model.assignors.consumer_protocol import (
    ConsumerProtocolError,
    decode_sticky_user_data,
    decode_subscription,
)
from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.classic.client.messages import (
    FIRST_WITH_GENERATION,
    NO_GENERATION,
    describe_id,
    describe_partitions,
    protocols_in,
    read_subscriptions,
)
from fencepost.traces.classic.client.view import (
    ClientView,
    Exchange,
    blame_request,
    check_request,
    is_cooperative,
    is_of_exchange,
    standings_at_join,
)
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import (
    Findings,
    Seen,
    at_end,
    before,
    build_pass,
    leave_open,
)
from fencepost.traces.events import Operation
from fencepost.traces.verdict import Violation

CONSUMER = "consumer"
SECOND_EXCHANGE, NO_OTHER_EXCHANGE = "A second exchange", "no other JoinGroup or SyncGroup"
MAX_REASON_LENGTH = 255


@dataclass(slots=True)
class Exchanges:
    """One exchange at a time, and SyncGroup after each JoinGroup that succeeded."""

    overlaps: bool = False
    """Two exchanges have been under way at once (MEMBER-06), since the last one that began by itself."""
    has_skipped_sync: bool = False
    """The last JoinGroup came in the place of SyncGroup."""
    unsynced: Violation | None = None
    """That it did, unless it shows to be a second exchange at once."""

    def judge_place(self, view: ClientView, operation: Operation) -> Findings:
        """No other exchange is under way."""
        open_one = view.exchange_outstanding()
        if open_one is None:
            yield build_pass("MEMBER-06", operation.handle - 1)
        elif open_one.connection == operation.connection:
            what = f"{operation.api} while {open_one.api} has no response"
            yield blame_request("MEMBER-06", operation, SECOND_EXCHANGE, NO_OTHER_EXCHANGE, what)
            self.overlaps = True
        else:
            note = f"{operation.api} came over another connection while {open_one.api} had no response"
            yield leave_open("MEMBER-06", operation.handle - 1, note)

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """A JoinGroup arrives."""
        operation, exchange = seen.request, view.exchange
        yield from self.judge_place(view, operation)
        if exchange is None:
            return
        yield from self.tell_unsynced(view, 0)
        self.has_skipped_sync = exchange.sync is None
        if view.owes_sync(standings_at_join(view, operation)) and not (exchange.has_metadata or self.overlaps):
            title, expected = "No SyncGroup after JoinGroup", f"SyncGroup of generation {exchange.generation}"
            requirement, sequence = requirement_of_sync(exchange), operation.handle - 1
            self.unsynced = build_violation(requirement, sequence, title, expected, "another JoinGroup")
        is_reset = exchange.is_dropped and not view.has_left
        shown = {"MEMBER-16": exchange.has_failed, "MEMBER-30": view.is_unapplied, "MEMBER-29": is_reset}
        for requirement, is_shown in shown.items():
            if is_shown:
                yield build_pass(requirement, operation.handle - 1)
        self.overlaps &= view.exchange_outstanding() is not None

    @before("SyncGroup request")
    def judge_sync(self, view: ClientView, seen: Seen) -> Findings:
        """A SyncGroup arrives: it follows a JoinGroup that succeeded, once."""
        operation, exchange, body = seen.request, view.exchange, seen.request.body
        yield from self.judge_place(view, operation)
        observed = f"SyncGroup of generation {body['generation_id']} as {describe_id(body['member_id'])}"
        if exchange is None:
            yield blame_request("MEMBER-07", operation, "SyncGroup without a JoinGroup", "JoinGroup first", observed)
        elif exchange.sync is not None and not exchange.has_failed and (self.overlaps or self.has_skipped_sync):
            what, self.unsynced = "two JoinGroups, and a SyncGroup for each", None
            yield blame_request("MEMBER-06", operation, SECOND_EXCHANGE, NO_OTHER_EXCHANGE, what)
        elif exchange.sync is not None:
            requirement = "MEMBER-16" if exchange.has_failed else requirement_of_sync(exchange)
            yield blame_request(requirement, operation, "A second SyncGroup", "JoinGroup, or nothing", observed)
        else:
            yield from judge_first_sync(view, operation, exchange, observed)

    def tell_unsynced(self, view: ClientView, time: int) -> Findings:
        """A JoinGroup came in the place of SyncGroup, and was no second exchange at once."""
        yield from (self.unsynced,) if self.unsynced is not None else ()
        self.unsynced = None

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends: the last JoinGroup that succeeded was followed by SyncGroup, or its response late enough."""
        yield from self.tell_unsynced(view, time)
        exchange, waited = view.exchange, time - (view.exchange.time if view.exchange is not None else time)
        if exchange is None:
            return
        is_owed = view.owes_sync(view.knowledge.standings) and not view.is_over
        if is_owed and waited > view.patience_for("SyncGroup"):
            requirement, expected = requirement_of_sync(exchange), f"SyncGroup of generation {exchange.generation}"
            title, observed = "No SyncGroup after JoinGroup", f"none for {waited} ms"
            yield build_violation(requirement, exchange.sequence, title, expected, observed)
        if (
            view.application.is_driven
            and exchange.is_dropped
            and exchange.sync is None
            and waited > view.knowledge.grace
        ):
            yield build_pass("MEMBER-29", exchange.sequence)

    @before("loss")
    def judge_loss(self, view: ClientView, seen: Seen) -> Findings:
        """The connection of a JoinGroup ends: the client has waited for longer than the rebalance timeout, or not."""
        operation, timeout = seen.request, view.rebalance_timeout
        is_known = operation.connection in view.hung_up or view.may_have_closed(operation.connection)
        if operation.api == "JoinGroup" and not view.is_ending and not is_known:
            waited = seen.event.time - operation.sent_at
            title, expected = "JoinGroup is given up", f"more than {timeout} ms"
            yield check_request(view, waited > timeout, "MEMBER-32", operation, title, expected, f"after {waited} ms")


def requirement_of_sync(exchange: Exchange) -> str:
    """What says which SyncGroup follows."""
    return "MEMBER-08" if exchange.leads else "MEMBER-07"


def judge_first_sync(view: ClientView, operation: Operation, exchange: Exchange, observed: str) -> Findings:
    """The first SyncGroup after a JoinGroup has its membership, and brings a plan or none."""
    if exchange.is_dropped:
        title = f"SyncGroup after the client has {'left' if view.has_left else 'lost its member id'}"
        yield blame_request("MEMBER-29", operation, title, "no SyncGroup", observed)
    if exchange.time - exchange.operation.sent_at > view.rebalance_timeout:
        yield build_pass("MEMBER-32", operation.handle - 1)
    given = len(operation.body["assignments"])
    if not is_of_exchange(operation, exchange):
        title, expected = "SyncGroup is of another membership", f"generation {exchange.generation}"
        expected += f" as {describe_id(exchange.member_id)}"
        yield blame_request(requirement_of_sync(exchange), operation, title, expected, observed)
    elif not exchange.leads:
        title, observed = "A follower assigns partitions", f"{given} assignments"
        yield check_request(view, not given, "MEMBER-07", operation, title, "no assignments", observed)


# --- What a JoinGroup carries. These monitors keep nothing.


@before("JoinGroup request")
def judge_growth_of_follower(view: ClientView, seen: Seen) -> Findings:
    """A follower does not join again because a topic has grown (MEMBER-21)."""
    latest, exchange, growth = view.knowledge.latest, view.exchange, view.growth
    if growth is None or exchange is None or exchange.leads or not latest.is_stable:
        return
    if view.may_be_out or view.has_unread_subscription:
        return  # there is another reason
    if growth.sequence < view.application.last_assigned:
        return  # it may have led the group when it read that
    if not latest.requirement and not view.debts and view.asked_to_end is None:
        title, expected = "A follower joins when a topic grows", "no JoinGroup: another member leads"
        yield blame_request("MEMBER-21", seen.request, title, expected, "JoinGroup")


@before("JoinGroup request")
def judge_reason_to_join(view: ClientView, seen: Seen) -> Findings:
    """A cooperative member that kept everything, and was told nothing, does not join again (COOP-05)."""
    exchange, latest, application = view.exchange, view.knowledge.latest, view.application
    if not view.is_cooperative or exchange is None or exchange.sync is None or exchange.has_failed:
        return
    is_at_rest = latest.is_stable and not latest.requirement and not view.given_up
    is_at_rest &= not any(each.member.rejoins for each in view.knowledge.standings)
    is_asked = bool(view.debts) or view.rebalance_told is not None or view.growth is not None or view.is_ending
    is_asked |= view.has_outgrown or view.join is not exchange.operation  # a JoinGroup that failed is repeated
    is_asked |= application.wanted is not None or bool(application.pattern)
    if is_at_rest and not is_asked and view.rounds >= 2:
        yield blame_request(
            "COOP-05", seen.request, "A member joins again that gave up nothing", "no JoinGroup", "JoinGroup"
        )


@before("JoinGroup request")
def judge_member_id(view: ClientView, seen: Seen) -> Findings:
    """The member id is the one of a standing that the client may have."""
    operation, sent = seen.request, seen.request.body["member_id"]
    standings, latest = standings_at_join(view, operation), view.knowledge.latest
    if any(each.member_id == sent for each in standings):
        if latest.member_id == sent and latest.requirement:
            yield build_pass(latest.requirement, operation.handle - 1)
        return
    asking = next((each for each in standings if each.requirement), None)
    if asking is not None:
        is_expired = asking.requirement == "MEMBER-14" and not sent and view.has_expired(operation.sent_at)
        title, expected = "JoinGroup has the wrong member_id", f"member_id = {describe_id(asking.member_id)}"
        requirement, observed = "HBT-11" if is_expired else asking.requirement, f"member_id = {describe_id(sent)}"
        yield blame_request(requirement, operation, title, expected, observed, asking.news)


@before("JoinGroup request")
def judge_fields(view: ClientView, seen: Seen) -> Findings:
    """Protocols in the same order in every JoinGroup, each once, and the timeouts that the client has."""
    operation, body, told = seen.request, seen.request.body, view.application.timeouts
    if told and not view.is_by_hand(seen.event.time):
        sent = {"session": body["session_timeout_ms"], "rebalance": body.get("rebalance_timeout_ms", told["rebalance"])}
        title = "JoinGroup has other timeouts than the client"
        is_right = sent == {"session": told["session"], "rebalance": told["rebalance"]}
        yield check_request(view, is_right, "MEMBER-03", operation, title, f"{dict(told)}", f"{sent}")
    names = [protocol["name"] for protocol in body["protocols"]]
    title = "JoinGroup has the wrong protocols"
    expected, observed = f"type {CONSUMER}, and each name once", f"type {body['protocol_type']}, {', '.join(names)}"
    is_sound = body["protocol_type"] == CONSUMER and bool(names) and len(set(names)) == len(names)
    if is_sound and view.join is not None:
        known = [protocol["name"] for protocol in view.join.body["protocols"]]
        is_sound, expected = known == names, f"as before: {', '.join(known)}"
    yield check_request(view, is_sound, "MEMBER-04", operation, title, expected, observed)


@before("JoinGroup request", "LeaveGroup request")
def judge_reasons(view: ClientView, seen: Seen) -> Findings:
    """The reason of a JoinGroup or LeaveGroup is not too long."""
    body, expected = seen.request.body, f"{MAX_REASON_LENGTH} at most"
    for reason in (body.get("reason"), *(row.get("reason") for row in body.get("members") or ())):
        if reason:
            is_short, observed = len(reason) <= MAX_REASON_LENGTH, f"{len(reason)} characters"
            title = "The reason is too long"
            yield check_request(view, is_short, "MEMBER-33", seen.request, title, expected, observed)


INSTANCE_VERSIONS = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
"""The first version of each request that has the id of a static member."""


@before(*(f"{api} request" for api in INSTANCE_VERSIONS))
def judge_instance(view: ClientView, seen: Seen) -> Findings:
    """A static member's instance id is in each of its requests."""
    operation, instance = seen.request, view.instance
    is_first = operation.api == "JoinGroup" and view.join is None
    if operation.version < INSTANCE_VERSIONS[operation.api] or (operation.api == "OffsetCommit" and view.is_no_member):
        return
    if operation.api == "OffsetCommit" and not operation.body["member_id"]:
        return
    sent = operation.body.get("group_instance_id")
    instance = sent if is_first else instance
    if instance is not None:
        title = f"{operation.api} has the wrong group_instance_id"
        is_right, expected, observed = sent == instance, f"'{instance}'", describe_id(sent)
        yield check_request(view, is_right, "WIRE-05", operation, title, expected, observed)


@before("JoinGroup request")
def judge_subscriptions(view: ClientView, seen: Seen) -> Findings:
    """What JoinGroup carries for each protocol can be read, and is sorted."""
    operation = seen.request
    for protocol in operation.body["protocols"]:
        name, metadata = protocol["name"], protocol["metadata"]
        try:
            subscription = decode_subscription(metadata)
        except ConsumerProtocolError as error:
            title = f"The subscription for {name} is unreadable"
            yield blame_request("WIRE-01", operation, title, "", str(error))
            continue
        yield build_pass("WIRE-01", operation.handle - 1)
        is_sorted = list(subscription.topics) == sorted(subscription.topics)
        is_sorted &= list(subscription.owned) == sorted(subscription.owned)
        title, expected = f"The subscription for {name} is not sorted", "topics and partitions sorted"
        yield check_request(view, is_sorted, "WIRE-04", operation, title, expected, "another order")
        if name == "cooperative-sticky":
            version = int.from_bytes(metadata[:2], signed=True)
            title = f"The subscription for {name} has too low a version"
            yield check_request(view, version >= 1, "WIRE-06", operation, title, "1 or later", str(version))


@before("JoinGroup request")
def judge_wanted(view: ClientView, seen: Seen) -> Findings:
    """A JoinGroup subscribes to what the application wants; it may have been made before that."""
    if (wanted := view.application.wanted) is None:
        return
    subscribed = read_subscriptions(seen.request)
    if subscribed.keys() < protocols_in(seen.request):
        return
    sent = {topic for one in subscribed.values() for topic in one.topics}
    if sent == wanted or seen.event.time - view.application.wanted_since > view.knowledge.grace:
        title, words = "JoinGroup has another subscription", (", ".join(sorted(wanted)), ", ".join(sorted(sent)))
        yield check_request(view, sent == wanted, "MEMBER-27", seen.request, title, *words)


@before("JoinGroup request")
def judge_claims(view: ClientView, seen: Seen) -> Findings:
    """A cooperative member declares its last assignment as owned."""
    operation, installed = seen.request, view.installed
    names = protocols_in(operation)
    if not is_cooperative(names) or view.is_installed_doubtful or view.has_newer_assignment:
        return
    subscribed = read_subscriptions(operation)
    if subscribed.keys() < names:
        return
    subscription, sender = next(iter(subscribed.values())), operation.body["member_id"]
    standings = standings_at_join(view, operation)
    standings = tuple(each for each in standings if each.member_id == sender) or standings
    owned = frozenset(subscription.owned)
    observed = f"owned: {describe_partitions(owned)}"
    if installed is None:
        is_out = all(each.generation == NO_GENERATION for each in standings)  # else it may not have read that
        if view.rounds and is_out:
            title = "Partitions are declared as owned without a generation"
            yield check_request(view, not owned, "COOP-17", operation, title, "owned: nothing", observed)
        return
    wanted = frozenset(partition for partition in installed if partition[0] in subscription.topics)
    title, expected = "JoinGroup declares the wrong partitions as owned", f"owned: {describe_partitions(wanted)}"
    yield check_request(view, owned >= wanted, "COOP-01", operation, title, expected, observed)
    if view.given_up:
        yield check_request(view, not owned & view.given_up, "COOP-04", operation, title, expected, observed)
    yield check_request(view, owned <= installed, "WIRE-03", operation, title, expected, observed)
    metadata = operation.body["protocols"][0]["metadata"]
    if owned and int.from_bytes(metadata[:2], signed=True) >= FIRST_WITH_GENERATION:
        title, told = "The generation of the owned partitions is too old", view.knowledge.latest.assigned_in
        is_fresh, observed = subscription.generation >= told, f"{subscription.generation}"
        yield check_request(view, is_fresh, "COOP-08", operation, title, f"{told}", observed)


@before("JoinGroup request")
def judge_memory(view: ClientView, seen: Seen) -> Findings:
    """A member that was assigned by sticky sends its assignment and the generation of that along; at first nothing."""
    operation, installed = seen.request, view.installed
    is_sticky = "sticky" in protocols_in(operation)
    subscription = read_subscriptions(operation).get("sticky") if is_sticky else None
    if subscription is None:
        return
    if subscription.user_data and view.join is None and not view.is_recorded:
        title, observed = "The first subscription for sticky has an assignment", f"{len(subscription.user_data)} bytes"
        yield blame_request("STICKY-18", operation, title, "no user data", observed)
    if installed is not None and view.knowledge.latest.assigned_by == "sticky":
        claim = decode_sticky_user_data(subscription.user_data)
        told = (frozenset(claim[0]), claim[1]) if claim is not None else (frozenset[TopicPartition](), NO_GENERATION)
        title = "The subscription for sticky has forgotten the last assignment"
        expected = f"{describe_partitions(installed)} of generation {view.knowledge.latest.assigned_in}"
        observed = f"{describe_partitions(told[0])} of generation {told[1]}"
        is_right = told == (installed, view.knowledge.latest.assigned_in)
        yield check_request(view, is_right, "STICKY-18", operation, title, expected, observed)
