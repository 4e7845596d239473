"""Requirements of heartbeats and of the poll interval."""

from fencepost.model.catalogue.classic.client.constructors import must, should
from fencepost.model.catalogue.requirement import Requirement

HBT: tuple[Requirement, ...] = (
    must(
        "HBT-01",
        "Heartbeats often enough",
        "A stable member sends heartbeats so often that the coordinator sees one in every session timeout.",
        "KIP-62",
        incidental=True,
    ),
    must(
        "HBT-02",
        "Fields of heartbeats",
        "A Heartbeat carries the current generation, member id and instance id.",
        "ConsumerCoordinatorTest",
        incidental=True,
    ),
    should(
        "HBT-03",
        "Heartbeats before the assignment",
        "A client should send heartbeats between the responses to JoinGroup and SyncGroup.",
        "AbstractCoordinatorTest",
    ),
    should(
        "HBT-04",
        "No heartbeats while joining",
        "A client should send no heartbeat while its JoinGroup is unanswered or it is in no group.",
        "Apache Kafka source",
    ),
    must(
        "HBT-05",
        "Heartbeats until JoinGroup",
        "A client that was told REBALANCE_IN_PROGRESS sends heartbeats until it sends JoinGroup.",
        "KIP-62, Apache Kafka source",
    ),
    must(
        "HBT-06",
        "Poll interval exceeded",
        "A dynamic member that is not polled for longer than its poll interval leaves the group.",
        "KIP-62, PlaintextConsumerPollTest",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    must(
        "HBT-07",
        "Static member exceeds the poll interval",
        "A static member that is not polled for longer than its poll interval sends no LeaveGroup and stops its "
        "heartbeats.",
        "KIP-345",
        needs=(
            "poll-interval",
            "static-membership",
            "driver",
        ),
    ),
    must(
        "HBT-08",
        "Poll after the poll interval",
        "The first poll after an exceeded poll interval reports the partitions as lost and joins with an empty "
        "member id.",
        "PlaintextConsumerPollTest, Apache Kafka source",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    must(
        "HBT-09",
        "Long poll",
        "A single poll that blocks for longer than the poll interval does not exceed it.",
        "PlaintextConsumerPollTest",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    must(
        "HBT-10",
        "Fenced heartbeat",
        "FENCED_INSTANCE_ID in answer to a Heartbeat reaches the application in its next poll.",
        "AbstractCoordinatorTest",
        needs=(
            "static-membership",
            "driver",
        ),
    ),
    should(
        "HBT-11",
        "Heartbeats without answers",
        "A client whose heartbeats are unanswered for a session timeout should look for the coordinator again and "
        "keep its membership.",
        "HeartbeatTest, Apache Kafka source",
    ),
    must(
        "HBT-12",
        "Slow application",
        "Slow processing and slow callbacks stop no heartbeats, as long as they are shorter than the poll interval.",
        "KIP-62, PlaintextConsumerPollTest",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    should(
        "HBT-13",
        "Interval and session",
        "A client should refuse a heartbeat interval that is not shorter than its session timeout.",
        "Apache Kafka source",
        needs=("driver",),
        untestable="a client refuses it before it connects, and the kit does not write configurations",
    ),
    should(
        "HBT-14",
        "Failed heartbeat",
        "A client should repeat a failed Heartbeat after a backoff that is shorter than the interval.",
        "Apache Kafka source",
    ),
    must(
        "HBT-15",
        "Polls without a coordinator",
        "Polls count for the poll interval also while the coordinator cannot be found.",
        "ConsumerCoordinatorTest",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    must(
        "HBT-16",
        "Clocks start anew",
        "Each successful JoinGroup restarts the client's clocks for session and poll interval.",
        "HeartbeatTest",
        needs=(
            "poll-interval",
            "driver",
        ),
    ),
    must(
        "HBT-17",
        "Other errors of heartbeats",
        "GROUP_AUTHORIZATION_FAILED or an unknown error in answer to a Heartbeat does not cost the client its "
        "assignment.",
        "Apache Kafka source",
        needs=("driver",),
    ),
)
