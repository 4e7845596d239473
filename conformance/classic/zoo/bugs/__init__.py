"""Bugs of group coordinators, put back into the bundled one.

Each was shipped in an implementation and has its number in the collection of bugs. Bugs of members, assignors and
clients belong in packages of their own.
"""

from fencepost.conformance.classic.zoo.bugs.membership import admission, rounds, sessions, statics
from fencepost.conformance.classic.zoo.bugs.offsets import offsets, storage
from fencepost.conformance.zoo.fault import by_id

COORDINATOR_BUGS = by_id([admission, statics, rounds, sessions, offsets, storage])
"""Every coordinator bug by its number."""
