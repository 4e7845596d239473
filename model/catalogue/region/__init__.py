"""The requirements of a consumer group in a consistent region, read from the design page, and its holes, as data."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.region.callbacks import CALLBACKS
from fencepost.model.catalogue.region.checkpoints import CHECKPOINTS
from fencepost.model.catalogue.region.groups import GROUPS
from fencepost.model.catalogue.region.resets import RESETS
from fencepost.model.catalogue.requirement import Requirement

REGION_CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {each.id: each for family in (GROUPS, CALLBACKS, CHECKPOINTS, RESETS) for each in family}
)
"""Every requirement by its id."""
