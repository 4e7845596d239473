"""Every held-out fault of clients, by its number."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.conformance.zoo.classic.clients.bug import ClientBug
from tests.acceptance.heldout_clients.assignors import assignors
from tests.acceptance.heldout_clients.fetchers import fetchers
from tests.acceptance.heldout_clients.members import members

CLIENT_FAULTS: Mapping[str, ClientBug] = MappingProxyType(
    {fault.number: fault for fault in (*members.bugs, *assignors.bugs, *fetchers.bugs)}
)
