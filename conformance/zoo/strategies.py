"""The kit's strategies for finding a violation, and two baselines."""

SCHEDULES = "schedules"
"""Random schedules, by the seed."""
SCENARIOS = "scenarios"
TOURS = "tours"
REMARKS = "remarks"
"""Responses in scenarios that are allowed but unusual, and not so with the shipped coordinator."""
GROUPS = "groups"
"""Groups that an assignor makes plans for."""
STRATEGIES = (SCHEDULES, SCENARIOS, TOURS, REMARKS)
"""The kit's strategies, the plainest first; the next ones are used where it finds no violation."""
HYPOTHESIS, WALK = "hypothesis", "walk"
"""Baselines: plain Hypothesis, one request for each rule, and a random walk."""
BASELINES = (HYPOTHESIS, WALK)
