"""The specifications of runs and reports that name none: the only module of this package that names
protocols."""

from collections.abc import Sequence

from fencepost.model.catalogue.design_hole import DesignHole
from fencepost.model.catalogue.push.holes import PUSH_HOLES
from fencepost.model.catalogue.region.holes import REGION_HOLES
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.selection import select_requirements
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.member.specification import CLASSIC_CLIENT
from fencepost.model.classic.rules.specification import CLASSIC
from fencepost.model.push.rules import PUSH
from fencepost.model.region.rules import REGION

DEFAULT_SPECIFICATION = CLASSIC
CLIENT_SPECIFICATION = CLASSIC_CLIENT
"""The requirements of clients."""
SPECIFICATIONS = {each.subject: each for each in (DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION)}
"""By the subject of their requirements."""
DESIGNS = ((PUSH, PUSH_HOLES), (REGION, REGION_HOLES))
"""Designs that no implementation is judged by yet: specifications with the holes of their texts."""


def select_from_all(patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of all specifications whose ids match a pattern; all of them without patterns. Raises
    `UnknownRequirement` for a pattern that no id matches."""
    return select_requirements(
        [each for one in SPECIFICATIONS.values() for each in one.requirements.values()], patterns
    )


def select_to_explain(patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """As `select_from_all`, among the requirements of designs too."""
    specifications = (*SPECIFICATIONS.values(), *(each for each, _ in DESIGNS))
    return select_requirements([each for one in specifications for each in one.requirements.values()], patterns)


def design_of(requirement: Requirement) -> tuple[Specification, tuple[DesignHole, ...]] | None:
    """The design that has a requirement, with the holes that break it; None if no design has it."""
    for specification, holes in DESIGNS:
        if requirement.id in specification.requirements:
            return specification, tuple(hole for hole in holes.values() if requirement.id in hole.requirements)
    return None


def specification_of(requirement: Requirement) -> Specification:
    """The specification that has a requirement."""
    return next(each for each in SPECIFICATIONS.values() if requirement.id in each.requirements)
