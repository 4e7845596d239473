"""Discovery and preparation of a target: versions, brokers, settings, the kit's topic and its coordinators."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from fencepost.adapters.address import Address, format_url
from fencepost.adapters.security.authentication import SASL_APIS
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.admin_client import AdminClient, error_codes
from fencepost.adapters.wire.cluster import GROUP_KEY, RETRY_DELAY_S, Cluster
from fencepost.adapters.wire.connection import ConnectionLossError, LossCause
from fencepost.adapters.wire.hangup import AccessDeniedError, describe_loss, explain_hangup
from fencepost.model.classic.messages.parsing import names_topics_by_id
from fencepost.model.classic.messages.requests import MIN_TOPIC_ID_VERSION
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_NAMES, VERSIONS, fit_body
from fencepost.model.wire.java_hash import java_abs_hash
from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.traces.events import Body

MIN_PARTITIONS = 4
MAX_REMOVAL_POLLS = 30
TOPIC_IDS_SINCE = 10
"""The first version of Metadata with topic ids."""
CLIENT_SOFTWARE = {"client_software_name": "fencepost", "client_software_version": "1"}

REQUIRED_APIS = ("Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat")


async def learn_versions(client: AdminClient, address: Address) -> dict[str, tuple[int, int]]:
    """The versions that target and kit share. Raises `TargetError` if the address is not that of a usable broker."""
    body: Body = {}
    for version in (VERSIONS["ApiVersions"][1], 0):
        try:
            software = CLIENT_SOFTWARE if version > 2 else {}
            response = await client.request(address, "ApiVersions", version, software, fresh=True)
        except ConnectionLossError as error:
            # A broker that does not know the version may hang up instead of answering 35.
            if version == 0 or error.loss.cause is not LossCause.CLOSED:
                raise await explain_hangup(client, address, error.loss) from None
            continue
        body = response.body
        if body.get("error_code") == 0 and isinstance(body.get("api_keys"), list) and response.correlation_id > 0:
            break
    else:
        raise TargetError(
            f"{format_url(address)}: the answer to ApiVersions makes no sense ({_describe_error(body)}); "
            "is this a Kafka broker?"
        )
    versions = dict(_common_versions(body))
    missing = [api for api in REQUIRED_APIS if api not in versions]
    if missing:
        raise TargetError(
            f"{format_url(address)}: does not offer {', '.join(missing)} in a version that Fencepost knows"
        )
    return versions


async def learn_first(client: AdminClient, addresses: Sequence[Address]) -> tuple[Address, dict[str, tuple[int, int]]]:
    """The first address that answers, and the versions there. Raises `TargetError`, with the failure of each address; a
    broker that denies access is the last that is asked, for the others would deny it too."""
    failures: list[str] = []
    for address in addresses:
        try:
            return address, await learn_versions(client, address)
        except AccessDeniedError:
            raise
        except TargetError as error:
            failures.append(str(error))
    raise TargetError(" / ".join(failures))


def _describe_error(body: Body) -> str:
    return f"error {body['error_code']}" if body.get("error_code") else "no list of APIs"


def _common_versions(body: Body) -> Iterator[tuple[str, tuple[int, int]]]:
    for offered in body["api_keys"]:
        name = API_NAMES.get(offered.get("api_key", -1))
        if name is not None and name not in SASL_APIS:
            ours = VERSIONS[name]
            lowest = max(offered.get("min_version", 0), ours[0])
            highest = min(offered.get("max_version", -1), ours[1])
            if lowest <= highest:
                yield name, (lowest, highest)


async def learn_brokers(client: AdminClient, address: Address) -> tuple[dict[int, Address], str]:
    """The brokers by node id, in order, and the name of the cluster."""
    version = client.nearest_version("Metadata", 5)
    body = await _request(client, address, "Metadata", version, {"topics": []})
    brokers = {
        broker["node_id"]: (broker["host"], broker["port"])
        for broker in body.get("brokers") or ()
        if broker.get("host") and "port" in broker
    }
    if not brokers:
        raise TargetError(f"{format_url(address)}: Metadata names no broker; is the cluster still starting?")
    for node, advertised in sorted(brokers.items()):
        try:
            client.pool.release(advertised, await client.pool.acquire(advertised))
        except ConnectionLossError as error:
            if error.loss.cause is LossCause.DENIED:
                raise describe_loss(advertised, error.loss, uses_tls=client.pool.security.uses_tls) from None
            raise TargetError(
                f"{format_url(address)}: broker {node} advertises {format_url(advertised)}, which this machine cannot "
                f"reach ({error}); set its advertised.listeners"
            ) from None
    return dict(sorted(brokers.items())), body.get("cluster_id") or ""


async def ensure_topic(
    client: AdminClient, cluster: Cluster, topic: str, ready_timeout: float
) -> tuple[str | None, bool]:
    """Create the kit's topic if it is missing, and wait until all its partitions have a leader; returns its id, None if
    the target has no topic ids (KIP-516), and whether it was created."""
    address = next(iter(cluster.brokers.values()))
    creates = "CreateTopics" in client.versions
    created = creates and await _create_topic(client, address, topic)
    version = client.nearest_version("Metadata", TOPIC_IDS_SINCE)
    named = {"name": topic, "topic_id": ZERO_UUID} if version >= TOPIC_IDS_SINCE else {"name": topic}
    question: dict[str, object] = {"topics": [named]}
    if version >= 4:
        question["allow_auto_topic_creation"] = not creates
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ready_timeout
    while True:
        body = await _request(client, address, "Metadata", version, question)
        found: Body = next(iter(body.get("topics") or ()), {})
        partitions = found.get("partitions") or ()
        if found.get("error_code") == 0 and partitions and all(part.get("leader_id", -1) >= 0 for part in partitions):
            break
        if loop.time() >= deadline:
            raise TargetError(
                f"{format_url(address)}: topic {topic!r} has no leaders after {ready_timeout:g} s "
                f"(error {found.get('error_code')}); create it with {MIN_PARTITIONS} partitions by hand"
            )
        await asyncio.sleep(RETRY_DELAY_S)
        if creates and found.get("error_code") == Error.UNKNOWN_TOPIC_OR_PARTITION:
            # A Kafka with a ZooKeeper is still deleting a topic of this name that Metadata no longer shows.
            created = await _create_topic(client, address, topic) or created
    if len(partitions) < MIN_PARTITIONS:
        raise TargetError(
            f"{format_url(address)}: topic {topic!r} has {len(partitions)} partitions, the kit needs {MIN_PARTITIONS}; "
            "delete it or add partitions"
        )
    topic_id = found.get("topic_id", ZERO_UUID)
    return (None if topic_id == ZERO_UUID else str(topic_id)), created


def without_topic_ids(versions: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The versions that name topics instead of using ids, for a target without topic ids."""
    named = {
        api: (lowest, highest if not names_topics_by_id(api, highest) else MIN_TOPIC_ID_VERSION - 1)
        for api, (lowest, highest) in versions.items()
    }
    return {api: (lowest, highest) for api, (lowest, highest) in named.items() if lowest <= highest}


async def _create_topic(client: AdminClient, address: Address, topic: str) -> bool:
    """Create the topic; returns False if it was there before."""
    version = client.nearest_version("CreateTopics", 4)
    # From version 4 on, -1 is the broker's own default (KIP-464).
    replicas = -1 if version >= 4 else 1
    wanted = {"name": topic, "num_partitions": MIN_PARTITIONS, "replication_factor": replicas}
    body = await _request(client, address, "CreateTopics", version, {"topics": [wanted], "timeout_ms": 10_000})
    for result in body.get("topics") or ():
        if result.get("error_code") not in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
            raise TargetError(
                f"{format_url(address)}: cannot create topic {topic!r}: error {result.get('error_code')} "
                f"{result.get('error_message') or ''}; create it with {MIN_PARTITIONS} partitions by hand"
            )
    return all(result.get("error_code") == Error.NONE for result in body.get("topics") or ())


async def remove_topic(client: AdminClient, cluster: Cluster, topic: str) -> bool:
    """Delete the kit's topic and wait until it is gone; returns whether it is. Raises `ConnectionLossError`."""
    if "DeleteTopics" not in client.versions:
        return False
    address = next(iter(cluster.brokers.values()))
    version = client.nearest_version("DeleteTopics", 4)
    await client.request(address, "DeleteTopics", version, {"topic_names": [topic], "timeout_ms": 10_000})
    version = client.nearest_version("Metadata", 5)
    question: dict[str, object] = {"topics": [{"name": topic}]}
    if version >= 4:
        question["allow_auto_topic_creation"] = False
    for _ in range(MAX_REMOVAL_POLLS):
        body = (await client.request(address, "Metadata", version, question)).body
        if any(found.get("error_code") == Error.UNKNOWN_TOPIC_OR_PARTITION for found in body.get("topics") or ()):
            return True
        await asyncio.sleep(RETRY_DELAY_S)
    return False


async def await_coordinators(
    client: AdminClient, cluster: Cluster, settings: Settings, topic: Body, ready_timeout: float
) -> None:
    """Wait until every partition of the offsets topic has a coordinator that has loaded it. `topic` is the kit's, by
    name and id."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ready_timeout
    for group in probe_groups(settings.offsets_partitions):
        while (error := await _coordinator_error(client, cluster, group, topic)) in COORDINATOR_NOT_READY:
            if loop.time() >= deadline:
                raise TargetError(
                    f"{format_url(next(iter(cluster.brokers.values())))}: the coordinator of group {group!r} is not "
                    f"ready after {ready_timeout:g} s (error {error}); is the broker still starting?"
                )
            await asyncio.sleep(RETRY_DELAY_S)


async def _coordinator_error(client: AdminClient, cluster: Cluster, group: str, topic: Body) -> int:
    """The error of a group's coordinator that is not ready, or 0."""
    first = next(iter(cluster.brokers.values()))
    try:
        error, node = await cluster.find_coordinator(first, (GROUP_KEY, group))
        if error:
            return error
        if "OffsetFetch" not in client.versions:
            return 0
        wanted = [{**topic, "partition_indexes": [0]}]
        version = client.nearest_version("OffsetFetch", 5)
        body: Body = {"group_id": group, "topics": wanted}
        if version >= 8:
            body = {"groups": [{"group_id": group, "topics": wanted}]}
        body = fit_body("OffsetFetchRequest", version, body)
        response = await client.request(cluster.brokers[node], "OffsetFetch", version, body)
    except ConnectionLossError as error:
        raise describe_loss(first, error.loss, uses_tls=client.pool.security.uses_tls) from None
    return next((code for code in error_codes(response.body) if code in COORDINATOR_NOT_READY), 0)


def probe_groups(partitions: int) -> Iterator[str]:
    """The name of a group in each partition of the offsets topic."""
    missing = set(range(partitions))
    for number in count():
        if not missing:
            return
        group = f"fencepost-probe-{number}"
        partition = java_abs_hash(group) % partitions
        if partition in missing:
            missing.remove(partition)
            yield group


async def _request(client: AdminClient, address: Address, api: str, version: int, body: Body) -> Body:
    try:
        return (await client.request(address, api, version, body)).body
    except ConnectionLossError as error:
        raise await explain_hangup(client, address, error.loss) from None
