"""What real clients do otherwise than the requirements of the catalogue say, held against their source.

The versions are those that the registry has reports of. What is not listed and fails is a false alarm, or news.
"""

from collections.abc import Mapping

SOURCE_OF_FAILURES: Mapping[str, Mapping[str, str]] = {
    "librdkafka": {
        "CALLBACK-02": "rdkafka_cgrp.c, rd_kafka_cgrp_revoke_all_rejoin: joins again at once if Metadata tells of "
        "another topic while the callback of a new subscription waits for a poll (RD_KAFKA_CGRP_WAIT_ASSIGN_CALL)",
        "RR-05": "rdkafka_assignor.c, rd_kafka_group_member_cmp: instance ids count only where both members have one",
        "MEMBER-16": "rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup: on RD_KAFKA_ERR_ACTION_RETRY "
        "rd_kafka_buf_retry repeats it",
        "MEMBER-20": "rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup_memberstate: takes the assignment as it comes, "
        "without a look at the subscription",
        "MEMBER-21": "rdkafka_cgrp.c, rd_kafka_cgrp_metadata_update_check: whoever sees other numbers of "
        "partitions joins again, leader or not",
        "MEMBER-30": "rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup: takes a response in the join state WAIT_SYNC, "
        "which rd_kafka_cgrp_revoke_all_rejoin_maybe leaves as it is when max.poll.interval.ms is exceeded",
        **dict.fromkeys(
            ("HBT-02", "MEMBER-13"),
            "rdkafka_cgrp.c, rd_kafka_cgrp_handle_Heartbeat: UNKNOWN_MEMBER_ID empties rkcg_member_id and keeps "
            "rkcg_generation_id, with which heartbeats go on until the application has given up its partitions",
        ),
        "MCOMMIT-09": "rdkafka_request.c, rd_kafka_handle_OffsetCommit_error: REBALANCE_IN_PROGRESS is permanent, and "
        "nothing but a Heartbeat makes the client join again",
        "POLL-03": "rdkafka_partition.c, rd_kafka_toppar_handle_Offset: ListOffsets whose response a seek has outdated "
        "is sent again 500 ms later (rd_kafka_toppar_offset_retry), and sets the position anew",
        "PREFETCH-03": "rdkafka_assignment.c, rd_kafka_assignment_apply_offsets: does nothing for an error of the "
        "whole response to OffsetFetch once its repeats are over, so that the partitions are waited for, and never "
        "asked for",
        "MCOMMIT-03": "rdkafka_cgrp.c, rd_kafka_cgrp_session_timeout_check: empties rkcg_member_id and keeps "
        "rkcg_generation_id, with which the partitions are committed before they are given up",
        "MCOMMIT-12": "rdkafka_cgrp.c, rd_kafka_cgrp_unsubscribe: keeps rkcg_generation_id and rkcg_member_id, with "
        "which every commit is sent",
    },
    "kafka-python": {
        "CALLBACK-11": "consumer/group.py, unsubscribe: leaves the group without the listener",
        **dict.fromkeys(
            ("MCOMMIT-08", "MCOMMIT-11"),
            "consumer/group.py, unsubscribe: its commit is sent when the subscription is gone, as nobody "
            "(coordinator/consumer.py: Generation.NO_GENERATION unless partitions_auto_assigned), though a JoinGroup "
            "has no response yet",
        ),
        "MCOMMIT-18": "consumer/subscription_state.py, assign_from_subscribed: a partition that comes back keeps the "
        "position that it had",
        "HBT-01": "coordinator/consumer.py, need_rejoin: nothing says that a join is under way, so that one which "
        "metadata or a subscription asked for is never completed if a poll ends before the response to SyncGroup",
        "PREFETCH-03": "the same as HBT-01; and consumer/group.py, _poll_once: fetches nothing as long as no "
        "coordinator is found",
        "HBT-06": "coordinator/base.py, _heartbeat_loop: a member that is not stable, as while it waits for SyncGroup, "
        "stops the loop that counts its poll interval",
        "MEMBER-29": "coordinator/base.py, maybe_leave_group_async: the generation is reset when LeaveGroup has its "
        "response; until then a response to JoinGroup leads to SyncGroup",
        **dict.fromkeys(
            ("ASSIGN-05", "ASSIGN-06", "MEMBER-08", "RR-02"),
            "coordinator/assignors/roundrobin.py, assign: behind a member that does not subscribe it takes a pair of "
            "instance id and member id for a member id, and ends with a KeyError instead of SyncGroup",
        ),
    },
    "aiokafka": {
        "MEMBER-07": "consumer/group_coordinator.py, perform_group_join: a response to JoinGroup is dropped if the "
        "subscription has changed meanwhile",
        **dict.fromkeys(
            ("RR-05", "RR-06"),
            "coordinator/assignors/roundrobin.py, assign: deals in the order of the member ids, without a look at "
            "instance ids",
        ),
        "MEMBER-12": "consumer/group_coordinator.py, reset_generation: drops the member id at ILLEGAL_GENERATION too",
        "MEMBER-20": "consumer/group_coordinator.py, _on_join_complete: does not join again after an assignment "
        "that does not fit the subscription",
        "CALLBACK-01": "consumer/group_coordinator.py: the listener is called by the task of the coordinator",
        "CALLBACK-11": "consumer/consumer.py, unsubscribe: leaves the group without the listener",
        "MCOMMIT-08": "consumer/group_coordinator.py, commit_offsets: sends what the application commits whatever the "
        "group does; the generation is the one of JoinGroup while SyncGroup has no response",
        "MCOMMIT-11": "consumer/group_coordinator.py, _do_commit_offsets: sends generation -1 after reset_generation",
        **dict.fromkeys(
            ("MCOMMIT-19", "MEMBER-38"),
            "consumer/group_coordinator.py, _do_fetch_commit_offsets: looks at the errors of partitions alone; where "
            "the whole response has one, no partition is in it, and each counts as one without an offset",
        ),
    },
    "kafkajs": {
        "MEMBER-06": "consumer/consumerGroup.js, recoverFromFetch: the fetcher of each broker joins again when it sees "
        "that partitions were added, so that two joins overlap",
        **dict.fromkeys(
            ("MEMBER-14", "MEMBER-34"),
            "broker/index.js, joinGroup: the id that came with MEMBER_ID_REQUIRED is forgotten if the JoinGroup that "
            "has it fails",
        ),
        "MEMBER-20": "consumer/consumerGroup.js, [PRIVATE.SYNC]: leaves out topics that are not subscribed, and does "
        "not join again",
        "MEMBER-21": "consumer/consumerGroup.js, checkForStaleAssignment: whoever sees more partitions joins again, "
        "leader or not",
        **dict.fromkeys(
            ("MCOMMIT-03", "MCOMMIT-08"),
            "consumer/consumerGroup.js, [PRIVATE.SYNC]: the offset manager of the new generation is made when "
            "SyncGroup has succeeded; until then, and after a SyncGroup that failed, the one before commits",
        ),
    },
    "franz-go": {
        "CALLBACK-01": "consumer_group.go: callbacks come from the goroutine that manages the group",
        "CALLBACK-05": "consumer_group.go, commit: a commit with ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID asks for a "
        "rejoin like any other, which revokes",
        "CALLBACK-07": "consumer_group.go, loopCommit: JoinGroup waits for a periodic commit under way "
        "(noCommitDuringJoinAndSync), the callback before it does not",
        "COOP-01": "consumer_group.go: whoever fails to heartbeat loses everything and joins again with its old id",
        "COOP-16": "group_balancer.go, AdjustCooperative: claims of the same generation all count",
        "HBT-17": "consumer_group.go: any error of a heartbeat but REBALANCE_IN_PROGRESS ends the session",
        "MCOMMIT-09": "consumer_group.go, commitHasFatalMemberError: joins again after a commit at UNKNOWN_MEMBER_ID "
        "and ILLEGAL_GENERATION alone; REBALANCE_IN_PROGRESS is left to the next heartbeat",
        "MEMBER-13": "consumer_group.go, handleSyncResp and heartbeat: keep the member id at UNKNOWN_MEMBER_ID; "
        "handleJoinResp drops it when the JoinGroup that follows is refused",
        "MEMBER-16": "client.go, handleReqWithCoordinator: a SyncGroup that gets NOT_COORDINATOR is repeated",
        "MEMBER-20": "consumer_group.go, handleSyncResp: does not compare the assignment with the subscription",
        "STICKY-07": "internal/sticky/sticky.go, tryRestickyStales: gives partitions to the older claim",
    },
}
"""For each requirement that a client was seen to break, the place in its source."""

SOURCE_OF_REMARKS: Mapping[str, str] = {
    "CALLBACK-09": "AbstractCoordinator.joinGroupIfNeeded: a join stays pending until onJoinComplete returns, so that "
    "the poll after a listener that threw completes it again, with nothing to add; one whose generation "
    "was reset meanwhile is dropped without a callback",
    "COOP-05": "ConsumerCoordinator.rejoinNeededOrPending: a leader joins again when its metadata are not those that "
    "it planned with, whoever keeps what",
    "COOP-18": "CooperativeStickyAssignor.computePartitionsTransferringOwnership: every claim is ownership, whatever "
    "its generation",
    "HBT-04": "AbstractCoordinator.HeartbeatThread.run: reads responses (pollNoWakeup) between its look at the "
    "state and the heartbeat, which one of them may have reset",
    "HBT-14": "Heartbeat.failHeartbeat: backs off for up to retry.backoff.max.ms, a second, whatever the interval is",
    "MCOMMIT-17": "ConsumerCoordinator.autoCommitOffsetsAsync: a commit that failed is due again after "
    "retry.backoff.ms; commitOffsetsAsync: those that wait for a coordinator are sent together once it is "
    "found",
    "MEMBER-17": "AbstractCoordinator.ensureCoordinatorReady: a lookup that failed is waited for within the timer of "
    "the poll alone, and the next poll sends another",
    "POLL-04": "ClassicKafkaConsumer.pollForFetches: responses are read in polls alone, and a poll returns when it "
    "has read the first, or when its time is over",
    "POLL-18": "ClassicKafkaConsumer.subscribe: clears what is buffered of topics that are left; what is under way "
    "comes after that, and the partitions stay assigned until the rebalance",
    "PREFETCH-07": "AbstractFetch.prepareFetchRequests: no second fetch to a broker that has not responded to one",
    "PREFETCH-10": "AbstractFetch.fetchablePartitions: a HashSet, which forgets the order of SubscriptionState",
    "STICKY-13": "AbstractStickyAssignor.allSubscriptionsEqual: keeps claims of topics that are there, whatever "
    "partitions they have",
    "STICKY-14": "AbstractStickyAssignor.performReassignments: gives a partition back to the member that claimed it "
    "before, without a look at its subscription",
    "STICKY-15": "AbstractStickyAssignor.performReassignments: fails if the member that claimed it before has no place "
    "in the assignment",
}
"""For each recommendation that Apache Kafka's Java client was seen not to keep, the place in its source."""
