"""The requirement catalogue: the duties of a coordinator of classic groups towards its clients, as data.

One module for each family. Judge, reports and documents read it; no code interprets it to run the protocol.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.classic.admin import ADMIN
from fencepost.model.catalogue.classic.commit import COMMIT
from fencepost.model.catalogue.classic.failover import FAILOVER
from fencepost.model.catalogue.classic.fetch import FETCH
from fencepost.model.catalogue.classic.find import FIND
from fencepost.model.catalogue.classic.generation import GEN
from fencepost.model.catalogue.classic.heartbeat import HB
from fencepost.model.catalogue.classic.join import JOIN
from fencepost.model.catalogue.classic.leave import LEAVE
from fencepost.model.catalogue.classic.static import STATIC
from fencepost.model.catalogue.classic.sync import SYNC
from fencepost.model.catalogue.classic.timer import TIMER
from fencepost.model.catalogue.requirement import CAPABILITIES, Level, Requirement, Verifiability
from fencepost.model.catalogue.selection import UnknownRequirement, select_requirements

__all__ = [
    "CAPABILITIES",
    "CATALOGUE",
    "Level",
    "Requirement",
    "UnknownRequirement",
    "Verifiability",
    "is_recommendation",
    "matching_requirements",
]

_FAMILIES = (FIND, JOIN, SYNC, HB, LEAVE, COMMIT, FETCH, ADMIN, STATIC, TIMER, GEN, FAILOVER)

CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {requirement.id: requirement for family in _FAMILIES for requirement in family}
)
"""Every requirement by its id, in the order of the families."""


def is_recommendation(id: str) -> bool:
    """The requirement only says what should be: who does otherwise is unusual, and breaks nothing."""
    return id in CATALOGUE and CATALOGUE[id].level is Level.SHOULD


def matching_requirements(pattern: str) -> tuple[Requirement, ...]:
    """The requirements whose id fits a shell pattern such as "JOIN-29" or "JOIN-*", in catalogue order.

    Raises `UnknownRequirement` when there is none.
    """
    return select_requirements(CATALOGUE.values(), (pattern,))
