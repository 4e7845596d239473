"""A toy protocol for the engines, none of which changes for it: one lease that expires, with a fencing token."""

from fencepost.model.protocols import ProtocolEntry

LEASE = ProtocolEntry(
    "lease",
    specifications={"lease": "tests.support.lease.protocol:SPECIFICATION"},
    judge="tests.support.lease.protocol:LeaseProtocol",
    description="tests.support.lease.protocol:LEASE",
)
