"""Where the parts of the proposal of client-side assignment are: a dialect of the classic protocol."""

from fencepost.model.protocols import ProtocolEntry

PROPOSAL = ProtocolEntry(
    "proposal",
    messages="fencepost.model.proposal.messages:TABLE",
    coordinator="fencepost.adapters.proposal.coordinator:PROPOSAL",
    commands={"explore": "fencepost.conformance.proposal.report:explore"},
)
