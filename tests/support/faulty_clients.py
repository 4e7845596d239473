"""Faulty clients: one for each requirement that the judge of clients checks, at least.

A faulty client is the reference client, some of whose requests are replaced or left out.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.conformance.classic.clients.groups import requirements_of
from fencepost.conformance.classic.zoo.clients.reference import make_subject, replace_function
from fencepost.conformance.zoo.fault import INVENTED, Fault, Patch, Side
from fencepost.model.assignors.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.model.assignors.group import Assign, Subscription
from fencepost.model.classic.member.client import FindCoordinatorResponse
from fencepost.model.classic.member.settings import RANGE, ROUND_ROBIN, STICKY, ClientSettings
from fencepost.model.classic.member.step import ResponseArrived
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.sorts import InstanceId
from tests.support.client_scenarios import COOPERATIVE, EAGER
from tests.support.faulty_assignors import FAULTY_ASSIGNORS
from tests.support.wire_client import Tamper, Tell, WireClient, WireSubject, send_as_it_is, tell_as_it_is

Body = dict[str, Any]
STATIC = evolve(EAGER, instance=InstanceId("i"))
ROUND = evolve(EAGER, strategies=(ROUND_ROBIN, RANGE))
STICKY_ONLY = evolve(EAGER, strategies=(STICKY,))
SHORT_SESSION = evolve(EAGER, session_timeout=3_000, max_poll_interval=3_000, auto_commit=False)


class FaultyClient(NamedTuple):
    """A fault of a client, and the scenario that shows it."""

    fault: Fault[ClientSettings]
    scenario: str


def make_client(
    requirement: str,
    scenario: str,
    tamper: Tamper = send_as_it_is,
    settings: ClientSettings = EAGER,
    tell: Tell | None = None,
) -> FaultyClient:
    """The reference client with other requests, and with a driver that says other things if there is a `tell`."""

    def apply(patch: Patch) -> None:
        replace_function(patch, make_subject, lambda settings: WireSubject(settings, tamper, tell))

    about = f"{requirement} in {scenario}"
    return FaultyClient(Fault(about, Side.MEMBER, (requirement,), INVENTED, apply, settings, about), scenario)


def replace_in(api: str, change: Callable[[WireClient, Body], Body | None], first: int = 0) -> Tamper:
    """Change the requests to an API, from the one with this number on; those that become None are not sent."""

    def tamper(client: WireClient, sent: str, body: Body) -> Body | None:
        return change(client, body) if sent == api and client.count(api) >= first else body

    return tamper


def drop(api: str, first: int = 0) -> Tamper:
    """Send no request to an API, from the one with this number on."""
    return replace_in(api, lambda client, body: None, first)


def set_field(api: str, name: str, value: Any, first: int = 0) -> Tamper:
    """Send a field with another value."""
    return replace_in(api, lambda client, body: {**body, name: value}, first)


def old_id(client: WireClient, body: Body) -> Body:
    """JoinGroup with the last member id that was not empty."""
    ids = [row["member_id"] for api, row in client.sent if api in ("JoinGroup", "Heartbeat") and row["member_id"]]
    return {**body, "member_id": ids[-1] if ids else body["member_id"]}


def twice(api: str, copies: int = 1) -> Tamper:
    """Send a request again as soon as it was sent."""

    def tamper(client: WireClient, sent: str, body: Body) -> Body | None:
        if sent == api:
            for _ in range(copies):
                client.transmit(api, body, 0, client.coordinator)
        return body

    return tamper


def beside(api: str, other: str, first: int = 0) -> Tamper:
    """Send the last request to another API, or that of a stable member, right after a request to an API."""

    def tamper(client: WireClient, sent: str, body: Body) -> Body | None:
        if sent != api or client.count(api) < first:
            return body
        client.transmit(api, body, 0, client.coordinator)
        earlier = [row for each, row in client.sent if each == other]
        if earlier:
            client.transmit(other, earlier[-1], 0, client.coordinator)
        return None

    return tamper


def resubscribe(change: Callable[[Subscription], Subscription], version: int = 3) -> Callable[[WireClient, Body], Body]:
    """Change what JoinGroup carries for each protocol."""

    def apply(client: WireClient, body: Body) -> Body:
        rows = [
            {**row, "metadata": encode_subscription(change(decode_subscription(row["metadata"])), version)}
            for row in body["protocols"]
        ]
        return {**body, "protocols": rows}

    return apply


def replan(change: Callable[[dict[str, list[Any]]], dict[str, list[Any]]]) -> Tamper:
    """Change the plan of a leader of several members."""

    def apply(client: WireClient, body: Body) -> Body:
        if len(body["assignments"]) < 2:
            return body
        plan = {row["member_id"]: list(decode_assignment(row["assignment"])) for row in body["assignments"]}
        rows = [{"member_id": id, "assignment": encode_assignment(own)} for id, own in change(plan).items()]
        return {**body, "assignments": rows}

    return replace_in("SyncGroup", apply)


def rotate(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same shares for other members."""
    ids, shares = list(plan), list(plan.values())
    return dict(zip(ids, shares[1:] + shares[:1], strict=True))


def take_one(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The plan without one partition."""
    richest = max(plan, key=lambda id: len(plan[id]))
    return {**plan, richest: plan[richest][1:]}


def give_twice(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The plan with one partition for everybody."""
    one = next(partition for own in plan.values() for partition in own)
    return {id: sorted({*own, one}) for id, own in plan.items()}


def give_foreign(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The plan with a partition that does not exist."""
    first = next(iter(plan))
    return {**plan, first: [*plan[first], (plan[first][0][0], 99)]}


def all_to_one(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Everything for the first member."""
    first = next(iter(plan))
    everything = sorted(partition for own in plan.values() for partition in own)
    return {id: everything if id == first else [] for id in plan}


def keep_nothing(client: WireClient, body: Body) -> Body:
    """The plan with everything for the members that do not plan."""
    plan = {row["member_id"]: decode_assignment(row["assignment"]) for row in body["assignments"]}
    everything = sorted(partition for own in plan.values() for partition in own)
    shares = {id: [] if id == body["member_id"] and len(plan) > 1 else everything for id in plan}
    rows = [{"member_id": id, "assignment": encode_assignment(own)} for id, own in shares.items()]
    return {**body, "assignments": rows}


def change_rows(change: Callable[[list[Body]], list[Body]]) -> Callable[[WireClient, Body], Body]:
    """Change what a request says of the partitions of each topic."""

    def apply(client: WireClient, body: Body) -> Body:
        return {**body, "topics": [{**topic, "partitions": change(topic["partitions"])} for topic in body["topics"]]}

    return apply


FOREIGN_COMMIT = change_rows(lambda rows: [*rows, {"partition_index": 77, "committed_offset": 0}])
"""A commit that covers a partition that does not exist."""
FOREIGN_FETCH = change_rows(lambda rows: [*rows, {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}])
"""A Fetch of another partition."""


def reverse_protocols(client: WireClient, body: Body) -> Body:
    """JoinGroup with another order of preference."""
    return {**body, "protocols": body["protocols"][::-1]}


def unreadable(client: WireClient, body: Body) -> Body:
    """JoinGroup with bytes that are no subscription."""
    return {**body, "protocols": [{**row, "metadata": b"\xff\xff"} for row in body["protocols"]]}


def fetch_foreign_offsets(client: WireClient, body: Body) -> Body:
    """OffsetFetch that asks for what is not subscribed as well."""
    foreign = {"name": f"{client.topic}-foreign", "partition_indexes": [0]}
    return {**body, "topics": [*body["topics"], foreign]}


def guess_coordinator(client: WireClient, body: Body) -> None:
    """No FindCoordinator: the client takes the first node for the coordinator."""
    found = ResponseArrived(client.client.last_handle, FindCoordinatorResponse(Error.NONE, 0))
    asyncio.get_running_loop().call_soon(client.give, found)


def send_leave(client: WireClient, member: Body) -> None:
    """Send LeaveGroup for the member that another request names."""
    row = {"member_id": member["member_id"], "group_instance_id": member["group_instance_id"]}
    client.transmit("LeaveGroup", {"group_id": member["group_id"], "members": [row]}, 0, client.coordinator)


def leave_too(client: WireClient, body: Body) -> Body:
    """A LeaveGroup before what is sent."""
    send_leave(client, body)
    return body


def hang_after(client: WireClient, body: Body) -> Body:
    """A client that hangs after this request."""
    client.tasks[0].cancel()
    return body


def give_up_join(client: WireClient, body: Body) -> Body:
    """A client that closes its connection when JoinGroup takes longer than two seconds."""
    link = client.link(client.coordinator)
    if any(one.api == "JoinGroup" for one in link.waiting.values()) and client.count("Metadata") % 3 == 0:
        link.hang_up()
    return body


def fall_silent(client: WireClient, api: str, body: Body) -> Body | None:
    """A client that neither joins again nor sends heartbeats once it should join again."""
    if api == "JoinGroup" and client.count("JoinGroup") >= 2:
        client.is_silent = True
    return None if client.is_silent and api in ("JoinGroup", "Heartbeat", "OffsetCommit") else body


def join_instead_of_sync(client: WireClient, api: str, body: Body) -> Body | None:
    """A client that sends the first JoinGroup of a member again in the place of its SyncGroup."""
    if api != "SyncGroup" or client.count("JoinGroup") > 2:
        return body
    join = next(row for each, row in client.sent if each == "JoinGroup" and row["member_id"])
    client.transmit("JoinGroup", join, 0, client.coordinator)
    return None


def shuffle_owned(client: WireClient, body: Body) -> Body:
    """JoinGroup with owned partitions in another order."""
    there, back = bytes((0, 0, 0, 1, 0, 0, 0, 2)), bytes((0, 0, 0, 2, 0, 0, 0, 1))
    rows = [{**row, "metadata": row["metadata"].replace(there, back)} for row in body["protocols"]]
    return {**body, "protocols": rows}


def claim_first(subscription: Subscription) -> Subscription:
    """A subscription that owns the first partition."""
    first = subscription.topics[0], 0
    return evolve(subscription, owned=tuple(sorted({*subscription.owned, first})))


def give_stranger(plan: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The plan with something for nobody."""
    return {**plan, "stranger": []}


def plan_with(name: str, assign: Assign) -> Tamper:
    """Plan with another assignor."""

    def tamper(client: WireClient, sent: str, body: Body) -> Body:
        client.assignors[name] = assign
        return body

    return tamper


ONLY = {each.name: evolve(EAGER, strategies=(each,)) for each in (RANGE, ROUND_ROBIN, STICKY)}
ONLY["cooperative-sticky"] = COOPERATIVE
IN_GROUPS = {False: "plans-for-invented-groups", True: "plans-for-odd-groups"}
PLANNERS = [
    make_client(
        requirement, IN_GROUPS[is_odd], plan_with(name, assign), ONLY[name], tell=tell_as_it_is if is_odd else None
    )
    for is_odd in (False, True)
    for requirement, name, assign in FAULTY_ASSIGNORS
    if requirement in requirements_of(own=is_odd)
]
"""Clients with the faulty assignors."""


def ask_for_bounds(client: WireClient, body: Body) -> Body:
    """OffsetFetch, and ListOffsets beside it, as some clients hold one against the other: that is no fault."""
    topics = [
        {
            "name": row["name"],
            "partitions": [{"partition_index": number, "timestamp": -2} for number in row["partition_indexes"]],
        }
        for row in body["topics"]
    ]
    client.transmit("ListOffsets", {"replica_id": -1, "isolation_level": 0, "topics": topics}, 0, 0)
    return body


def start_by_policy(client: WireClient, body: Body) -> None:
    """ListOffsets in the place of OffsetFetch, and Fetch from where the log begins."""
    ask_for_bounds(client, body)
    topics = [
        {
            "topic": row["name"],
            "partitions": [
                {"partition": number, "fetch_offset": 0, "partition_max_bytes": 65_536}
                for number in row["partition_indexes"]
            ],
        }
        for row in body["topics"]
    ]
    fetch = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 65_536, "isolation_level": 0, "topics": topics}
    asyncio.get_running_loop().call_later(0.1, client.transmit, "Fetch", fetch, 0, 0)


def commit_before_sync_is_done(client: WireClient, body: Body) -> Body:
    """A commit right after SyncGroup."""
    membership = {name: body[name] for name in ("group_id", "member_id", "group_instance_id")}
    rows = [{"partition_index": 0, "committed_offset": 0}]
    commit = {
        "generation_id_or_member_epoch": body["generation_id"],
        "topics": [{"name": client.topic, "partitions": rows}],
    }
    asyncio.get_running_loop().call_soon(
        client.transmit, "OffsetCommit", {**membership, **commit}, 0, client.coordinator
    )
    return body


WITH_LONG_REASON = set_field("JoinGroup", "reason", "x" * 256)
FORGETFUL = replace_in("JoinGroup", resubscribe(lambda one: evolve(one, user_data=None)))
NEVER_AGAIN = drop("JoinGroup", 2)
"""Never joins after the first time, which takes two requests."""
FRESH_ID = set_field("JoinGroup", "member_id", "", 2)

FAULTY = [
    make_client("MEMBER-01", "a-client-alone", replace_in("FindCoordinator", guess_coordinator)),
    make_client("MEMBER-02", "a-client-alone", set_field("JoinGroup", "member_id", "mine")),
    make_client("MEMBER-04", "a-client-alone", set_field("JoinGroup", "protocol_type", "mine")),
    make_client("MEMBER-04", "a-join-while-loading", replace_in("JoinGroup", reverse_protocols, 1)),
    make_client("MEMBER-05", "a-client-alone", set_field("JoinGroup", "member_id", "")),
    make_client("MEMBER-06", "a-parked-join", twice("JoinGroup")),
    make_client("MEMBER-07", "a-follower", set_field("SyncGroup", "generation_id", 99)),
    make_client("MEMBER-07", "a-follower", drop("SyncGroup")),
    make_client("MEMBER-08", "a-leader-of-two", join_instead_of_sync),
    make_client("MEMBER-08", "a-client-alone", set_field("SyncGroup", "assignments", [])),
    make_client("MEMBER-10", "a-leader-of-two", FRESH_ID),
    make_client("MEMBER-10", "a-leader-of-two", NEVER_AGAIN),
    make_client("MEMBER-11", "a-sync-during-a-rebalance", FRESH_ID),
    make_client("MEMBER-12", "a-sync-of-an-old-generation", FRESH_ID),
    make_client("MEMBER-12", "a-heartbeat-of-an-old-generation", FRESH_ID),
    make_client("MEMBER-13", "a-heartbeat-of-a-forgotten-member", replace_in("JoinGroup", old_id, 2)),
    make_client("MEMBER-13", "a-sync-of-a-forgotten-member", NEVER_AGAIN),
    make_client("MEMBER-14", "a-join-that-loses-its-connection", FRESH_ID),
    make_client("MEMBER-14", "a-join-elsewhere", FRESH_ID),
    make_client("MEMBER-16", "a-sync-that-loses-its-connection", beside("JoinGroup", "SyncGroup", 2)),
    make_client("MEMBER-20", "an-assignment-outside-the-subscription", NEVER_AGAIN),
    make_client(
        "MEMBER-20", "an-assignment-outside-the-subscription", replace_in("OffsetFetch", fetch_foreign_offsets)
    ),
    make_client("MEMBER-21", "a-topic-that-grows", NEVER_AGAIN),
    make_client("MEMBER-22", "a-client-alone", drop("LeaveGroup")),
    make_client("MEMBER-24", "closing-with-a-pending-id", drop("LeaveGroup")),
    make_client("MEMBER-33", "a-client-alone", WITH_LONG_REASON),
    make_client("MEMBER-34", "a-join-during-a-rebalance", FRESH_ID),
    make_client("HBT-01", "offsets-that-are-unstable", drop("Heartbeat", 2), SHORT_SESSION),
    make_client("HBT-02", "a-client-alone", set_field("Heartbeat", "generation_id", 99)),
    make_client("HBT-04", "a-parked-join", beside("JoinGroup", "Heartbeat", 2)),
    make_client("MCOMMIT-03", "a-client-alone", set_field("OffsetCommit", "generation_id_or_member_epoch", 99)),
    make_client("MCOMMIT-11", "a-client-alone", set_field("OffsetCommit", "generation_id_or_member_epoch", -1)),
    make_client("MCOMMIT-08", "a-leader-of-two", beside("JoinGroup", "OffsetCommit", 2)),
    make_client("MCOMMIT-08", "a-late-assignment", replace_in("SyncGroup", commit_before_sync_is_done)),
    make_client("MCOMMIT-19", "a-client-alone", replace_in("OffsetFetch", start_by_policy)),
    make_client("PREFETCH-03", "a-partition-taken-away", drop("Fetch", 4)),
    make_client("MCOMMIT-18", "a-client-alone", replace_in("OffsetCommit", FOREIGN_COMMIT)),
    make_client("PREFETCH-05", "a-client-alone", twice("Fetch")),
    make_client("PREFETCH-08", "a-follower", replace_in("Fetch", FOREIGN_FETCH, 5)),
    make_client("WIRE-01", "a-client-alone", replace_in("JoinGroup", unreadable)),
    make_client("WIRE-05", "a-client-alone", set_field("Heartbeat", "group_instance_id", None), STATIC),
    make_client("WIRE-06", "a-client-alone", replace_in("JoinGroup", resubscribe(lambda one: one, 0)), COOPERATIVE),
    make_client(
        "WIRE-03",
        "a-leader-of-two",
        replace_in("JoinGroup", resubscribe(lambda one: evolve(one, owned=(*one.owned, ("other", 0)))), 2),
        COOPERATIVE,
    ),
    make_client(
        "COOP-01",
        "a-leader-of-two",
        replace_in("JoinGroup", resubscribe(lambda one: evolve(one, owned=()))),
        COOPERATIVE,
    ),
    make_client(
        "COOP-08",
        "a-leader-of-two",
        replace_in("JoinGroup", resubscribe(lambda one: evolve(one, generation=0)), 2),
        COOPERATIVE,
    ),
    make_client("COOP-03", "a-partition-taken-away", drop("JoinGroup", 3), COOPERATIVE),
    make_client("COOP-04", "a-partition-taken-away", replace_in("JoinGroup", resubscribe(claim_first), 3), COOPERATIVE),
    make_client(
        "COOP-17",
        "a-heartbeat-of-a-forgotten-member",
        replace_in("JoinGroup", resubscribe(claim_first), 2),
        COOPERATIVE,
    ),
    make_client("COOP-09", "a-leader-of-two", replan(rotate), COOPERATIVE),
    make_client("WIRE-04", "a-leader-of-two", replace_in("JoinGroup", shuffle_owned), COOPERATIVE),
    make_client("MEMBER-17", "a-join-while-loading", send_as_it_is, evolve(EAGER, retry_backoff=0)),
    make_client("MEMBER-23", "a-client-alone", replace_in("Heartbeat", leave_too, 2), STATIC),
    make_client("MEMBER-25", "a-leave-that-fails", replace_in("LeaveGroup", hang_after)),
    make_client("MEMBER-32", "a-parked-join", replace_in("Metadata", give_up_join)),
    make_client("HBT-03", "a-late-assignment", drop("Heartbeat")),
    make_client("HBT-05", "a-leader-of-two", fall_silent, SHORT_SESSION),
    make_client("HBT-11", "a-coordinator-that-falls-silent", drop("FindCoordinator", 1)),
    make_client("MCOMMIT-09", "a-commit-during-a-rebalance", FRESH_ID),
    make_client("MCOMMIT-20", "offsets-that-are-unstable", drop("OffsetFetch", 1)),
    make_client("STICKY-01", "a-leader-of-two", replan(all_to_one), STICKY_ONLY),
    make_client("STICKY-02", "a-leader-of-two", replan(all_to_one), STICKY_ONLY),
    make_client("STICKY-03", "a-leader-of-two", replace_in("SyncGroup", keep_nothing), STICKY_ONLY),
    make_client("STICKY-18", "a-leader-of-two", FORGETFUL, STICKY_ONLY),
    make_client("ASSIGN-04", "a-leader-of-two", replan(give_stranger)),
    make_client("ASSIGN-01", "a-leader-of-two", replan(give_foreign)),
    make_client("ASSIGN-02", "a-leader-of-two", replan(give_twice)),
    make_client("ASSIGN-03", "a-leader-of-two", replan(take_one)),
    make_client("RANGE-01", "a-leader-of-two", replan(rotate)),
    make_client("RANGE-02", "a-leader-of-two", replan(all_to_one)),
    make_client("RR-01", "a-leader-of-two", replan(rotate), ROUND),
    make_client("RR-04", "a-leader-of-two", replan(all_to_one), ROUND),
    make_client("COOP-10", "a-leader-of-two", replan(take_one), COOPERATIVE),
    *PLANNERS,
]
"""Every faulty client."""
WITNESSED = frozenset(requirement for faulty in FAULTY for requirement in faulty.fault.breaks)
"""The requirements that a faulty client violates."""
