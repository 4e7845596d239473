"""The catalogue of the client's side: the duties of a member, its assignors and its polls, as data.

The requirements of the coordinator are beside this package, in a mapping of their own; a run against a coordinator
knows nothing of those here. One module for each family, or for a few that belong together.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.classic.client.assignor import ASSIGN, RANGE, RR
from fencepost.model.catalogue.classic.client.callback import CALLBACK
from fencepost.model.catalogue.classic.client.commit import MCOMMIT
from fencepost.model.catalogue.classic.client.cooperative import COOP
from fencepost.model.catalogue.classic.client.embedded_formats import WIRE
from fencepost.model.catalogue.classic.client.heartbeat import HBT
from fencepost.model.catalogue.classic.client.member import MEMBER
from fencepost.model.catalogue.classic.client.poll import POLL
from fencepost.model.catalogue.classic.client.prefetch import PREFETCH
from fencepost.model.catalogue.classic.client.sticky import STICKY
from fencepost.model.catalogue.requirement import Requirement

CLIENT_SUBJECT = "client"
"""What these requirements are about, as reports have it."""
_FAMILIES = (MEMBER, HBT, CALLBACK, MCOMMIT, ASSIGN, RANGE, RR, STICKY, COOP, POLL, PREFETCH, WIRE)

CLIENT_CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {requirement.id: requirement for family in _FAMILIES for requirement in family}
)
"""Every requirement of a client by its id, in the order of the families."""
