"""Requirements of subscriptions and assignments, which JoinGroup and SyncGroup carry as bytes."""

from fencepost.model.catalogue.classic.client.constructors import must, should
from fencepost.model.catalogue.requirement import Requirement

WIRE: tuple[Requirement, ...] = (
    must(
        "WIRE-01",
        "Embedded formats",
        "Subscriptions and assignments are encoded as in Kafka's consumer protocol, with the version first.",
        "ConsumerProtocolTest",
        incidental=True,
    ),
    must(
        "WIRE-02",
        "Newer versions",
        "A newer version than known is read by the newest known layout without its last bytes, and a negative "
        "version is an error.",
        "ConsumerProtocolTest",
    ),
    must(
        "WIRE-03",
        "Moment of owned partitions",
        "Owned partitions are those that are installed when JoinGroup is built, after what precedes it.",
        "KIP-429",
        needs=("cooperative",),
    ),
    should(
        "WIRE-04",
        "Sorted lists",
        "Topics and owned partitions should be written sorted.",
        "Apache Kafka source",
    ),
    must(
        "WIRE-05",
        "Instance id in requests",
        "A static member's instance id is in JoinGroup from version 5, SyncGroup and Heartbeat from 3, and "
        "OffsetCommit from 7 on.",
        "KIP-345",
        needs=("static-membership",),
    ),
    must(
        "WIRE-06",
        "Version of cooperative subscriptions",
        "Members with the assignor cooperative-sticky write subscriptions of version 1 or later.",
        "KIP-429, CooperativeStickyAssignorTest",
        needs=("cooperative",),
    ),
)
