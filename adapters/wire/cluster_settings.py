"""The settings of a cluster: each from the profile, else from the cluster's own words, else unknown until measured."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from fencepost.adapters.address import format_url
from fencepost.adapters.target import SettingOrigin, TargetError
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.cluster import Cluster
from fencepost.adapters.wire.connection import ConnectionLossError
from fencepost.model.errors import error_name
from fencepost.model.settings import SETTING_OF_CONFIG, Settings, kafka_name
from fencepost.traces.events import Body

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
