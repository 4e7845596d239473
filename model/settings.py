"""The settings of a group coordinator that its answers depend on."""

from dataclasses import dataclass

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
