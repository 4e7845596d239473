"""What real clients do otherwise than the requirements of the catalogue say, held against their source.

The versions are those that the registry has reports of. What is not listed and fails is a false alarm, or news.
"""

from collections.abc import Mapping

SOURCE_OF_FAILURES: Mapping[str, Mapping[str, str]] = {
    "librdkafka": {
        "RR-05": "rdkafka_assignor.c, rd_kafka_group_member_cmp: instance ids count only where both members have one",
        "MEMBER-16": "rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup: on RD_KAFKA_ERR_ACTION_RETRY "
        "rd_kafka_buf_retry repeats it",
        "MEMBER-20": "rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup_memberstate: takes the assignment as it comes, "
        "without a look at the subscription",
        "MEMBER-21": "rdkafka_cgrp.c, rd_kafka_cgrp_metadata_update_check: whoever sees other numbers of "
        "partitions joins again, leader or not",
        "MCOMMIT-12": "rdkafka_cgrp.c, rd_kafka_cgrp_unsubscribe: keeps rkcg_generation_id and rkcg_member_id, with "
        "which every commit is sent",
    },
    "kafka-python": {
        "CALLBACK-11": "consumer/group.py, unsubscribe: leaves the group without the listener",
        "MCOMMIT-11": "consumer/group.py, unsubscribe: its commit is sent when the subscription is gone, as nobody "
        "(coordinator/consumer.py: Generation.NO_GENERATION unless partitions_auto_assigned)",
        "MCOMMIT-18": "consumer/subscription_state.py, assign_from_subscribed: a partition that comes back keeps the "
        "position that it had",
        "HBT-06": "coordinator/base.py, _heartbeat_loop: a member that is not stable, as while it waits for SyncGroup, "
        "stops the loop that counts its poll interval",
        "MEMBER-29": "coordinator/base.py, maybe_leave_group_async: the generation is reset when LeaveGroup has its "
        "response; until then a response to JoinGroup leads to SyncGroup",
        **dict.fromkeys(
            ("ASSIGN-05", "ASSIGN-06", "RR-02"),
            "coordinator/assignors/roundrobin.py, assign: behind a member that does not subscribe it takes a pair of "
            "instance id and member id for a member id, and ends with a KeyError",
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
        "MCOMMIT-11": "consumer/group_coordinator.py, _do_commit_offsets: sends generation -1 after reset_generation",
    },
    "franz-go": {
        "CALLBACK-01": "consumer_group.go: callbacks come from the goroutine that manages the group",
        "COOP-01": "consumer_group.go: whoever fails to heartbeat loses everything and joins again with its old id",
        "COOP-16": "group_balancer.go, AdjustCooperative: claims of the same generation all count",
        "HBT-17": "consumer_group.go: any error of a heartbeat but REBALANCE_IN_PROGRESS ends the session",
        "MEMBER-13": "consumer_group.go, handleSyncResp: keeps the member id at UNKNOWN_MEMBER_ID; handleJoinResp "
        "drops it when the JoinGroup that follows is refused",
        "MEMBER-16": "client.go, handleReqWithCoordinator: a SyncGroup that gets NOT_COORDINATOR is repeated",
        "MEMBER-20": "consumer_group.go, handleSyncResp: does not compare the assignment with the subscription",
        "STICKY-07": "internal/sticky/sticky.go, tryRestickyStales: gives partitions to the older claim",
    },
}
"""For each requirement that a client was seen to break, the place in its source."""
