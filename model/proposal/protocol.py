"""Where the parts of the proposal of client-side assignment are, a dialect of the classic protocol, and its messages.

The messages are as its draft has them, before KIP-62 and all later versions. No broker speaks them under these names,
so they have no API keys. JoinGroup was built as Kafka's version 0. SyncGroup carries the error of an assignment that
failed, for those who wait: it was never built. `fencepost.model.wire.schema` explains the notation.
"""

from fencepost.model.protocols import ProtocolEntry

PROPOSAL = ProtocolEntry(
    "proposal",
    messages="fencepost.model.proposal.protocol:TABLE",
    coordinator="fencepost.adapters.proposal.coordinator:PROPOSAL",
    commands={"explore": "fencepost.conformance.proposal.report:explore"},
)
TABLE = """
data ProposedJoinGroupRequest, versions 0
  group_id         string
  session_timeout  int32
  member_id        string
  protocol_type    string
  group_protocols  []
    protocol       string
    metadata       bytes

data ProposedJoinGroupResponse, versions 0
  error_code        int16
  group_generation  int32
  group_protocol    string
  group_leader_id   string
  member_id         string
  members           []
    member_id       string
    metadata        bytes

data ProposedSyncGroupRequest, versions 0
  group_id          string
  group_generation  int32
  member_id         string
  sync_error_code   int16
  group_state       []
    member_id       string
    state           bytes

data ProposedSyncGroupResponse, versions 0
  error_code  int16
  state       bytes

data ProposedMemberMetadata, versions 0
  version                int16
  topics                 []string
  user_data              bytes
  assignment_strategies  []string

data ProposedMemberState, versions 0
  version           int16
  topic_partitions  []
    topic           string
    partitions      []int32
  user_data         bytes
"""
