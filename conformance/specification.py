"""The specifications of runs and reports that name none: the only module of this package that names a protocol."""

from fencepost.model.classic.member.specification import CLASSIC_CLIENT
from fencepost.model.classic.rules.specification import CLASSIC

DEFAULT_SPECIFICATION = CLASSIC
CLIENT_SPECIFICATION = CLASSIC_CLIENT
"""The requirements of clients."""
SPECIFICATIONS = {each.subject: each for each in (DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION)}
"""By what they are about."""
