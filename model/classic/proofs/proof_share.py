"""What share of the judge is inside the proofs about handlers. The numbers are measured, and tests measure them again.

A rule is inside if it applies on a path of some proof, a step if its rule is, a line if the proofs run its function.
"""

INSIDE_RULES, RULES = 71, 115
"""Rules of the coordinator. Outside: transactions, fetching and deleting offsets, requests of tools, failed writes, the
gate of a coordinator that loads or is not there, clean-up."""
STEPS_PERCENT = 82
"""Of the steps that the judge settles on in the scenarios of `fencepost test bundled`."""
LINES_PERCENT = 18
"""Of the code that judges: the model of the coordinator, the reading of messages, the search for an explanation."""


def share_sentence() -> str:
    """The share, for people."""
    return (
        f"Inside the proofs about handlers: {STEPS_PERCENT} % of the steps that the judge takes in"
        f" `fencepost test bundled`, {INSIDE_RULES} of {RULES} rules, {LINES_PERCENT} % of the lines of the code that"
        " judges."
    )
