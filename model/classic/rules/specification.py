"""The specification of the classic protocol, from its catalogue and its table of rules."""

from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.model.catalogue.classic.differences import DIFFERENCES, describe_side
from fencepost.model.catalogue.classic.prerequisites import PREREQUISITES
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.rules import RULES

CLASSIC = Specification(CATALOGUE, RULES, PREREQUISITES, DIFFERENCES, describe_side)
