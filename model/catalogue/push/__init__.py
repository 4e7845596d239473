"""The requirements of the push coordinator, read from draft revision 19, and the holes of that draft, as data."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.push.consumers import CONSUMERS
from fencepost.model.catalogue.push.coordinator import COORDINATOR
from fencepost.model.catalogue.push.membership import MEMBERSHIP
from fencepost.model.catalogue.push.rebalancing import REBALANCING
from fencepost.model.catalogue.requirement import Requirement

PUSH_CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {each.id: each for family in (COORDINATOR, MEMBERSHIP, REBALANCING, CONSUMERS) for each in family}
)
"""Every requirement by its id."""
