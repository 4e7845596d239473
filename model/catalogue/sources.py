"""Where the sources of requirements can be read: the address of a proposal, a ticket, or a file of Apache Kafka.

A source without an address has none here: a book, a page whose address was not looked up, a requirement of our own.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import PurePosixPath

TICKET = "https://issues.apache.org/jira/browse/"
PROPOSAL = "https://cwiki.apache.org/confluence/display/KAFKA/"
JAVADOC = "https://kafka.apache.org/38/javadoc/org/apache/kafka/clients/consumer/"
GITHUB = "https://github.com/"
TEST = f"{GITHUB}apache/kafka/blob/3.8.0/"
KAFKA, CHAPTER = "Apache Kafka source", "consumer group protocol chapter"
SCHEMAS = "clients/src/main/resources/common/message/"
COORDINATOR = "group-coordinator/src/main/java/org/apache/kafka/coordinator/group/GroupCoordinatorShard.java"
_PROPOSALS = """
KIP-41%3A+KafkaConsumer+Max+Records KIP-54+-+Sticky+Partition+Assignment+Strategy
KIP-62%3A+Allow+consumer+to+send+heartbeats+from+a+background+thread KIP-74%3A+Add+Fetch+Response+Size+Limit+in+Bytes
KIP-88%3A+OffsetFetch+Protocol+Update KIP-134%3A+Delay+initial+consumer+group+rebalance
KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability KIP-229%3A+DeleteGroups+API
KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation KIP-341%3A+Update+Sticky+Assignor%27s+User+Data+Protocol
KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances
KIP-394%3A+Require+member.id+for+initial+join+group+request KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol
KIP-430+-+Return+Authorized+Operations+in+Describe+Responses KIP-447%3A+Producer+scalability+for+exactly+once+semantics
KIP-496%3A+Administrative+API+to+delete+consumer+offsets KIP-518%3A+Allow+listing+consumer+groups+per+state
KIP-559%3A+Make+the+Kafka+Protocol+Friendlier+with+L7+Proxies KIP-568%3A+Explicit+rebalance+triggering+on+the+Consumer
KIP-699%3A+Update+FindCoordinator+to+resolve+multiple+Coordinators+at+a+time
KIP-800%3A+Add+reason+to+JoinGroupRequest+and+LeaveGroupRequest
KIP-814%3A+Static+membership+protocol+should+let+the+leader+skip+assignment
KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
KIP-881%3A+Rack-aware+Partition+Assignment+for+Kafka+Consumers KIP-1043%3A+Administration+of+groups
"""
_TESTS = """
clients/src/test/java/org/apache/kafka/clients/consumer/
  CooperativeStickyAssignorTest.java KafkaConsumerTest.java RangeAssignorTest.java RoundRobinAssignorTest.java
  StickyAssignorTest.java
clients/src/test/java/org/apache/kafka/clients/consumer/internals/
  AbstractCoordinatorTest.java AbstractStickyAssignorTest.java ConsumerCoordinatorTest.java
  ConsumerProtocolTest.java FetcherTest.java HeartbeatTest.java
core/src/test/scala/integration/kafka/api/
  PlaintextConsumerPollTest.scala
core/src/test/scala/unit/kafka/coordinator/group/
  GroupCoordinatorTest.scala
core/src/test/scala/unit/kafka/server/
  DeleteGroupsRequestTest.scala DescribeGroupsRequestTest.scala HeartbeatRequestTest.scala
  JoinGroupRequestTest.scala LeaveGroupRequestTest.scala ListGroupsRequestTest.scala OffsetCommitRequestTest.scala
  OffsetDeleteRequestTest.scala OffsetFetchRequestTest.scala SyncGroupRequestTest.scala
group-coordinator/src/test/java/org/apache/kafka/coordinator/group/
  GroupCoordinatorServiceTest.java GroupCoordinatorShardTest.java GroupMetadataManagerTest.java
  OffsetMetadataManagerTest.java
group-coordinator/src/test/java/org/apache/kafka/coordinator/group/classic/
  ClassicGroupMemberTest.java ClassicGroupTest.java
"""
_METHODS = """
core/src/main/scala/kafka/server/KafkaApis.scala
  getCoordinator 1668
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/GroupCoordinatorService.java
  joinGroup 314
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/GroupCoordinatorShard.java
  deleteGroups 379
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/GroupMetadataManager.java
  classicGroupHeartbeatToClassicGroup 4292 classicGroupJoinExistingMember 3063 classicGroupLeaveToClassicGroup 4562
  classicGroupSyncToClassicGroup 4028 describeGroups 565 expirePendingSync 3783 prepareRebalance 3556
  removeMemberAndUpdateClassicGroup 3402 replay 2712 rescheduleClassicGroupMemberHeartbeat 3749
  resetAndPropagateAssignmentWithError 3665 setAndPropagateAssignment 3681
  tryCompleteInitialRebalanceElseSchedule 3625 validateSyncGroup 4200
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/OffsetAndMetadata.java
  fromRequest 159
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/OffsetMetadataManager.java
  commitOffset 447 fetchOffsets 732 validateOffsetCommit 300
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/classic/ClassicGroup.java
  initNextGeneration 1309 remove 478 selectProtocol 1025 supportsProtocols 1110 updateMember 1215
"""
"""The methods of Apache Kafka 3.8.0 that requirements name, with the lines where they begin, below their file."""
_OTHERS = {
    "client-side assignment proposal": f"{PROPOSAL}Kafka+Client-side+Assignment+Proposal",
    "KIP-792": "https://cwiki.apache.org/confluence/pages/viewpage.action?pageId=191336614",
    "Redpanda source": f"{GITHUB}redpanda-data/redpanda/blob/v24.1.1/src/v/kafka/server/group.cc",
    "franz-go kfake source": f"{GITHUB}twmb/franz-go/blob/01f206a7e32c/pkg/kfake/groups.go",
}


def links_of(source: str) -> tuple[tuple[str, str | None], ...]:
    """Each source that a requirement names, with its address; None where none is known."""
    return tuple((name, _address_of(name)) for name in source.split(", "))


def _address_of(name: str) -> str | None:
    if name.startswith("KAFKA-"):
        return f"{TICKET}{name}"
    if name.endswith(" documentation"):
        return f"{JAVADOC}{name.removesuffix(' documentation')}.html"
    return f"{TEST}{SCHEMAS}{name}" if name.endswith("Request.json") else _addresses().get(name)


def links_for(source: str, apis: Collection[str]) -> tuple[tuple[str, str | None], ...]:
    """Each source that a requirement about some APIs names, with its address; for the message schemas of Apache Kafka
    the file of each API. Its source, which stands beside a chapter where nothing has an address, is the class to which
    every request about a group comes."""
    found: dict[str, str | None] = {}
    for name, address in links_of(source):
        if name == "Kafka message schema" and apis:
            found |= {f"{api}Request.json": f"{TEST}{SCHEMAS}{api}Request.json" for api in apis}
        else:
            found[name] = address
    if KAFKA in found or (CHAPTER in found and not any(found.values())):
        found[KAFKA] = f"{TEST}{COORDINATOR}"
    return tuple(found.items())


@cache
def _addresses() -> Mapping[str, str]:
    """The addresses of proposals by their number, of tests by their class, and of methods by their class and name."""
    found = dict(_OTHERS)
    for page in _PROPOSALS.split():
        found["-".join(re.findall(r"\w+", page)[:2])] = f"{PROPOSAL}{page}"
    for line in _TESTS.split():
        if line.endswith("/"):
            folder = line
        else:
            found[line.partition(".")[0]] = f"{TEST}{folder}{line}"
    for line in _METHODS.splitlines():
        words = line.split()
        if len(words) == 1:
            (path,) = words
        for method, number in zip(words[::2], words[1::2], strict=False):
            found[f"{PurePosixPath(path).stem}.{method}"] = f"{TEST}{path}#L{number}"
    return found
