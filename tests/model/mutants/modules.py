"""The modules of the core: connectives and values, the coordinator's core, and the member."""

CORE = (
    "fencepost.model.logic",
    "fencepost.model.frozen",
    "fencepost.model.classic.core.state",
    "fencepost.model.classic.core.member_table",
    "fencepost.model.classic.core.protocol_selection",
    "fencepost.model.classic.core.join_phase",
    "fencepost.model.classic.core.join",
    "fencepost.model.classic.core.static_replacement",
    "fencepost.model.classic.core.sync",
    "fencepost.model.classic.core.membership",
    "fencepost.model.classic.core.timers",
    "fencepost.model.classic.member.member",
)
"""The modules of the core, from the bottom up. Their last names are unique: mutants are named by them."""
BY_NAME = {module.rpartition(".")[2]: module for module in CORE}
