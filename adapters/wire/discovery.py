"""Discovery and preparation of a target: versions, brokers, settings, the kit's topic and its coordinators."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from fencepost.adapters.address import Address, TargetError, format_url
from fencepost.adapters.security.authentication import HANDSHAKE_VERSION, SASL_APIS, UNSUPPORTED_SASL_MECHANISM
from fencepost.adapters.target import SettingOrigin
from fencepost.adapters.wire.cluster import GROUP_KEY, RETRY_DELAY_S, AdminClient, Cluster, LearnedSettings, error_codes
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, LossCause
from fencepost.adapters.wire.group_requests import GroupRequests
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.groups.messages import MIN_TOPIC_ID_VERSION, names_topics_by_id
from fencepost.model.settings import INT32_MAX, Settings
from fencepost.model.wire.codec import API_NAMES, VERSIONS, fit_body
from fencepost.model.wire.primitives import ZERO_UUID, java_abs_hash
from fencepost.traces.events import Body

# --- Probes of settings that neither the profile nor the cluster tells, in groups of the kit's own.

MAX_PROBED_SIZE = 12
"""The largest size limit of a group that is looked for."""
MAX_PROBED_METADATA = 32_767
"""The longest metadata that are tried: a string of every version can hold them."""
MIN_DELAY_MS = 100
"""A shorter initial delay is not told from the time that a response takes."""
JITTER_MS = 5
"""By how much a measured delay may be too short."""
DELAY_TOLERANCE = 0.2
"""By which share two measurements of one initial delay may differ."""
WARM_UP_S = 3.0
"""How long the target may take, at most, until its responses become no quicker."""
WARM_UP_REQUESTS = 5
"""How many responses in a row, none of them quicker than those before, show that the target is warm."""
MAX_DELAY_S = 10.0
"""How long the first member of a group is waited for."""
PARKED_S = 0.5
"""A request without a response for so long is parked."""
MEMBER_IDS_SINCE = 4
"""The first version of JoinGroup that issues a member id before a member joins (KIP-394)."""
SESSION_TIMEOUTS_MS = (30_000, 10_000, 60_000, 6_000, 300_000, 1_000)
"""Session timeouts one of which a broker accepts."""
DELAY_GROUPS = 3
_NEVER_PARKS = "a JoinGroup during a rebalance is answered at once: the target does not park it"


class UnclearResponseError(Exception):
    """The response to a probe leaves the setting open."""


class SettingsProbe:
    """Measures the settings that `learned` lacks, in groups whose names end in `token`, with commits for `topic` (its
    name and id). What cannot be measured stays unknown.

    A guess never accuses, so it matters how each value is found:

    - The bounds of session timeouts, the largest group and the longest metadata are where the target itself begins to
      refuse. They stand as if told, unless the measurement at the end of the run finds others. Where no refusal is
      found there is no limit: a refusal beyond is then excused, and no admission is accused.
    - The initial rebalance delay is told by time alone. It is an estimate, which excuses a JoinGroup that is answered
      late and accuses none that is answered early; the requirements about it stay unsupported.
    - The retention of offsets and the period of the clean-up are not measured: that an empty group without offsets is
      gone is excused at any time.
    """

    def __init__(self, requests: GroupRequests, learned: LearnedSettings, topic: Body, token: str) -> None:
        self._requests = requests
        self._learned = learned
        self._topic = topic
        self._token = token
        self._groups: list[str] = []

    async def measure(self) -> LearnedSettings:
        """Measure, remove the groups again, and return what is known now."""
        try:
            await self._try(self._warm_up)
            for name, measure in (
                ("min_session_timeout", self._measure_shortest_session),
                ("max_session_timeout", self._measure_longest_session),
                ("initial_rebalance_delay", self._measure_initial_delay),
                ("max_group_size", self._measure_group_size),
                ("max_offset_metadata", self._measure_metadata),
            ):
                if self._learned.lacks(name):
                    await self._try(measure)
        finally:
            await self._requests.remove_groups(self._groups)
        return self._learned

    async def _try(self, measure: Callable[[], Awaitable[None]]) -> None:
        with suppress(ConnectionLossError, TargetError, UnclearResponseError, TimeoutError):
            await measure()  # if it fails, the setting stays unknown, and the report says so

    def _learn(self, origin: SettingOrigin, **values: int) -> None:
        self._learned = self._learned.with_values(origin, **values)

    def _new_group(self) -> str:
        group = f"fencepost-probe-{self._token}-{len(self._groups)}"
        self._groups.append(group)
        return group

    async def _join(self, group: str, member: str, session: int) -> Body:
        body: dict[str, Any] = {
            "group_id": group,
            "session_timeout_ms": session,
            "rebalance_timeout_ms": 60_000,
            "member_id": member,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"}],
            "reason": None,
        }
        return await self._requests.send("JoinGroup", group, body)

    async def _response_s(self) -> float:
        """The seconds that the response to a request takes that waits for nothing: the Heartbeat of nobody."""
        loop, group = asyncio.get_running_loop(), f"fencepost-probe-{self._token}"
        begun = loop.time()
        body = {"group_id": group, "generation_id": 0, "member_id": "nobody", "group_instance_id": None}
        await self._requests.send("Heartbeat", group, body)
        return loop.time() - begun

    async def _warm_up(self) -> None:
        """Send requests until the responses become no quicker: a process that has just begun is slow at first."""
        async with asyncio.timeout(WARM_UP_S):
            quickest, since = await self._response_s(), 0
            while since < WARM_UP_REQUESTS:
                taken = await self._response_s()
                quickest, since = (taken, 0) if taken < quickest else (quickest, since + 1)

    # --- session timeouts ---------------------------------------------------------------------------------------

    async def _accepts_session(self, group: str, session: int) -> bool:
        """Whether the target issues a member id for this session timeout."""
        async with asyncio.timeout(PARKED_S):
            body = await self._join(group, "", session)
        if body.get("error_code") == Error.INVALID_SESSION_TIMEOUT:
            return False
        if body.get("error_code") != Error.MEMBER_ID_REQUIRED:
            raise UnclearResponseError
        await self._requests.leave(group, [body.get("member_id") or ""])
        return True

    async def _acceptable_session(self, group: str) -> int:
        if self._requests.version_of("JoinGroup", 99) < MEMBER_IDS_SINCE:
            raise UnclearResponseError
        for session in SESSION_TIMEOUTS_MS:
            if await self._accepts_session(group, session):
                return session
        raise UnclearResponseError

    async def _measure_shortest_session(self) -> None:
        group = self._new_group()
        accepted = await self._acceptable_session(group)
        if await self._accepts_session(group, 1):
            self._learn(SettingOrigin.UNLIMITED, min_session_timeout=1)
            return
        accepted = await self._last_accepted_session(group, accepted, refused=1)
        self._learn(SettingOrigin.PROBE, min_session_timeout=accepted)

    async def _measure_longest_session(self) -> None:
        group = self._new_group()
        accepted = await self._acceptable_session(group)
        if await self._accepts_session(group, INT32_MAX):
            self._learn(SettingOrigin.UNLIMITED, max_session_timeout=INT32_MAX)
            return
        accepted = await self._last_accepted_session(group, accepted, refused=INT32_MAX)
        self._learn(SettingOrigin.PROBE, max_session_timeout=accepted)

    async def _last_accepted_session(self, group: str, accepted: int, *, refused: int) -> int:
        """The session timeout nearest to a refused one that is accepted, found by bisection; in milliseconds."""
        while abs(accepted - refused) > 1:
            middle = (accepted + refused) // 2
            if await self._accepts_session(group, middle):
                accepted = middle
            else:
                refused = middle
        return accepted

    @property
    def _session(self) -> int:
        """A session timeout that outlasts the probes and is within the known bounds."""
        settings = self._learned.settings()
        return min(max(30_000, settings.min_session_timeout), settings.max_session_timeout)

    # --- the first join -----------------------------------------------------------------------------------------

    async def _obtain_id(self, group: str) -> str:
        """A member id that the target issues beforehand, "" in versions without."""
        if self._requests.version_of("JoinGroup", 99) < MEMBER_IDS_SINCE:
            return ""
        async with asyncio.timeout(MAX_DELAY_S):
            body = await self._join(group, "", self._session)
        if body.get("error_code") != Error.MEMBER_ID_REQUIRED:
            raise UnclearResponseError
        return str(body.get("member_id") or "")

    async def _join_first(self, group: str) -> float:
        """Bring the first member into a group; the seconds until the JoinGroup is answered that lets it in, which is
        the first one unless that only issues an id."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(MAX_DELAY_S):
            begun = loop.time()
            body = await self._join(group, "", self._session)
            if body.get("error_code") == Error.MEMBER_ID_REQUIRED:
                begun = loop.time()
                body = await self._join(group, str(body.get("member_id") or ""), self._session)
        if body.get("error_code") != Error.NONE:
            raise UnclearResponseError
        return loop.time() - begun

    async def _measure_initial_delay(self) -> None:
        """Learn how much longer the first JoinGroup of a group takes than a response that waits for nothing."""
        joined, others = list[float](), list[float]()
        for _ in range(2):
            others.append(await self._response_s())
            groups = [self._new_group() for _ in range(DELAY_GROUPS)]
            joined += await asyncio.gather(*map(self._join_first, groups))
            others.append(await self._response_s())
            if max(joined) < 1.1 * min(joined) + 0.02:
                break
        delay = round_delay(1000 * (min(joined) - max(others)))
        self._learn(SettingOrigin.ESTIMATE, initial_rebalance_delay=delay)
        if not await self._parks_join(groups[0], max(others)):
            self._learned = self._learned.with_remark(_NEVER_PARKS)

    async def _parks_join(self, group: str, response_s: float) -> bool:
        """Whether a newcomer's JoinGroup waits for the member of a group, which does not rejoin."""
        try:
            async with asyncio.timeout(PARKED_S + 3 * response_s):
                await self._join_first(group)
        except (TimeoutError, UnclearResponseError):
            return True
        return False

    # --- limits -------------------------------------------------------------------------------------------------

    async def _measure_group_size(self) -> None:
        """Have more members join a group than a limit in reach allows. A refusal that comes late makes the group look
        larger than it may be, so that the smaller of two measurements counts."""
        first = await self._count_admitted()
        second = await self._count_admitted() if first <= MAX_PROBED_SIZE else first
        if max(first, second) > MAX_PROBED_SIZE:
            self._learn(SettingOrigin.UNLIMITED, max_group_size=INT32_MAX)
        else:
            self._learn(SettingOrigin.PROBE, max_group_size=min(first, second))

    async def _count_admitted(self) -> int:
        """How many members of a new group are not refused, of one more than `MAX_PROBED_SIZE`."""
        group = self._new_group()
        ids = [await self._obtain_id(group) for _ in range(MAX_PROBED_SIZE + 1)]
        patience = PARKED_S + len(ids) * await self._response_s()
        parked = {asyncio.ensure_future(self._join(group, member, self._session)) for member in ids}
        calls = list(parked)
        while parked:
            ended, parked = await asyncio.wait(parked, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if not ended:
                break
        for call in parked:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        try:
            return len(ids) - sum(_is_refused(outcome) for outcome in outcomes)
        finally:
            await self._requests.leave(group, filter(None, ids))

    async def _accepts_metadata(self, group: str, length: int) -> bool:
        partition = {
            "partition_index": 0,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": "m" * length,
        }
        body = {
            "group_id": group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{**self._topic, "partitions": [partition]}],
        }
        response = await self._requests.send("OffsetCommit", group, body, 7)
        codes = [row.get("error_code") for topic in response.get("topics") or () for row in topic.get("partitions", ())]
        if codes not in ([Error.NONE], [Error.OFFSET_METADATA_TOO_LARGE]):
            raise UnclearResponseError
        return codes == [Error.NONE]

    async def _measure_metadata(self) -> None:
        if not self._requests.offers("OffsetCommit"):
            return
        group = self._new_group()
        if await self._accepts_metadata(group, MAX_PROBED_METADATA):
            self._learn(SettingOrigin.UNLIMITED, max_offset_metadata=MAX_PROBED_METADATA)
            return
        accepted, refused = 0, MAX_PROBED_METADATA
        while refused - accepted > 1:
            middle = (accepted + refused) // 2
            if await self._accepts_metadata(group, middle):
                accepted = middle
            else:
                refused = middle
        self._learn(SettingOrigin.PROBE, max_offset_metadata=accepted)


def find_contradictions(before: LearnedSettings, again: LearnedSettings) -> dict[str, tuple[int, int]]:
    """The measured settings of which a second measurement finds another value, with both."""
    both = {
        name: (before.values[name], again.values[name])
        for name, origin in before.origins.items()
        if origin.is_measured and name in again.origins
    }
    return {name: values for name, values in both.items() if not _agree(name, *values)}


def _agree(name: str, one: int, other: int) -> bool:
    if name != "initial_rebalance_delay":
        return one == other
    return abs(one - other) <= max(MIN_DELAY_MS, DELAY_TOLERANCE * max(one, other))


def _is_refused(outcome: Body | BaseException) -> bool:
    """Whether a join found the group full. Raises `UnclearResponseError` if it was refused for another reason."""
    if isinstance(outcome, asyncio.CancelledError):
        return False
    if isinstance(outcome, BaseException) or outcome.get("error_code") not in _JOIN_OUTCOMES:
        raise UnclearResponseError
    return outcome.get("error_code") == Error.GROUP_MAX_SIZE_REACHED


_JOIN_OUTCOMES: Sequence[int] = (Error.NONE, Error.GROUP_MAX_SIZE_REACHED, Error.REBALANCE_IN_PROGRESS)


def round_delay(measured: float) -> int:
    """The initial delay behind a measured one, in milliseconds: the roundest number that is a little less, as the
    measurement is hardly too short; 0 for what is too short to be told from none."""
    if measured < MIN_DELAY_MS:
        return 0
    for quantum in (1_000, 500, 100, 50):
        rounded = int(measured + JITTER_MS) // quantum * quantum
        if rounded >= measured - max(60, 0.1 * measured):
            return rounded
    return int(measured) // 10 * 10


# --- The protocol that a listener wants which hangs up on Kafka's requests: told by its bytes, never guessed.

SECURITY = "put its mechanism and credentials into [security] of a profile"
TLS_HEADS = (b"\x15\x03", b"\x16\x03")
"""The first bytes of TLS: an alert, a handshake."""
HEADS = (
    (b"HTTP/", "speaks HTTP, not Kafka's protocol; check the port"),
    (b"SSH-", "speaks SSH, not Kafka's protocol; check the port"),
)
"""The first bytes of other protocols."""
SASL_TIMEOUT_S = 2.0


class AccessDeniedError(TargetError):
    """The target answers, and TLS or SASL fails."""


def describe_loss(address: Address, loss: ConnectionLoss, *, uses_tls: bool = False) -> TargetError:
    """The `TargetError` that reports a lost connection to the user, by the bytes that came before."""
    url = format_url(address, uses_tls=uses_tls)
    if not uses_tls and loss.head.startswith(TLS_HEADS):
        return TargetError(f"{url}: speaks TLS; write {format_url(address, uses_tls=True)}")
    for head, meaning in HEADS:
        if loss.head.startswith(head):
            return TargetError(f"{url}: {meaning}")
    if uses_tls and loss.cause is LossCause.CLOSED and not loss.advice:
        return TargetError(f"{url}: {loss.reason}; it may want SASL or a client certificate ([security] in a profile)")
    kind = AccessDeniedError if loss.cause is LossCause.DENIED else TargetError
    return kind(f"{url}: {loss.reason}; {loss.advice or loss.cause.value}")


async def explain_hangup(client: AdminClient, address: Address, loss: ConnectionLoss) -> TargetError:
    """As `describe_loss`; a listener that hung up without a word is asked whether it wants SASL."""
    security = client.pool.security
    if loss.cause is LossCause.CLOSED and not loss.head and security.credentials is None:
        mechanisms = await _ask_mechanisms(client, address)
        if mechanisms:
            url = format_url(address, uses_tls=security.uses_tls)
            return TargetError(f"{url}: wants SASL ({', '.join(mechanisms)}); {SECURITY}")
    return describe_loss(address, loss, uses_tls=security.uses_tls)


async def _ask_mechanisms(client: AdminClient, address: Address) -> tuple[str, ...]:
    """The SASL mechanisms that a listener names when asked for an unknown one (KIP-43); none if it wants no SASL."""
    try:
        async with asyncio.timeout(SASL_TIMEOUT_S):
            question = {"mechanism": "NONE"}
            response = await client.request(address, "SaslHandshake", HANDSHAKE_VERSION, question, alone=True)
    except (ConnectionLossError, TimeoutError):
        return ()
    refused = response.body.get("error_code") == UNSUPPORTED_SASL_MECHANISM
    return tuple(response.body.get("mechanisms") or ()) if refused else ()


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
    version = client.nearest_version("Metadata", TOPIC_IDS_SINCE)
    named = {"name": topic, "topic_id": ZERO_UUID} if version >= TOPIC_IDS_SINCE else {"name": topic}
    question: dict[str, object] = {"topics": [named]}
    # A topic that Metadata shows is not created: not every broker says then that it exists. To ask for one by its name
    # may create it, with other partitions, on some brokers even where the request forbids it.
    was_asked = creates and not await _is_listed(client, address, topic)
    created = was_asked and await _create_topic(client, address, topic)
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
        if creates and (not was_asked or found.get("error_code") == Error.UNKNOWN_TOPIC_OR_PARTITION):
            # A Kafka with a ZooKeeper is still deleting a topic of this name that Metadata no longer shows.
            created = await _create_topic(client, address, topic) or created
            was_asked = True
        await asyncio.sleep(RETRY_DELAY_S)
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


async def _is_listed(client: AdminClient, address: Address, topic: str) -> bool:
    """Whether a topic is among all topics."""
    version = client.nearest_version("Metadata", 5)
    body = await _request(client, address, "Metadata", version, {"topics": None if version else []})
    return any(row.get("name") == topic and row.get("error_code") == Error.NONE for row in body.get("topics") or ())


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
