"""Offsets and administration: OffsetCommit, TxnOffsetCommit and OffsetFetch, describing, listing and deleting.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# OffsetCommit: the members and generations whose commits succeed in each state of the group
COMMIT-01 MUST: Member commits in Stable
  In Stable, a commit by a member with the current generation succeeds and can be read back.
  [OffsetCommitRequestTest, OffsetFetchRequestTest]
COMMIT-02 MUST: Member commits in PreparingRebalance
  In PreparingRebalance, a commit by a member with the current generation succeeds.
  [Apache Kafka source, client-side assignment proposal]
COMMIT-03 MUST: Member commits in CompletingRebalance
  In CompletingRebalance, a commit by a member with the current generation is answered REBALANCE_IN_PROGRESS and stores
  nothing. [GroupCoordinatorTest, OffsetMetadataManagerTest]
COMMIT-04 MUST: Wrong generation
  In a group with members, a member's commit with another generation is refused with ILLEGAL_GENERATION and stores
  nothing. [OffsetCommitRequestTest, OffsetMetadataManagerTest]
COMMIT-05 MUST: Unknown member id
  A commit with a generation and an unknown or empty member id is refused with UNKNOWN_MEMBER_ID in every state, Empty
  included. [OffsetCommitRequestTest, OffsetMetadataManagerTest]
COMMIT-06 MUST: Fencing before state
  In CompletingRebalance, UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION are decided before REBALANCE_IN_PROGRESS.
  [GroupCoordinatorTest]
COMMIT-07 MUST: Simple commit creates the group
  A commit without member id and generation to an unknown group succeeds and creates a simple group.
  [OffsetCommitRequestTest, GroupCoordinatorTest]
COMMIT-08 MUST: Simple commit in Empty
  In Empty, a commit with generation -1 succeeds, whatever member id or instance id it names.
  [GroupCoordinatorTest, OffsetMetadataManagerTest]
COMMIT-09 MUST: Simple commit among members
  In a group that is not Empty, a commit with generation -1 and no member id is refused with UNKNOWN_MEMBER_ID.
  [OffsetMetadataManagerTest]
COMMIT-10 MUST: Member without a generation
  In a group that is not Empty, a member's commit with generation -1 is refused with ILLEGAL_GENERATION.
  [Apache Kafka source]
COMMIT-11 MUST: Generation in an unknown group
  A commit with a generation to an unknown group is refused with ILLEGAL_GENERATION, in version 9 also with
  GROUP_ID_NOT_FOUND, and does not create the group. [OffsetCommitRequestTest, OffsetMetadataManagerTest]
COMMIT-12 MUST: Empty group id
  For OffsetCommit and OffsetFetch the empty group id is an ordinary one; TxnOffsetCommit refuses it with
  INVALID_GROUP_ID. [GroupCoordinatorTest, OffsetCommitRequestTest]
COMMIT-13 MUST: Unknown topic or partition
  A partition that the cluster does not have gets UNKNOWN_TOPIC_OR_PARTITION (from version 10 on, where no topic has the
  id, UNKNOWN_TOPIC_ID), and the others are handled normally. [Apache Kafka source]
COMMIT-14 MUST: Nothing left to commit
  If no partition is left to commit, the answer carries no group error, no group is created and no session is extended.
  [Apache Kafka source] presumes TIMER-01
COMMIT-15 MUST: Metadata too long; needs metadata-limit; since 3.7.1, KAFKA-16371
  Metadata longer than the limit gets OFFSET_METADATA_TOO_LARGE for its own partition only, and the others are stored.
  [OffsetMetadataManagerTest]
COMMIT-16 MUST: Null metadata
  Null metadata comes back as an empty string. [OffsetAndMetadata.fromRequest]
COMMIT-17 MUST: Any offset
  Every 64-bit offset is stored and returned, also one lower than before. [OffsetMetadataManager.commitOffset]
COMMIT-18 MUST: Leader epoch
  A leader epoch committed from version 6 on is returned by OffsetFetch from version 5 on, and is -1 if none was given.
  [KIP-320, Kafka message schema]
COMMIT-19 MUST: Commit extends the session
  A commit accepted in Stable or PreparingRebalance extends the member's session.
  [GroupCoordinatorTest, OffsetMetadataManagerTest]
COMMIT-20 MUST: Refused commit does not extend
  A refused commit does not extend the session. [OffsetMetadataManager.validateOffsetCommit] presumes TIMER-01
COMMIT-21 MUST: Instance id before generation; since 3.0.0, commit 5dae3648abd, pull request 9958
  From version 7 on, an instance id of another member gets FENCED_INSTANCE_ID and an unknown one UNKNOWN_MEMBER_ID, both
  before the generation is checked. [KIP-345, OffsetMetadataManagerTest] presumes STATIC-06, STATIC-07
COMMIT-22 MUST: Same error everywhere
  An error that concerns the group is the same in every partition that the coordinator was asked about.
  [Apache Kafka source]
COMMIT-23 MUST: Fenced by the next generation; in passing
  Once any member has been given the next generation, nobody's commit with the previous one succeeds.
  [consumer group protocol chapter]
COMMIT-24 MUST: Commits leave the group alone
  A commit changes neither state nor generation nor membership. [OffsetMetadataManager.commitOffset]
COMMIT-25 MUST: Commits are durable; needs restart
  A commit that succeeded is visible to every later fetch and survives a failover. [consumer group protocol chapter]
COMMIT-26 SHOULD: Explicit retention; needs retention
  In versions 2 to 4 an explicit retention time should expire the offset after it, and -1 means the broker's own.
  [OffsetMetadataManagerTest]
COMMIT-27 MAY: Version 0 commit
  A commit of version 0 may be refused with UNSUPPORTED_VERSION. [Kafka message schema]
COMMIT-28 MUST: Simple group can be joined
  A simple group can be joined afterwards and keeps its offsets. [GroupCoordinatorTest, Apache Kafka source]
COMMIT-29 MUST: Removed members cannot commit
  A member that left, expired, was dropped or was fenced cannot commit with its id again.
  [consumer group protocol chapter, OffsetMetadataManagerTest] presumes COMMIT-05
COMMIT-30 SHOULD: Open transaction protects the offset; needs retention, transactions
  While a transaction with an offset of a partition is open, the committed offset of that partition should not expire.
  [KAFKA-14505, OffsetMetadataManagerTest]
COMMIT-31 MUST: Old epoch of a producer; needs transactions
  Once a newer epoch of a producer has ended the transaction of an older one, a transactional commit of the older epoch
  is refused with INVALID_PRODUCER_EPOCH and stores nothing. [KIP-360, KIP-447, Apache Kafka source]
COMMIT-32 MUST: Epochs survive a failover; needs restart, transactions
  A transactional commit of an older epoch is refused after a failover, too. [KIP-360, Apache Kafka source]
COMMIT-33 MUST: Transactional commit in every state; needs transactions
  In every state of the group a transactional commit is accepted from a member with the current generation, and without
  member id, instance id and generation. [KIP-447, KAFKA-18060, OffsetMetadataManagerTest]
COMMIT-34 MUST: Retention spares open transactions; needs retention, transactions
  A clean-up that removes the committed offset of a partition leaves the one that an open transaction has staged for it,
  which is there once the transaction commits. [KAFKA-14505, OffsetMetadataManagerTest]

# OffsetFetch: the offsets read back, by any client and in every state of the group
FETCH-01 MUST: Last commit is returned
  A fetch of a committed partition returns the offset, metadata and leader epoch that were accepted last.
  [OffsetFetchRequestTest]
FETCH-02 MUST: Uncommitted partition
  A fetch of an uncommitted partition returns offset -1, empty metadata and no error, even if the topic does not exist;
  from version 10 on an id that no topic has gets UNKNOWN_TOPIC_ID. [OffsetFetchRequestTest]
FETCH-03 MUST: Fetch from an unknown group
  A fetch from an unknown group returns uncommitted partitions without an error, and never GROUP_ID_NOT_FOUND.
  [OffsetFetchRequestTest, OffsetMetadataManagerTest]
FETCH-04 MUST: Fetch everything
  From version 2 on, a null topic list returns every committed partition and nothing else.
  [KIP-88, OffsetFetchRequestTest] presumes FETCH-01
FETCH-05 MUST: Fetch nothing
  An empty topic list returns no topics. [OffsetFetchRequestTest]
FETCH-06 MUST: Several groups
  From version 8 on, every requested group gets its own entry and its own error. [KIP-709, OffsetFetchRequestTest]
FETCH-07 MUST: No membership needed
  A fetch needs neither membership nor a generation, and works in every state.
  [OffsetFetchRequestTest, Apache Kafka source] presumes FETCH-01
FETCH-08 MUST: Fetch does not extend a session
  A fetch does not extend any session. [OffsetMetadataManager.fetchOffsets] presumes TIMER-01
FETCH-09 MUST: Member fields are ignored
  In version 9 the member id and epoch are ignored for classic groups. [OffsetFetchRequestTest] presumes FETCH-01
FETCH-10 MUST: Stable fetch with a pending transaction; needs transactions
  From version 7 on, a fetch that requires stable offsets answers UNSTABLE_OFFSET_COMMIT and offset -1 for a partition
  with a pending transactional commit, and the others normally. [KIP-447, OffsetMetadataManagerTest]
FETCH-11 MUST: Pending value is invisible; needs transactions
  A fetch that does not require stable offsets returns the last committed value and never a pending one.
  [KIP-447, OffsetMetadataManagerTest]
FETCH-12 MUST: End of the transaction; needs transactions
  After a transaction commits its offset is returned, and after it aborts the old one.
  [OffsetMetadataManagerTest, GroupCoordinatorTest]
FETCH-13 MUST: Deleted offsets are gone
  After its offset or its group was deleted, a partition returns offset -1. [GroupCoordinatorTest]
FETCH-14 MUST: Old versions
  A fetch of version 0 may be refused with UNSUPPORTED_VERSION, and version 1 has no top-level error.
  [Kafka message schema] presumes FETCH-03
FETCH-15 MUST: Fetch creates nothing
  A fetch does not create a group. [OffsetFetchRequestTest] presumes ADMIN-01, ADMIN-15
FETCH-16 MUST: Stable again after a transaction; needs transactions
  Soon after the end of a transaction was accepted, a fetch that requires stable offsets no longer gets
  UNSTABLE_OFFSET_COMMIT because of it. [KIP-447, OffsetMetadataManagerTest]

# DescribeGroups, ListGroups, DeleteGroups and OffsetDelete
ADMIN-01 MUST: Describing an unknown group
  An unknown group is described as Dead and without members: up to version 5 without an error, from version 6 on as
  GROUP_ID_NOT_FOUND with a message. [DescribeGroupsRequestTest, GroupMetadataManagerTest, KIP-1043]
ADMIN-02 MUST: State names
  A description names the states Empty, PreparingRebalance, CompletingRebalance, Stable and Dead exactly so.
  [DescribeGroupsRequestTest]
ADMIN-03 MUST: Describing a Stable group
  In Stable a description shows the type, the selected protocol and each member's id, client id, host, metadata and
  assignment. [DescribeGroupsRequestTest]
ADMIN-04 MUST: Describing a round in progress
  In PreparingRebalance and CompletingRebalance a description shows the members, but no protocol and no metadata.
  [DescribeGroupsRequestTest, GroupMetadataManagerTest]
ADMIN-05 MUST: Describing an Empty group
  An Empty group is described with its former protocol type, and a simple group with an empty one.
  [Apache Kafka source, ListGroupsRequestTest]
ADMIN-06 MUST: Instance ids described
  From version 4 on a description shows instance ids, null for dynamic members.
  [DescribeGroupsRequestTest, GroupCoordinatorTest]
ADMIN-07 MUST: One description per group
  Every group asked for gets one description. [DescribeGroupsRequestTest]
ADMIN-08 MUST: Authorized operations
  From version 3 on, authorized operations are -2147483648 unless they were asked for. [KIP-430]
ADMIN-09 MUST: Pending ids are not described
  Pending ids never show in a description. [GroupMetadataManager.describeGroups]
ADMIN-10 MUST: Looking changes nothing
  Describing and listing groups changes nothing and extends no session. [GroupMetadataManager.describeGroups] presumes
  TIMER-01
ADMIN-11 MUST: Every group is listed
  A list contains every existing group of the node with its protocol type, Empty and simple ones too.
  [ListGroupsRequestTest]
ADMIN-12 MUST: State filter
  From version 4 on, a list shows states and honours a state filter, several values meaning any of them.
  [KIP-518, ListGroupsRequestTest]
ADMIN-13 MUST: Type filter
  From version 5 on, a list shows the type classic and honours a type filter. [KIP-848, ListGroupsRequestTest]
ADMIN-14 MUST: Unknown filter value
  An unknown state or type in a filter gives an empty list and no error. [ListGroupsRequestTest]
ADMIN-15 MUST: Gone groups are not listed
  Deleted and unknown groups are not listed. [ListGroupsRequestTest]
ADMIN-16 MUST: Deleting an unknown group
  Deleting an unknown group gives GROUP_ID_NOT_FOUND. [GroupCoordinatorTest, ClassicGroupTest]
ADMIN-17 MUST: Deleting an active group
  Deleting a group in PreparingRebalance, CompletingRebalance or Stable gives NON_EMPTY_GROUP and changes nothing.
  [DeleteGroupsRequestTest, ClassicGroupTest]
ADMIN-18 MUST: Deleting an Empty group
  Deleting an Empty group succeeds, after which it is described as Dead and its offsets are gone.
  [DeleteGroupsRequestTest, GroupCoordinatorTest]
ADMIN-19 MUST: One result per deleted group
  A deletion is answered per group. [DeleteGroupsRequestTest]
ADMIN-20 MUST: Deleting twice
  Deleting the same group twice gives success and then GROUP_ID_NOT_FOUND. [Apache Kafka source]
ADMIN-21 MUST: Deleting a simple group
  A simple group can be deleted, and so can the one with the empty id. [GroupCoordinatorTest]
ADMIN-22 MUST: Members of a deleted group
  After a deletion, a former member or pending id gets UNKNOWN_MEMBER_ID, and its commits ILLEGAL_GENERATION or
  GROUP_ID_NOT_FOUND. [GroupCoordinatorShard.deleteGroups]
ADMIN-23 MUST: Offset deletion without a group
  Deleting offsets gives INVALID_GROUP_ID for an empty group id and GROUP_ID_NOT_FOUND for an unknown group, at top
  level and without topics. [OffsetDeleteRequestTest]
ADMIN-24 MUST: Offset deletion in a foreign active group
  Deleting offsets of an active group whose type is not "consumer" gives NON_EMPTY_GROUP at top level.
  [ClassicGroupTest, GroupCoordinatorTest]
ADMIN-25 MUST: Offset deletion of a subscribed topic
  Deleting offsets of a topic that an active consumer group subscribes to gives GROUP_SUBSCRIBED_TO_TOPIC and deletes
  nothing. [KIP-496, OffsetDeleteRequestTest]
ADMIN-26 MUST: Offset deletion of another topic
  Deleting offsets of a topic that is not subscribed succeeds, in Stable too. [KIP-496, GroupCoordinatorTest]
ADMIN-27 MUST: Offset deletion in Empty
  Deleting offsets of an Empty group succeeds, whatever it subscribed to. [OffsetDeleteRequestTest]
ADMIN-28 MUST: Offset deletion without an offset
  Deleting the offset of a partition that has none succeeds. [OffsetMetadataManagerTest]
ADMIN-29 MUST: Offset deletion of an unknown partition
  Deleting offsets of a partition that the cluster does not have gives UNKNOWN_TOPIC_OR_PARTITION, unless there is a
  top-level error. [OffsetDeleteRequestTest]
ADMIN-30 MUST: Subscription that cannot be parsed
  While a consumer group with metadata that cannot be parsed is active, every topic counts as subscribed.
  [GroupCoordinatorTest]
ADMIN-31 MUST: Subscriptions add up
  The subscribed topics are the union over all members. [ClassicGroupTest]
ADMIN-32 MUST: Other groups are left alone; needs intrusive
  A deletion of groups or offsets concerns the groups that it names and no other, also for the empty id.
  [KIP-229, KIP-496]
ADMIN-33 SHOULD: Filters without regard to case; since 3.8.0, KAFKA-16095
  A filter on states or types should be honoured without regard to case. [ListGroupsRequestTest] presumes ADMIN-12
ADMIN-34 MUST: Protocol type of pending ids
  A group that has issued member ids and never had a member is described and listed without a protocol type.
  [Apache Kafka source]
ADMIN-35 MUST: Groups with nothing to keep go away; needs retention
  An Empty group without offsets and without an open transaction is removed by one of the next clean-up passes.
  [GroupCoordinatorTest, GroupCoordinatorShardTest]
ADMIN-36 MUST: Open transaction keeps the group; needs retention, transactions
  An Empty group without offsets stays while a transaction that commits offsets of it is open, and they are there when
  the transaction has committed. [KAFKA-14505, OffsetMetadataManagerTest, Apache Kafka source]
"""

RULES = """
api OffsetCommit
  commit.nothing-to-ask UNKNOWN_TOPIC_OR_PARTITION: no partition named exists [COMMIT-14 COMMIT-13]
  commit.unknown-group ILLEGAL_GENERATION: the group does not exist and the commit claims a generation [COMMIT-11]
  commit.empty NONE: the commit claims no generation and the group has no members
    [COMMIT-07 COMMIT-08; partitions COMMIT-22]
  commit.simple-in-active UNKNOWN_MEMBER_ID: the commit claims neither generation nor member and the group has members
    [COMMIT-09]
  commit.unknown-member UNKNOWN_MEMBER_ID: the member id or instance id is not in the group [COMMIT-05 COMMIT-29]
  commit.fenced FENCED_INSTANCE_ID: the instance id belongs to another member id [COMMIT-21]
  commit.other-generation ILLEGAL_GENERATION: the generation is not the group's [COMMIT-04 COMMIT-10 GEN-15]
  commit.completing REBALANCE_IN_PROGRESS: the group waits for its leader's assignments [COMMIT-03]
  commit.version-0 UNSUPPORTED_VERSION: the commit is of version 0, whose offsets lived elsewhere [COMMIT-27]
  commit.preparing NONE: a member commits during the join phase [COMMIT-02]
  commit.stable NONE: a member commits in a stable group [COMMIT-01]

api TxnOffsetCommit
  transaction.nothing-to-ask UNKNOWN_TOPIC_OR_PARTITION: no partition named exists [COMMIT-13]
  transaction.invalid-group INVALID_GROUP_ID: the group id is empty [COMMIT-12]
  transaction.unknown-group ILLEGAL_GENERATION: the group does not exist and the commit claims a generation [COMMIT-11]
  transaction.simple NONE: the commit claims neither generation nor member [COMMIT-33]
  transaction.member NONE: a member commits in its generation [COMMIT-33]
  transaction.fenced UNKNOWN_MEMBER_ID: the member or its generation is not current [COMMIT-05]
  transaction.old-epoch INVALID_PRODUCER_EPOCH: the group knows a newer epoch of the producer [COMMIT-31]
api InitProducerId
  transaction.init-producer NONE: a producer begins an epoch, which ends its open transaction [FETCH-12]
api EndTxn
  transaction.end NONE: a transaction ends [FETCH-12]

api OffsetFetch
  fetch.version-0 UNSUPPORTED_VERSION: the fetch is of version 0, whose offsets lived elsewhere [FETCH-14]
  fetch.unknown-group NONE: the group does not exist [FETCH-03 FETCH-15; epoch COMMIT-18, groups FETCH-06]
  fetch.offsets NONE: the group exists [FETCH-01 FETCH-07; error FETCH-10, offset FETCH-01, metadata FETCH-01, epoch
    COMMIT-18, partitions FETCH-04, groups FETCH-06]

api DescribeGroups
  describe.unknown-group NONE: the group does not exist [ADMIN-01]
  describe.group NONE: the group exists and is not stable
    [ADMIN-02 ADMIN-04 ADMIN-05 ADMIN-34; members ADMIN-04, metadata ADMIN-04, protocol ADMIN-04,
    protocol_type ADMIN-05, groups ADMIN-07, instances ADMIN-06]
  describe.stable NONE: the group is stable [ADMIN-03; state ADMIN-02, groups ADMIN-07, instances ADMIN-06]

api ListGroups
  list.unknown-group NONE: the group does not exist [ADMIN-15]
  list.filtered NONE: a filter leaves the group out [ADMIN-12 ADMIN-13 ADMIN-14]
  list.group NONE: the group exists and passes the filters [ADMIN-11 ADMIN-33 ADMIN-34; state ADMIN-12, type ADMIN-13]

api DeleteGroups
  delete.unknown-group GROUP_ID_NOT_FOUND: the group does not exist [ADMIN-16]
  delete.active NON_EMPTY_GROUP: the group has members [ADMIN-17]
  delete.empty NONE: the group has no members [ADMIN-18 ADMIN-20 ADMIN-21]

api OffsetDelete
  offset-delete.invalid-group INVALID_GROUP_ID: the group id is empty [ADMIN-23]
  offset-delete.unknown-group GROUP_ID_NOT_FOUND: the group does not exist [ADMIN-23]
  offset-delete.active NON_EMPTY_GROUP: the group has members and is not of type consumer [ADMIN-24]
  offset-delete.partitions NONE: the group is empty or of type consumer [ADMIN-26 ADMIN-25 ADMIN-27]
"""
