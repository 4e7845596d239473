"""The sorts of tokens that the core compares and passes on, kept apart by mypy.

A token can be compared with another one of its sort and passed on, nothing else; None is the absent one. Natively it
is a string or bytes, in a search a small number, in a proof a symbolic value. `model/proofs` makes arbitrary values of
the core's types from these annotations.
"""

from typing import Any, Literal, NewType, TypeAlias, cast

from fencepost.model.logic import Truth

MemberId = NewType("MemberId", str)
"""The id that a coordinator gives to a member."""
InstanceId = NewType("InstanceId", str)
"""The group.instance.id of a static member (KIP-345)."""
OtherProtocolType = NewType("OtherProtocolType", str)
ProtocolType: TypeAlias = OtherProtocolType | Literal["consumer"]
"""The kind of group that a member wants to be in."""
ProtocolName = NewType("ProtocolName", str)
"""The name of a protocol that a member offers, for consumers that of an assignor."""
ClientId = NewType("ClientId", str)
"""The client of a member. The core keeps it and never reads it."""
HandleNumber = NewType("HandleNumber", int)
Handle: TypeAlias = HandleNumber | Literal[0]
"""The name of a request in this run; 0 for none."""
Millis: TypeAlias = int
"""A duration in milliseconds."""
PartitionFlags: TypeAlias = tuple[Truth, ...]
"""One truth value for each partition."""
MetadataBytes = NewType("MetadataBytes", bytes)
Metadata: TypeAlias = MetadataBytes | PartitionFlags
"""The metadata under a protocol: bytes, or the partitions that the member claims."""
AssignmentBytes = NewType("AssignmentBytes", bytes)
Assignment: TypeAlias = AssignmentBytes | PartitionFlags
"""A member's assignment: bytes, or the partitions in it."""


def numbered_id(number: int) -> MemberId:
    """The number as a member id, for searches and runs that count ids."""
    token: Any = number
    return cast(MemberId, token)
