"""A response as it came, and what of it is allowed beyond the response of the model."""

from dataclasses import dataclass, field

from fencepost.model.classic.coordinator.group_protocol import CLASSIC
from fencepost.model.classic.core.state import JoinResponse
from fencepost.model.classic.messages.parsing import NO_TOPIC_NAMES, Body
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.messages import ListGroupsResponse, Partition, TopicNames

PARTITION_APIS = frozenset({"OffsetCommit", "OffsetDelete", "TxnOffsetCommit"})
"""The APIs that refuse partitions which do not exist."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class ObservedResponse:
    """A response as it came, and the request it belongs to. `names` are those of topics by their ids."""

    api: str
    version: int
    request: Body
    response: Body
    group: str
    names: TopicNames = field(default_factory=lambda: NO_TOPIC_NAMES)


def missing_partitions(response: Body, names: TopicNames) -> frozenset[Partition]:
    """The partitions of which a response says that they do not exist."""
    return frozenset(
        (topic.get("name") or names.get(topic.get("topic_id", ""), ""), row["partition_index"])
        for topic in response.get("topics") or ()
        for row in topic["partitions"]
        if row["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
    )


def is_refused_in_any_way(expected: JoinResponse, observed: ObservedResponse) -> bool:
    """Whether a pending id came with an instance id and got an error, whichever (JOIN-14)."""
    request, error = observed.request, observed.response.get("error_code")
    named = request.get("member_id") and request.get("group_instance_id") is not None
    return bool(expected.error == Error.UNKNOWN_SERVER_ERROR and named and error and error not in COORDINATOR_NOT_READY)


def is_nothing_elsewhere(row: Body) -> bool:
    """Whether a row says that there is no offset in the place that version 0 reads, which is not the group's."""
    return row.get("error_code") == Error.UNKNOWN_TOPIC_OR_PARTITION and row.get("committed_offset") == -1


def is_case_decisive(expected: ListGroupsResponse, observed: ObservedResponse) -> bool:
    """Whether a filter names the state or the type of the group in another case only."""
    states, types = observed.request.get("states_filter") or (), observed.request.get("types_filter") or ()
    in_another_case = (bool(states) and expected.state not in states) or (bool(types) and CLASSIC not in types)
    return expected.listed and in_another_case
