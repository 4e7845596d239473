"""Which requirement speaks of which field of an answer."""

from types import MappingProxyType

JOIN_RESPONSE_FIELDS = MappingProxyType(
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
RESENT_RESPONSE_FIELDS = MappingProxyType({**JOIN_RESPONSE_FIELDS, "generation": "JOIN-29"})
SYNC_RESPONSE_FIELDS = MappingProxyType({"assignment": "SYNC-12", "protocol": "SYNC-21", "protocol_type": "SYNC-21"})
