"""Incarnations: the responses that certainly belong to one life of a group within one term of its coordinator.

Generations repeat in another term and in another life of the group, so the invariants hold within one incarnation only.
A group does not end before it is empty; so an incarnation continues while a member is certain. Without a certain member
the next response begins a new number, although the group may still be the same: queries over incarnations report only
true violations, and may miss some.
"""

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]
