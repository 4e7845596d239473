"""The specification of a client of the classic protocol, from its catalogue.

It has no rules: a judge that sees requests alone cannot tell which branch of a client sent them.
"""

from fencepost.model.catalogue.classic.client import CLIENT_CATALOGUE, CLIENT_SUBJECT
from fencepost.model.catalogue.specification import Specification

CLASSIC_CLIENT = Specification(CLIENT_CATALOGUE, subject=CLIENT_SUBJECT)
