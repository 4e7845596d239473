"""Finding the coordinator and joining: admission, the two steps of a new member, the join phase and its responses.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# FindCoordinator
FIND-01 MUST: Lookup names a usable node
  A lookup of key type 0 for any string succeeds and names a node that then accepts group requests for that group.
  [consumer group protocol chapter, FindCoordinatorRequest.json]
FIND-02 MUST: Lookup creates nothing
  The answer to a lookup does not depend on whether the group exists, and looking a group up does not create it.
  [KafkaApis.getCoordinator] presumes ADMIN-01
FIND-03 MUST: Lookups agree
  Lookups of the same group name the same node for as long as nothing moves, whichever node is asked.
  [consumer group protocol chapter]
FIND-04 MUST: Node follows from the group id; needs second-node
  On Kafka the named node leads partition abs(h) mod n of the offsets topic, where h is the Java string hash of the
  group id and abs(-2^31) counts as 0. [consumer group protocol chapter, GroupCoordinatorServiceTest]
FIND-05 MUST: Batched lookup
  From version 4 on a lookup is answered with one entry per key, each echoing its key and carrying its own error.
  [KIP-699, Kafka message schema]
FIND-06 MUST: Answer layout by version
  A lookup is answered in top-level fields up to version 3, and in the list of coordinators from version 4 on.
  [FindCoordinatorRequest.json]
FIND-07 MUST: Unknown key type
  A lookup with an unknown key type is refused with INVALID_REQUEST. [KafkaApis.getCoordinator]
FIND-08 MUST: No coordinator to name; in passing
  While no coordinator can be named, a lookup is answered COORDINATOR_NOT_AVAILABLE with node -1.
  [FindCoordinatorRequest.json, KafkaApis.getCoordinator]
FIND-09 SHOULD: Lookup of the empty group id
  A lookup of the empty group id should succeed like that of any other. [KafkaApis.getCoordinator]
FIND-10 MUST: Wrong node; needs second-node
  A group request sent to a node that is not the coordinator is answered NOT_COORDINATOR and changes nothing.
  [GroupCoordinatorTest]

# JoinGroup: admission, the two steps of a new member, the join phase and its responses
JOIN-01 MUST: Empty group id
  A JoinGroup with an empty group id is refused with INVALID_GROUP_ID and echoes the member id.
  [GroupCoordinatorServiceTest, GroupCoordinatorTest]
JOIN-02 MUST: Session timeout bounds; needs session-bounds
  A session timeout below the minimum or above the maximum is refused with INVALID_SESSION_TIMEOUT, while both bounds
  themselves are accepted. [GroupCoordinatorServiceTest, GroupCoordinatorTest]
JOIN-03 MUST: Session timeout checked before the group; needs session-bounds
  A bad session timeout is reported also for a group that does not exist, and does not create it.
  [Apache Kafka source] presumes JOIN-02
JOIN-04 MUST: Rebalance timeout is not bounded
  The session timeout limits do not apply to the rebalance timeout. [GroupCoordinatorService.joinGroup]
JOIN-05 MUST: Member id in an unknown group
  A JoinGroup that brings a member id to an unknown group is refused with UNKNOWN_MEMBER_ID, echoes the id and does not
  create the group, with an instance id or without. [GroupMetadataManagerTest, GroupCoordinatorTest]
JOIN-06 MUST: Joining creates the group
  A JoinGroup with an empty member id creates a group that does not exist yet. [GroupMetadataManagerTest]
JOIN-07 MUST: Member id handed out first
  From version 4 on, a dynamic JoinGroup with an empty member id is answered at once with MEMBER_ID_REQUIRED, a fresh id
  and generation -1, in every state. [KIP-394, JoinGroupRequestTest]
JOIN-08 MUST: Old versions join in one step
  Up to version 3, a dynamic JoinGroup with an empty member id never gets MEMBER_ID_REQUIRED: the member is added and
  its request parks. [KIP-394, JoinGroupRequestTest]
JOIN-09 MUST: Handing out an id disturbs nobody
  Handing out a member id neither starts a rebalance nor changes state or generation. [GroupMetadataManagerTest]
JOIN-10 MUST: Handed-out ids are fresh
  Every member id that is handed out was never used before in the group. [KIP-394]
JOIN-11 MUST: Pending id joins
  A JoinGroup with a pending id is accepted as that of a new member under this id. [KIP-394, GroupMetadataManagerTest]
JOIN-12 MUST: Second JoinGroup's protocols and timeouts apply
  For a member that joins in two steps, the protocols and timeouts of the second request are those that count.
  [GroupMetadataManager.classicGroupJoinExistingMember] presumes TIMER-01
JOIN-13 MUST: Pending id gone
  A pending id that left, expired or belongs to a deleted group is refused with UNKNOWN_MEMBER_ID.
  [GroupMetadataManagerTest, GroupCoordinatorTest] presumes TIMER-08, LEAVE-10
JOIN-14 MUST: Pending id with an instance id
  A pending id used together with an instance id is refused; Kafka answers UNKNOWN_SERVER_ERROR.
  [GroupMetadataManagerTest]
JOIN-15 MUST: No protocols in an Empty group
  In an Empty group, an empty protocol type or an empty protocol list is refused with INCONSISTENT_GROUP_PROTOCOL.
  [GroupMetadataManagerTest, GroupCoordinatorTest]
JOIN-16 MUST: Foreign protocol type
  In a group that is not Empty, a different protocol type is refused with INCONSISTENT_GROUP_PROTOCOL.
  [GroupMetadataManagerTest, JoinGroupRequestTest]
JOIN-17 MUST: No common protocol
  In a group that is not Empty, a list without any protocol that all members offer is refused with
  INCONSISTENT_GROUP_PROTOCOL. [GroupMetadataManagerTest, GroupCoordinatorTest]
JOIN-18 MUST: One common protocol suffices
  A single protocol that all members offer is enough to be admitted. [ClassicGroupTest]
JOIN-19 MUST: Protocols before membership
  Unsupported protocols are refused with INCONSISTENT_GROUP_PROTOCOL before the member id is looked at, so an unknown id
  gets that error too. [Apache Kafka source] presumes JOIN-16, JOIN-17
JOIN-20 MUST: Lone member changes its whole list
  A sole member that rejoins with a list disjoint from its stored one is refused with INCONSISTENT_GROUP_PROTOCOL.
  [Apache Kafka source] presumes JOIN-17
JOIN-21 MUST: Refusal changes nothing
  A refused JoinGroup leaves the group as it was. [GroupMetadataManagerTest]
JOIN-22 MUST: Emptied group takes another type
  A group that is Empty again accepts a different protocol type. [ClassicGroup.supportsProtocols]
JOIN-23 MUST: Unknown member id
  A JoinGroup with an id that is neither a member's nor pending is refused with UNKNOWN_MEMBER_ID and echoes the id.
  [JoinGroupRequestTest]
JOIN-24 MUST: New member in Stable
  A new member joining a Stable group is parked and moves the group to PreparingRebalance.
  [JoinGroupRequestTest, GroupMetadataManagerTest]
JOIN-25 MUST: New member in CompletingRebalance
  A new member joining in CompletingRebalance moves the group to PreparingRebalance, and parked SyncGroups are answered
  REBALANCE_IN_PROGRESS. [GroupMetadataManagerTest]
JOIN-26 MUST: Join parks until the phase completes
  In PreparingRebalance the JoinGroup of a member parks until the join phase completes.
  [JoinGroupRequestTest] presumes JOIN-44
JOIN-27 MUST: Phase completes at once
  Outside the initial delay, the join phase completes at once when every member has rejoined and no id is pending.
  [GroupMetadataManagerTest] presumes JOIN-31
JOIN-28 MUST: Pending id holds up the phase
  An outstanding pending id holds up the join phase until it joins, leaves or expires, or until the rebalance timeout.
  [KAFKA-7909, GroupMetadataManagerTest, GroupCoordinatorTest] presumes JOIN-07, LEAVE-07
JOIN-29 MUST: Matching rejoin in CompletingRebalance
  In CompletingRebalance, a member that rejoins with identical protocols is answered at once with the current generation
  and without a rebalance; the leader gets the members again. [GroupMetadataManagerTest]
JOIN-30 MUST: Changed rejoin in CompletingRebalance
  In CompletingRebalance, a member that rejoins with different protocols starts a rebalance. [GroupMetadataManagerTest]
JOIN-31 MUST: Leader rejoins in Stable
  In Stable, a JoinGroup by the leader starts a rebalance even if nothing changed.
  [GroupMetadataManagerTest, GroupCoordinatorTest]
JOIN-32 MUST: Matching follower in Stable
  In Stable, a follower that rejoins with identical protocols is answered at once with the current generation, the
  leader's id and no members, and no rebalance starts. [GroupMetadataManagerTest, JoinGroupRequestTest]
JOIN-33 MUST: Changed follower in Stable
  In Stable, a follower that rejoins with different metadata starts a rebalance. [GroupMetadataManagerTest]
JOIN-34 MUST: Protocol order counts
  The same protocols in another order count as different. [ClassicGroupMemberTest, Apache Kafka source]
JOIN-35 MUST: Timeouts alone do not count
  A rejoin that changes nothing but a timeout counts as identical, and the new timeout is not stored.
  [GroupMetadataManager.classicGroupJoinExistingMember] presumes JOIN-32, TIMER-01
JOIN-36 MUST: One round, one answer
  When a join phase completes, all members that rejoined get the same generation, protocol and leader.
  [GroupMetadataManagerTest, client-side assignment proposal]
JOIN-37 MUST: Members only for the leader
  Only the leader's answer lists the members, all of them, each with its metadata for the selected protocol byte for
  byte; other answers list none. [client-side assignment proposal, JoinGroupRequestTest]
JOIN-38 MUST: Members are complete
  The members listed include the leader itself and static members kept without rejoining.
  [GroupMetadataManagerTest] presumes STATIC-18
JOIN-39 MUST: Answered id is the member's id; in passing
  The member id in a successful answer is the one to use from then on. [Kafka message schema]
JOIN-40 MUST: Protocol type in answers
  From version 7 on, a successful answer carries the protocol type and an error carries none.
  [KIP-559, GroupMetadataManagerTest, GroupCoordinatorTest]
JOIN-41 MUST: Shape of refusals
  A refusal carries generation -1 and no protocol name: empty up to version 6, null from version 7 on.
  [JoinGroupRequestTest] presumes JOIN-23
JOIN-42 MUST: Version 0 rebalance timeout
  In version 0 the session timeout serves as the rebalance timeout. [JoinGroupRequest.json] presumes JOIN-44, TIMER-27
JOIN-43 MUST: Join reason is ignored
  The reason sent from version 8 on, whether null, empty or long, affects nothing. [KIP-800]
JOIN-44 MUST: Rebalance timeout drops the absent
  At the rebalance timeout, dynamic members that have not rejoined are dropped and the others are answered.
  [KIP-62, GroupMetadataManagerTest]
JOIN-45 MUST: Dropped members are unknown
  A member dropped at the rebalance timeout gets UNKNOWN_MEMBER_ID from then on.
  [GroupMetadataManagerTest] presumes JOIN-44
JOIN-46 MUST: Full group refuses newcomers; needs size-limit
  In Stable or CompletingRebalance at the maximum size, a JoinGroup by a non-member is refused with
  GROUP_MAX_SIZE_REACHED and an empty member id. [KIP-389, GroupMetadataManagerTest]
JOIN-47 MUST: Members rejoin a full group; needs size-limit
  Members of a full group can still rejoin it. [GroupMetadataManagerTest, GroupCoordinatorTest] presumes JOIN-31
JOIN-48 MUST: Limit counts parked joins; needs size-limit
  In PreparingRebalance the size limit counts parked joins: the first ones get in and later ones get
  GROUP_MAX_SIZE_REACHED. [KAFKA-9885, GroupMetadataManagerTest]
JOIN-49 MUST: Member refused for size is out; needs size-limit
  A member refused with GROUP_MAX_SIZE_REACHED in PreparingRebalance is no longer in the group.
  [GroupMetadataManagerTest]
JOIN-50 MUST: Pending ids do not count; needs size-limit
  Pending ids do not count towards the size limit. [GroupMetadataManagerTest]
JOIN-51 MUST: Second join while one is parked
  A second JoinGroup of the same member while one is parked does not count twice, and the newer one is answered.
  [ClassicGroup.updateMember]
JOIN-52 MUST: Dropped connection still counts
  A parked JoinGroup whose connection dropped still counts as rejoined. [Apache Kafka source]
JOIN-53 MUST: Former member of an Empty group
  In an Empty group, the id of a former member is refused with UNKNOWN_MEMBER_ID.
  [GroupMetadataManagerTest] presumes JOIN-23
JOIN-54 MUST: Metadata is opaque
  Metadata may be any bytes or none, and comes back unchanged, for every protocol type but "consumer"; there, bytes that
  cannot be parsed should do no harm either. [client-side assignment proposal]
JOIN-55 MUST: Instance ids among the members; since 3.3.2, KAFKA-14422
  From version 5 on, the members listed show their instance ids; a leader that asks in an earlier one gets them without.
  [Kafka message schema, JoinGroupRequestTest]
"""

RULES = """
fields join: generation GEN-02, leader GEN-05, protocol GEN-09, protocol_type GEN-12, members JOIN-37, instances
    JOIN-55, member JOIN-39, skip_assignment STATIC-12

api JoinGroup
  join.invalid-group INVALID_GROUP_ID: the group id is empty [JOIN-01]
  join.invalid-session-timeout INVALID_SESSION_TIMEOUT: the session timeout lies outside the target's bounds
    [JOIN-02 JOIN-03]
  join.unknown-group UNKNOWN_MEMBER_ID: the group does not exist and the request carries a member id [JOIN-05 JOIN-13]
  join.full GROUP_MAX_SIZE_REACHED: the group is at its size limit and the sender does not already hold a place
    [JOIN-46 JOIN-48 STATIC-26]
  join.evicted GROUP_MAX_SIZE_REACHED: a member rejoins after as many others as the limit allows [JOIN-48 JOIN-49]
  join.unsupported-protocols INCONSISTENT_GROUP_PROTOCOL: the protocol type differs or no offered protocol is offered by
    every member [JOIN-17 JOIN-15 JOIN-16 JOIN-19 JOIN-20]
  join.id-required MEMBER_ID_REQUIRED: a dynamic member without an id asks with version 4 or later
    [JOIN-07 JOIN-09; member JOIN-10]
  join.new: a dynamic member without an id asks with a version below 4 [JOIN-08 JOIN-24; fields join]
  join.new-static: a static member without an id comes with an instance id not in use [STATIC-01 STATIC-23; fields join]
  join.pending: the member id was handed out with MEMBER_ID_REQUIRED and is still good [JOIN-11 JOIN-24; fields join]
  join.pending-with-instance UNKNOWN_SERVER_ERROR: an id handed out to a dynamic member comes with an instance id
    [JOIN-14]
  join.unknown-member UNKNOWN_MEMBER_ID: the member id is neither a member nor pending, or the instance id is not in use
    [JOIN-23 JOIN-45 STATIC-07]
  join.fenced FENCED_INSTANCE_ID: the instance id belongs to another member id [STATIC-03 STATIC-06]
  join.preparing: a member rejoins during the join phase [JOIN-26 JOIN-27; fields join]
  join.completing.same-protocols NONE: a member asks again in the sync phase with the same protocols
    [JOIN-29; fields join, generation JOIN-29]
  join.completing.changed-protocols: a member asks in the sync phase with other protocols [JOIN-30; fields join]
  join.stable.leader: the leader rejoins a stable group [JOIN-31; fields join]
  join.stable.same-protocols NONE: a follower rejoins a stable group with the same protocols
    [JOIN-32; fields join, generation JOIN-32]
  join.stable.changed-protocols: a follower rejoins a stable group with other protocols [JOIN-33 JOIN-34; fields join]
  join.replace.preparing: a known instance id comes back without a member id during the join phase
    [STATIC-16 STATIC-02; fields join, member STATIC-24]
  join.replace.completing: a known instance id comes back without a member id during the sync phase
    [STATIC-15 STATIC-02; fields join, member STATIC-24]
  join.replace.stable NONE: a known instance id comes back to a stable group and the vote stays the same
    [STATIC-08 STATIC-02; fields join, generation STATIC-08, leader STATIC-12, members STATIC-12, member STATIC-24,
    skip_assignment STATIC-10]
  join.replace.stable.changed-vote: a known instance id comes back to a stable group and the vote changes
    [STATIC-14; fields join, member STATIC-24]
"""
