"""What lasts longer than a request: static members, timers, generations and failovers.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# Static members: instance ids, replacement and fencing (KIP-345)
STATIC-01 MUST: Static member joins in one step
  A first JoinGroup with an instance id and no member id never gets MEMBER_ID_REQUIRED: the member is added and its
  request parks. [KIP-345, GroupMetadataManagerTest]
STATIC-02 MUST: Replacement
  A JoinGroup with a known instance id and no member id replaces the member under a new id, and the old id stops working
  at once. [GroupMetadataManagerTest]
STATIC-03 MUST: Old id is fenced
  The replaced id gets FENCED_INSTANCE_ID with the instance id, and UNKNOWN_MEMBER_ID without it, from every group API.
  [GroupMetadataManagerTest]
STATIC-04 MUST: Shape of a fenced join
  A JoinGroup refused with FENCED_INSTANCE_ID echoes the id sent and carries generation -1 and no leader.
  [GroupMetadataManagerTest, JoinGroupRequestTest]
STATIC-05 MUST: Parked requests of the old owner
  The old owner's parked JoinGroup and SyncGroup are answered FENCED_INSTANCE_ID when it is replaced.
  [GroupMetadataManagerTest] presumes STATIC-02
STATIC-06 MUST: Instance id of another member
  A known instance id with a different member's id is refused with FENCED_INSTANCE_ID. [GroupMetadataManagerTest]
STATIC-07 MUST: Unknown instance id; since 3.0.0, commit 5dae3648abd, pull request 9958
  An unknown instance id with a member's id is refused with UNKNOWN_MEMBER_ID. [GroupMetadataManagerTest]
STATIC-08 MUST: Replacement without a rebalance
  A replacement in Stable that leaves the selected protocol unchanged is answered at once with the same generation and
  starts no rebalance. [KIP-345, GroupMetadataManagerTest]
STATIC-09 MUST: Assignment is inherited
  The replacement's SyncGroup returns the assignment of the id it replaced.
  [GroupMetadataManagerTest] presumes STATIC-08
STATIC-10 MUST: Leader replaced, version 9
  From version 9 on, replacing the leader answers the new id as leader, all members, and that assignment is to be
  skipped. [KIP-814, GroupMetadataManagerTest] presumes STATIC-08
STATIC-11 MUST: Leader replaced, versions 5 to 8
  In versions 5 to 8, replacing the leader answers the old id as leader and no members.
  [GroupMetadataManagerTest] presumes STATIC-08
STATIC-12 MUST: Follower replaced
  Replacing a follower answers the current leader and no members, and does not ask to skip the assignment.
  [GroupMetadataManagerTest] presumes STATIC-08
STATIC-13 MUST: New subscription on replacement
  A replacement in Stable with changed metadata but the same selected protocol starts no rebalance, and the next round
  lists the new metadata. [Apache Kafka source, GroupMetadataManagerTest] presumes STATIC-08
STATIC-14 MUST: Replacement changes the protocol
  A replacement in Stable that changes the selected protocol starts a rebalance. [GroupMetadataManagerTest]
STATIC-15 MUST: Replacement in CompletingRebalance; since 2.5.0, KAFKA-9801
  A replacement in CompletingRebalance always starts a rebalance, and parked SyncGroups of the others are answered
  REBALANCE_IN_PROGRESS. [GroupMetadataManagerTest]
STATIC-16 MUST: Replacement in PreparingRebalance
  A replacement in PreparingRebalance counts as rejoined, and completes the join phase if it was the last one missing.
  [JoinGroupRequestTest, GroupMetadataManagerTest]
STATIC-17 MUST: Static rejoin
  A JoinGroup with a member's own id and instance id behaves like the rejoin of a dynamic member.
  [GroupMetadataManagerTest]
STATIC-18 MUST: Static member survives the round
  At the rebalance timeout, a static member that did not rejoin stays and is listed among the members.
  [KIP-345, GroupMetadataManagerTest]
STATIC-19 MUST: Absent static leader
  A static leader that did not rejoin loses the leadership to a member that did. [KAFKA-8220, GroupMetadataManagerTest]
STATIC-20 MUST: No generation without a rejoined member
  If only static members remain and none rejoined, no generation is formed until one rejoins or their sessions expire.
  [GroupMetadataManagerTest]
STATIC-21 MUST: Static session expiry
  A static member is removed when its session expires, like any other.
  [KIP-345, GroupMetadataManagerTest] presumes TIMER-01
STATIC-22 MUST: Kept member that never syncs
  A kept static member that never syncs is removed at the sync timeout, even if it heartbeats.
  [GroupMetadataManager.expirePendingSync] presumes TIMER-12
STATIC-23 MUST: Instance id is freed
  An instance id is free again after its member left or expired. [Apache Kafka source] presumes TIMER-01, LEAVE-04
STATIC-24 MUST: Replacement ids are fresh
  Every replacement is given an id different from all before. [GroupMetadataManagerTest]
STATIC-25 MUST: One owner per instance id; in passing
  No two members hold the same instance id. [ClassicGroupTest]
STATIC-26 MAY: Restart in a full group; needs size-limit
  In a full group, a static member that restarts with an empty id is refused with GROUP_MAX_SIZE_REACHED on Kafka; a
  target may let it in. [Apache Kafka source]
STATIC-27 MUST: Instance id may be omitted
  A static member's valid id is accepted without its instance id. [GroupMetadataManagerTest, Apache Kafka source]
STATIC-28 MUST: Replacement survives; needs restart; since 2.6.1, KAFKA-10284
  A replacement without a rebalance survives a failover: the new id is known and the old one is not.
  [KAFKA-10284, GroupMetadataManagerTest] presumes FAILOVER-02
STATIC-29 MUST: Static member leaves
  A LeaveGroup by a static member removes it and starts a rebalance. [GroupMetadataManagerTest]
STATIC-30 MUST: Instance id needs its version
  Below the version that introduced it, an instance id is not required by any API. [JoinGroupRequest.json]

# Timers: sessions, the rebalance timeout, the sync timeout, the initial delay; none fires early
TIMER-01 MUST: Session expiry
  A member with nothing parked is removed once its session timeout has passed without a request that extends the
  session, and not earlier. [KIP-62, GroupMetadataManagerTest]
TIMER-02 MUST: Expiry starts a rebalance
  An expiry in Stable or CompletingRebalance starts a rebalance for the others; that of the last member leaves the group
  Empty with the next generation. [GroupMetadataManagerTest] presumes TIMER-01, TIMER-24
TIMER-03 MUST: Parked join protects the session
  A member that has completed a round does not expire while its JoinGroup is parked. [GroupMetadataManagerTest]
TIMER-04 MUST: Parked sync protects the session
  A follower does not expire while its SyncGroup is parked. [ClassicGroupMemberTest] presumes SYNC-10
TIMER-05 MUST: Full session after a phase
  A full session is granted from the end of the join phase and from the answer to a parked SyncGroup.
  [GroupMetadataManagerTest]
TIMER-06 MUST: New-member timeout; needs slow
  A new member that has been parked for 300 s is answered UNKNOWN_MEMBER_ID and dropped, whatever its session timeout.
  [KAFKA-7610, GroupMetadataManagerTest] presumes JOIN-44
TIMER-07 MUST: New member needs no session
  A new member's session timeout does not apply while its first JoinGroup is parked. [GroupMetadataManagerTest]
TIMER-08 MUST: Pending id expires
  A pending id is dropped after the session timeout of its request, which completes the join phase if it was the last
  obstacle. [GroupMetadataManagerTest, GroupCoordinatorTest] presumes JOIN-28
TIMER-09 MUST: Longest rebalance timeout
  The rebalance timeout of a round is the longest among the members at its start.
  [KIP-62, ClassicGroupTest] presumes JOIN-44
TIMER-10 MUST: Later joiners do not extend
  Members that join during a round do not extend its rebalance timeout. [GroupMetadataManager.prepareRebalance] presumes
  JOIN-44
TIMER-11 MUST: Sync timeout; since 2.8.1, KAFKA-12890
  Members that do not sync within the rebalance timeout after the join phase are removed and a rebalance starts, even
  while they heartbeat. [KAFKA-12890, GroupMetadataManagerTest, GroupCoordinatorTest]
TIMER-12 MUST: Sync timeout in Stable
  The sync timeout applies to followers also after the group is Stable, and the rest are then told to rejoin.
  [GroupMetadataManagerTest] presumes TIMER-11, TIMER-26
TIMER-13 MUST: Leader misses the sync timeout
  If the leader is the one that does not sync in time, parked SyncGroups are answered REBALANCE_IN_PROGRESS.
  [GroupMetadataManagerTest] presumes TIMER-11, TIMER-26
TIMER-14 MUST: Nobody syncs
  If nobody syncs in time the group ends Empty. [GroupMetadataManagerTest] presumes TIMER-11, TIMER-26
TIMER-15 MUST: All sync in time
  If all members sync in time, nothing happens at the sync timeout. [GroupMetadataManagerTest]
TIMER-16 MUST: Initial delay; needs initial-delay
  The first member of an Empty group is answered after the initial delay and not before.
  [KIP-134, GroupMetadataManagerTest]
TIMER-17 SHOULD: Initial delay is extended; needs initial-delay
  A member added during the initial delay should extend it by a whole step, up to the first joiner's rebalance timeout.
  [KIP-134, GroupMetadataManagerTest]
TIMER-18 MUST: Initial delay is not cut short; needs initial-delay
  The initial delay does not end early because all known members have joined. [GroupMetadataManagerTest]
TIMER-19 MUST: Initial delay after emptying; needs initial-delay
  The initial delay applies again when an emptied group is joined. [KIP-134]
TIMER-20 MUST: Pending id and initial delay; needs initial-delay
  A pending id does not lengthen the initial delay. [GroupMetadataManager.tryCompleteInitialRebalanceElseSchedule]
  presumes JOIN-07
TIMER-21 MUST: Expiry during the join phase
  In PreparingRebalance, a member that neither heartbeats nor rejoins is removed at its session timeout, which completes
  the join phase if it was the last obstacle. [GroupMetadataManagerTest] presumes TIMER-01, TIMER-05, TIMER-24
TIMER-22 MUST: Sessions are independent
  Requests of one member do not extend the session of another.
  [GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat] presumes TIMER-01
TIMER-23 SHOULD: No initial delay; needs no-initial-delay
  With an initial delay of 0 a lone member should be answered at once. [GroupMetadataManager.prepareRebalance]
TIMER-24 MUST: Session timeout per member
  Every member has its own session timeout. [JoinGroupRequest.json] presumes TIMER-01
TIMER-25 MUST: Timers of members that are gone
  A timer of a member that was dropped, removed or has left has no effect. [KAFKA-7196]
TIMER-26 MUST: Join timer ends with its phase
  A join timer has no effect once its join phase is complete. [Redpanda source]
TIMER-27 MUST: Timeout of the latest join; since 3.3.2, KAFKA-14009
  The rebalance timeout of a member is the one that its latest JoinGroup named.
  [KAFKA-14009, GroupCoordinatorTest] presumes JOIN-44

# Generations, leaders and the choice of the protocol
GEN-01 MUST: First generation
  The first generation of a new group is 1. [JoinGroupRequestTest]
GEN-02 MUST: Generation counts rounds
  Every completed join phase raises the generation by exactly 1, phases that end Empty included.
  [GroupMetadataManagerTest]
GEN-03 MUST: Only join phases raise the generation; in passing
  Nothing but a completed join phase raises the generation. [ClassicGroup.initNextGeneration]
GEN-04 MUST: One protocol, one leader; in passing
  Without a failover, the successful answers of one generation agree on the protocol and, static replacement apart, on
  the leader. [client-side assignment proposal]
GEN-05 MUST: One leader; in passing
  Static replacement apart, at most one member per generation is told that it is the leader.
  [client-side assignment proposal]
GEN-06 MUST: Leader has rejoined; in passing
  The leader of a round is a member that rejoined in it. [ClassicGroupTest]
GEN-07 MUST: Leader keeps its role
  A leader that rejoined stays the leader. [ClassicGroupTest]
GEN-08 MUST: Protocol suits all; in passing
  The selected protocol is offered by all members. [ClassicGroupTest, consumer group protocol chapter]
GEN-09 MUST: Protocol has most votes
  The selected protocol has the most votes, each member voting for the first of its protocols that all members offer.
  [ClassicGroupTest]
GEN-10 MUST: List order is preference
  The order of a member's protocol list is its order of preference.
  [client-side assignment proposal, ClassicGroupMemberTest]
GEN-11 MUST: Rolling upgrade
  A protocol that one member lacks is not selected; once every member offers and prefers it, it is.
  [client-side assignment proposal]
GEN-12 MUST: Protocol type is the group's; in passing
  The protocol type in an answer is that of the group. [KIP-559]
GEN-13 MUST: Recreated group starts over
  After a group was deleted and created again its first generation is 1. [GroupCoordinatorShard.deleteGroups]
GEN-14 MUST: Emptied group counts on
  A group that emptied but was not deleted goes on counting generations. [GroupMetadataManagerTest]
GEN-15 MUST: Previous generation is fenced; in passing
  Once a member has been given the next generation, SyncGroup, Heartbeat and OffsetCommit with the previous one are
  refused. [consumer group protocol chapter] presumes HB-04, SYNC-04, COMMIT-04
GEN-16 MUST: Assignment of the generation; in passing
  The assignment that a member gets in a generation is the one that its leader sent in that generation.
  [client-side assignment proposal]
GEN-17 MUST: No Stable without the leader; in passing
  A generation never becomes Stable without an accepted SyncGroup of its leader. [GroupMetadataManagerTest]
GEN-18 MUST: Kept member is fenced
  A static member kept without rejoining is fenced by the new generation like any other until it rejoins.
  [GroupMetadataManagerTest]
GEN-19 MUST: Kept members vote
  The votes of static members kept without rejoining count. [ClassicGroup.selectProtocol] presumes STATIC-18
GEN-20 MUST: Members of a round; in passing
  The members of a round are exactly those that rejoined and the static ones that were kept.
  [GroupMetadataManagerTest] presumes GEN-06, STATIC-18
GEN-21 MUST: Pending ids are no members
  A group of which the last member leaves or expires in Stable or CompletingRebalance is Empty at once, whether ids are
  pending or not. [GroupMetadataManager.prepareRebalance]

# Failover: the state of a group after its coordinator was killed or has moved
FAILOVER-01 MUST: Not ready yet; needs restart
  Until the group is loaded, requests are answered that the coordinator is loading, unavailable or elsewhere, except
  that a Heartbeat may succeed and a SyncGroup be told to rejoin.
  [GroupCoordinatorTest, GroupCoordinatorServiceTest] presumes FAILOVER-02, FAILOVER-12
FAILOVER-02 MUST: Stable group comes back; needs restart
  A Stable group comes back Stable with the same generation, members, leader, protocol and assignments.
  [client-side assignment proposal, GroupMetadataManagerTest]
FAILOVER-03 MUST: Failover starts no rebalance; needs restart
  A failover does not start a rebalance by itself. [client-side assignment proposal] presumes FAILOVER-02
FAILOVER-04 MUST: Full session after loading; needs restart
  Every member is granted a full session timeout from the moment its group is loaded.
  [GroupMetadataManagerTest] presumes FAILOVER-02
FAILOVER-05 MUST: Repeated sync after storing; needs restart
  A SyncGroup repeated after the assignment was stored returns it at once.
  [client-side assignment proposal] presumes FAILOVER-02
FAILOVER-06 MUST: Unsynced round is lost; needs restart
  A round whose assignment was not stored is lost: a SyncGroup with its generation is refused with ILLEGAL_GENERATION or
  UNKNOWN_MEMBER_ID. [Apache Kafka source]
FAILOVER-07 MUST: Members of the lost round; needs restart
  The members of the last stored generation are known afterwards, and those new in the lost round are not.
  [GroupMetadataManager.replay] presumes FAILOVER-02
FAILOVER-08 MUST: Pending ids are lost; needs restart
  Pending ids are lost, so a JoinGroup with one is refused with UNKNOWN_MEMBER_ID. [GroupMetadataManager.replay]
FAILOVER-09 MAY: Generation number used again; needs restart
  The next round may be given the number of the lost one.
  [GroupMetadataManager.replay] untestable: a permission: no response can break it
FAILOVER-10 MUST: Generation does not fall back; needs restart
  The generation does not fall below the last one that was synced or ended Empty. [GroupMetadataManagerTest]
FAILOVER-11 MUST: Parked requests end; needs graceful-move
  A parked JoinGroup or SyncGroup is refused or loses its connection, and never succeeds. [GroupMetadataManagerTest]
FAILOVER-12 MUST: Offsets survive; needs restart
  Offsets whose commit succeeded are there after a failover; those of unanswered commits may be.
  [consumer group protocol chapter]
FAILOVER-13 MUST: Matching follower after a failover; needs restart
  A follower that offers one protocol and rejoins unchanged starts no rebalance; one that offers several may.
  [Apache Kafka source] presumes FAILOVER-02
FAILOVER-14 MUST: Empty group comes back; needs restart
  An Empty group with offsets is Empty afterwards, and keeps its generation if it had members once.
  [GroupMetadataManagerTest]
FAILOVER-15 MUST: Deleted group stays deleted; needs restart
  A deleted group stays deleted. [Apache Kafka source]
FAILOVER-16 MUST: Instance ids survive; needs restart
  The member of each instance id is still known after a failover. [GroupMetadataManagerTest]
  presumes FAILOVER-02, STATIC-08
FAILOVER-17 MUST: Group above the limit; needs restart, resize
  A group loaded above the maximum size rebalances until at most the limit remains.
  [KIP-389, GroupMetadataManagerTest] presumes FAILOVER-02, JOIN-44
FAILOVER-18 MUST: Old coordinator rejects requests after a move; needs second-node, graceful-move
  After the group has moved, the old node answers NOT_COORDINATOR for it. [GroupCoordinatorTest]
FAILOVER-19 MUST: Timeouts survive; needs restart
  The session and rebalance timeouts of the members survive a failover.
  [GroupMetadataManagerTest] presumes FAILOVER-02, JOIN-44
FAILOVER-20 MUST: No two coordinators; needs second-node, graceful-move; in passing
  Once the new coordinator has answered, the old one accepts no commit for a generation that it believes current.
  [consumer group protocol chapter]
FAILOVER-21 MUST: Partitions of a departed member are reassigned; needs restart
  The partitions of a member that left are up for assignment again within one session timeout, also if the coordinator
  restarts in between. [franz-go kfake source] presumes FAILOVER-02
FAILOVER-22 MUST: Deleted offsets stay deleted; needs restart
  A committed offset that OffsetDelete has removed is not there after a failover.
  [KIP-496, OffsetMetadataManagerTest] presumes ADMIN-27
"""

RULES = """
no api: timers
  timer.pending-id: a pending id was not used for its session timeout [TIMER-08 JOIN-28; fields join]
  timer.new-member: a first JoinGroup was parked too long [TIMER-06; fields join]
  timer.session: a member was silent for its session timeout [TIMER-01 TIMER-02; fields join]
  timer.parked: a session ran out while a request was parked [TIMER-03 TIMER-04]
  timer.rebalance: the rebalance timeout is over [JOIN-44 TIMER-09 TIMER-27; fields join]
  timer.initial-delay: the initial delay is over [TIMER-16; fields join]
  timer.initial-delay-grows: somebody was added during the initial delay [TIMER-17]
  timer.sync: a member did not sync for the rebalance timeout [TIMER-11 TIMER-13]
  timer.sync-idle: everyone synced in time [TIMER-15]
no api: transactions and clean-up
  transaction.marker: the end of a transaction reaches the group [FETCH-12]
  clean-up: clean-up removes expired offsets or an expired group [COMMIT-26]
  clean-up.overdue: the group has been Empty, without offsets and transactions, for several clean-up intervals
    [ADMIN-35]
no api: loading and unloading
  load.nothing: the log knows nothing of the group [FAILOVER-15 FAILOVER-08]
  load.group: the group is loaded from the log [FAILOVER-02 FAILOVER-14]
  load.oversized: the group loaded is above the size limit [FAILOVER-17]
  unload: the group moves to another node [FAILOVER-11]
no api: timers that are not due
  timer.not-due: a timer is not due [TIMER-01]

no api: the gate of a coordinator that is not ready
  gate.not-running COORDINATOR_NOT_AVAILABLE: the coordinator is not running [FAILOVER-01]
  gate.elsewhere NOT_COORDINATOR: the group is on another node [FAILOVER-01 FAILOVER-18]
  gate.elsewhere.list NONE: the group listed is on another node [FAILOVER-01]
  gate.loading COORDINATOR_LOAD_IN_PROGRESS: the group is being loaded [FAILOVER-01]
  gate.loading.heartbeat NONE: a member is heard while the group is loaded [HB-12 FAILOVER-01]
  gate.loading.sync REBALANCE_IN_PROGRESS: a member asks for its assignment while the group is being loaded
    [FAILOVER-01]
  gate.not-ready: the coordinator is not ready around a failover [FAILOVER-01 HB-12]

api JoinGroup
  failure.creation: the record of a new group is not taken [FAILOVER-01]
  failure.replacement: the record of a replacement is not taken [STATIC-28]
api SyncGroup
  failure.assignment: the record of the assignment is not taken [SYNC-25 FAILOVER-06]
no api: a commit of either API whose write fails
  failure.commit: the records of the offsets are not taken [FAILOVER-12]
api OffsetFetch
  failure.stable-fetch: the records waited for are not taken [FAILOVER-12]
api DeleteGroups
  failure.deletion: the record of the deletion is not taken [FAILOVER-15]
api OffsetDelete
  failure.offset-deletion: the records of the deletion are not taken [FAILOVER-12]
"""
