"""Membership of a client: its requests and its reaction to each response, heartbeats, callbacks and commits.

`fencepost.model.catalogue.notation` explains the notation. A rule named `member.` is a branch of the proved member, a
rule named `client.` one of the reference client around it.
"""

REQUIREMENTS = """
# Membership: the requests of a member, and its reaction to each response
MEMBER-01 MUST: Coordinator lookup
  Before its first group request a client finds the coordinator of its group with FindCoordinator.
  [AbstractCoordinatorTest, Kafka: The Definitive Guide]
MEMBER-02 MUST: First JoinGroup
  The first JoinGroup of a client carries an empty member id. [AbstractCoordinatorTest]
MEMBER-03 MUST: Timeouts in JoinGroup
  JoinGroup carries the configured session timeout and, from version 1 on, the poll interval as rebalance timeout.
  [KIP-62]
MEMBER-04 MUST: Protocols in JoinGroup
  JoinGroup lists each configured assignor once, the most preferred first, under the protocol type consumer.
  [client-side assignment proposal, ConsumerCoordinatorTest]
MEMBER-05 MUST: Required member id
  A client that is answered MEMBER_ID_REQUIRED joins again with the id it was given and runs no callback in between.
  [KIP-394, AbstractCoordinatorTest]
MEMBER-06 MUST: One exchange at a time
  A client has at most one JoinGroup or SyncGroup unanswered, and continues an exchange that its application
  interrupted. [AbstractCoordinatorTest]
MEMBER-07 MUST: SyncGroup of a follower
  A follower answers a successful JoinGroup with a SyncGroup of that generation and member id and no assignments.
  [ConsumerCoordinatorTest]
MEMBER-08 MUST: SyncGroup of a leader
  A leader brings an assignment for every member it was told of, from the assignor that the coordinator chose.
  [ConsumerCoordinatorTest, client-side assignment proposal]
MEMBER-09 MUST: Leader that skips the assignment; needs static-membership
  A leader that is told to skip the assignment sends an empty list and goes on watching metadata.
  [KIP-814, ConsumerCoordinatorTest]
MEMBER-10 MUST: Rebalance told by a heartbeat
  A stable member whose Heartbeat is answered REBALANCE_IN_PROGRESS joins with the same member id in its next poll.
  [KafkaConsumerTest]
MEMBER-11 MUST: Rebalance told by SyncGroup
  A client whose SyncGroup is answered REBALANCE_IN_PROGRESS joins again with the same member id.
  [ConsumerCoordinatorTest]
MEMBER-12 MUST: Generation that is over
  ILLEGAL_GENERATION for the current generation makes a client drop the generation and keep its member id.
  [KAFKA-13419, ConsumerCoordinatorTest]
MEMBER-13 MUST: Membership that is over
  UNKNOWN_MEMBER_ID for the current generation makes a client drop generation and member id, and join with an empty one.
  [ConsumerCoordinatorTest, AbstractCoordinatorTest]
MEMBER-14 MUST: Coordinator that moves or loads
  A lost connection and NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or COORDINATOR_LOAD_IN_PROGRESS cost a client neither
  generation nor member id. [AbstractCoordinatorTest]
MEMBER-15 MUST: Late errors; needs driver, static-membership
  ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID about a request of an older generation changes nothing.
  [AbstractCoordinatorTest]
MEMBER-16 MUST: No second SyncGroup
  After a SyncGroup that failed a client begins again with JoinGroup. [AbstractCoordinatorTest]
MEMBER-17 SHOULD: Backoff
  A client should wait before it repeats what failed with any error but the four that concern generation and member id.
  [AbstractCoordinatorTest]
MEMBER-18 MUST: Fatal errors of JoinGroup; needs driver
  A JoinGroup that is refused for its group, protocols, session timeout, authorization or the size of the group reaches
  the application. [AbstractCoordinatorTest, ConsumerCoordinatorTest]
MEMBER-19 MUST: Fenced while joining; needs static-membership, driver
  FENCED_INSTANCE_ID in answer to JoinGroup or SyncGroup reaches the application and is not followed by a silent retry.
  [KIP-345, AbstractCoordinatorTest]
MEMBER-20 MUST: Assignment outside the subscription
  An assignment with a topic that is not subscribed is not applied, and the client joins again.
  [ConsumerCoordinatorTest]
MEMBER-21 MUST: Growth of topics
  When the partition count of any topic of the group changes, the leader joins again, and no follower does.
  [ConsumerCoordinatorTest]
MEMBER-22 SHOULD: Leaving
  A dynamic member should send LeaveGroup when it closes or unsubscribes, after its callback. [ConsumerCoordinatorTest]
MEMBER-23 MUST: Static members stay; needs static-membership
  A static member sends no LeaveGroup of its own accord: not on closing, unsubscribing or exceeding the poll interval.
  [KIP-345, AbstractCoordinatorTest]
MEMBER-24 SHOULD: Pending id leaves
  A client that has nothing but an id from MEMBER_ID_REQUIRED should leave with that id. [ConsumerCoordinatorTest]
MEMBER-25 MUST: LeaveGroup that fails
  A LeaveGroup that fails or is never answered neither blocks closing nor makes it fail.
  [AbstractCoordinatorTest, ConsumerCoordinatorTest]
MEMBER-26 MUST: Manual assignment; needs manual-assignment
  A client whose application assigns partitions sends no JoinGroup, SyncGroup, Heartbeat or LeaveGroup.
  [ConsumerCoordinatorTest, KafkaConsumerTest]
MEMBER-27 MUST: Changed subscription; needs driver
  A changed subscription leads to a JoinGroup that carries it, and the assignment stays as it is until then.
  [client-side assignment proposal, KafkaConsumerTest]
MEMBER-28 MUST: Pattern subscription; needs pattern
  A client that subscribes to a pattern joins again when other topics match it, whether it leads or not.
  [ConsumerCoordinatorTest]
MEMBER-29 MUST: Late JoinGroup response; needs driver
  A JoinGroup response that arrives after the member left or was reset is not followed by a SyncGroup.
  [Apache Kafka source]
MEMBER-30 MUST: Late SyncGroup response; needs driver, poll-interval
  A SyncGroup response that arrives after the generation was reset is not applied.
  [AbstractCoordinatorTest, ConsumerCoordinatorTest]
MEMBER-31 SHOULD: Contradicting protocol; needs driver
  A client should treat a protocol type or name in a response that contradicts its request as an error.
  [KIP-559, AbstractCoordinatorTest]
MEMBER-32 SHOULD: Patience with JoinGroup
  A client should wait for the response to JoinGroup for longer than the rebalance timeout. [AbstractCoordinatorTest]
MEMBER-33 MAY: Reasons
  JoinGroup from version 8 and LeaveGroup from version 5 on may carry a reason of at most 255 characters.
  [KIP-800, AbstractCoordinatorTest]
MEMBER-34 MUST: Rebalance told by JoinGroup
  A client whose JoinGroup is answered REBALANCE_IN_PROGRESS joins again with the same member id.
  [AbstractCoordinatorTest]
MEMBER-35 MUST: Choice of the rebalance protocol; needs driver
  A client uses the highest rebalance protocol that all its assignors support, and refuses a configuration in which they
  have none in common. [KIP-429, ConsumerCoordinatorTest]
MEMBER-36 MUST: Restart of a static member; needs static-membership, restart
  A static member that restarts joins with its instance id and an empty member id. [KIP-345]
MEMBER-37 MAY: Enforced rebalance; needs driver
  An application may ask for a rebalance, and the next poll joins. [KIP-568, KafkaConsumerTest]
MEMBER-38 MUST: Fatal errors of lookups; needs driver
  A FindCoordinator before the first JoinGroup, or an OffsetFetch, that is refused for authorization to the group
  reaches the application. [ConsumerCoordinatorTest]
MEMBER-39 SHOULD: Former coordinator
  A client that is told that another node coordinates its group should look for the coordinator before it sends another
  request of the group. [AbstractCoordinatorTest, ConsumerCoordinatorTest]

# Heartbeats and the poll interval
HBT-01 MUST: Heartbeats often enough; in passing
  A stable member sends heartbeats so often that the coordinator sees one in every session timeout. [KIP-62]
HBT-02 MUST: Fields of heartbeats; in passing
  A Heartbeat carries the current generation, member id and instance id. [ConsumerCoordinatorTest]
HBT-03 SHOULD: Heartbeats before the assignment
  A client should send heartbeats between the responses to JoinGroup and SyncGroup. [AbstractCoordinatorTest]
HBT-04 SHOULD: No heartbeats while joining
  A client should send no heartbeat while its JoinGroup is unanswered or it is in no group. [Apache Kafka source]
HBT-05 MUST: Heartbeats until JoinGroup
  A client that was told REBALANCE_IN_PROGRESS sends heartbeats until it sends JoinGroup. [KIP-62, Apache Kafka source]
HBT-06 MUST: Poll interval exceeded; needs poll-interval, driver
  A dynamic member that is not polled for longer than its poll interval leaves the group.
  [KIP-62, PlaintextConsumerPollTest]
HBT-07 MUST: Static member exceeds the poll interval; needs poll-interval, static-membership, driver
  A static member that is not polled for longer than its poll interval sends no LeaveGroup and stops its heartbeats.
  [KIP-345]
HBT-08 MUST: Poll after the poll interval; needs poll-interval, driver
  The first poll after an exceeded poll interval reports the partitions as lost and joins with an empty member id.
  [PlaintextConsumerPollTest, Apache Kafka source]
HBT-09 MUST: Long poll; needs poll-interval, driver
  A single poll that blocks for longer than the poll interval does not exceed it. [PlaintextConsumerPollTest]
HBT-10 MUST: Fenced heartbeat; needs static-membership, driver
  FENCED_INSTANCE_ID in answer to a Heartbeat reaches the application in its next poll. [AbstractCoordinatorTest]
HBT-11 SHOULD: Heartbeats without answers
  A client whose heartbeats are unanswered for a session timeout should look for the coordinator again and keep its
  membership. [HeartbeatTest, Apache Kafka source]
HBT-12 MUST: Slow application; needs poll-interval, driver
  Slow processing and slow callbacks stop no heartbeats, as long as they are shorter than the poll interval.
  [KIP-62, PlaintextConsumerPollTest]
HBT-13 SHOULD: Interval and session; needs driver
  A client should refuse a heartbeat interval that is not shorter than its session timeout.
  [Apache Kafka source] untestable: a client refuses it before it connects, and the kit does not write configurations
HBT-14 SHOULD: Failed heartbeat
  A client should repeat a failed Heartbeat after a backoff that is shorter than the interval. [Apache Kafka source]
HBT-15 MUST: Polls without a coordinator; needs poll-interval, driver
  Polls count for the poll interval also while the coordinator cannot be found. [ConsumerCoordinatorTest]
HBT-16 MUST: Clocks start anew; needs poll-interval, driver
  Each successful JoinGroup restarts the client's clocks for session and poll interval. [HeartbeatTest]
HBT-17 MUST: Other errors of heartbeats; needs driver
  GROUP_AUTHORIZATION_FAILED or an unknown error in answer to a Heartbeat does not cost the client its assignment.
  [Apache Kafka source]

# The rebalance listener
CALLBACK-01 MUST: Thread of callbacks; needs driver; in passing
  Callbacks run on the application's thread of control, inside poll, unsubscribe or close.
  [KIP-429, ConsumerRebalanceListener documentation]
CALLBACK-02 MUST: Eager members revoke first; needs driver
  An eager member sends JoinGroup after its callback has revoked every assigned partition. [ConsumerCoordinatorTest]
CALLBACK-03 MUST: Eager members are assigned everything; needs driver
  An eager member's callback is told of the whole new assignment. [ConsumerCoordinatorTest]
CALLBACK-04 MUST: Cooperative members keep; needs driver, cooperative
  Before JoinGroup a cooperative member revokes only partitions of topics that it no longer subscribes to.
  [KIP-429, KafkaConsumerTest]
CALLBACK-05 MUST: Lost partitions; needs driver
  Where the generation was reset, all assigned partitions are reported as lost before JoinGroup, and none as revoked.
  [ConsumerCoordinatorTest]
CALLBACK-06 MUST: Assignment during callbacks; needs driver
  A listener sees the old assignment while partitions are revoked or lost, and the new one when they are assigned.
  [KafkaConsumerTest, Apache Kafka source]
CALLBACK-07 MUST: Commit before revocation; needs driver, auto-commit
  With auto-commit an eager member has finished or given up its commit before its callback revokes.
  [KAFKA-14024, ConsumerCoordinatorTest]
CALLBACK-08 MUST: Order in a cooperative rebalance; needs driver, cooperative
  A cooperative rebalance calls back about what is taken away before it calls back about what is added.
  [KIP-429, ConsumerCoordinatorTest]
CALLBACK-09 SHOULD: Assigned once; needs driver
  A completed rebalance should call assigned exactly once, with the empty set if nothing was added.
  [ConsumerRebalanceListener documentation, ConsumerCoordinatorTest]
CALLBACK-10 MUST: Failed attempts; needs driver
  A failed JoinGroup or SyncGroup that costs no generation repeats no callback. [AbstractCoordinatorTest]
CALLBACK-11 MUST: Callbacks on leaving; needs driver
  Unsubscribing and closing call revoked in a stable member, and lost where the generation was reset or a rebalance is
  under way. [ConsumerCoordinatorTest, KafkaConsumerTest]
CALLBACK-12 SHOULD: Listener that raises; needs driver
  A failure of a listener should reach the application after the other callbacks ran and the assignment was installed.
  [ConsumerCoordinatorTest, KafkaConsumerTest]
CALLBACK-13 SHOULD: Revoked once; needs driver
  A listener that raises while it is told of revoked partitions should not be called again for the same rebalance.
  [Apache Kafka source]
CALLBACK-14 MUST: Hand-over between members; needs driver; in passing
  Among members that are not fenced, the old owner's callback has revoked a partition before the new owner's is assigned
  it. [ConsumerRebalanceListener documentation, KIP-429]
CALLBACK-15 SHOULD: Lost falls back to revoked; needs driver
  An application that handles only revoked partitions should be told there of lost ones. [KIP-429]
CALLBACK-16 MUST: Commits in callbacks; needs driver
  A commit in a callback about revoked partitions is sent under the old generation before JoinGroup and under the new
  one after SyncGroup. [PlaintextConsumerPollTest]
CALLBACK-17 SHOULD: First join; needs driver
  The first join of a client should report no partition as revoked or lost. [ConsumerCoordinatorTest]
CALLBACK-18 MUST: No callbacks for manual assignment; needs driver, manual-assignment
  A manual assignment calls no callback. [ConsumerRebalanceListener documentation]
CALLBACK-19 SHOULD: No empty revocation; needs driver, cooperative
  A cooperative member should call back about revoked or lost partitions only where there are some. [KIP-429]

# Commits as the client makes them, and start positions
MCOMMIT-01 MUST: Position, not fetch; needs driver; in passing
  Commits without offsets use the position after the last record that was returned, whatever else is buffered.
  [KIP-41, FetcherTest]
MCOMMIT-02 MUST: Next offset; needs driver; in passing
  A committed offset is the one of the next record to read. [FetcherTest, KafkaConsumerTest]
MCOMMIT-03 MUST: Fields of commits; in passing
  A group member's OffsetCommit carries its generation, member id and instance id. [Kafka: The Definitive Guide]
MCOMMIT-04 MUST: Auto-commit comes before records; needs driver, auto-commit
  A periodic auto-commit covers no record of the poll that triggers it. [KafkaConsumerTest]
MCOMMIT-05 MUST: Eager commit before JoinGroup; needs driver, auto-commit
  With auto-commit an eager member commits its positions under the old generation before JoinGroup, and returns no
  record after that. [KAFKA-14196, KafkaConsumerTest]
MCOMMIT-06 SHOULD: Patience with that commit; needs auto-commit
  The commit before JoinGroup should be repeated on errors that may pass, for a rebalance timeout at most, and given up
  on others. [ConsumerCoordinatorTest]
MCOMMIT-07 SHOULD: Commit on closing; needs auto-commit
  With auto-commit a client should commit before it leaves on closing, whatever comes of the commit.
  [ConsumerCoordinatorTest]
MCOMMIT-08 MUST: No commit while joining; needs driver
  While a member joins it sends no OffsetCommit, and tells a caller to let the rebalance finish.
  [ConsumerCoordinatorTest]
MCOMMIT-09 MUST: Commit during a rebalance; needs driver
  REBALANCE_IN_PROGRESS in answer to a commit keeps generation and member id, asks for a rejoin, and leads to no blind
  retry. [ConsumerCoordinatorTest]
MCOMMIT-10 MUST: Commit of a member that is out; needs driver
  ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID in answer to a commit is a definite failure for the caller, and the member
  joins again. [ConsumerCoordinatorTest]
MCOMMIT-11 MUST: No commit without a generation; needs driver
  A subscribed client without a valid generation sends no commit. [ConsumerCoordinatorTest, Apache Kafka source]
MCOMMIT-12 MUST: Commit of a manual assignment; needs manual-assignment
  A client with a manual assignment commits with generation -1, an empty member id and no instance id.
  [ConsumerCoordinatorTest]
MCOMMIT-13 MUST: Late commit error; needs driver
  A commit error about an older generation does not reset the generation that the client has meanwhile.
  [ConsumerCoordinatorTest] untestable: responses on a connection come in order, so that none of an older generation
  comes late
MCOMMIT-14 SHOULD: Retries of commits; needs driver
  Where an error may pass, a synchronous commit should be repeated until its deadline and an asynchronous one reported
  once. [ConsumerCoordinatorTest]
MCOMMIT-15 MUST: Fenced commit; needs static-membership, driver
  FENCED_INSTANCE_ID in answer to a commit reaches the application. [ConsumerCoordinatorTest]
MCOMMIT-16 SHOULD: Order of reports; needs driver
  Callbacks of earlier asynchronous commits should run before a later synchronous commit returns.
  [ConsumerCoordinatorTest]
MCOMMIT-17 SHOULD: Auto-commit interval; needs auto-commit
  Periodic commits should come once in each interval at most, and after a failure that may pass again after the backoff.
  [ConsumerCoordinatorTest]
MCOMMIT-18 MUST: Only valid positions; in passing
  No commit covers a partition that is not assigned or has no valid position. [Apache Kafka source]
MCOMMIT-19 MUST: Start of a partition; needs driver
  A newly assigned partition starts at its committed offset, or by the reset policy if there is none.
  [ConsumerCoordinatorTest, KafkaConsumerTest]
MCOMMIT-20 SHOULD: Unstable offsets
  A client should repeat an OffsetFetch that says that an offset is unstable. [KIP-447, ConsumerCoordinatorTest]
MCOMMIT-21 MUST: Commits follow records; needs driver; in passing
  In the group as a whole a committed offset never passes a record that no member returned.
  [KIP-41, Kafka: The Definitive Guide]
MCOMMIT-22 MUST: Only commits that are asked for; needs driver
  Without auto-commit a client sends no OffsetCommit that its application has not asked for.
  [Kafka: The Definitive Guide, Apache Kafka source]
"""

RULES = """
no api: finding and losing the coordinator
  client.lookup.send: the coordinator is unknown, and it is time to ask for it [MEMBER-01]
  client.lookup.waiting: the coordinator is unknown, and a lookup is unanswered [MEMBER-01]
  client.lookup.backoff: the coordinator is unknown, and the backoff after a failed lookup is not over [MEMBER-17]
  client.lookup.found: a lookup names the coordinator [MEMBER-01 MEMBER-14]
  client.lookup.failed: a lookup fails with an error that may pass, or is unanswered for too long [MEMBER-17]
  client.lookup.fatal: a lookup fails with any other error [MEMBER-18 MEMBER-38]
  client.coordinator.lost: the connection is lost, or a response says that the coordinator is elsewhere
    [MEMBER-14 MEMBER-39]
  client.request.timeout: a request is unanswered for longer than its timeout [MEMBER-14 MEMBER-32]
  client.response.late: the response belongs to no request that the client still waits for [MEMBER-15 MEMBER-16]

no api: the beginning of a poll, and the reasons to join
  client.poll: the application polls [HBT-15 MCOMMIT-16]
  client.poll.closed: the application uses a client that is closing or closed [MEMBER-22]
  client.poll.in-callback: a callback runs [CALLBACK-01]
  client.poll.raise: an error waits for the application [MEMBER-18 MEMBER-19 HBT-10 MCOMMIT-15]
  client.poll.no-subscription: the client subscribes to nothing [MEMBER-26]
  client.rejoin.subscription: the subscription is not the one that the last JoinGroup carried [MEMBER-27 MEMBER-28]
  client.rejoin.metadata: the leader sees other partition counts than it planned with [MEMBER-21]
  member.rejoin: the application asks for a rebalance [MEMBER-37]

no api: the step before JoinGroup
  client.prepare.hold-back: auto-commit is on, and the member gives everything up before it joins [MCOMMIT-05 POLL-19]
  client.prepare.commit: auto-commit is on, and the member is about to join [MCOMMIT-05 MCOMMIT-06 CALLBACK-07]
  client.prepare.committing: the commit before JoinGroup is unanswered [CALLBACK-07 MCOMMIT-06]
  client.prepare.commit-too-late: the commit before JoinGroup has taken as long as a rebalance may [MCOMMIT-06]
  client.prepare.nothing: the member has no generation, and owns nothing [CALLBACK-17]
  client.prepare.lost: the member has no generation, and partitions are assigned
    [CALLBACK-05 CALLBACK-15 CALLBACK-06 HBT-08 COOP-17]
  client.prepare.revoke-all: an eager member with a generation is about to join [CALLBACK-02 CALLBACK-06 CALLBACK-16]
  client.prepare.keep: a cooperative member joins, and every partition's topic is still subscribed
    [COOP-01 CALLBACK-04 CALLBACK-19]
  client.prepare.revoke-unsubscribed: a cooperative member joins, and topics have left its subscription
    [CALLBACK-04 COOP-04]
  client.prepare.given-up: the callback before JoinGroup returns [CALLBACK-02 CALLBACK-06]
  client.prepare.raised: the callback before JoinGroup raises [CALLBACK-12 CALLBACK-13]

no api: JoinGroup and its responses
  client.join.backoff: the backoff after a failed exchange is not over [MEMBER-17]
  client.join.waiting: JoinGroup or SyncGroup is unanswered [MEMBER-06]
  member.join: the member has to join, and waits for nothing [MEMBER-02 MEMBER-03 MEMBER-04 MEMBER-33 MEMBER-35
    MEMBER-36 WIRE-01 WIRE-03 WIRE-04 WIRE-05 WIRE-06 STICKY-18 COOP-01 COOP-04 COOP-08 COOP-13 COOP-15]
  member.join.answered: JoinGroup succeeds [MEMBER-07 HBT-16]
  member.join.id-required: JoinGroup is answered MEMBER_ID_REQUIRED [MEMBER-05]
  member.join.unknown-member: JoinGroup is answered UNKNOWN_MEMBER_ID [MEMBER-13]
  client.join.rebalance: JoinGroup is answered REBALANCE_IN_PROGRESS or ILLEGAL_GENERATION [MEMBER-34]
  client.join.moved: JoinGroup is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE [MEMBER-14 MEMBER-17]
  client.join.loading: JoinGroup is answered COORDINATOR_LOAD_IN_PROGRESS [MEMBER-14 MEMBER-17]
  client.join.fenced: JoinGroup is answered FENCED_INSTANCE_ID [MEMBER-19]
  client.join.fatal: JoinGroup is answered with any other error, or for another protocol type [MEMBER-18 MEMBER-31]
  member.late-answer: the member has been reset since it sent the request, or has another generation
    [MEMBER-15 MEMBER-29 MEMBER-30]
  member.lost: JoinGroup or SyncGroup is unanswered when the coordinator is lost [MEMBER-14 MEMBER-16]

no api: SyncGroup and its responses
  client.sync.as-follower: JoinGroup succeeds, and another member leads [MEMBER-07 WIRE-05]
  client.sync.as-leader: JoinGroup succeeds, and the member leads [MEMBER-08 COOP-09 COOP-16 WIRE-05]
  client.sync.skip-assignment: JoinGroup succeeds, and the member leads but need not plan [MEMBER-09]
  client.sync.assigned: SyncGroup brings an assignment [WIRE-02 CALLBACK-01]
  client.sync.unreadable: SyncGroup brings bytes that are no assignment [WIRE-02]
  client.sync.wrong-protocol: SyncGroup succeeds for another protocol than JoinGroup [MEMBER-31]
  client.sync.rebalance: SyncGroup is answered REBALANCE_IN_PROGRESS [MEMBER-11 MEMBER-16 CALLBACK-10]
  client.sync.moved: SyncGroup is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE [MEMBER-14 MEMBER-16]
  client.sync.fenced: SyncGroup is answered FENCED_INSTANCE_ID [MEMBER-19]
  client.sync.fatal: SyncGroup is answered with any other error [MEMBER-16 MEMBER-18]
  member.sync.illegal-generation: SyncGroup is answered ILLEGAL_GENERATION [MEMBER-12 MEMBER-16]
  member.sync.unknown-member: SyncGroup is answered UNKNOWN_MEMBER_ID [MEMBER-13 MEMBER-16]

no api: the end of a rebalance
  client.complete.foreign-topic: the assignment names a topic outside the subscription [MEMBER-20]
  member.sync.answered: the poll takes the assignment [COOP-02 COOP-03 COOP-05]
  client.complete.revoke: the assignment lacks partitions that the member owns [CALLBACK-08 COOP-02 CALLBACK-06]
  client.complete.commit-given-up: auto-commit is on, and the assignment takes partitions with a position away
    [CALLBACK-16 MCOMMIT-03]
  client.complete.revoked: the callback about what is taken away returns [CALLBACK-08]
  client.complete.assign: the assignment is installed [CALLBACK-03 CALLBACK-06 CALLBACK-09 COOP-07]
  client.complete.done: the callback about what was added returns [CALLBACK-09 COOP-03]
  client.complete.raised: a callback after SyncGroup raises [CALLBACK-12]

no api: heartbeats and the clocks of the worker
  client.worker.off: the client assigns its partitions itself, is closing or closed [MEMBER-26 MEMBER-22]
  client.worker.idle: the member is in no group, or waits for the response to JoinGroup [HBT-04]
  client.worker.in-poll: nothing but a poll sends heartbeats [HBT-01]
  client.worker.lookup: the coordinator is unknown [HBT-11]
  client.worker.session-expired: no heartbeat has succeeded for a session timeout [HBT-11]
  client.worker.poll-expired: the application has not polled for longer than the poll interval [HBT-06 HBT-07 HBT-09]
  client.worker.sleep: no heartbeat is due [HBT-01]
  member.heartbeat: a heartbeat is due [HBT-01 HBT-02 HBT-03 HBT-05 HBT-12 WIRE-05]
  client.heartbeat.asked: the application asks for a heartbeat by itself [HBT-02]
  member.nothing: the proved member sends nothing in this state [HBT-04]
  member.heartbeat.answered: Heartbeat succeeds [HBT-01]
  member.heartbeat.rebalance: Heartbeat is answered REBALANCE_IN_PROGRESS, and the member is stable [MEMBER-10 HBT-05]
  client.heartbeat.already-joining: Heartbeat is answered REBALANCE_IN_PROGRESS, and the member is joining [MEMBER-10]
  member.heartbeat.fenced: Heartbeat is answered FENCED_INSTANCE_ID [HBT-10]
  client.heartbeat.moved: Heartbeat is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE [MEMBER-14]
  client.heartbeat.failed: Heartbeat is answered with any other error [HBT-14 HBT-17]
  member.illegal-generation: Heartbeat or OffsetCommit is answered ILLEGAL_GENERATION [MEMBER-12 MCOMMIT-10]
  member.unknown-member: Heartbeat or OffsetCommit is answered UNKNOWN_MEMBER_ID [MEMBER-13 MCOMMIT-10]

no api: OffsetCommit
  member.commit: a stable member commits [MCOMMIT-01 MCOMMIT-02 MCOMMIT-03 MCOMMIT-18 WIRE-05]
  client.commit.manual: a client that assigns its partitions itself commits [MCOMMIT-12]
  client.commit.empty: no partition to commit has a position [MCOMMIT-18]
  client.commit.rebalancing: the member is joining [MCOMMIT-08]
  client.commit.not-joined: the member is in no group [MCOMMIT-11]
  client.commit.waiting: the coordinator is unknown [MCOMMIT-14]
  client.commit.still-fenced: an asynchronous commit was fenced before [MCOMMIT-15]
  client.auto-commit.due: the interval of auto-commit is over, and the application polls
    [MCOMMIT-04 MCOMMIT-17 MCOMMIT-22]
  client.auto-commit.soon: an auto-commit fails with an error that may pass [MCOMMIT-17]
  client.commit.done: OffsetCommit succeeds [MCOMMIT-01]
  member.commit.rebalance: OffsetCommit is answered REBALANCE_IN_PROGRESS [MCOMMIT-09]
  client.commit.late: OffsetCommit of an older generation is refused [MCOMMIT-13 MEMBER-15]
  client.commit.fenced: OffsetCommit is answered FENCED_INSTANCE_ID [MCOMMIT-15]
  client.commit.retriable: OffsetCommit is answered with an error that may pass [MCOMMIT-14]
  client.commit.moved: OffsetCommit is answered NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or REQUEST_TIMED_OUT
    [MCOMMIT-14 MEMBER-14]
  client.commit.refused: OffsetCommit is answered with any other error [MCOMMIT-14]
  client.commit.retry: a commit that the application waits for failed, and its deadline is not over [MCOMMIT-14]
  client.commit.given-up: a commit has waited until its deadline, or its lookup failed [MCOMMIT-14]

no api: positions and records
  client.offsets.fetch: assigned partitions have no position, and were not asked for [MCOMMIT-19 COOP-07]
  client.offsets.backoff: assigned partitions have no position, and it is too early to ask [MCOMMIT-20]
  client.offsets.committed: OffsetFetch succeeds [MCOMMIT-19]
  client.offsets.reset: partitions have no committed offset, and there is a reset policy [MCOMMIT-19]
  client.offsets.no-policy: partitions have no committed offset, and there is no reset policy [MCOMMIT-19]
  client.offsets.start: ListOffsets succeeds [MCOMMIT-19]
  client.offsets.unstable: OffsetFetch says that an offset is unstable [MCOMMIT-20]
  client.offsets.retry: OffsetFetch or ListOffsets fails in a way that may pass [MCOMMIT-20]
  client.offsets.moved: OffsetFetch is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE [MEMBER-14]
  client.offsets.fatal: OffsetFetch is answered with any other error [MCOMMIT-19 MEMBER-38]
  client.offsets.late: OffsetFetch is answered, and every position has changed since [POLL-11]
  client.position.seek: the application sets the position of an assigned partition [POLL-11]
  client.position.pause: the application pauses or resumes an assigned partition [POLL-09 COOP-07]
  client.position.not-assigned: the application means a partition that is not assigned [POLL-10]
  client.records.returned: the poll returns records from the position on [COOP-06 POLL-03 POLL-13 MCOMMIT-02]
  client.records.dropped: the records do not begin at the position, or their partition may not be returned
    [POLL-09 POLL-10 POLL-11 POLL-18 POLL-19]

no api: what the application asks for, leaving and closing
  client.subscribe: the application subscribes [MEMBER-27]
  client.assign: the application assigns partitions itself [MEMBER-26 CALLBACK-18]
  client.metadata: the client learns the partition counts [MEMBER-21]
  client.metadata.pattern: the client learns which topics match its pattern [MEMBER-28]
  client.callback.none: a callback returns that nobody called [CALLBACK-01]
  client.unsubscribe: the application unsubscribes [MEMBER-22]
  client.close: the application closes the client [MEMBER-22]
  client.close.again: the application closes the client once more [MEMBER-25]
  client.close.commit: the application closes a client with auto-commit that may commit [MCOMMIT-07]
  client.leave.revoke: a stable member leaves, and owns partitions [CALLBACK-11]
  client.leave.lose: a member leaves that is not stable, and owns partitions [CALLBACK-11 CALLBACK-15]
  client.leave.nothing-owned: a client leaves that owns nothing [CALLBACK-11]
  client.leave.given-up: the callback before LeaveGroup returns [MEMBER-22]
  client.leave.raised: the callback before LeaveGroup raises [CALLBACK-12]
  client.close.leave: the client closes, and has no callback to wait for [MEMBER-22 MEMBER-23 MEMBER-24]
  client.unsubscribe.leave: the client unsubscribes, and has no callback to wait for [MEMBER-22 MEMBER-23 MEMBER-24]
  client.leave.send: the member is dynamic and has an id, and the coordinator is known [MEMBER-22 MEMBER-24 HBT-06]
  client.leave.silent: the member is static, has no id, or does not know the coordinator [MEMBER-23 HBT-07]
  client.leave.answered: LeaveGroup is answered [MEMBER-25]
  member.leave: a member with an id leaves [MEMBER-22 HBT-06]
  member.leave.unjoined: a member leaves that is in no group [MEMBER-23]
  member.restart: the process ends without a word and starts again [MEMBER-36]
"""
