"""The specification of a client of the classic protocol: the duties of a member, its assignors and its polls.

A run against a coordinator knows nothing of the requirements here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.notation import read_requirements, read_rules
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.catalogue.client import assignors, membership, records

CLIENT_SUBJECT = "client"
"""What these requirements are about, as reports have it."""
CLIENT_CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "driver": "a driver that tells callbacks, returned records and errors of the client, and makes it poll",
        "restart": "a client that can be ended and started again",
        "static-membership": "a client that takes a group.instance.id",
        "cooperative": "a client with a cooperative assignor",
        "poll-interval": "a client with a poll interval",
        "auto-commit": "a client with auto-commit",
        "manual-assignment": "a client whose application can assign partitions",
        "pattern": "a client that can subscribe to a pattern",
        "assignor": "an assignor, in a client or as a function",
        "range": "an assignor named range",
        "roundrobin": "an assignor named roundrobin",
        "sticky": "an assignor named sticky",
        "cooperative-sticky": "an assignor named cooperative-sticky",
        "racks": "an assignor that knows racks",
    }
)
"""Everything in the `needs` of a client's requirements, in words that fit after "needs"."""

CLIENT_CATALOGUE, _ = read_requirements(
    *(module.REQUIREMENTS for module in (membership, assignors, records)), capabilities=CLIENT_CAPABILITIES
)
"""Every requirement of a client by its id, in the order of the families."""
MEMBER_RULES = read_rules(membership.RULES, requirements=CLIENT_CATALOGUE)
"""Every rule of the reference client by its name."""
CLASSIC_CLIENT = Specification(CLIENT_CATALOGUE, subject=CLIENT_SUBJECT, badge="kafka group client", shelf="clients")
"""It has no rules: a judge that sees requests alone cannot tell which branch of a client sent them."""
