"""Responses about the cluster: versions, topics, settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.adapters.serve.coordination import OFFSETS_TOPIC, Node, NodeLeadership
from fencepost.adapters.serve.record_apis import DEFAULT_PARTITIONS, LEADER_EPOCH, OFFERED_VERSIONS, Topic, TopicStore
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS
from fencepost.model.wire.primitives import ZERO_UUID

Body: TypeAlias = Mapping[str, Any]

NODE_ID = 0
CLUSTER_ID = "fencepost"

_BROKER_RESOURCE = 4
_TOPIC_RESOURCE = 2
_STATIC_BROKER_CONFIG = 4
_LONG_CONFIG = 5


def api_versions(version: int) -> Body:
    """The response to ApiVersions; UNSUPPORTED_VERSION for an unknown version of it (KIP-511)."""
    known = OFFERED_VERSIONS["ApiVersions"][0] <= version <= OFFERED_VERSIONS["ApiVersions"][1]
    return {
        "error_code": Error.NONE if known else Error.UNSUPPORTED_VERSION,
        "api_keys": [
            {"api_key": API_KEYS[api], "min_version": low, "max_version": high}
            for api, (low, high) in OFFERED_VERSIONS.items()
            if known or api == "ApiVersions"
        ],
    }


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """Nodes that share the lead of the partitions; one of them leads the offsets topic. Any of them takes and gives the
    records of every partition."""

    settings: Settings
    topics: TopicStore
    leadership: NodeLeadership

    def metadata(self, body: Body, version: int, nodes: Sequence[Node]) -> Body:
        """Respond to Metadata with `nodes` as the brokers. A missing topic requested by name is created."""
        wanted = body["topics"]
        if wanted is None or (version == 0 and not wanted):
            found = [self._describe_topic(topic) for topic in self.topics.by_name.values()]
        else:
            may_create = version < 4 or body["allow_auto_topic_creation"]
            found = [
                self._find_or_create(topic["name"], topic.get("topic_id", ZERO_UUID), may_create) for topic in wanted
            ]
        return {
            "brokers": [{"node_id": node.node_id, "host": node.host, "port": node.port} for node in nodes],
            "cluster_id": CLUSTER_ID,
            "controller_id": NODE_ID,
            "topics": found,
        }

    def create_topics(self, body: Body) -> Body:
        """Respond to CreateTopics; settings of topics are ignored."""
        asked = Counter(topic["name"] for topic in body["topics"])
        once = {topic["name"]: topic for topic in body["topics"]}
        twice = {"error_code": Error.INVALID_REQUEST, "error_message": "The topic is named twice."}
        return {
            "topics": [
                {"name": name, **twice} if asked[name] > 1 else self._create_topic(topic, body["validate_only"])
                for name, topic in once.items()
            ]
        }

    def delete_topics(self, body: Body) -> Body:
        """Respond to DeleteTopics. Offsets that groups have committed for a topic stay."""
        rows = [{"name": name, "error_code": self.topics.delete(name)} for name in body["topic_names"]]
        return {"responses": rows}

    def create_partitions(self, body: Body) -> Body:
        """Respond to CreatePartitions; where replicas are to be is ignored, as there is one of each partition."""
        return {"results": [self._grow_topic(topic, body["validate_only"]) for topic in body["topics"]]}

    def _grow_topic(self, topic: Body, validate_only: bool) -> Body:
        error = self.topics.growth_error(topic["name"], topic["count"])
        if error is Error.NONE and not validate_only:
            self.topics.grow(topic["name"], topic["count"])
        return {"name": topic["name"], "error_code": error, "error_message": None}

    def describe_configs(self, body: Body) -> Body:
        """Respond to DescribeConfigs with the coordinator's settings for the broker; topics have none."""
        return {"results": [self._describe_resource(resource) for resource in body["resources"]]}

    def _find_or_create(self, name: str | None, topic_id: str, may_create: bool) -> Body:
        if name is None:
            by_id = self.topics.topic_with_id(topic_id)
            return (
                self._describe_topic(by_id) if by_id else {"error_code": Error.UNKNOWN_TOPIC_ID, "topic_id": topic_id}
            )
        if name == OFFSETS_TOPIC and len(self.leadership.nodes) > 1:
            return {"topic_id": ZERO_UUID, **self.leadership.describe_offsets_topic(self.settings.offsets_partitions)}
        if name not in self.topics.by_name:
            error = self.topics.create(name) if may_create else Error.UNKNOWN_TOPIC_OR_PARTITION
            if error is not Error.NONE:
                return {"error_code": error, "name": name, "topic_id": ZERO_UUID}
        return self._describe_topic(self.topics.by_name[name])

    def _describe_topic(self, topic: Topic) -> Body:
        leaders = map(self.leadership.leader_of, range(len(topic.partitions)))
        return {
            "error_code": Error.NONE,
            "name": topic.name,
            "topic_id": topic.id,
            "partitions": [_describe_partition(index, leader) for index, leader in enumerate(leaders)],
        }

    def _create_topic(self, topic: Body, validate_only: bool) -> Body:
        name, assignments = topic["name"], topic["assignments"]
        count = len(assignments) or topic["num_partitions"]
        if count == -1:
            count = DEFAULT_PARTITIONS
        error = _placement_error(topic) or self.topics.creation_error(name, count)
        if error is Error.NONE and not validate_only:
            error = self.topics.create(name, count)
        if error is not Error.NONE:
            message = error.name.replace("_", " ").capitalize() + "."
            return {"name": name, "error_code": error, "error_message": message}
        made = self.topics.by_name.get(name)
        topic_id = made.id if made else ZERO_UUID
        return {"name": name, "topic_id": topic_id, "num_partitions": count, "replication_factor": 1, "configs": []}

    def _describe_resource(self, resource: Body) -> Body:
        kind, name, keys = resource["resource_type"], resource["resource_name"], resource["configuration_keys"]
        response = {"resource_type": kind, "resource_name": name, "error_code": Error.NONE, "error_message": None}
        if kind == _TOPIC_RESOURCE:
            if name not in self.topics.by_name:
                response["error_code"] = Error.UNKNOWN_TOPIC_OR_PARTITION
            return response
        if kind != _BROKER_RESOURCE or name not in ("", *map(str, self.leadership.nodes)):
            return response | {"error_code": Error.INVALID_REQUEST, "error_message": "No such resource."}
        return response | {
            "configs": [
                {"name": config, "value": str(value), "read_only": True, "config_source": _STATIC_BROKER_CONFIG}
                | {"config_type": _LONG_CONFIG}
                for config, value in broker_configs(self.settings).items()
                if not keys or config in keys
            ]
        }


def broker_configs(settings: Settings) -> dict[str, int]:
    """The settings by their names in Kafka's broker configuration."""
    return {
        "group.min.session.timeout.ms": settings.min_session_timeout,
        "group.max.session.timeout.ms": settings.max_session_timeout,
        "group.initial.rebalance.delay.ms": settings.initial_rebalance_delay,
        "group.max.size": settings.max_group_size,
        "offset.metadata.max.bytes": settings.max_offset_metadata,
        "offsets.retention.minutes": settings.offsets_retention // 60_000,
        "offsets.retention.check.interval.ms": settings.retention_check_interval,
        "offsets.topic.num.partitions": settings.offsets_partitions,
    }


def _placement_error(topic: Body) -> Error:
    """The error of a topic's replica placement on a cluster of one node."""
    assignments = topic["assignments"]
    if not assignments:
        return Error.NONE if topic["replication_factor"] in (1, -1) else Error.INVALID_REPLICATION_FACTOR
    indexes = sorted(one["partition_index"] for one in assignments)
    placed = indexes == list(range(len(indexes))) and all(one["broker_ids"] == [NODE_ID] for one in assignments)
    return Error.NONE if placed else Error.INVALID_REPLICA_ASSIGNMENT


def _describe_partition(index: int, leader: int) -> Body:
    return {
        "partition_index": index,
        "leader_id": leader,
        "leader_epoch": LEADER_EPOCH,
        "replica_nodes": [leader],
        "isr_nodes": [leader],
    }
