"""The requests of a member: SyncGroup, Heartbeat and LeaveGroup.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# SyncGroup: the sync phase, and the assignments that it hands out
SYNC-01 MUST: Empty group id
  A SyncGroup with an empty group id is refused with INVALID_GROUP_ID. [GroupCoordinatorServiceTest]
SYNC-02 MUST: Unknown or Empty group
  A SyncGroup to an unknown or Empty group is refused with UNKNOWN_MEMBER_ID.
  [SyncGroupRequestTest, GroupMetadataManagerTest]
SYNC-03 MUST: Unknown member id
  A SyncGroup with an unknown member id is refused with UNKNOWN_MEMBER_ID before its generation is looked at.
  [SyncGroupRequestTest, GroupMetadataManagerTest]
SYNC-04 MUST: Wrong generation
  A SyncGroup with a lower or a higher generation than the current one is refused with ILLEGAL_GENERATION.
  [SyncGroupRequestTest, GroupMetadataManagerTest]
SYNC-05 MUST: Wrong protocol
  From version 5 on, a protocol type or name other than the group's is refused with INCONSISTENT_GROUP_PROTOCOL, and the
  answer carries neither. [KIP-559, SyncGroupRequestTest]
SYNC-06 MUST: Missing protocol
  From version 5 on, a SyncGroup without protocol type or name is refused with INCONSISTENT_GROUP_PROTOCOL, whatever the
  group. [KIP-559, Apache Kafka source]
SYNC-07 MUST: Old versions need no protocol
  Up to version 4 a SyncGroup needs neither protocol type nor name. [GroupMetadataManagerTest, SyncGroupRequestTest]
SYNC-08 MUST: Generation before protocol
  When both the generation and the protocol are wrong, the answer is ILLEGAL_GENERATION.
  [GroupMetadataManager.validateSyncGroup] presumes SYNC-04, SYNC-05
SYNC-09 MUST: Sync in PreparingRebalance
  In PreparingRebalance, a SyncGroup with the current generation is answered REBALANCE_IN_PROGRESS at once.
  [GroupCoordinatorTest, GroupMetadataManagerTest]
SYNC-10 MUST: Follower waits for the leader
  In CompletingRebalance the SyncGroup of a follower parks until the leader's arrives.
  [SyncGroupRequestTest, GroupMetadataManagerTest]
SYNC-11 MUST: Leader does not wait
  In CompletingRebalance the leader's SyncGroup succeeds without waiting for followers and makes the group Stable.
  [SyncGroupRequestTest]
SYNC-12 MUST: Assignments are handed on exactly
  Each member gets exactly the bytes that the leader gave for its id.
  [client-side assignment proposal, SyncGroupRequestTest]
SYNC-13 MUST: Member left out
  A member that the leader left out succeeds with an empty assignment. [GroupMetadataManagerTest, GroupCoordinatorTest]
SYNC-14 MUST: Assignment for a stranger
  Assignments for ids that are not members are ignored. [GroupMetadataManager.setAndPropagateAssignment]
SYNC-15 MUST: Assignments from a follower
  Assignments in the SyncGroup of a follower are ignored. [client-side assignment proposal]
SYNC-16 MUST: Sync in Stable
  In Stable, a SyncGroup by any member returns the stored assignment at once, as often as it is asked.
  [GroupMetadataManagerTest]
SYNC-17 MUST: Leader syncs again in Stable
  In Stable, a leader's SyncGroup with other assignments changes nothing. [Apache Kafka source] presumes SYNC-16
SYNC-18 MUST: Interrupted sync phase
  A rebalance that starts in CompletingRebalance answers every parked SyncGroup with REBALANCE_IN_PROGRESS and no
  assignment. [GroupMetadataManagerTest, GroupCoordinatorTest]
SYNC-19 MUST: Interrupted assignment is forgotten
  An assignment from an interrupted round is never seen later.
  [GroupMetadataManager.resetAndPropagateAssignmentWithError]
SYNC-20 MUST: Previous generation after Stable
  Once Stable, a SyncGroup with the previous generation is still refused with ILLEGAL_GENERATION.
  [GroupMetadataManagerTest] presumes SYNC-04
SYNC-21 MUST: Protocol in the answer
  From version 5 on, a successful SyncGroup carries the protocol type and name that the JoinGroup answer gave.
  [KIP-559, SyncGroupRequestTest]
SYNC-22 MUST: Errors carry no assignment; in passing
  An error answer to a SyncGroup carries an empty assignment. [Apache Kafka source]
SYNC-23 MUST: Rebalance overtakes the leader; in passing
  If a rebalance begins before the leader's assignment is stored, the leader's SyncGroup is answered
  REBALANCE_IN_PROGRESS and does not succeed. [GroupMetadataManager.classicGroupSyncToClassicGroup]
SYNC-24 MUST: Second sync while one is parked
  When a member repeats a SyncGroup while one is parked, the newer one is answered; the older may never be.
  [GroupMetadataManager.classicGroupSyncToClassicGroup] presumes SYNC-10
SYNC-25 MUST: Answered assignment survives; needs restart
  A SyncGroup that succeeded means that the assignment survives a failover of the coordinator.
  [client-side assignment proposal] presumes FAILOVER-02

# Heartbeat: its response in each state of the group, and its effect on the session
HB-01 MUST: Empty group id
  A Heartbeat with an empty group id is refused with INVALID_GROUP_ID. [GroupCoordinatorServiceTest]
HB-02 MUST: Unknown or Empty group
  A Heartbeat to an unknown or Empty group is refused with UNKNOWN_MEMBER_ID.
  [HeartbeatRequestTest, GroupMetadataManagerTest]
HB-03 MUST: Unknown member id
  A Heartbeat with an unknown member id is refused with UNKNOWN_MEMBER_ID, whatever its generation.
  [HeartbeatRequestTest]
HB-04 MUST: Wrong generation
  A Heartbeat with any generation but the current one is refused with ILLEGAL_GENERATION.
  [HeartbeatRequestTest, GroupMetadataManagerTest]
HB-05 MUST: Heartbeat in Stable
  In Stable a Heartbeat of a member succeeds. [HeartbeatRequestTest]
HB-06 MUST: Heartbeat in PreparingRebalance
  In PreparingRebalance a Heartbeat with the current generation is answered REBALANCE_IN_PROGRESS.
  [HeartbeatRequestTest, GroupMetadataManagerTest]
HB-07 MUST: Heartbeat in CompletingRebalance
  In CompletingRebalance a Heartbeat succeeds for the leader and for followers.
  [KAFKA-10134, HeartbeatRequestTest, GroupMetadataManagerTest]
HB-08 MUST: Heartbeat of a pending id
  A Heartbeat of a pending id is refused with UNKNOWN_MEMBER_ID. [Apache Kafka source]
HB-09 MUST: Heartbeat extends the session
  A Heartbeat that succeeds or is answered REBALANCE_IN_PROGRESS extends the session by a full session timeout.
  [GroupMetadataManagerTest, GroupCoordinatorTest]
HB-10 MUST: Refused Heartbeat does not extend
  A Heartbeat refused with any other error does not extend the session.
  [GroupMetadataManager.classicGroupHeartbeatToClassicGroup] presumes TIMER-01
HB-11 MUST: Rebalance signalled until rejoin
  A member is told REBALANCE_IN_PROGRESS on every Heartbeat until it rejoins or is dropped.
  [client-side assignment proposal]
HB-12 MUST: Heartbeat while loading; needs restart
  While the group is loading, a Heartbeat succeeds, whoever sends it; targets other than Kafka may answer that they are
  not ready. [GroupCoordinatorTest, GroupCoordinatorServiceTest]
HB-13 MUST: Heartbeats do not replace a rejoin
  Heartbeats do not keep a member that fails to rejoin or to sync beyond the rebalance timeout.
  [GroupMetadataManagerTest] presumes JOIN-44, TIMER-12
HB-14 MUST: Instance id before generation; since 3.0.0, commit 5dae3648abd, pull request 9958
  From version 3 on, an instance id of another member gets FENCED_INSTANCE_ID and an unknown one UNKNOWN_MEMBER_ID, both
  before the generation is checked. [KIP-345, GroupMetadataManagerTest] presumes STATIC-06, STATIC-07

# LeaveGroup, single and batched, and its effect on the round in progress
LEAVE-01 MUST: Empty group id
  A LeaveGroup with an empty group id is refused with INVALID_GROUP_ID at top level and no entries, whatever members it
  names. [LeaveGroupRequestTest]
LEAVE-02 MUST: Unknown group
  A LeaveGroup to an unknown group gives every entry UNKNOWN_MEMBER_ID: at top level up to version 2, per entry from
  version 3 on. [LeaveGroupRequestTest, GroupCoordinatorServiceTest]
LEAVE-03 MUST: Unknown member id
  A LeaveGroup of an unknown id gives its entry UNKNOWN_MEMBER_ID and changes nothing. [LeaveGroupRequestTest]
LEAVE-04 MUST: Member leaves
  A LeaveGroup of a member succeeds and removes it at once. [LeaveGroupRequestTest, GroupMetadataManagerTest]
LEAVE-05 MUST: Leaving starts a rebalance
  If others remain when a member leaves in Stable or CompletingRebalance, a rebalance starts. [GroupMetadataManagerTest]
LEAVE-06 MUST: Last member leaves
  When the last member leaves, the group is Empty and its generation is one higher.
  [LeaveGroupRequestTest, GroupMetadataManagerTest]
LEAVE-07 MUST: Leaving completes the join phase
  In PreparingRebalance, a leave completes the join phase if all remaining members have rejoined and no id is pending.
  [GroupMetadataManagerTest]
LEAVE-08 MUST: Leaving keeps the initial delay; needs initial-delay
  During the initial delay a leave does not cut the delay short.
  [GroupMetadataManager.tryCompleteInitialRebalanceElseSchedule]
LEAVE-09 MUST: Parked join of the leaver
  The parked JoinGroup of a member that leaves is answered UNKNOWN_MEMBER_ID with an empty member id.
  [GroupMetadataManager.removeMemberAndUpdateClassicGroup]
LEAVE-10 MUST: Pending id leaves
  A LeaveGroup of a pending id succeeds, and the id is unknown afterwards.
  [GroupMetadataManagerTest, GroupCoordinatorTest]
LEAVE-11 MUST: Entries answered one by one
  From version 3 on, entries are answered one by one and in order with their ids echoed, and a failing entry does not
  stop the others. [KIP-345, GroupMetadataManagerTest]
LEAVE-12 MUST: Same member twice
  A member named twice in one request gives success and then UNKNOWN_MEMBER_ID.
  [GroupMetadataManager.classicGroupLeaveToClassicGroup]
LEAVE-13 MUST: Entry without any id
  An entry with neither member id nor instance id gives UNKNOWN_MEMBER_ID. [LeaveGroupRequestTest]
LEAVE-14 MUST: Removal by instance id
  An entry with an empty member id and a known instance id removes that member, and echoes the empty id.
  [KIP-345, LeaveGroupRequestTest]
LEAVE-15 MUST: Instance id mismatch; since 3.0.0, commit 5dae3648abd, pull request 9958
  In an entry, an unknown instance id gives UNKNOWN_MEMBER_ID and a known one with another member's id gives
  FENCED_INSTANCE_ID. [KIP-345, LeaveGroupRequestTest]
LEAVE-16 MUST: Empty batch
  An empty list of members succeeds without entries and changes nothing.
  [GroupMetadataManager.classicGroupLeaveToClassicGroup]
LEAVE-17 MUST: Leader leaves
  A leader that leaves is replaced by a member that rejoins. [ClassicGroup.remove]
LEAVE-18 MUST: Leave reason is ignored
  The reason sent from version 5 on affects nothing. [KIP-800]
LEAVE-19 MUST: Leaving in CompletingRebalance
  A leave in CompletingRebalance answers the parked SyncGroups of the others with REBALANCE_IN_PROGRESS.
  [GroupCoordinatorTest, GroupMetadataManagerTest]
LEAVE-20 MUST: Leaving needs no generation
  A LeaveGroup needs no generation, and up to version 2 it removes a static member that is named by its id.
  [LeaveGroupRequest.json, GroupMetadataManager.classicGroupLeaveToClassicGroup]
LEAVE-21 MUST: Offsets outlive members
  Leaving does not delete committed offsets. [GroupCoordinatorTest]
LEAVE-22 MUST: Batch empties the group
  A batch that removes all members leaves the group Empty, however many rebalances that is counted as.
  [GroupMetadataManagerTest]
"""

RULES = """
fields sync: assignment SYNC-12, protocol SYNC-21, protocol_type SYNC-21

api SyncGroup
  sync.incomplete INCONSISTENT_GROUP_PROTOCOL: protocol type or name is null in version 5 or later [SYNC-06]
  sync.invalid-group INVALID_GROUP_ID: the group id is empty [SYNC-01]
  sync.unknown-group UNKNOWN_MEMBER_ID: the group does not exist [SYNC-02]
  sync.empty UNKNOWN_MEMBER_ID: the group has no members [SYNC-02]
  sync.unknown-member UNKNOWN_MEMBER_ID: the member id or instance id is not in the group [SYNC-03]
  sync.fenced FENCED_INSTANCE_ID: the instance id belongs to another member id [STATIC-03]
  sync.other-generation ILLEGAL_GENERATION: the generation is not the group's [SYNC-04 SYNC-20 GEN-15]
  sync.other-protocol INCONSISTENT_GROUP_PROTOCOL: protocol type or name differ from the group's
    [SYNC-05; protocol SYNC-05, assignment SYNC-22]
  sync.preparing REBALANCE_IN_PROGRESS: the join phase of a rebalance is under way [SYNC-09]
  sync.follower: a follower syncs before the leader did [SYNC-10 SYNC-15; fields sync]
  sync.leader NONE: the leader brings the assignments [SYNC-11; fields sync]
  sync.stable NONE: the group is stable, so the stored assignment is handed out
    [SYNC-16 SYNC-17; fields sync, assignment SYNC-16]

api Heartbeat
  heartbeat.invalid-group INVALID_GROUP_ID: the group id is empty [HB-01]
  heartbeat.unknown-group UNKNOWN_MEMBER_ID: the group does not exist [HB-02]
  heartbeat.empty UNKNOWN_MEMBER_ID: the group has no members [HB-02 HB-08]
  heartbeat.unknown-member UNKNOWN_MEMBER_ID: the member id or instance id is not in the group [HB-03 HB-08]
  heartbeat.fenced FENCED_INSTANCE_ID: the instance id belongs to another member id [HB-14]
  heartbeat.other-generation ILLEGAL_GENERATION: the generation is not the group's [HB-04 GEN-15]
  heartbeat.preparing REBALANCE_IN_PROGRESS: the join phase of a rebalance is under way [HB-06 HB-11]
  heartbeat.completing NONE: the group waits for its leader's assignments [HB-07]
  heartbeat.stable NONE: the group is stable [HB-05]

api LeaveGroup
  leave.invalid-group INVALID_GROUP_ID: the group id is empty [LEAVE-01]
  leave.unknown-group NONE: the group does not exist [LEAVE-02; echo LEAVE-11]
  leave.member NONE: some entry names a member or a pending id [LEAVE-04 LEAVE-11; fields join, echo LEAVE-11]
  leave.nobody NONE: no entry names a member or a pending id [LEAVE-03; echo LEAVE-11]
"""
