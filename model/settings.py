"""The settings of a group coordinator that its answers depend on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

NEW_MEMBER_TIMEOUT_MS = 300_000
"""How long a first JoinGroup may stay parked (KAFKA-7610); a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds, delays and limits of one target; times in milliseconds. Defaults are Kafka's.

    Source: the broker configuration reference of Apache Kafka, names as in DescribeConfigs.
    """

    min_session_timeout: int = 6_000
    max_session_timeout: int = 1_800_000
    initial_rebalance_delay: int = 3_000
    max_group_size: int = 2_147_483_647
    max_offset_metadata: int = 4_096
    offsets_retention: int = 604_800_000
    retention_check_interval: int = 600_000
    offsets_partitions: int = 50
    new_member_timeout: int = NEW_MEMBER_TIMEOUT_MS


SETTING_OF_CONFIG: Mapping[str, str] = MappingProxyType(
    {
        "group.min.session.timeout.ms": "min_session_timeout",
        "group.max.session.timeout.ms": "max_session_timeout",
        "group.initial.rebalance.delay.ms": "initial_rebalance_delay",
        "group.max.size": "max_group_size",
        "offset.metadata.max.bytes": "max_offset_metadata",
        "offsets.retention.minutes": "offsets_retention",
        "offsets.retention.check.interval.ms": "retention_check_interval",
        "offsets.topic.num.partitions": "offsets_partitions",
    }
)
"""The settings by the names that Kafka gives them; times are in milliseconds unless the name says otherwise."""


INT32_MAX = 2**31 - 1
MOST_LENIENT: Mapping[str, int] = MappingProxyType(
    {
        "min_session_timeout": 0,
        "max_session_timeout": INT32_MAX,
        "max_group_size": INT32_MAX,
        "max_offset_metadata": INT32_MAX,
        "retention_check_interval": 0,
    }
)
"""The values with which the least is wrong: everything is admitted, and an empty group may go at any time. Offsets have
no such value: one that is lost within the minutes of a run is lost."""


def without_guesses(settings: Settings, not_told: Collection[str]) -> Settings:
    """The settings with the most lenient value in place of each that nobody told."""
    return replace(settings, **{name: value for name, value in MOST_LENIENT.items() if name in not_told})


def kafka_name(setting: str) -> str:
    """Kafka's name of a setting, or the setting itself if Kafka has it as a constant."""
    return next((config for config, name in SETTING_OF_CONFIG.items() if name == setting), setting)
