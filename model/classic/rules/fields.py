"""Which requirement speaks of which field of an answer."""

from types import MappingProxyType

ROUND = MappingProxyType(
    {
        "generation": "GEN-02",
        "leader": "GEN-05",
        "protocol": "GEN-09",
        "protocol_type": "GEN-12",
        "members": "JOIN-37",
        "instances": "JOIN-55",
        "member": "JOIN-39",
        "skip_assignment": "STATIC-12",
    }
)
"""Which requirement speaks of each field of a JoinGroup success."""
RESENT = MappingProxyType({**ROUND, "generation": "JOIN-29"})
GRANTED = MappingProxyType({"assignment": "SYNC-12", "protocol": "SYNC-21", "protocol_type": "SYNC-21"})
