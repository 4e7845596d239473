"""Strange clients of the classic protocol: the differences that a correct client may have from the reference client.

None of these differences breaks a requirement, so that a run that fails for one of them is a false alarm.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from fencepost.adapters.classic.client import client
from fencepost.adapters.classic.client.client import ANY_NODE, AS_COORDINATOR, VERSIONS, Pace, ReferenceClient
from fencepost.adapters.classic.client.driver import ReferenceDriver, ReferenceSubject
from fencepost.adapters.classic.client.links import AwaitedResponse, Link, MemoryLink, MemoryNetwork
from fencepost.adapters.serve.coordination import topic_id_of
from fencepost.conformance.classic.zoo.clients import reference
from fencepost.conformance.zoo.strangers import Difference, Disguise, Value
from fencepost.model.assignors.consumer_protocol import encode_subscription
from fencepost.model.assignors.group import Subscription
from fencepost.model.classic.member import joining
from fencepost.model.classic.member.client import Callback
from fencepost.model.classic.member.settings import (
    COOPERATIVE_STICKY,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    ClientDialect,
    ClientSettings,
    ResetPolicy,
    Strategy,
)
from fencepost.model.classic.member.step import ClientInput, Poll
from fencepost.model.sorts import InstanceId
from fencepost.model.wire.codec import Body, DecodedResponse, decode_response, encode_request

# --- settings


def configure(disguise: Disguise, change: Callable[[ClientSettings], ClientSettings]) -> None:
    """Give the client other settings."""
    shipped = reference.make_subject
    disguise.patch.replace(reference, "make_subject", lambda settings: shipped(change(settings)))


def set_option(name: str, value: Value, disguise: Disguise) -> None:
    """Another value of one setting."""
    changed: dict[str, Any] = {name: value}
    configure(disguise, lambda settings: replace(settings, **changed))


STRATEGIES: Mapping[str, Strategy] = {each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)}


def offer_assignors(names: Value, disguise: Disguise) -> None:
    """Other assignors."""
    strategies = tuple(STRATEGIES[name] for name in str(names).split(" "))
    configure(disguise, lambda settings: replace(settings, strategies=strategies))


def set_session(times: Value, disguise: Disguise) -> None:
    """Another session timeout, with the interval of heartbeats."""
    session, interval = map(int, str(times).split(" "))
    configure(disguise, lambda settings: replace(settings, session_timeout=session, heartbeat_interval=interval))


def set_backoffs(times: Value, disguise: Disguise) -> None:
    """Other pauses before it tries again."""
    first, longest = map(int, str(times).split(" "))
    configure(disguise, lambda settings: replace(settings, retry_backoff=first, max_retry_backoff=longest))


def be_static(instance: Value, disguise: Disguise) -> None:
    """A static member."""
    configure(disguise, lambda settings: replace(settings, instance=InstanceId(str(instance))))


def reset_to(policy: Value, disguise: Disguise) -> None:
    """Another place where a partition without a committed offset begins."""
    configure(disguise, lambda settings: replace(settings, reset_policy=ResetPolicy(policy)))


def keep_commits(_: Value, disguise: Disguise) -> None:
    """A cooperative client does not commit what a rebalance takes away."""
    dialect = ClientDialect(commits_given_up=False)
    configure(disguise, lambda settings: replace(settings, dialect=dialect))


# --- what is seen of it


def be_watched(value: Value, disguise: Disguise) -> None:
    """No driver: nothing but requests is seen."""
    shipped = reference.make_subject
    disguise.patch.replace(reference, "make_subject", lambda settings: replace(shipped(settings), is_driven=False))


def describe_as(disguise: Disguise, **told: Any) -> None:
    """Have the driver say something else in its `ready`, or leave out what is None."""
    shipped = ReferenceDriver.describe

    def describe(driver: ReferenceDriver) -> dict[str, Any]:
        return {name: each for name, each in (shipped(driver) | told).items() if each is not None}

    disguise.patch.replace(ReferenceDriver, "describe", describe)


def hear_no_losses(value: Value, disguise: Disguise) -> None:
    """No callback tells of lost partitions; they are revoked."""
    set_option("hears_lost", False, disguise)
    describe_as(disguise, callbacks=["assigned", "revoked"])


def call_back_per_partition(value: Value, disguise: Disguise) -> None:
    """Each partition has a callback of its own."""
    describe_as(disguise, callbacks_per_partition=True)
    shipped = ReferenceDriver.say

    def say(driver: ReferenceDriver, message: dict[str, Any]) -> None:
        if "event" not in message:
            shipped(driver, message)
            return
        for partition in message["partitions"]:
            shipped(driver, {**message, "partitions": [partition]})

    disguise.patch.replace(ReferenceDriver, "say", say)


def push_records(value: Value, disguise: Disguise) -> None:
    """It polls by itself, and hands records over as long as the application takes them; it calls back at any time."""
    describe_as(disguise, callbacks_anywhere=True, poll_interval=False, max_poll_records=None)
    run, obey = ReferenceDriver.run, ReferenceDriver.obey
    open_gates: set[int] = set()

    async def poll_by_itself(driver: ReferenceDriver) -> None:
        while not driver.has_closed():
            if id(driver.fetcher) in open_gates:
                driver.poll()
            else:
                driver.give(Poll())
            await asyncio.sleep(driver.pace.cycle)

    def run_pushing(driver: ReferenceDriver, topic: str) -> None:
        run(driver, topic)
        driver.start_task(poll_by_itself(driver))

    async def obey_pushing(driver: ReferenceDriver, command: dict[str, Any]) -> None:
        if command["do"] != "poll":
            await obey(driver, command)
            return
        open_gates.add(id(driver.fetcher))
        await asyncio.sleep(command["ms"] / 1000)
        open_gates.discard(id(driver.fetcher))
        failure, driver.failure = driver.failure, ""  # of any time since the last one
        driver.say({"error": failure, "of": command["id"]} if failure else {"done": command["id"]})

    disguise.patch.replace(ReferenceDriver, "run", run_pushing)
    disguise.patch.replace(ReferenceDriver, "obey", obey_pushing)


# --- requests of its own


def send_before(disguise: Disguise, apis: tuple[str, ...], make: Callable[[Body], tuple[str, Body] | None]) -> None:
    """Send a request to any node before each request to some APIs, and take no notice of its response."""
    shipped = ReferenceClient.transmit

    def transmit(self: ReferenceClient, api: str, body: Body, handle: int, node: int) -> None:
        made = make(body) if api in apis and handle else None
        if made is not None:
            shipped(self, *made, 0, ANY_NODE)
        shipped(self, api, body, handle, node)

    disguise.patch.replace(ReferenceClient, "transmit", transmit)


def look_up_often(when: Value, disguise: Disguise) -> None:
    """It looks up the coordinator before other requests as well."""
    apis = {
        "before joins": ("JoinGroup",),
        "before offsets": ("OffsetFetch",),
        "before all": ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup"),
    }
    send_before(disguise, apis[str(when)], lambda body: ("FindCoordinator", {"key": body["group_id"], "key_type": 0}))


def list_offsets_first(timestamp: Value, disguise: Disguise) -> None:
    """It asks for a bound of each log before it fetches committed offsets."""

    def bounds(body: Body) -> tuple[str, Body]:
        rows = [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": each, "timestamp": timestamp} for each in topic["partition_indexes"]
                ],
            }
            for topic in body["topics"]
        ]
        return "ListOffsets", {"replica_id": -1, "isolation_level": 0, "topics": rows}

    send_before(disguise, ("OffsetFetch",), bounds)


def ask_for_versions(value: Value, disguise: Disguise) -> None:
    """ApiVersions is the first request on each connection."""
    shipped = ReferenceClient.link
    disguise.patch.replace(client, "VERSIONS", {**client.VERSIONS, "ApiVersions": 3})

    def link(self: ReferenceClient, node: int) -> Link:
        known = self.links.get(node)
        found = shipped(self, node)
        if found is not known:
            self.transmit("ApiVersions", {"client_software_name": "strange", "client_software_version": "1"}, 0, node)
            self._correlation_id += 1  # for the request that the connection was made for
        return found

    disguise.patch.replace(ReferenceClient, "link", link)


@dataclass(slots=True)
class SplitCommit:
    """A commit that was sent in several requests: its body, and the rows of the responses so far."""

    body: Body
    left: int
    rows: list[Body] = field(default_factory=list)


def commit_one_by_one(value: Value, disguise: Disguise) -> None:
    """A commit of several partitions is several requests, of which none waits for another."""
    transmit, take = ReferenceClient.transmit, ReferenceClient.take_response
    split: dict[tuple[int, int], SplitCommit] = {}

    def transmit_split(self: ReferenceClient, api: str, body: Body, handle: int, node: int) -> None:
        topics = body["topics"] if api == "OffsetCommit" else ()
        rows = [(topic["name"], row) for topic in topics for row in topic["partitions"]]
        if len(rows) < 2:
            transmit(self, api, body, handle, node)
            return
        split[id(self), handle] = SplitCommit(body, len(rows))
        for name, row in rows:
            transmit(self, api, {**body, "topics": [{"name": name, "partitions": [row]}]}, handle, node)

    def take_split(self: ReferenceClient, sent: AwaitedResponse, body: Body) -> None:
        pending = split.get((id(self), sent.handle)) if sent.api == "OffsetCommit" else None
        if pending is None:
            take(self, sent, body)
            return
        pending.left -= 1
        pending.rows += body["topics"]
        if not pending.left:
            del split[id(self), sent.handle]
            take(self, replace(sent, request=pending.body), {**body, "topics": pending.rows})

    disguise.patch.replace(ReferenceClient, "transmit", transmit_split)
    disguise.patch.replace(ReferenceClient, "take_response", take_split)


# --- versions

FLOORS: Mapping[str, int] = {
    "OffsetFetch": 2,
    "ListOffsets": 1,
    "Metadata": 4,
    "Fetch": 4,
    "JoinGroup": 1,
    "OffsetCommit": 2,
}
"""The lowest versions that it speaks, where they are not 0: bodies before them have another form."""
STATIC_FLOORS: Mapping[str, int] = {
    "JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7,
}  # fmt: skip
"""The lowest versions of a static member."""


FIRST_FETCH_BY_ID = 13
FIRST_VERSIONS: Mapping[str, Mapping[str, int]] = {
    "JoinGroup": {"group_instance_id": 5, "reason": 8},
    "SyncGroup": {"group_instance_id": 3, "protocol_type": 5, "protocol_name": 5},
    "Heartbeat": {"group_instance_id": 3},
    "OffsetCommit": {"group_instance_id": 7},
    "OffsetFetch": {"require_stable": 7},
    "FindCoordinator": {"key_type": 1},
    "ListOffsets": {"isolation_level": 2},
}
"""The first versions that have a field."""


def write_body(api: str, version: int, body: Body) -> Body:
    """A body as a version has it."""
    if api == "LeaveGroup" and version < 3:
        return {"group_id": body["group_id"], "member_id": body["members"][0]["member_id"]}
    if api == "LeaveGroup" and version < 5:
        rows = [{name: each for name, each in row.items() if name != "reason"} for row in body["members"]]
        return {**body, "members": rows}
    if api == "SyncGroup" and body["protocol_type"] is None:  # a JoinGroup before version 7 tells none
        body = {**body, "protocol_type": "consumer"}
    first = FIRST_VERSIONS.get(api, {})
    return {name: each for name, each in body.items() if first.get(name, 0) <= version}


def speak_versions(drawn: Value, disguise: Disguise) -> None:
    """The highest versions of each API are drawn by a number; those of a static member know instances."""
    chance, shipped = Random(drawn), reference.make_subject
    shares = {api: chance.random() for api in VERSIONS}

    def make(settings: ClientSettings) -> ReferenceSubject:
        subject = shipped(settings)
        floors = {**FLOORS, **(STATIC_FLOORS if subject.settings.instance is not None else {})}
        for api, share in shares.items():
            low = floors.get(api, 0)
            versions[api] = low + round(share * (VERSIONS[api] - low))
        return subject

    versions = dict(client.VERSIONS)
    disguise.patch.replace(client, "VERSIONS", versions)
    disguise.patch.replace(reference, "make_subject", make)
    shipped_send = ReferenceClient.transmit

    def transmit(self: ReferenceClient, api: str, body: Body, handle: int, node: int) -> None:
        shipped_send(self, api, write_body(api, versions[api], body), handle, node)

    disguise.patch.replace(ReferenceClient, "transmit", transmit)


def fetch_by_id(version: Value, disguise: Disguise) -> None:
    """It fetches by a newer version, from 13 on by the ids of topics."""
    encode, decode = encode_request, decode_response
    names: dict[str, str] = {}

    def encode_with_ids(api: str, spoken: int, correlation_id: int, client_id: str | None, body: Body) -> bytes:
        spoken = int(version) if api == "Fetch" else spoken
        if api == "Fetch" and spoken >= FIRST_FETCH_BY_ID:
            names.update({topic_id_of(row["topic"]): row["topic"] for row in body["topics"]})
            rows = [{"topic_id": topic_id_of(row["topic"]), "partitions": row["partitions"]} for row in body["topics"]]
            body = {**body, "topics": rows}
        return encode(api, spoken, correlation_id, client_id, body)

    def decode_with_names(api: str, spoken: int, frame: bytes) -> DecodedResponse:
        spoken = int(version) if api == "Fetch" else spoken
        found = decode(api, spoken, frame)
        if api != "Fetch" or spoken < FIRST_FETCH_BY_ID:
            return found
        rows = [{**row, "topic": names[row["topic_id"]]} for row in found.body["responses"]]
        return replace(found, body={**found.body, "responses": rows})

    disguise.patch.replace(client, "encode_request", encode_with_ids)
    disguise.patch.replace(client, "decode_response", decode_with_names)


def write_subscriptions(version: Value, disguise: Disguise) -> None:
    """Subscriptions of an older version; one that owns partitions has to be able to say so."""

    def encode(subscription: Subscription) -> bytes:
        return encode_subscription(subscription, max(int(version), 1 if subscription.owned else 0))

    disguise.patch.replace(joining, "encode_subscription", encode)


# --- connections and pace


def share_connection(value: Value, disguise: Disguise) -> None:
    """The connection to a node is also that to the coordinator on it."""
    shipped = ReferenceClient.give

    def give(self: ReferenceClient, given: ClientInput) -> None:
        self.coordinator %= AS_COORDINATOR
        shipped(self, given)

    disguise.patch.replace(ReferenceClient, "give", give)


def read_slowly(milliseconds: Value, disguise: Disguise) -> None:
    """Each response is read a while after it has come."""
    shipped = MemoryNetwork.connect

    def connect(network: MemoryNetwork, node: int) -> MemoryLink:
        link = shipped(network, node)
        later = partial(asyncio.get_running_loop().call_later, int(milliseconds) / 1000)
        link.responses.feed_data = partial(later, link.responses.feed_data)  # type: ignore[method-assign, assignment]
        link.responses.feed_eof = partial(later, link.responses.feed_eof)  # type: ignore[method-assign, assignment]
        return link

    disguise.patch.replace(MemoryNetwork, "connect", connect)


def go_at_pace(paces: Value, disguise: Disguise) -> None:
    """It looks at its clocks, at metadata and for records at other times, in milliseconds."""
    pace = Pace(*(int(each) / 1000 for each in str(paces).split(" ")))
    shipped = ReferenceDriver.run

    def run(driver: ReferenceDriver, topic: str) -> None:
        driver.pace = pace
        shipped(driver, topic)

    disguise.patch.replace(ReferenceDriver, "run", run)


def return_records(limit: Value, disguise: Disguise) -> None:
    """Another number of records of one poll."""
    shipped = ReferenceDriver.run

    def run(driver: ReferenceDriver, topic: str) -> None:
        driver.fetcher.limit = int(limit)
        shipped(driver, topic)

    disguise.patch.replace(ReferenceDriver, "run", run)


def call_back_slowly(milliseconds: Value, disguise: Disguise) -> None:
    """The listener of the application takes a while."""
    shipped = ReferenceDriver.on_callback

    def on_callback(driver: ReferenceDriver, callback: Callback) -> None:
        driver.listener = {"takes_ms": int(milliseconds), **driver.listener}
        shipped(driver, callback)

    disguise.patch.replace(ReferenceDriver, "on_callback", on_callback)


# --- all of them

CLIENT_DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "assignors",
        ("range", "sticky", "cooperative-sticky", "cooperative-sticky range", "roundrobin sticky"),
        offer_assignors,
    ),
    Difference("commits by hand", ("",), lambda value, disguise: set_option("auto_commit", False, disguise)),
    Difference("interval of commits", (5_000, 200), partial(set_option, "auto_commit_interval")),
    Difference("static", ("i",), be_static),
    Difference("session", ("6000 2000", "3000 1000", "10000 3000", "45000 3000"), set_session),
    Difference("poll interval", (10_000, 30_000, 300_000), partial(set_option, "max_poll_interval")),
    Difference("backoffs", ("50 1000", "20 20", "500 5000"), set_backoffs),
    Difference("request timeout", (5_000, 30_000), partial(set_option, "request_timeout")),
    Difference("begins at", ("latest",), reset_to),
    Difference("does not leave", ("",), lambda value, disguise: set_option("leaves_on_close", False, disguise)),
    Difference("dialect", ("keeps commits",), keep_commits),
    Difference("no driver", ("",), be_watched),
    Difference("no lost partitions", ("",), hear_no_losses),
    Difference("callbacks per partition", ("",), call_back_per_partition),
    Difference("push", ("",), push_records),
    Difference("lookups", ("before joins", "before offsets", "before all"), look_up_often),
    Difference("ListOffsets first", (-2, -1), list_offsets_first),
    Difference("ApiVersions", ("",), ask_for_versions),
    Difference("commits one by one", ("",), commit_one_by_one),
    Difference("versions", tuple(range(20)), speak_versions),
    Difference("Fetch", (12, 13), fetch_by_id),
    Difference("subscriptions", (2, 1, 0), write_subscriptions),
    Difference("one connection", ("",), share_connection),
    Difference("reads slowly", (20, 100, 400), read_slowly),
    Difference("pace", ("50 300 300", "200 1000 100", "50 5000 300"), go_at_pace),
    Difference("records of a poll", (500, 5, 1), return_records),
    Difference("slow listener", (100, 700), call_back_slowly),
)
SETTINGS = frozenset({"assignors", "commits by hand", "static", "dialect", "begins at"})
"""The differences that a fault does not go together with that needs other settings."""
