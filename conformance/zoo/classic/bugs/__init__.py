"""Bugs of group coordinators, put back into the bundled one.

Each was shipped in an implementation and has its number in the collection of bugs. Bugs of members, assignors and
clients belong in packages of their own.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.conformance.zoo.classic.bug import Bug
from fencepost.conformance.zoo.classic.bugs.admission import admission
from fencepost.conformance.zoo.classic.bugs.offsets import offsets
from fencepost.conformance.zoo.classic.bugs.rebalances import rounds
from fencepost.conformance.zoo.classic.bugs.sessions import sessions
from fencepost.conformance.zoo.classic.bugs.static_members import statics
from fencepost.conformance.zoo.classic.bugs.storage import storage

_FAMILIES = (admission, statics, rounds, sessions, offsets, storage)

COORDINATOR_BUGS: Mapping[str, Bug] = MappingProxyType(
    {bug.number: bug for bug in sorted((bug for one in _FAMILIES for bug in one.bugs), key=lambda bug: bug.number)}
)
"""Every coordinator bug by its number."""
