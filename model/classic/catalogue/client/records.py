"""Polls, prefetching, and the bytes of subscriptions and assignments.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# Polls: which of the fetched records are returned, and when
POLL-01 MUST: Records of a poll; needs driver; in passing
  A poll returns at most max.poll.records records, over all partitions together. [KIP-41, KAFKA-15836, FetcherTest]
POLL-02 MUST: Records that are left; needs driver
  Records that were fetched and not returned are kept for later polls. [KIP-41, FetcherTest]
POLL-03 MUST: Order of offsets; needs driver; in passing
  Records of a partition are returned in the order of their offsets, without gaps or repeats relative to the log.
  [FetcherTest]
POLL-04 SHOULD: Full polls; needs driver
  A greedy client should return as many records as are allowed and buffered, in one pass. [KIP-41]
POLL-05 MUST: No starvation; needs driver; in passing
  A partition with buffered records is served after a number of polls that only the other partitions' buffers, their
  number and the limit determine. [KIP-41]
POLL-06 MUST: Bound of the declared rule; needs driver
  A partition waits no longer than the bound of the cursor rule that the client declares.
  [KIP-41, theorems of this project]
POLL-07 MUST: Bound despite refills; needs driver
  The bound holds while other partitions are refilled as fast as the client asks. [KIP-41]
POLL-08 MUST: Cursor survives; needs driver
  The place at which a poll stopped is remembered by the next poll. [KIP-41]
POLL-09 MUST: Paused partitions; needs driver
  Paused partitions are neither returned nor fetched, and lose nothing when they are resumed. [FetcherTest]
POLL-10 MUST: Partitions no longer assigned; needs driver
  Buffered records of a partition that is no longer assigned are never returned. [FetcherTest]
POLL-11 MUST: Records before a seek; needs driver
  Records that do not begin at the current position are never returned. [FetcherTest]
POLL-12 MUST: Gaps and control records; needs driver
  Gaps in the offsets and control records at the limit of a poll neither drop records nor have any fetched again.
  [FetcherTest]
POLL-13 MUST: Positions move with records; needs driver
  A position moves when records are returned, or are skipped since they cannot be returned. [FetcherTest]
POLL-14 SHOULD: Errors of one partition; needs driver
  An error of one partition should not discard the records that the same poll has gathered. [FetcherTest]
POLL-15 SHOULD: No waiting with data; needs driver
  A poll with buffered records should return without waiting for the network. [KIP-41, KafkaConsumerTest]
POLL-16 MAY: Proportional polls; needs driver
  A client may divide a poll equally among the partitions.
  [KIP-41] untestable: a permission to choose another rule, which no poll can break
POLL-17 SHOULD: Limit and fetches; needs driver
  The limit of a poll should have no influence on fetches beyond the prefetch rule.
  [ConsumerConfig documentation] untestable: it takes a client with two configurations side by side
POLL-18 SHOULD: Topics that left; needs driver
  A changed subscription should drop buffered records of topics that left it. [Apache Kafka source]
POLL-19 MUST: Partitions about to be revoked; needs driver, auto-commit
  While an eager member commits before a revocation it returns no record of the partitions concerned.
  [KAFKA-14196, FetcherTest]

# Fetches that are sent ahead
PREFETCH-01 MAY: Prefetch by the total; needs driver
  A client may fetch all partitions when fewer records are retained than a poll returns.
  [KIP-41] untestable: one of several rules that a client may choose from
PREFETCH-02 MAY: Prefetch by the share; needs driver
  A client may fetch a partition that retains less than its share of a poll.
  [KIP-41] untestable: one of several rules that a client may choose from
PREFETCH-03 MUST: Empty partitions are fetched; needs driver
  A partition of which nothing is buffered is fetched within a finite number of polls, whatever the limit and the number
  of partitions. [KIP-41]
PREFETCH-04 MUST: Fetch behind the buffer; needs driver
  A fetch that is sent while records are retained starts behind them. [FetcherTest]
PREFETCH-05 SHOULD: One fetch at a time
  No fetch should be sent for a partition that has one unanswered. [KIP-41, Apache Kafka source]
PREFETCH-06 SHOULD: Bounded buffers; needs driver
  The records that a client retains should be bounded.
  [KIP-41] untestable: buffers are bounded by megabytes, more than a run writes
PREFETCH-07 SHOULD: Fetch before returning; needs driver
  The next fetches should be sent before a poll returns its records. [KIP-41, Apache Kafka source]
PREFETCH-08 MUST: What is not fetched; in passing
  No fetch is sent for a partition that is not assigned, is paused or has no position. [FetcherTest]
PREFETCH-09 MUST: Fetches of retained partitions; needs driver
  A client that resumes at a partition with records left fetches none of that partition, or keeps its bound by another
  rule. [theorems of this project]
PREFETCH-10 SHOULD: Order of fetches
  The order of partitions in fetches should rotate, so that the size limit of a response starves none. [KIP-74, KIP-227]
PREFETCH-11 MAY: Prefetch by emptiness; needs driver
  A client may fetch a partition only when nothing of it is buffered.
  [FetcherTest] untestable: one of several rules that a client may choose from

# The bytes of subscriptions and assignments, which JoinGroup and SyncGroup carry
WIRE-01 MUST: Embedded formats; in passing
  Subscriptions and assignments are encoded as in Kafka's consumer protocol, with the version first.
  [ConsumerProtocolTest]
WIRE-02 MUST: Newer versions
  A newer version than known is read by the newest known layout without its last bytes, and a negative version is an
  error. [ConsumerProtocolTest]
WIRE-03 MUST: Moment of owned partitions; needs cooperative
  Owned partitions are those that are installed when JoinGroup is built, after what precedes it. [KIP-429]
WIRE-04 SHOULD: Sorted lists
  Topics and owned partitions should be written sorted. [Apache Kafka source]
WIRE-05 MUST: Instance id in requests; needs static-membership
  A static member's instance id is in JoinGroup from version 5, SyncGroup and Heartbeat from 3, and OffsetCommit from 7
  on. [KIP-345]
WIRE-06 MUST: Version of cooperative subscriptions; needs cooperative
  Members with the assignor cooperative-sticky write subscriptions of version 1 or later.
  [KIP-429, CooperativeStickyAssignorTest]
"""
