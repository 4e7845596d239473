"""The specifications of runs and reports that name none: of the modules that every command loads, the only one of this
package that names a protocol."""

from collections.abc import Iterable, Sequence

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.selection import select_requirements
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.member.specification import CLASSIC_CLIENT
from fencepost.model.classic.rules.specification import CLASSIC

DEFAULT_SPECIFICATION = CLASSIC
CLIENT_SPECIFICATION = CLASSIC_CLIENT
"""The requirements of clients."""
SPECIFICATIONS = {each.subject: each for each in (DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION)}
"""By the subject of their requirements."""


def select_from_all(patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of all specifications whose ids match a pattern; all of them without patterns. Raises
    `UnknownRequirement` for a pattern that no id matches."""
    return select_from(SPECIFICATIONS.values(), patterns)


def select_from(specifications: Iterable[Specification], patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """As `select_from_all`, among the requirements of these specifications."""
    return select_requirements([each for one in specifications for each in one.requirements.values()], patterns)


def specification_of(requirement: Requirement) -> Specification:
    """The specification that has a requirement."""
    return next(each for each in SPECIFICATIONS.values() if requirement.id in each.requirements)
