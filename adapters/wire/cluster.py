"""The brokers and coordinators of a cluster, and the routing of requests to them."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any

from fencepost.adapters.address import Address, TargetError, format_url
from fencepost.adapters.target import SettingOrigin
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, ConnectionPool, LossCause
from fencepost.model.errors import COORDINATOR_NOT_READY, error_name
from fencepost.model.settings import SETTING_OF_CONFIG, Settings, kafka_name
from fencepost.model.wire.codec import VERSIONS, DecodedResponse, decode_response, encode_request
from fencepost.traces.events import Body

# --- The kit's own requests to a broker, which are not recorded.

CLIENT_ID = "fencepost"


class AdminClient:
    """Sends requests over the connections of `pool`. A response may take `timeout` seconds; `versions` are those that
    target and kit share, empty until they are known."""

    def __init__(self, pool: ConnectionPool, timeout: float) -> None:
        self.pool = pool
        self.versions: Mapping[str, tuple[int, int]] = {}
        self._timeout = timeout
        self._ids = count(1)

    def next_id(self) -> int:
        """Return a correlation id that no request in flight has."""
        return next(self._ids) & 0x7FFF_FFFF

    def nearest_version(self, api: str, preferred: int) -> int:
        """The version nearest to `preferred` that the target has."""
        lowest, highest = self.versions.get(api, VERSIONS[api])
        return max(lowest, min(preferred, highest))

    async def request(
        self, address: Address, api: str, version: int, body: Body, *, fresh: bool = False, alone: bool = False
    ) -> DecodedResponse:
        """Send a request, on a `fresh` connection or on one that carries it `alone` if need be, and return its
        response. Raises `ConnectionLossError` without one, else as `ConnectionPool.acquire`."""
        frame = encode_request(api, version, self.next_id(), CLIENT_ID, body)
        connection = await (self.pool.open_connection(address) if fresh or alone else self.pool.acquire(address))
        try:
            async with asyncio.timeout(self._timeout):
                response = await connection.exchange(frame)
        except TimeoutError:
            loss = ConnectionLoss(LossCause.SILENT, f"no answer to {api} v{version} within {self._timeout:g} s")
            raise ConnectionLossError(loss) from None
        if alone:
            connection.close()
        else:
            self.pool.release(address, connection)
        return decode_response(api, version, response)


def error_codes(body: Body) -> Iterator[int]:
    """Every error code in a response, at any depth."""
    for key, value in body.items():
        if key == "error_code":
            yield value
        elif type(value) is list:
            yield from _codes_in(value)


def _codes_in(items: list[Any]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Mapping):
            yield from error_codes(item)


GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator."""

CoordinatorKey = tuple[int, str]

RETRY_DELAY_S = 0.05
"""Seconds between two attempts."""


def _group_id(body: Body) -> Any:
    return body.get("group_id")


def _fetched_group_id(body: Body) -> Any:
    groups = body.get("groups")
    return groups[0].get("group_id") if groups else body.get("group_id")


def _first_of(field: str) -> Callable[[Body], Any]:
    return lambda body: next(iter(body.get(field) or ()), None)


_GROUP_OF: Mapping[str, Callable[[Body], Any]] = {
    "JoinGroup": _group_id,
    "SyncGroup": _group_id,
    "Heartbeat": _group_id,
    "LeaveGroup": _group_id,
    "OffsetCommit": _group_id,
    "OffsetFetch": _fetched_group_id,
    "OffsetDelete": _group_id,
    "TxnOffsetCommit": _group_id,
    "DescribeGroups": _first_of("groups"),
    "DeleteGroups": _first_of("groups_names"),
}
_TRANSACTIONAL = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"})


def coordinator_key_of(api: str, body: Body) -> CoordinatorKey | None:
    """The key of the coordinator that a request goes to; None if any broker will do."""
    if api in _TRANSACTIONAL:
        kind, name = TRANSACTION_KEY, body.get("transactional_id")
    elif api in _GROUP_OF:
        kind, name = GROUP_KEY, _GROUP_OF[api](body)
    else:
        return None
    return (kind, name) if isinstance(name, str) else None


class Cluster:
    """The brokers of a target by node id, and the coordinators found so far. `ready_timeout` is how many seconds a
    coordinator may take to appear."""

    def __init__(self, client: AdminClient, ready_timeout: float) -> None:
        self.brokers: dict[int, Address] = {}
        self._client = client
        self._ready_timeout = ready_timeout
        self._coordinators: dict[CoordinatorKey, int] = {}
        self.groups: set[str] = set()
        """The groups that channels sent requests about."""
        self.reserved_ids: dict[str, set[str]] = {}
        """The member ids that groups gave with MEMBER_ID_REQUIRED. A rebalance waits for them, and DescribeGroups names
        none of them."""

    def reserve_id(self, key: CoordinatorKey | None, member_id: str | None) -> None:
        """Note a member id that a group gave with MEMBER_ID_REQUIRED, if the response has one."""
        if key is not None and member_id:
            self.reserved_ids.setdefault(key[1], set()).add(member_id)

    def known_address(self, key: CoordinatorKey | None, broker: int | None) -> Address | None:
        """The address that a request goes to; None if its coordinator has to be looked up."""
        if broker is not None:
            return self.brokers.get(broker)
        # A lone broker coordinates every group. Transactions have to be asked for: that makes Kafka create their topic.
        if key is None or (key[0] == GROUP_KEY and len(self.brokers) == 1):
            return next(iter(self.brokers.values()))
        node = self._coordinators.get(key)
        return None if node is None else self.brokers[node]

    async def locate(self, key: CoordinatorKey | None, broker: int | None) -> Address:
        """Find the address that a request goes to. Raises `ConnectionLossError` if its broker is gone."""
        address = self.known_address(key, broker)
        if address is not None:
            return address
        if key is None or broker is not None:
            raise ConnectionLossError(ConnectionLoss(LossCause.UNREACHABLE, f"there is no broker {broker} any more"))
        return await self._locate_coordinator(key)

    async def _locate_coordinator(self, key: CoordinatorKey) -> Address:
        """Look up a coordinator; without one return any broker, which will then respond with the error."""
        loop = asyncio.get_running_loop()
        # Implementations may name no coordinator for the empty group id, however long they are asked.
        deadline = loop.time() + (self._ready_timeout if key[1] else 0)
        while True:
            for address in tuple(self.brokers.values()):
                try:
                    error, node = await self.find_coordinator(address, key)
                except ConnectionLossError:
                    continue
                if error == 0:
                    self._coordinators[key] = node
                    return self.brokers[node]
                if error not in COORDINATOR_NOT_READY:
                    return address
                break
            if loop.time() >= deadline:
                return next(iter(self.brokers.values()))
            await asyncio.sleep(RETRY_DELAY_S)

    async def find_coordinators(self, key: CoordinatorKey) -> set[int]:
        """The nodes that the brokers name as a coordinator; -1 stands for an error, and for a broker that is gone."""
        found = set()
        for address in tuple(self.brokers.values()):
            try:
                error, node = await self.find_coordinator(address, key)
            except ConnectionLossError:
                error, node = -1, -1
            found.add(-1 if error else node)
        return found

    def forget_coordinator(self, key: CoordinatorKey | None) -> None:
        """Forget the node of a coordinator, so that it is looked up again."""
        if key is not None:
            self._coordinators.pop(key, None)

    def replace_brokers(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers, and forget every coordinator."""
        self.brokers = dict(brokers)
        self._coordinators.clear()

    async def find_coordinator(self, address: Address, key: CoordinatorKey) -> tuple[int, int]:
        """Send FindCoordinator; returns the error and the node. Raises `ConnectionLossError`."""
        version = self._client.nearest_version("FindCoordinator", 3)
        kind, name = key
        body: dict[str, Any] = {"key": name} if version < 4 else {"coordinator_keys": [name]}
        if version > 0:
            body["key_type"] = kind
        response = (await self._client.request(address, "FindCoordinator", version, body)).body
        found = response if version < 4 else next(iter(response.get("coordinators") or ()), {})
        error, node, host = found.get("error_code", -1), found.get("node_id", -1), found.get("host")
        if error == 0 and host:
            self.brokers[node] = (host, found.get("port", 0))
        elif error == 0:
            error = -1  # an answer that was cut short
        return error, node


# --- The settings of a cluster: each from the profile, else from the cluster's own words, else unknown until
# measured.

BROKER_RESOURCE = 4
OFFSETS_TOPIC = "__consumer_offsets"
NAMES = tuple(setting.name for setting in fields(Settings))
_WHOLE = re.compile("-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class SettingClaims:
    """What a profile says: values by field of `Settings`, in milliseconds where they are times. With `may_contradict`
    the broker may say otherwise."""

    values: Mapping[str, int] = field(default_factory=dict)
    may_contradict: bool = False


@dataclass(frozen=True, slots=True)
class LearnedSettings:
    """The settings found so far, by field of `Settings`, with their origins; those missing are not known. `remarks`
    say what went wrong while asking."""

    values: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def lacks(self, *names: str) -> bool:
        """Whether one of the settings is not known."""
        return any(name not in self.values for name in names)

    def with_values(self, origin: SettingOrigin, **values: int) -> "LearnedSettings":
        """A copy with further settings of this origin."""
        origins = {**self.origins, **dict.fromkeys(values, origin)}
        return LearnedSettings({**self.values, **values}, origins, self.remarks)

    def told_only(self) -> "LearnedSettings":
        """A copy without what was measured, and without remarks."""
        origins = {name: origin for name, origin in self.origins.items() if not origin.is_measured}
        return LearnedSettings({name: self.values[name] for name in origins}, origins)

    def with_remark(self, remark: str) -> "LearnedSettings":
        """A copy with one more remark."""
        return LearnedSettings(self.values, self.origins, (*self.remarks, remark))

    def settings(self) -> Settings:
        """The settings; an unknown one has Kafka's default, which nothing may depend on."""
        return Settings(**self.values)

    def all_origins(self) -> dict[str, SettingOrigin]:
        """The origin of each setting. The timer of a new member is Kafka's constant unless the profile says so."""
        constant = {"new_member_timeout": SettingOrigin.CONSTANT}
        return {name: self.origins.get(name, constant.get(name, SettingOrigin.NOT_TOLD)) for name in NAMES}


async def ask_settings(client: AdminClient, cluster: Cluster, claims: SettingClaims) -> LearnedSettings:
    """The settings that the profile or the cluster tells. Raises `TargetError` if the profile has an unknown one, or
    contradicts the broker or itself without leave; what the cluster does not tell, or garbles, is no error."""
    unknown = sorted(set(claims.values) - set(NAMES))
    if unknown:
        raise TargetError(f"unknown setting {unknown[0]!r} in the profile; the settings are {', '.join(NAMES)}")
    told, remarks = await _ask_broker(client, cluster, claims)
    _check_agreement(cluster, claims, told)
    learned = LearnedSettings(remarks=tuple(remarks)).with_values(SettingOrigin.BROKER, **told)
    origin = SettingOrigin.OVERRIDE if claims.may_contradict else SettingOrigin.PROFILE
    learned = learned.with_values(origin, **claims.values)
    _check_bounds(cluster, learned)
    if learned.lacks("offsets_partitions"):
        learned = await _ask_offsets_partitions(client, cluster, learned)
    return learned


async def _ask_broker(client: AdminClient, cluster: Cluster, claims: SettingClaims) -> tuple[dict[str, int], list[str]]:
    """What DescribeConfigs tells, by setting, and what was wrong with it. Asked on a connection of its own: a broker
    that does not know the question may hang up."""
    wanted = [
        config for config, name in SETTING_OF_CONFIG.items() if not (claims.may_contradict and name in claims.values)
    ]
    if "DescribeConfigs" not in client.versions:
        return {}, ["DescribeConfigs is not offered"]
    if not wanted:
        return {}, []
    node, address = next(iter(cluster.brokers.items()))
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": str(node), "configuration_keys": wanted}
    version = client.nearest_version("DescribeConfigs", 1)
    try:
        response = await client.request(address, "DescribeConfigs", version, {"resources": [resource]}, alone=True)
    except ConnectionLossError as error:
        return {}, [f"DescribeConfigs: {error.loss.reason}"]
    results = response.body.get("results") or ()
    told = {name: value for result in results for name, value in _read_configs(result)}
    refusals = [f"DescribeConfigs: {error_name(code)}" for each in results if (code := each.get("error_code", 0))]
    if response.findings and not told:
        refusals.append(f"DescribeConfigs: {response.findings[0]}")
    if told.get("min_session_timeout", 0) > told.get("max_session_timeout", 2**31):
        low, high = told.pop("min_session_timeout"), told.pop("max_session_timeout")
        refusals.append(f"DescribeConfigs: a minimum session timeout of {low} above the maximum of {high}")
    return told, refusals


def _read_configs(result: Body) -> Iterator[tuple[str, int]]:
    for config in result.get("configs") or ():
        name, value = config.get("name"), config.get("value")
        if name in SETTING_OF_CONFIG and value is not None and _WHOLE.fullmatch(value) and int(value) >= 0:
            yield SETTING_OF_CONFIG[name], int(value) * (60_000 if name.endswith(".minutes") else 1)


def _check_agreement(cluster: Cluster, claims: SettingClaims, told: Mapping[str, int]) -> None:
    if claims.may_contradict:
        return
    for name, claimed in claims.values.items():
        if name in told and told[name] != claimed:
            raise TargetError(
                f"{_place(cluster)}: the profile says [settings] {name} = {claimed}, but the broker says "
                f"{told[name]} ({kafka_name(name)}); take the line out, or add override = true"
            )


def _check_bounds(cluster: Cluster, learned: LearnedSettings) -> None:
    low, high = (learned.values.get(name) for name in ("min_session_timeout", "max_session_timeout"))
    if low is not None and high is not None and low > high:
        raise TargetError(
            f"{_place(cluster)}: min_session_timeout = {low} ({learned.origins['min_session_timeout']}) is above "
            f"max_session_timeout = {high} ({learned.origins['max_session_timeout']}); correct the profile"
        )


async def _ask_offsets_partitions(client: AdminClient, cluster: Cluster, learned: LearnedSettings) -> LearnedSettings:
    """Count the partitions of Kafka's topic of offsets, if the target has it."""
    version = client.nearest_version("Metadata", 5)
    question: dict[str, object] = {"topics": [{"name": OFFSETS_TOPIC}]}
    if version < 4:
        return learned  # this would create the topic
    question["allow_auto_topic_creation"] = False
    address = next(iter(cluster.brokers.values()))
    try:
        body = (await client.request(address, "Metadata", version, question, alone=True)).body
    except ConnectionLossError:
        return learned
    found: Body = next(iter(body.get("topics") or ()), {})
    partitions = len(found.get("partitions") or ())
    if found.get("error_code") or found.get("name") != OFFSETS_TOPIC or not partitions:
        return learned
    return learned.with_values(SettingOrigin.BROKER, offsets_partitions=partitions)


def _place(cluster: Cluster) -> str:
    return format_url(next(iter(cluster.brokers.values())))
