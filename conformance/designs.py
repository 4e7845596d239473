"""Protocols that began as the text of a design, push and region: what `explain` tells of the holes of the text."""

from fencepost.model.catalogue.design_hole import DesignHole
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.specification import Specification
from fencepost.model.push.holes import PUSH_HOLES
from fencepost.model.push.rules import PUSH
from fencepost.model.region.holes import REGION_HOLES
from fencepost.model.region.rules import REGION

DESIGNS = ((PUSH, PUSH_HOLES), (REGION, REGION_HOLES))
"""The specification of each design, with the holes of its text."""


def design_of(requirement: Requirement) -> tuple[Specification, tuple[DesignHole, ...]] | None:
    """The design that has a requirement, with the holes that break it; None if no design has it."""
    for specification, holes in DESIGNS:
        if requirement.id in specification.requirements:
            return specification, tuple(hole for hole in holes.values() if requirement.id in hole.requirements)
    return None
