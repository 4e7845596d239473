"""The tests and methods of Apache Kafka 3.8.0 that show what requirements say, with the lines where they begin.

A folder ends in a slash; below it stand its files, and below a file its methods, each with its line and the
requirements that can be read up there. A method without requirements is one that a source names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_METHODS = """
clients/src/main/java/org/apache/kafka/clients/consumer/
  CooperativeStickyAssignor.java
    subscriptionUserData 76 WIRE-06 computePartitionsTransferringOwnership 129 COOP-16 COOP-18
  RangeAssignor.java
    assignRanges 153 RANGE-10
clients/src/main/java/org/apache/kafka/clients/consumer/internals/
  AbstractCoordinator.java
    JoinGroupResponseHandler 631 MEMBER-29 SyncGroupResponseHandler 811 MEMBER-30 HeartbeatResponseHandler 1231
    MEMBER-10 HBT-17 HeartbeatThread 1438 HBT-04
  AbstractStickyAssignor.java
    assignPartitions 91 STICKY-17 prepopulateCurrentAssignments 1136 STICKY-13 STICKY-14 STICKY-15
  ConsumerCoordinator.java
    metadata 259 MEMBER-04 onJoinComplete 335 CALLBACK-08 onJoinPrepare 710 CALLBACK-06 CALLBACK-13
    maybeAutoCommitOffsetsAsync 1156 MCOMMIT-22 sendOffsetCommitRequest 1230 MCOMMIT-08 MCOMMIT-11 MCOMMIT-03
  ConsumerProtocol.java
    serializeSubscription 72 WIRE-04
  Fetcher.java
    clearBufferedDataForUnassignedPartitions 95 POLL-18
  Heartbeat.java
    Heartbeat 45 HBT-13 failHeartbeat 90 HBT-14
  SubscriptionState.java
    allConsumed 688 MCOMMIT-18
clients/src/test/java/org/apache/kafka/clients/consumer/
  CooperativeStickyAssignorTest.java
    testDecodeGeneration 97 ASSIGN-07 testUniformSubscriptionTransferOwnershipListIsRight 211 COOP-09 COOP-11
    verifyValidityAndBalance 238 COOP-12
  KafkaConsumerTest.java
    verifyHeartbeatSentWhenFetchedDataReady 711 POLL-15 testCommitsFetchedDuringAssign 1008 MCOMMIT-02
    testAutoCommitSentBeforePositionUpdate 1122 MCOMMIT-04 testSubscriptionChangesWithAutoCommitEnabled 1324 MEMBER-27
    MCOMMIT-05 testSubscriptionChangesWithAutoCommitDisabled 1439 CALLBACK-04 testReturnRecordsDuringRebalance 2275
    COOP-06 testEnforceRebalanceTriggersRebalanceOnNextPoll 3104 MEMBER-37
  RangeAssignorTest.java
    testOneConsumerNonexistentTopic 96 ASSIGN-05 testMultipleConsumersMixedTopics 183 RANGE-01 RANGE-03
    testTwoConsumersTwoTopicsSixPartitions 200 RANGE-02 testOneStaticConsumerAndOneDynamicConsumerTwoTopicsSixPartitions
    243 RANGE-04 testStaticMemberRangeAssignmentPersistentAfterMemberIdChanges 305 RANGE-05
    testRackAwareAssignmentWithUniformSubscription 389 RANGE-09 testRackAwareAssignmentWithCoPartitioning 472 RANGE-08
    testCoPartitionedAssignmentWithSameSubscription 507 RANGE-06
  RoundRobinAssignorTest.java
    testMultipleConsumersMixedTopics 132 RR-02 testTwoDynamicConsumersTwoTopicsSixPartitions 153 RR-01
    testOneStaticConsumerAndOneDynamicConsumerTwoTopicsSixPartitions 196 RR-05
    testStaticMemberRoundRobinAssignmentPersistentAfterMemberIdChanges 267 RR-06
  StickyAssignorTest.java
    testAssignmentWithMultipleGenerations1 125 STICKY-18 testSchemaBackwardCompatibility 275 STICKY-11
    testMemberDataWillHonorUserData 322 STICKY-10
clients/src/test/java/org/apache/kafka/clients/consumer/internals/
  AbstractCoordinatorTest.java
    testGroupMaxSizeExceptionIsFatal 336 MEMBER-18 testJoinGroupRequestTimeout 350 MEMBER-32
    testJoinGroupRequestWithMemberIdRequired 401 MEMBER-02 MEMBER-05 testJoinGroupRequestWithFencedInstanceIdException
    427 MEMBER-19 testJoinGroupProtocolTypeAndName 442 MEMBER-31 testRetainMemberIdAfterJoinGroupDisconnect 470
    MEMBER-14 testRetainMemberIdAfterSyncGroupDisconnect 496 MEMBER-16 testHeartbeatSentWhenCompletingRebalance 864
    HBT-03 testHeartbeatUnknownMemberResponseWithOldGeneration 917 MEMBER-15
    testHeartbeatRequestWithFencedInstanceIdException 1021 HBT-10 testJoinGroupRequestWithRebalanceInProgress 1061
    MEMBER-34 testLeaveGroupSentWithGroupInstanceIdUnSet 1090 MEMBER-23
    testHandleNormalLeaveGroupResponseAndTruncatedLeaveReason 1139 MEMBER-33 testHandleLeaveGroupResponseWithException
    1173 MEMBER-25 testLookupCoordinator 1278 MEMBER-01 testWakeupAfterJoinGroupSent 1296 MEMBER-06 CALLBACK-10
    testBackoffAndRetryUponRetriableError 1581 MEMBER-17
  AbstractStickyAssignorTest.java
    testOnlyAssignsPartitionsFromSubscribedTopics 179 ASSIGN-01 testTwoConsumersTwoTopicsSixPartitions 278 ASSIGN-03
    STICKY-01 testPoorRoundRobinAssignmentScenario 547 RR-07 testReassignmentAfterOneConsumerLeaves 624 STICKY-05
    testReassignmentAfterOneConsumerAdded 657 STICKY-06 testStickiness 965 STICKY-16
    testAssignmentUpdatedForDeletedTopic 1016 STICKY-12 testOwnedPartitionsAreInvalidatedForConsumerWithStaleGeneration
    1116 STICKY-09 testPartitionsTransferringOwnershipIncludeThePartitionClaimedByMultipleConsumersInSameGeneration 1160
    STICKY-08 testEnsurePartitionsAssignedToHighestGeneration 1183 STICKY-07 testNoReassignmentOnCurrentMembers 1215
    STICKY-04 testRackAwareAssignmentWithUniformSubscription 1271 STICKY-19 verifyValidityAndBalance 1497 ASSIGN-02
  ConsumerCoordinatorTest.java
    testPerformAssignmentShouldValidateCooperativeAssignment 386 COOP-14 testOnLeaderElectedShouldSkipAssignment 410
    MEMBER-09 testSelectRebalanceProtocol 464 MEMBER-35 COOP-15 testNormalHeartbeat 483 HBT-02
    testGroupDescribeUnauthorized 501 MEMBER-38 testNotCoordinator 706 MEMBER-39 testIllegalGeneration 727 MEMBER-12
    testUnsubscribeWithValidGeneration 756 CALLBACK-11 testRevokeExceptionThrownFirstNonBlockingSubCallbacks 771
    CALLBACK-12 testUnknownMemberId 911 MEMBER-13 testNormalJoinGroupLeader 978 MEMBER-08
    testOutdatedCoordinatorAssignment 1015 MEMBER-20 testPatternJoinGroupLeader 1102 MEMBER-28
    testOnJoinPrepareWithOffsetCommitShouldSuccessAfterRetry 1342 CALLBACK-07
    testOnJoinPrepareWithOffsetCommitShouldKeepJoinAfterRebalanceTimeout 1381 MCOMMIT-06 testNormalJoinGroupFollower
    1690 MEMBER-07 CALLBACK-09 CALLBACK-17 testUpdateLastHeartbeatPollWhenCoordinatorUnknown 1721 HBT-15
    testLeaveGroupOnClose 1787 MEMBER-22 testPendingMemberShouldLeaveGroup 1838 MEMBER-24
    testRebalanceInProgressOnSyncGroup 1900 MEMBER-11 testMetadataChangeTriggersRebalance 1946 MEMBER-21 testRejoinGroup
    2254 CALLBACK-02 CALLBACK-03 testAutoCommitAwaitsInterval 2418 MCOMMIT-17 testAutoCommitManualAssignment 2479
    MCOMMIT-12 testAsyncCommitCallbacksInvokedPriorToSyncCommitCompletion 2692 MCOMMIT-16
    testRetryCommitUnknownTopicOrPartition 2730 MCOMMIT-14 testCommitOffsetIllegalGenerationWithNewGeneration 2775
    MCOMMIT-13 testCommitOffsetIllegalGenerationShouldResetGenerationId 2805 MCOMMIT-10
    testCommitOffsetRebalanceInProgress 3013 MCOMMIT-09 testRefreshOffset 3080 MCOMMIT-19
    testRefreshOffsetWithPendingTransactions 3182 MCOMMIT-20 testCloseDynamicAssignment 3333 MCOMMIT-07
    testCloseManualAssignment 3340 MEMBER-26 testCommitOffsetRequestSyncWithFencedInstanceIdException 3456 MCOMMIT-15
    shouldLoseAllOwnedPartitionsBeforeRejoiningAfterDroppingOutOfTheGroup 3588 COOP-17
    shouldLoseAllOwnedPartitionsBeforeRejoiningAfterResettingGenerationId 3621 CALLBACK-05
  ConsumerProtocolTest.java
    serializeDeserializeSubscriptionAllVersions 55 WIRE-01 deserializeFutureSubscriptionVersion 184 ASSIGN-08 WIRE-02
  FetcherTest.java
    testFetchingPendingPartitions 338 PREFETCH-11 testFetcherIgnoresControlRecords 796 POLL-12 testFetchMaxPollRecords
    1099 MCOMMIT-01 POLL-01 testFetchMaxPollRecordsUnaligned 1150 POLL-02 PREFETCH-04
    testFetchAfterPartitionWithFetchedRecordsIsUnassigned 1201 POLL-10 testFetchNonContinuousRecords 1235 POLL-03
    testFetchDuringEagerRebalance 1335 POLL-19 testFetchDuringCooperativeRebalance 1359 COOP-07
    testFetchOnPausedPartition 1400 PREFETCH-08 testFetchOnCompletedFetchesForPausedAndResumedPartitions 1412 POLL-09
    testFetchedRecordsAfterSeek 1678 POLL-11 testFetchPositionAfterException 1720 POLL-14 testUpdatePositionOnEmptyBatch
    2578 POLL-13
  HeartbeatTest.java
    testSessionTimeoutExpired 81 HBT-11 testResetTimeouts 101 HBT-16
core/src/main/scala/kafka/server/
  KafkaApis.scala
    handleOffsetCommitRequest 433 COMMIT-13 COMMIT-14 getCoordinator 1668
core/src/test/scala/integration/kafka/api/
  PlaintextConsumerPollTest.scala
    testMaxPollIntervalMs 66 HBT-06 HBT-08 testMaxPollIntervalMsDelayInRevocation 92 HBT-12 CALLBACK-16
    testMaxPollIntervalMsShorterThanPollTimeout 159 HBT-09
core/src/test/scala/unit/kafka/coordinator/group/
  GroupCoordinatorTest.scala
    testRequestHandlingWhileLoadingInProgress 139 FAILOVER-01 testJoinGroupWrongCoordinator 209 FIND-10 FAILOVER-18
    staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange 1061 TIMER-27
    testCommitOffsetWithDefaultGeneration 2536 COMMIT-07 testCommitOffsetsAfterGroupIsEmpty 2546 LEAVE-21
    testCommitAndFetchOffsetsWithEmptyGroup 2596 COMMIT-12 ADMIN-21 testFetchTxnOffsetsWithAbort 2659 FETCH-12
    testCommitOffsetInCompletingRebalanceFromUnknownMemberId 2968 COMMIT-06
    testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId 2999 COMMIT-08 testDescribeGroupStableForStaticMember
    3438 ADMIN-06 testDeleteEmptyGroupWithStoredOffsets 3515 FETCH-13 ADMIN-18
    testDeleteOffsetOfNonEmptyNonConsumerGroup 3562 ADMIN-24 testDeleteOffsetOfConsumerGroupWithUnparsableProtocol 3619
    ADMIN-30 testDeleteOffsetOfStableConsumerGroup 3700 ADMIN-26
core/src/test/scala/unit/kafka/server/
  DeleteGroupsRequestTest.scala
    testDeleteGroups 63 ADMIN-19
  DescribeGroupsRequestTest.scala
    testDescribeGroups 54 ADMIN-02 ADMIN-03 ADMIN-07
  HeartbeatRequestTest.scala
    testHeartbeat 58 HB-03 HB-05
  JoinGroupRequestTest.scala
    testJoinGroup 61 JOIN-07 JOIN-08 JOIN-23 JOIN-26 JOIN-37 JOIN-41 GEN-01
  LeaveGroupRequestTest.scala
    testLeaveGroup 52 LEAVE-01 LEAVE-03 LEAVE-13 LEAVE-14 LEAVE-15
  ListGroupsRequestTest.scala
    testListGroups 65 ADMIN-05 ADMIN-11 ADMIN-12 ADMIN-13 ADMIN-14 ADMIN-15 ADMIN-33
  OffsetCommitRequestTest.scala
    testOffsetCommit 62 COMMIT-01
  OffsetDeleteRequestTest.scala
    testOffsetDelete 61 ADMIN-23 ADMIN-25 ADMIN-27 ADMIN-29
  OffsetFetchRequestTest.scala
    testSingleGroupOffsetFetch 140 FETCH-01 FETCH-02 FETCH-05 FETCH-07 FETCH-09 FETCH-15 testSingleGroupAllOffsetFetch
    312 FETCH-04 testMultipleGroupsOffsetFetch 425 FETCH-06
  SyncGroupRequestTest.scala
    testSyncGroup 59 SYNC-05 SYNC-11 SYNC-12 SYNC-21
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/
  GroupCoordinatorService.java
    partitionFor 274 FIND-03 joinGroup 314 JOIN-03 commitOffsets 808 COMMIT-22 onResignation 1007 FAILOVER-20
    isGroupIdNotEmpty 1077 HB-01
  GroupCoordinatorShard.java
    deleteGroups 379 ADMIN-20
  GroupMetadataManager.java
    describeGroups 565 replay 2712 FAILOVER-06 FAILOVER-13 FAILOVER-15 classicGroupJoinNewMember 2909 JOIN-25
    classicGroupJoinNewDynamicMember 3013 JOIN-09 classicGroupJoinExistingMember 3063 JOIN-29 JOIN-19 JOIN-20
    removeMemberAndUpdateClassicGroup 3402 LEAVE-05 LEAVE-19 prepareRebalance 3556
    tryCompleteInitialRebalanceElseSchedule 3625 resetAndPropagateAssignmentWithError 3665 setAndPropagateAssignment
    3681 rescheduleClassicGroupMemberHeartbeat 3749 TIMER-03 expirePendingSync 3783 acceptJoiningMember 3828 STATIC-26
    classicGroupSyncToClassicGroup 4028 SYNC-09 SYNC-17 SYNC-22 validateSyncGroup 4200
    classicGroupHeartbeatToClassicGroup 4292 validateClassicGroupHeartbeat 4342 STATIC-27 HB-08
    classicGroupLeaveToClassicGroup 4562
  OffsetAndMetadata.java
    fromRequest 159
  OffsetMetadataManager.java
    validateOffsetCommit 300 commitOffset 447 COMMIT-25 fetchOffsets 732 replay 971 FAILOVER-12 COMMIT-32
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/classic/
  ClassicGroup.java
    remove 478 STATIC-23 hasAllMembersJoined 724 JOIN-52 rebalanceTimeoutMs 767 TIMER-09 validateOffsetCommit 830
    COMMIT-28 COMMIT-10 COMMIT-23 GEN-15 selectProtocol 1025 supportsProtocols 1110 updateMember 1215 initNextGeneration
    1309 GEN-14 currentClassicGroupMembers 1328 JOIN-55 asListedGroup 1345 ADMIN-34
group-coordinator/src/test/java/org/apache/kafka/coordinator/group/
  GroupCoordinatorServiceTest.java
    testPartitionFor 269 FIND-04 testJoinGroupInvalidGroupId 438 JOIN-01 testJoinGroupInvalidSessionTimeout 511 JOIN-02
    testSyncGroupInvalidGroupId 611 SYNC-01 testHeartbeatCoordinatorNotAvailableException 699 HB-12
    testLeaveGroupThrowsUnknownMemberIdException 1299 LEAVE-02
  GroupCoordinatorShardTest.java
    testCleanupGroupMetadata 943 ADMIN-35
  GroupMetadataManagerTest.java
    testGenerateRecordsOnNewClassicGroup 3363 JOIN-06 testReplayGroupMetadataRecords 3408 FAILOVER-02 FAILOVER-10
    FAILOVER-14 FAILOVER-16 FAILOVER-19 testOnLoadedExceedGroupMaxSizeTriggersRebalance 3488 FAILOVER-17
    testOnLoadedSchedulesClassicGroupMemberHeartbeats 3528 FAILOVER-04 testJoinGroupShouldReceiveErrorIfGroupOverMaxSize
    3572 JOIN-46 testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember 3598 JOIN-50
    testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember 3657 JOIN-48
    testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing 3760 JOIN-47
    testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize 3823 JOIN-49 testJoinGroupUnknownMemberNewGroup 3882
    JOIN-05 testClassicGroupJoinInconsistentProtocolType 3912 JOIN-16 testJoinGroupWithEmptyProtocolType 3940 JOIN-15
    testNewMemberJoinExpiration 3984 TIMER-06 TIMER-07 testJoinGroupInconsistentGroupProtocol 4038 JOIN-17
    testJoinGroupSecondJoinInconsistentProtocol 4067 JOIN-21 testStaticMemberJoinAsFirstMember 4109 STATIC-01
    testJoinGroupReturnsTheProtocolType 4217 JOIN-40 testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup
    4251 TIMER-16 testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance 4276 TIMER-17 TIMER-18
    testHeartbeatExpirationShouldRemovePendingMember 4401 JOIN-13 TIMER-08
    testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException 4493 JOIN-14
    testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance 4521 JOIN-30
    testJoinGroupAsExistingLeaderTriggersRebalanceInStableState 4565 JOIN-31
    testJoinGroupAsExistingMemberWithUpdatedMetadataTriggersRebalanceInStableState 4599 JOIN-33
    testJoinGroupExistingMemberDoesNotTriggerRebalanceInStableState 4664 JOIN-32 testJoinGroupExistingMemberInEmptyState
    4711 JOIN-53 testCompleteJoinRemoveNotYetRejoinedDynamicMembers 4742 JOIN-44 JOIN-45 GEN-20
    testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase 4806 STATIC-20 testReplaceStaticMemberInStableStateNoError
    4896 STATIC-08 testReplaceStaticMemberInStableStateSucceeds 5097 STATIC-02 STATIC-28
    testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance 5172 STATIC-15
    testNewMemberFailureAfterJoinGroupCompletion 5291 TIMER-05 testStaticMemberFenceDuplicateRejoinedFollower 5346
    STATIC-03 STATIC-04 testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged 5407 STATIC-05
    testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged 5529 STATIC-16
    testStaticMemberRejoinWithKnownMemberId 5631 STATIC-17 testStaticMemberRejoinWithLeaderIdAndUnknownMemberId 5677
    STATIC-10 STATIC-11 testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged 5929
    STATIC-14 testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged 6097 STATIC-13
    testStaticMemberRejoinAsFollowerWithUnknownMemberId 6312 STATIC-09 STATIC-12
    testStaticMemberRejoinAsFollowerWithMismatchedInstanceId 6436 STATIC-06
    testGetDifferentStaticMemberIdAfterEachRejoin 6518 STATIC-24
    testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId 6560 STATIC-07
    testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout 6623 JOIN-38 STATIC-18 GEN-18
    testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout 6712 STATIC-19
    testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided 6830 SYNC-07 testSyncGroupFromUnknownGroup 6923 SYNC-02
    testSyncGroupFromUnknownMember 6942 SYNC-03 testSyncGroupFromIllegalGeneration 6989 SYNC-04 SYNC-20
    testLeaderFailureInSyncGroup 7096 SYNC-18 testSyncGroupFollowerAfterLeader 7160 SYNC-16
    testSyncGroupLeaderAfterFollower 7243 SYNC-10 testJoinGroupCompletionWhenPendingMemberJoins 7363 JOIN-11 JOIN-27
    testJoinGroupCompletionWhenPendingMemberTimesOut 7390 JOIN-28 testGenerationIdIncrementsOnRebalance 7409 GEN-02
    testStaticMemberHeartbeatLeaderWithInvalidMemberId 7429 HB-14 testHeartbeatUnknownGroup 7468 HB-02
    testHeartbeatDuringPreparingRebalance 7537 HB-06 testHeartbeatDuringCompletingRebalance 7571 HB-07
    testHeartbeatIllegalGeneration 7597 HB-04 testClassicGroupMemberSessionTimeout 7627 TIMER-01 TIMER-02
    testClassicGroupMemberHeartbeatMaintainsSession 7645 HB-09 testClassicGroupMemberSessionTimeoutDuringRebalance 7668
    TIMER-21 testRebalanceCompletesBeforeMemberJoins 7717 JOIN-24 JOIN-36 testSyncGroupEmptyAssignment 7867 SYNC-13
    testRebalanceTimesOutWhenSyncRequestIsNotReceived 7960 HB-13 TIMER-11 TIMER-14
    testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers 7998 TIMER-12
    testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders 8050 TIMER-13 GEN-17
    testRebalanceDoesNotTimeOutWhenAllSyncAreReceived 8111 TIMER-15 testDescribeGroupRebalancing 8529 ADMIN-04
    testDescribeGroupsGroupIdNotFoundException 8580 ADMIN-01 testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember
    8587 STATIC-21 testPendingMembersLeaveGroup 8663 LEAVE-07 testValidLeaveGroup 8778 LEAVE-04 LEAVE-06
    testStaticMembersValidBatchLeaveGroup 8893 LEAVE-22 STATIC-29 testPendingMemberBatchLeaveGroup 9021 LEAVE-10
    testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember 9090 LEAVE-11
    testClassicGroupOnUnloadedCompletingRebalance 10195 FAILOVER-11
  OffsetMetadataManagerTest.java
    testOffsetCommitWithUnknownGroup 577 COMMIT-11 testGenericGroupOffsetCommitWithUnknownMemberId 638 COMMIT-05
    COMMIT-29 testGenericGroupOffsetCommitWithIllegalGeneration 667 COMMIT-04
    testGenericGroupOffsetCommitWithFencedInstanceId 737 COMMIT-21
    testGenericGroupOffsetCommitWhileInCompletingRebalanceState 770 COMMIT-03
    testGenericGroupOffsetCommitWithoutMemberIdAndGeneration 807 COMMIT-09 testGenericGroupOffsetCommitWithRetentionTime
    842 COMMIT-26 testGenericGroupOffsetCommitMaintainsSession 910 COMMIT-19
    testConsumerGroupOffsetCommitWithOffsetMetadataTooLarge 1310 COMMIT-15 testGenericGroupTransactionalOffsetCommit
    1544 COMMIT-33 testFetchOffsetsWithUnknownGroup 1742 FETCH-03 testFetchOffsetsWithPendingTransactionalOffsets 1913
    FETCH-10 FETCH-11 testGenericGroupOffsetDelete 2319 ADMIN-28
    testCleanupExpiredOffsetsWithPendingTransactionalOffsets 2572 COMMIT-30 COMMIT-34 ADMIN-36
    testReplayWithTombstoneAndPendingTransactionalOffsets 2730 FAILOVER-22 testReplayTransactionEndMarkerWithCommit 2780
    FETCH-16
group-coordinator/src/test/java/org/apache/kafka/coordinator/group/classic/
  ClassicGroupMemberTest.java
    testMatchesSupportedProtocols 41 JOIN-34 testVoteForPreferredProtocol 94 GEN-10 testHasHeartbeatSatisfied 236
    TIMER-04
  ClassicGroupTest.java
    testSelectProtocol 242 GEN-09 testSelectProtocolChoosesCompatibleProtocol 311 GEN-08 testSupportsProtocols 359
    JOIN-18 testSubscribedTopics 392 ADMIN-31 testCannotAddStaticMemberIfAlreadyPresent 792 STATIC-25
    testElectNewJoinedLeader 906 GEN-06 testMaybeElectNewJoinedLeaderChooseExisting 956 GEN-07 testValidateDeleteGroup
    1105 ADMIN-16 ADMIN-17
"""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of Apache Kafka: its file, name and line, and the requirements that can be read up there."""

    path: str
    name: str
    line: int
    requirements: tuple[str, ...]

    @property
    def class_name(self) -> str:
        """The class, which is what its file is called."""
        return PurePosixPath(self.path).stem


def read_methods() -> Iterator[Method]:
    """All methods of the table."""
    folder = path = name = ""
    line, ids = 0, list[str]()
    for word in [*_METHODS.split(), "/"]:
        if word.isdigit():
            line = int(word)
        elif "-" in word and word.isupper():
            ids.append(word)
        else:
            if line:
                yield Method(path, name, line, tuple(ids))
                line, ids = 0, []
            if word.endswith("/"):
                folder = word
            elif "." in word:
                path = f"{folder}{word}"
            else:
                name = word
