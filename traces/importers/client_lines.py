"""What members of groups write into their logs, client by client: tables of messages, and the step that each tells.

A client tells what it asked for and what it was told: `ask` is a JoinGroup, `joined` its response, `synced` the
response to SyncGroup, `settled` both, `told` a Heartbeat that asks it to join again, `evicted` an error that ends its
membership, `leave` a LeaveGroup, `slow` that its application did not poll, `shares` who gets what by its leader.

The words are those of the clients' sources: `AbstractCoordinator` and `ConsumerCoordinator` (Java, 0.11 to 4.x),
`rdkafka_cgrp.c` (librdkafka, whose debug context `cgrp` writes most of them), `coordinator/base.py` (kafka-python),
`group_coordinator.py` (aiokafka), `consumer_group.go` (franz-go), `consumerGroup.js` and `runner.js` (KafkaJS).
Sarama logs no generation and no member id, so there is no table for it.
"""

import re

from fencepost.traces.importers.log_messages import LogWriter, parse_table

JAVA_LINES = """
joined 2.8- Successfully joined group with generation Generation{generationId=<gen>, memberId='<member>', protocol=...}
synced 2.8- Successfully synced group in generation Generation{generationId=<gen>, memberId='<member>', protocol=...}
settled 0.11-2.7 Successfully joined group with generation <gen>
ask 0.11- (Re-)joining group
named 3.0- Request joining group due to: need to re-join with the given member-id: <id>
told 3.0- Request joining group due to: group is already rebalancing
told 0.11-3.0 Attempt to heartbeat failed since group is rebalancing
rejoin 3.0- Request joining group due to: <reason>
shares 2.4- Finished assignment for group at generation <gen>: <shares>
leave 2.4- Member <member> sending LeaveGroup request to coordinator <any> due to <reason>
leave 2.2-2.3 Member <member> sending LeaveGroup request to coordinator ...
slow 2.8- consumer poll timeout has expired. ...
slow 2.0-2.7 This member will leave the group because consumer poll timeout has expired. ...
evicted 2.6- Attempt to heartbeat with Generation{generationId=<gen>, memberId='<member>', ...} and group instance id <any> failed due to <error>, resetting generation
evicted 0.11-2.5 Attempt to heartbeat failed for since member id <member> is not valid.
evicted 2.8- SyncGroup failed: <error> Need to re-join the group. Sent generation was Generation{generationId=<gen>, memberId='<member>', ...}
- 2.8- JoinGroup failed ...
"""  # noqa: E501
LIBRDKAFKA_LINES = """
joined - JoinGroup response: GenerationId <gen>, Protocol <any>, LeaderId <leader> (me), my MemberId <member>, member metadata count <count>: (no error)
joined - JoinGroup response: GenerationId <gen>, Protocol <any>, LeaderId <leader>, my MemberId <member>, member metadata count <n>: (no error)
named - JoinGroup response: GenerationId <n>, Protocol <any>, LeaderId <any>, my MemberId <id>, member metadata count <n>: Broker: Group member needs a valid member ID
ask - Group "<group>": join with <n> subscribed topic(s)
synced - SyncGroup response: Success ...
told - Group "<group>" heartbeat error response in state <any>: Broker: Group rebalance in progress
evicted - Group "<group>" heartbeat error response in state <any>: <error>
slow - Application maximum poll interval ...
leave - Group "<group>": leave (in state <any>)
- - Group "<group>" ...
"""  # noqa: E501
PYTHON_LINES = """
joined - Successfully joined group <group> <Generation <gen> (member_id: <member>, protocol: ...)>
settled - Successfully joined group <group> with generation <gen>
joined - Joined group '<group>' (generation <gen>) with member_id <id>
synced - Successfully synced group <group> with generation <gen>
ask - (Re-)joining group <group>
named - Received member id <member> for group <group>; will retry join-group
told - Group <group> is rebalancing; rejoining.
told - Heartbeat failed for group <group> because it is rebalancing
evicted - Heartbeat failed for group <group>: generation id is not ...
evicted - Heartbeat: local member_id was not recognized; ...
evicted - Heartbeat failed: local member_id was not recognized; ...
leave - Leaving consumer group <group> (member <member>).
leave - Leaving consumer group (<group>).
leave - LeaveGroup request succeeded
slow - Consumer poll timeout has expired. ...
slow - Heartbeat poll expired, leaving group
"""
FRANZ_LINES = """
ask - joining group; group: <group>
joined - joined; group: <group>, member_id: <member>, instance_id: <any>, generation: <gen>, leader: <word>
joined - joined, balancing group; group: <group>, member_id: <member>, instance_id: <any>, generation: <gen>, balance_protocol: <any>, leader: <word>
named - join returned MemberIDRequired, rejoining with response's MemberID; group: <group>, member_id: <id>
synced - synced; group: <group>, assigned: ...
told - heartbeat errored; group: <group>, err: REBALANCE_IN_PROGRESS: ...
evicted - heartbeat errored; group: <group>, err: <error>: ...
leave - leaving group; group: <group>, member_id: <member>, ...
"""  # noqa: E501
FRANZ_DOCUMENT_LINES = """
ask - joining group
joined - joined, balancing group
joined - joined
named - join returned MemberIDRequired, rejoining with response's MemberID
synced - synced
leave - leaving group
"""
KAFKAJS_LINES = """
ask - Starting
settled - Consumer has joined the group
told - The group is rebalancing, re-joining
evicted - The coordinator is not aware of this member, re-joining the group
leave - Stopped
"""


def beginning_of(table: str) -> str:
    """The regular expression of a whole message of a table, for a program whose messages have no mark."""
    return "|".join(re.sub(r"\(\?P<\w+>", "(?:", form.pattern.pattern) for form in parse_table(table))


def make_client(name: str, anchor: str, table: str) -> LogWriter:
    """A client by its table."""
    return LogWriter(name, re.compile(anchor), parse_table(table), tells_all=False)


JAVA_CONTEXT = (
    r"\[(?:Consumer|Worker) (?:instanceId=[^,\]]*, )?(?:clientId=(?P<client>[^,\]]*), )?groupId=(?P<group>[^\]]*)\] "
)
RDKAFKA_CONTEXT = (
    r"(?:\[?(?P<client>[^\s|\[\]]+#[a-z]+-\d+)(?:\]:?|\|) ?)?\[thrd:[^\]]*\]: (?:\S+/(?:\d+|bootstrap): )?"
)
CLIENTS = (
    make_client("the Java client", JAVA_CONTEXT, JAVA_LINES),
    make_client("librdkafka", RDKAFKA_CONTEXT, LIBRDKAFKA_LINES),
    make_client("KafkaJS", r"\[(?:Consumer|ConsumerGroup|Runner)\] ", KAFKAJS_LINES),
    make_client("kafka-python, aiokafka or an old Java client", f"(?={beginning_of(PYTHON_LINES)})", PYTHON_LINES),
    make_client("franz-go", f"(?={beginning_of(FRANZ_LINES)})", FRANZ_LINES),
    make_client("franz-go", rf"(?=(?:{beginning_of(FRANZ_DOCUMENT_LINES)})\s*$)", FRANZ_DOCUMENT_LINES),
)
"""The clients; of two that fit in one place the first is meant."""
