"""The specification of the classic protocol: requirements of the coordinator, and the rules that its handlers name.

Each module has a few families of requirements with the rules that satisfy them, as text. Judge, reports and documents
read them; no code interprets them to run the protocol. `client` has those of a client. Handlers never belong here.
"""

from fencepost.model.catalogue.notation import read_requirements, read_rules
from fencepost.model.catalogue.requirement import CAPABILITIES
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.catalogue import joining, lifecycle, members, offsets
from fencepost.model.classic.catalogue.reference import DIFFERENCES, describe_side
from fencepost.model.errors import Error

_MODULES = (joining, members, offsets, lifecycle)

CATALOGUE, PREREQUISITES = read_requirements(*(module.REQUIREMENTS for module in _MODULES), capabilities=CAPABILITIES)
"""Every requirement by its id in the order of the families, and the nearest prerequisites of those that have some."""
RULES = read_rules(*(module.RULES for module in _MODULES), requirements=CATALOGUE, errors=Error.__members__)
"""Every rule by its name, one for each branch of the coordinator's handlers."""
CLASSIC = Specification(CATALOGUE, RULES, PREREQUISITES, DIFFERENCES, describe_side)
"""Requirements, rules, prerequisites, and where the reference coordinators differ."""
